"""Medians, means and shifts with their intervals, distributions, ranks, rounded numbers.

``shift``: the difference between two samples by ranks, and its interval (Hodges and Lehmann 1963; Moses 1965).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import TypeAlias

from sojourn.frame.later import np, npt
from sojourn.schema import QUANTILES, Distribution

FloatArray: TypeAlias = "npt.NDArray[np.float64]"

CONFIDENCE = 0.95
_RESAMPLES = 10_000
_AT_ONCE = 20_000_000  # most numbers in memory while the intervals of some cells are determined
_LARGEST = 1e15  # from here on no number of a result has decimal places
_LARGE = 2500  # pairs above which the distribution of the rank sum is taken as normal


FEWEST = 6
"""The fewest values with which a difference can be clear: the interval of fewer does not reach 95 %."""


@dataclass(frozen=True)
class Interval:
    """The median or mean of some repeats and its confidence interval."""

    middle: float
    low: float
    high: float
    n: int

    @property
    def is_clear(self) -> bool:
        """True if a difference is not zero: its interval excludes it; never with fewer than ``FEWEST`` values."""
        return self.n >= FEWEST and (self.low > 0.0 or self.high < 0.0)

    def within(self, least: float, most: float) -> Interval:
        """Its part in which the true value can be, which covers that as often (Mandelkern 2002, Stat. Sci.)."""
        return Interval(self.middle, min(max(self.low, least), most), max(min(self.high, most), least), self.n)


def or_none(value: float) -> float | None:
    """A number for JSON, which has none that is not finite."""
    return value if math.isfinite(value) else None


@lru_cache(maxsize=64)
def median_pairs(n: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The indices of the two of ``n`` sorted values whose mean is a resample's median, and how often each occurs."""
    if n == 1:
        one = np.zeros(1, dtype=np.int64)
        return one, one, one + 2
    # A fixed seed: the same runs have the same interval on every machine.
    drawn = np.random.default_rng(20120506).integers(0, n, size=(_RESAMPLES, n))
    middle = [(n - 1) // 2, n // 2]
    drawn.partition(middle, axis=1)
    pairs, times = np.unique(drawn[:, middle], axis=0, return_counts=True)
    return pairs[:, 0], pairs[:, 1], times.astype(np.int64)


def apart(value: float, base: float) -> float:
    """The difference; none between sums that only rounding distinguishes, which an interval would exclude zero by."""
    return 0.0 if math.isclose(value, base, rel_tol=1e-12) else value - base


def median_interval(values: Sequence[float]) -> Interval:
    """The median and its 95 % percentile-bootstrap interval (Efron 1979), 10 000 resamples.

    NaN values are ignored. The interval of a single value is that value; of none, NaN. The interval is never wider than
    the range of the values, so its true coverage is at most ``coverage_limit(n)``.
    """
    known = [float(value) for value in values if not math.isnan(value)]
    if len(set(known)) < 2:
        middle = (known[0] + known[-1]) / 2.0 if known else math.nan
        return Interval(middle, middle, middle, len(known))
    found = median_intervals(np.array(known), np.zeros(len(known), np.int64), 1)
    return Interval(float(found.middle[0]), float(found.low[0]), float(found.high[0]), len(known))


@dataclass(frozen=True)
class Intervals:
    """Medians of cells with their confidence intervals, as four arrays with a value per cell; NaN without runs."""

    middle: FloatArray
    low: FloatArray
    high: FloatArray
    n: npt.NDArray[np.int64]


def median_intervals(values: FloatArray, cell_of: npt.NDArray[np.int64], cells: int) -> Intervals:
    """``median_interval`` for very many cells at once; ``cell_of`` names the cell of each value."""
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
    apart, share = ends[1] - ends[0], position - before
    result: FloatArray = ends[0] + apart * share if share < 0.5 else ends[1] - apart * (1.0 - share)
    return result


def mean_interval(values: Sequence[float] | FloatArray) -> Interval:
    """The mean of the values but NaN, with its 95 % interval by Student's t, as if they were normally distributed."""
    sample = np.asarray([value for value in values if not math.isnan(value)], dtype=np.float64)
    n = int(sample.size)
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, 0)
    mean = float(sample.mean())
    reach = student_t(n - 1) * float(sample.std(ddof=1)) / math.sqrt(n) if n > 1 else 0.0
    return Interval(mean, mean - reach, mean + reach, n)


@lru_cache(maxsize=256)
def student_t(freedom: int) -> float:
    """The two-sided 95 % point of Student's t with ``freedom`` degrees of freedom: 12.706 for 1, 1.960 for many."""
    low, high = 0.0, 16.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _within(middle, freedom) < CONFIDENCE else (low, middle)
    return high


def _within(t: float, freedom: int) -> float:
    """The probability that Student's t lies in (-t, t) (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    theta = math.atan(t / math.sqrt(freedom))
    if freedom == 1:
        return 2.0 * theta / math.pi
    cosine = math.cos(theta)
    odd = freedom % 2
    term = total = cosine if odd else 1.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    inner = math.sin(theta) * total
    return 2.0 / math.pi * (theta + inner) if odd else inner


def coverage_limit(n: int) -> float:
    """The largest coverage of the median by any interval inside the range of ``n`` repeats: 1 - 2^(1-n)."""
    return 1.0 - 2.0 ** (1 - n) if n > 0 else 0.0


def interval_note(fewest: int, most: int) -> str:
    """The meaning of a table's numbers, for its caption, with the fewest and the most repeats of a row."""
    if most < 2:
        return "one run per row, so no interval"
    times = f"{most}" if fewest == most else f"{fewest} to {most}"
    note = f"median of {times} repeats, below it its {CONFIDENCE:.0%} bootstrap confidence interval"
    limit = coverage_limit(max(fewest, 2))
    if limit < CONFIDENCE:
        few = "so few" if fewest == most else max(fewest, 2)
        note += f" (with {few} it cannot cover more than {math.floor(100 * limit)}%)"
    return note


def quantiles(values: FloatArray, levels: FloatArray) -> FloatArray:
    """At each level, from 0 to 1, the smallest value that at least this share of all values does not exceed."""
    return np.asarray(np.quantile(values, levels, method="inverted_cdf"), dtype=np.float64)


def quantile_curve(distribution: Distribution) -> tuple[FloatArray, FloatArray]:
    """(values, cumulative probability) at the quantiles of a summary, from min at 0 to max at 1."""
    values = np.array([float(distribution[key]) for key in QUANTILES])  # type: ignore[literal-required]
    return values, np.array(list(QUANTILES.values()))


def pooled_curve(distributions: Sequence[Distribution]) -> tuple[FloatArray, FloatArray]:
    """The distribution of the packets of several runs together, as (values, cumulative probability).

    Each run's distribution function is interpolated linearly between its quantiles. The pooled one is their mean,
    weighted by packets. A value shared by many packets occurs twice: the curve has a vertical step there.
    """
    curves = [(quantile_curve(d), d["n"]) for d in distributions if d["n"] > 0]
    if not curves:
        return np.empty(0), np.empty(0)
    grid = np.unique(np.concatenate([values for (values, _), _ in curves]))
    weights = np.array([n for _, n in curves], dtype=np.float64)
    pieces = [_around(grid, *curve) for curve, _ in curves]
    below, upto = (np.average(np.vstack(side), axis=0, weights=weights) for side in zip(*pieces, strict=True))
    values, levels = np.repeat(grid, 2), np.column_stack([below, upto]).ravel()
    keep = np.column_stack([np.full(grid.size, True), upto > below]).ravel()
    return values[keep], levels[keep]


def _around(grid: FloatArray, values: FloatArray, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A distribution function just below each value and at it: the first and last of the matching quantiles."""
    first, after = np.searchsorted(values, grid, side="left"), np.searchsorted(values, grid, side="right")
    between = np.interp(grid, values, levels, left=0.0, right=1.0)
    known = after > first
    below = np.where(known, levels[np.minimum(first, levels.size - 1)], between)
    return below, np.where(known, levels[after - 1], between)


def fixed(value: float, digits: int, sign: str = "") -> str:
    """``value`` with so many decimal places; ``sign="+"`` is that of format. Python itself rounds halves to even."""
    if not math.isfinite(value) or abs(value) >= _LARGEST:
        return f"{value:{sign}.{digits}f}"
    exact = Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{exact:{sign}.{digits}f}"


def three_digits(value: float) -> str:
    """A number with three digits, or all before the decimal point; a dash for none."""
    return "–" if math.isnan(value) else f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def shift(first: Sequence[float], second: Sequence[float], confidence: float) -> Interval:
    """The median of all differences between a value of ``second`` and one of ``first``, and its interval.

    The interval has at least this confidence whatever the distribution is, if both samples have the same but for the
    shift. It is infinite if there are too few values for it (``fewest``); ``n`` is the size of the smaller sample.
    """
    differences = np.sort(np.subtract.outer(np.asarray(second, float), np.asarray(first, float)), axis=None)
    size = min(len(first), len(second))
    if size == 0:
        return Interval(math.nan, -math.inf, math.inf, 0)
    middle = float(np.median(differences))
    left_out = _left_out(len(first), len(second), confidence)
    if left_out < 0:
        return Interval(middle, -math.inf, math.inf, size)
    return Interval(middle, float(differences[left_out]), float(differences[-1 - left_out]), size)


def fewest(confidence: float) -> int:
    """The fewest values in each of two samples for which ``shift`` has an interval of this confidence."""
    size = 1
    while _left_out(size, size, confidence) < 0:
        size += 1
    return size


@lru_cache(maxsize=512)
def _left_out(first: int, second: int, confidence: float) -> int:
    """How many of the sorted differences lie outside of the interval at each end; negative if there is none."""
    tail = (1.0 - confidence) / 2.0
    pairs = first * second
    if pairs > _LARGE:
        from statistics import NormalDist

        deviation = math.sqrt(pairs * (first + second + 1) / 12.0)
        return math.floor(pairs / 2.0 - NormalDist().inv_cdf(1.0 - tail) * deviation) - 1
    # ways[taken][total]: of how many choices of so many ranks, counted from 0, the sum is that.
    ways = np.zeros((first + 1, 1 + first * (first + second)))
    ways[0, 0] = 1.0
    for rank in range(first + second):
        ways[1:, rank:] += ways[:-1, : ways.shape[1] - rank].copy()
    least = first * (first - 1) // 2
    totals = ways[first, least : least + pairs + 1]
    below = np.cumsum(totals) / totals.sum()
    return int(np.searchsorted(below, tail, side="right")) - 1
