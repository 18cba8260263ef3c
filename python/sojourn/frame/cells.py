"""Runs in cells: a cell is a queue and a combination of swept values; its runs are those of its seeds."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from sojourn import _core
from sojourn.files.typed import must_be
from sojourn.frame.later import pa
from sojourn.frame.registry import Column, column, is_of_queue
from sojourn.frame.statistics import FloatArray, Intervals, median_intervals, ranges
from sojourn.frame.swept import SHOWN, Quantity, phrase, quantity

LABEL = "label"
"""The key of the queues under test."""
NONE = "–"
"""The value of a key that the sweep of a run does not have."""
_NO_FIGURES = ("index", "seed", "file_row_number")


@dataclass(frozen=True)
class Axis:
    """A key with its values: in the order of numbers if all are numbers of one unit, else as they were run."""

    key: str
    texts: tuple[str, ...]
    numbers: FloatArray | None
    """The values in ``unit``; None if some are no numbers."""
    unit: str
    words: str
    """Its name for people, which distinguishes it from the other keys: ``link rate``."""

    def place_of(self, value: object) -> int | None:
        """The index of a value as a file has it; None if no run has it."""
        text = _text(float(value)) if isinstance(value, int) and not isinstance(value, bool) else _text(value)
        if self.numbers is None:
            return self.texts.index(text) if text in self.texts else None
        return self._places.get(quantity(text))

    @cached_property
    def _places(self) -> dict[Quantity | None, int]:
        return {quantity(text): index for index, text in enumerate(self.texts)}

    @property
    def axis_label(self) -> str:
        """``link rate [Mbit/s]``."""
        return f"{self.words} [{self.unit}]" if self.unit and self.numbers is not None else self.words


class CellTable(ABC):
    """Runs in cells, from which figures and pages are made. Where the runs are is up to a subclass."""

    is_pooled = False
    axes: dict[str, Axis]
    """The queues and the swept keys."""
    codes: npt.NDArray[np.int64]
    """The value of each axis in each cell, as its index in the axis; shape (cells, axes)."""
    _of_rows: npt.NDArray[np.int64]
    """The same of each run."""
    _cell_of: npt.NDArray[np.int64]
    _columns: dict[str, str]
    _links: list[str]
    _disciplines: dict[str, str]

    @property
    @abstractmethod
    def name(self) -> str:
        """The names of the experiments."""

    @abstractmethod
    def _numbers(self, column: str) -> FloatArray:
        """A column of numbers, a value per run; NaN where there is none."""

    @abstractmethod
    def _counts(self, columns: Sequence[str]) -> Sequence[int]:
        """In how many runs each column has a value."""

    def _set(self, axes: dict[str, Axis], codes: npt.NDArray[np.int64]) -> None:
        self.axes = axes
        self._of_rows = codes
        self.codes, cell_of = np.unique(codes, axis=0, return_inverse=True)
        self._cell_of = cell_of.ravel()

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def runs(self) -> int:
        """How many runs the cells have."""
        return len(self._cell_of)

    @cached_property
    def varying(self) -> list[str]:
        """The axes with more than one value."""
        return [key for key, axis in self.axes.items() if len(axis.texts) > 1]

    def axis(self, key: str, option: str) -> Axis:
        """An axis; ``option`` is how the key was asked for. Raises ExperimentError if there is none."""
        must_be(key, self.axes, option)
        return self.axes[key]

    def indices(self, key: str) -> npt.NDArray[np.int64]:
        """The value of an axis in each cell, as its index in the axis."""
        found: npt.NDArray[np.int64] = self.codes[:, list(self.axes).index(key)]
        return found

    def discipline(self, label: str) -> str:
        """The discipline of a queue."""
        return self._disciplines[label]

    @cached_property
    def metrics(self) -> list[str]:
        """The columns of figures that some run has."""
        numbers = {f"{key}_{unit}" for key in self.axes for unit in SHOWN}
        names = [
            name
            for name, kind in self._columns.items()
            if kind in ("DOUBLE", "BIGINT", "FLOAT") and name not in (*self.axes, *_NO_FIGURES, *numbers)
        ]
        if len(self._links) > 1:
            # A run has a queue at each link: which is meant is not known.
            names = [name for name in names if not is_of_queue(name)]
        return [name for name, count in zip(names, self._counts(names), strict=True) if count]

    def column(self, name: str, option: str = "--metric") -> Column:
        """What a metric is. Raises ExperimentError if no run has it."""
        if name not in self.metrics:
            if len(self._links) > 1 and is_of_queue(name):
                raise _core.ExperimentError(
                    f"{option}: {name} is of a queue, and the runs have several links, {', '.join(self._links)}: "
                    f"choose one with --where \"link = '{self._links[0]}'\", or a metric of a group of flows"
                )
            owned = [known for known in self.metrics if known.endswith(f".{name}")]
            if len(owned) == 1:
                return column(owned[0])
            near = owned or get_close_matches(name, self.metrics, 6, 0.5)
            some = f", such as {', '.join(near)}" if near else f": {', '.join(self.metrics)}"
            raise _core.ExperimentError(f'{option}: got "{name}"; must be one of the store\'s columns{some}')
        return column(name)

    def intervals(self, shown: Column) -> Intervals:
        """The median in each cell with its 95 % interval, or its range if cells are pooled: those are no sample."""
        values = self._numbers(shown.name) / shown.per
        known = np.where(np.isfinite(values), values, np.nan)
        found = median_intervals(known, self._cell_of, len(self))
        return ranges(found, known, self._cell_of) if self.is_pooled else found

    def pooled(self, keys: Iterable[str]) -> Self:
        """The same runs in larger cells, which differ only in these keys."""
        kept = [key for key in self.axes if key in set(keys)]
        other = copy.copy(self)
        other.__dict__.pop("varying", None)
        indices = [list(self.axes).index(key) for key in kept]
        other._set({key: self.axes[key] for key in kept}, self._of_rows[:, indices])
        other.is_pooled = self.is_pooled or len(other) < len(self)
        return other

    def setting(self, cell: int, keys: Sequence[str]) -> str:
        """The values of a cell, for a title: ``codel, link rate 10 Mbit/s``."""
        texts = {key: self.axes[key].texts[self.indices(key)[cell]] for key in keys}
        return ", ".join(
            # A line of a title ends after a comma.
            text if key == LABEL else phrase(self.axes[key].words, text).replace(" ", "\N{NO-BREAK SPACE}")
            for key, text in texts.items()
        )


def axis_of(key: str, name: str, column: pa.ChunkedArray) -> tuple[Axis, npt.NDArray[np.int64]]:
    """An axis from a column, and the index in it of each row."""
    coded = column.combine_chunks().dictionary_encode()
    # Null is a value, too.
    indices = coded.indices.fill_null(len(coded.dictionary)).to_numpy().astype(np.int64)
    axis, ranks = axis_of_values(key, name, coded.dictionary.to_pylist() + ([NONE] if coded.null_count else []))
    return axis, ranks[indices]


def axis_of_values(key: str, name: str, values: Iterable[object]) -> tuple[Axis, npt.NDArray[np.int64]]:
    """An axis from different values, and the index in it of each."""
    texts = list(map(_text, values))
    found = [None if key in (LABEL, "experiment") else quantity(text) for text in texts]
    known = [one for one in found if one is not None]
    if len(known) < len(found) or len({one.unit for one in known}) > 1:
        return Axis(key, tuple(texts), None, "", name), np.arange(len(texts))
    # The same value may be written in two ways: the first is shown.
    first: dict[Quantity, str] = {}
    for one, text in zip(known, texts, strict=True):
        first.setdefault(one, text)
    ordered = sorted(first)
    per, unit = SHOWN.get(known[0].unit, (1.0, ""))
    numbers = np.array([one.value / per for one in ordered])
    axis = Axis(key, tuple(first[one] for one in ordered), numbers, unit, name)
    rank = {one: index for index, one in enumerate(ordered)}
    return axis, np.array([rank[one] for one in known])


def _text(value: object) -> str:
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.12g}"
    return str(value)
