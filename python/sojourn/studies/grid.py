"""The runs of one published experiment, arranged by scheme and by place: the values of the experiment's axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from sojourn.files.typed import Strict
from sojourn.frame.results import Arm
from sojourn.studies.measures import Measure

AxisValue = int | float | bool | str
Point = Mapping[str, AxisValue]


class Alias(Strict, frozen=True):
    """An alias of another axis: its value is ``factor`` times that of ``axis``."""

    axis: str
    factor: int | float


Cell = Arm
"""The repeats of one scheme, its label, at one place."""


@dataclass
class Grid:
    """All cells of an experiment."""

    cells: list[Cell]
    measures: Mapping[str, Measure]
    aliases: Mapping[str, Alias] = field(default_factory=dict)
    constants: Point = field(default_factory=dict)
    _known: dict[tuple[int, str, str], tuple[float, ...]] = field(default_factory=dict)
    """Statistics computed so far, by cell, metric and name; parts of a grid share them."""

    @cached_property
    def schemes(self) -> list[str]:
        """All schemes, in order of appearance."""
        return list(dict.fromkeys(cell.label for cell in self.cells))

    @cached_property
    def axes(self) -> list[str]:
        """All axes, without aliases."""
        return list(dict.fromkeys(axis for cell in self.cells for axis in cell.set))

    @property
    def names(self) -> set[str]:
        """The axes, aliases and constants of this experiment."""
        return {*self.axes, *self.aliases, *self.constants}

    def place(self, name: str, value: AxisValue) -> tuple[str, AxisValue]:
        """An axis and a value on it, with aliases resolved."""
        alias = self.aliases.get(name)
        if alias is None or isinstance(value, bool | str):
            return name, value
        return alias.axis, value / alias.factor

    def values(self, axis: str) -> list[AxisValue]:
        """The values that occur on an axis, sorted."""
        axis = self.aliases[axis].axis if axis in self.aliases else axis
        return sorted(
            {cell.set[axis] for cell in self.cells if axis in cell.set},
            key=lambda value: (True, 0.0, value) if isinstance(value, str) else (False, float(value), ""),
        )

    def where(self, keep: Callable[[Cell], bool]) -> Grid:
        """The part of the grid that ``keep`` accepts."""
        return replace(self, cells=[cell for cell in self.cells if keep(cell)])

    @property
    def repeats(self) -> int:
        """The number of repeats of every cell; 0 if it differs between cells."""
        counts = {len(cell.runs) for cell in self.cells}
        return counts.pop() if len(counts) == 1 else 0

    def of(self, repeats: slice) -> Grid:
        """The grid of some repeats; runs with the same index share their seed."""
        return replace(self, cells=[replace(cell, runs=cell.runs[repeats]) for cell in self.cells], _known={})

    def is_at(self, cell: Cell, place: Mapping[str, Any]) -> bool:
        """True if a cell is at a place; a list there matches any of its values."""
        own = {**self.constants, **cell.set}
        accepted = ((name, of if isinstance(of, list) else [of]) for name, of in place.items())
        axes = ([self.place(name, value) for value in values] for name, values in accepted)
        return all(any(same(own[axis], value) for axis, value in one if axis in own) for one in axes)

    def at(self, scheme: str, point: Point) -> Iterator[Cell]:
        """The scheme's cells at a place, which need not name every axis."""
        exact = self._exact.get((scheme, frozenset(point.items())))
        if exact is not None:
            yield exact
            return
        for cell in self._by_scheme.get(scheme, ()):
            if all(axis not in cell.set or same(cell.set[axis], value) for axis, value in point.items()):
                yield cell

    @cached_property
    def _exact(self) -> dict[tuple[str, frozenset[tuple[str, AxisValue]]], Cell]:
        """An index of the cells of schemes with one cell per place, which serves nearly all requests."""
        found: dict[tuple[str, frozenset[tuple[str, AxisValue]]], Cell] = {}
        for scheme, cells in self._by_scheme.items():
            own = {(scheme, frozenset(cell.set.items())): cell for cell in cells}
            if len(own) == len(cells) and len({frozenset(cell.set) for cell in cells}) == 1:
                found |= own
        return found

    @cached_property
    def _by_scheme(self) -> dict[str, list[Cell]]:
        cells: dict[str, list[Cell]] = {}
        for cell in self.cells:
            cells.setdefault(cell.label, []).append(cell)
        return cells

    def of_repeats(self, scheme: str, metric: str, statistic: str, point: Point) -> tuple[float, ...]:
        """A statistic of every repeat at a place, NaN for one without; of a pooled metric a single one.

        It is empty if nothing was run there, or if the experiment lacks a constant that the metric adds.
        """
        cells = list(self.at(scheme, point))
        if len(cells) > 1:
            raise AmbiguousPlaceError(f"{scheme}.{metric} needs a value of every axis, has {dict(point)}")
        if not cells:
            return ()
        measure, cell = self.measures[metric], cells[0]
        key = (id(cell), metric, statistic)
        if key not in self._known:
            place = {**self.constants, **cell.set}
            self._known[key] = measure.of_repeats(cell.runs, statistic, place)
        return self._known[key]


class AmbiguousPlaceError(ValueError):
    """A formula does not determine a single cell."""


def same(left: AxisValue, right: AxisValue) -> bool:
    """True if two axis values are equal, numbers within rounding."""
    if left == right:
        return isinstance(left, bool) == isinstance(right, bool)
    if isinstance(left, str | bool) or isinstance(right, str | bool):
        return False
    return math.isclose(left, right, rel_tol=1e-9)
