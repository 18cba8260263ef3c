"""The registry of metrics, declared in Rust (crates/measure/src/metrics.rs): name, unit, words, key in a summary."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal

import msgspec

from sojourn import _core
from sojourn.frame.statistics import fixed

Over = Literal["run", "direction", "queue", "inner_queue", "group", "station"]
"""The element of a summary that has a metric."""


class Declared(msgspec.Struct, frozen=True, dict=True):
    """A metric as it is declared."""

    name: str
    """Its name, with the unit of the summary as suffix."""
    over: Over
    at: tuple[str, ...]
    """The keys of the element that it is the sum of, dotted."""
    head: str
    unit: str
    per: float
    digits: int
    words: str
    of_application: bool
    scale: tuple[float, float] | None
    """The ends of its scale, if that does not begin at zero."""
    counted_by: str | None
    """The metric with the number of values, for a quantile that may have few."""
    not_of: str | None
    """A kind of traffic that has no such figure."""
    zero_is_none: bool
    detail: bool
    """True if tables and comparisons leave it out."""

    @property
    def heading(self) -> str:
        """The heading of a column: ``p95 ms``."""
        return f"{self.head} {self.unit}".strip()

    def of(self, element: Mapping[str, Any]) -> float:
        """The number that an element has, in the summary's unit; NaN if it has none."""
        return self.of_each([element])[0]

    def of_each(self, elements: Sequence[Mapping[str, Any] | None]) -> list[float]:
        """The numbers of many elements, for which Python takes a tenth of the time; NaN where there is none."""
        if self.not_of is not None:
            elements = [None if one is None or one["kind"] == self.not_of else one for one in elements]
        columns = [_numbers(elements, path) for path in self._paths]
        totals = columns[0] if len(columns) == 1 else list(map(math.fsum, zip(*columns, strict=True)))
        return [math.nan if total == 0.0 else total for total in totals] if self.zero_is_none else totals

    @cached_property
    def _paths(self) -> list[list[str]]:
        return [key.split(".") for key in self.at]


class Unit(msgspec.Struct, frozen=True):
    """The unit of a number in a summary, by the ending of its key or name."""

    ending: str
    unit: str
    shown: str
    per: float
    """The size of ``shown`` in ``unit``."""

    @property
    def is_measured(self) -> bool:
        """True if the ending says the unit, so that people need not see it beside the unit."""
        return self.ending.startswith("_") and self.shown != ""


def _numbers(elements: Sequence[Any], path: Sequence[str]) -> list[float]:
    for key in path:
        elements = [None if one is None else one.get(key) for one in elements]
    return [math.nan if one is None else float(one) for one in elements]


@cache
def _decoded() -> tuple[tuple[Unit, ...], tuple[Declared, ...]]:
    units = msgspec.json.decode(_core.units_json(), type=tuple[Unit, ...])
    return units, msgspec.json.decode(_core.metrics_json(), type=tuple[Declared, ...])


def unit_of(name: str) -> Unit:
    """The unit of a key or of a metric's name; a bare number if its ending says none."""
    return next((unit for unit in _decoded()[0] if name.endswith(unit.ending)), Unit("", "", "", 1.0))


@cache
def declared(*over: Over) -> tuple[Declared, ...]:
    """The metrics of these elements, in the order of tables."""
    return tuple(metric for metric in _decoded()[1] if metric.over in over)


def declared_as(name: str, *over: Over) -> Declared | None:
    """The metric of this name of one of these elements; None if there is none."""
    return next((metric for metric in declared(*over) if metric.name == name), None)


@dataclass(frozen=True)
class Column:
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


def column(name: str) -> Column:
    """The words and unit of a column of figures; one that this version does not know is named as its column."""
    owner, _, stem = name.rpartition(".")
    whose = owner.partition(".")[2] if owner.startswith(("queue.", "station.")) else owner
    inner: dict[str, Over] = {"queue": "inner_queue", "station": "station"}
    first = inner.get(owner.partition(".")[0]) if "." in owner else None
    # A group of flows may be called as an inner queue is.
    kinds: list[tuple[Over, ...]] = [("group",)] if first is None else [(first,), ("group",)]
    for kind in kinds if owner else [("run", "direction", "queue")]:
        found = declared_as(stem, *kind)
        if found is not None:
            words = f"{whose if kind != ('group',) else owner}: {found.words}" if owner else found.words
            return Column(name, words, "" if found.scale else found.unit, found.per)
    unit = unit_of(name)
    if unit.is_measured:
        return Column(name, name.removesuffix(unit.ending).replace("_", " "), unit.shown, unit.per)
    return Column(name, name.replace("_", " "), "", 1.0)


def is_of_queue(name: str) -> bool:
    """Whether a column is of a queue, so that runs of several links have several values of it."""
    owner, _, stem = name.rpartition(".")
    of_queues = {metric.name for metric in declared("queue", "direction")}
    return stem in of_queues if not owner else owner.startswith("queue.")


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
