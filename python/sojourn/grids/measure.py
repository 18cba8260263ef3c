"""A store's columns of figures, as axes and tables show them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sojourn.groups import MERITS
from sojourn.metrics import METRICS, inner_metrics

_UNITS = {"_bps": (1e6, "Mbit/s"), "_ms": (1.0, "ms"), "_s": (1.0, "s"), "_bytes": (1e3, "kB")}


@dataclass(frozen=True)
class Measure:
    """A column of figures: its words, and the unit in which people see it."""

    name: str
    words: str
    unit: str
    """Empty for a bare number."""
    per: float
    """Divisor from the column's unit to ``unit``."""

    @property
    def axis_label(self) -> str:
        """``goodput [Mbit/s]``."""
        return f"{self.words} [{self.unit}]" if self.unit else self.words


def measure(name: str) -> Measure:
    """The measure of a column; what this version does not know is named as its column."""
    owner, _, stem = name.rpartition(".")
    if not owner:
        found = next((metric for metric in METRICS if metric.name == name), None)
    elif owner.startswith("queue."):
        # An inner queue; a group of flows may be called so, too.
        known = inner_metrics(owner.removeprefix("queue."))
        found = next((metric for metric in known if metric.name == name), None)
    else:
        found = None
    if found is not None:
        return Measure(name, found.words, _unit(found.heading), found.shown_per)
    merit = next((merit for merit in MERITS if merit.name == stem), None) if owner else None
    if merit is not None:
        return Measure(name, f"{owner}: {merit.words}", "" if merit.scale else _unit(merit.heading), merit.shown_per)
    for suffix, (per, unit) in _UNITS.items():
        if name.endswith(suffix):
            return Measure(name, name.removesuffix(suffix).replace("_", " "), unit, per)
    return Measure(name, name.replace("_", " "), "", 1.0)


def _unit(heading: str) -> str:
    last = heading.rpartition(" ")[2] if " " in heading else ""
    return last if last in ("ms", "s", "%", "Mbit/s", "kB") else ""


def short(value: float) -> str:
    """A number with three significant digits, without an exponent from a thousandth to a billion."""
    if math.isnan(value):
        return "–"
    if value == 0.0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if not -4 < size < 9:
        return f"{value:.2e}"
    text = f"{value:.{max(0, 2 - size)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
