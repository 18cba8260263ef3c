"""Medians of very many cells: the intervals of ``statistics.median_interval``, for all at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sojourn.frame.statistics import CONFIDENCE, FloatArray, median_pairs

_AT_ONCE = 20_000_000
"""Most numbers in memory while the intervals of some cells are determined."""


@dataclass(frozen=True)
class Intervals:
    """Medians of cells with their confidence intervals, as four arrays with a value per cell; NaN without runs."""

    middle: FloatArray
    low: FloatArray
    high: FloatArray
    n: npt.NDArray[np.int64]


def median_intervals(values: FloatArray, cell_of: npt.NDArray[np.int64], cells: int) -> Intervals:
    """The median of each cell with its 95 % percentile-bootstrap interval.

    ``cell_of`` names the cell of each value. NaN values are ignored.
    """
    known = ~np.isnan(values)
    values, cell_of = values[known], cell_of[known]
    n = np.bincount(cell_of, minlength=cells)
    found = Intervals(np.full(cells, np.nan), np.full(cells, np.nan), np.full(cells, np.nan), n)
    order = np.lexsort((values, cell_of))
    ordered = values[order]
    first = np.concatenate([[0], np.cumsum(n)[:-1]])
    for count in np.unique(n[n > 0]):
        members = np.flatnonzero(n == count)
        step = max(1, _AT_ONCE // len(median_pairs(int(count))[0]))
        for begin in range(0, len(members), step):
            some = members[begin : begin + step]
            sample = ordered[first[some][:, None] + np.arange(count)]
            found.middle[some] = (sample[:, (count - 1) // 2] + sample[:, count // 2]) / 2.0
            found.low[some], found.high[some] = _ends(sample, int(count))
    return found


def ranges(found: Intervals, values: FloatArray, cell_of: npt.NDArray[np.int64]) -> Intervals:
    """The same medians, each with the least and the largest of its values instead of its interval."""
    low, high = np.full(len(found.n), np.inf), np.full(len(found.n), -np.inf)
    np.fmin.at(low, cell_of, values)
    np.fmax.at(high, cell_of, values)
    empty = found.n == 0
    return replace(found, low=np.where(empty, np.nan, low), high=np.where(empty, np.nan, high))


def _ends(sample: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """The interval of each row of sorted values."""
    below, above, times = median_pairs(count)
    medians = (sample[:, below] + sample[:, above]) / 2.0
    order = np.argsort(medians, axis=1, kind="stable")
    medians = np.take_along_axis(medians, order, axis=1)
    upto = np.cumsum(times[order], axis=1)
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = (_at(medians, upto, level) for level in (tail, 1.0 - tail))
    return low, high


def _at(medians: FloatArray, upto: npt.NDArray[np.int64], level: float) -> FloatArray:
    """The quantile of values that occur repeatedly, interpolated linearly as ``numpy.quantile`` does."""
    position = level * (int(upto[0, -1]) - 1)
    before = int(position)
    rows = np.arange(len(medians))
    ends = [medians[rows, (upto <= at).sum(axis=1)] for at in (before, before + 1)]
    result: FloatArray = ends[0] + (ends[1] - ends[0]) * (position - before)
    return result
