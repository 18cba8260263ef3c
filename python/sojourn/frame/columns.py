"""A store's columns of figures, as axes and tables show them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sojourn.frame.registry import Over, declared, unit_of
from sojourn.frame.rounding import fixed


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
    whose = owner.partition(".")[2] if owner.startswith(("queue.", "station.")) else owner
    for kind in _kinds(owner):
        found = next((metric for metric in declared(*kind) if metric.name == stem), None)
        if found is not None:
            words = f"{whose if kind != ('group',) else owner}: {found.words}" if owner else found.words
            return Measure(name, words, "" if found.scale else found.unit, found.per)
    unit = unit_of(name)
    if unit.is_measured:
        return Measure(name, name.removesuffix(unit.ending).replace("_", " "), unit.shown, unit.per)
    return Measure(name, name.replace("_", " "), "", 1.0)


def is_of_queue(name: str) -> bool:
    """Whether a column is of a queue, so that runs of several links have several values of it."""
    owner, _, stem = name.rpartition(".")
    of_queues = {metric.name for metric in declared("queue", "direction")}
    return stem in of_queues if not owner else owner.startswith("queue.")


def _kinds(owner: str) -> list[tuple[Over, ...]]:
    """The elements that a column's first part may name: a group of flows may be called as an inner queue is."""
    if not owner:
        return [("run", "direction", "queue")]
    inner: dict[str, Over] = {"queue": "inner_queue", "station": "station"}
    first = inner.get(owner.partition(".")[0]) if "." in owner else None
    return [("group",)] if first is None else [(first,), ("group",)]


def short(value: float) -> str:
    """A number with three significant digits, without an exponent from a thousandth to a billion."""
    if math.isnan(value):
        return "–"
    if value == 0.0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if not -4 < size < 9:
        return f"{value:.2e}"
    text = fixed(value, max(0, 2 - size))
    return text.rstrip("0").rstrip(".") if "." in text else text
