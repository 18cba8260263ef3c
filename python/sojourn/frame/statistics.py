"""Statistics over repeats: medians and means with their confidence intervals, and curves from quantiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from sojourn.frame.later import np, npt
from sojourn.schema import QUANTILES, Distribution

FloatArray: TypeAlias = "npt.NDArray[np.float64]"

CONFIDENCE = 0.95
_RESAMPLES = 10_000


@dataclass(frozen=True)
class Interval:
    """The median or mean of some repeats and its confidence interval."""

    middle: float
    low: float
    high: float
    n: int

    def within(self, least: float, most: float) -> Interval:
        """Its part in which the true value can be, which covers that as often (Mandelkern 2002, Stat. Sci.)."""
        return Interval(self.middle, min(max(self.low, least), most), max(min(self.high, most), least), self.n)


@lru_cache(maxsize=64)
def median_pairs(n: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The indices of the two of ``n`` sorted values whose mean is a bootstrap resample's median; how often each occurs.

    They do not depend on the values, so the resamples are drawn once per number of values.
    """
    if n == 1:
        one = np.zeros(1, dtype=np.int64)
        return one, one, one + 2
    # A fixed seed: the same runs have the same interval on every machine.
    drawn = np.random.default_rng(20120506).integers(0, n, size=(_RESAMPLES, n))
    middle = [(n - 1) // 2, n // 2]
    drawn.partition(middle, axis=1)
    pairs, times = np.unique(drawn[:, middle], axis=0, return_counts=True)
    return pairs[:, 0], pairs[:, 1], times.astype(np.int64)


def median_interval(values: Sequence[float]) -> Interval:
    """The median and its 95 % percentile-bootstrap interval (Efron 1979), 10 000 resamples.

    NaN values are ignored. The interval of a single value is that value; of none, NaN. The interval is never wider than
    the range of the values, so its true coverage is at most ``coverage_limit(n)``.
    """
    numbers = sorted(float(value) for value in values if not math.isnan(value))
    if not numbers:
        return Interval(math.nan, math.nan, math.nan, 0)
    middle = (numbers[(len(numbers) - 1) // 2] + numbers[len(numbers) // 2]) / 2.0
    if numbers[0] == numbers[-1]:
        return Interval(middle, middle, middle, len(numbers))
    below, above, times = median_pairs(len(numbers))
    medians = np.repeat((np.asarray(numbers)[below] + np.asarray(numbers)[above]) / 2.0, times)
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(medians, [tail, 1.0 - tail])
    return Interval(middle, float(low), float(high), len(numbers))


def mean_interval(values: Sequence[float] | FloatArray) -> Interval:
    """The mean and its 95 % interval by Student's t, which assumes that repeats are normally distributed.

    NaN values are ignored. The interval of a single value is that value; of none, NaN.
    """
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
    """The largest coverage of the median by any interval inside the range of ``n`` repeats: 1 - 2^(1-n).

    The median lies below all of ``n`` independent values with probability 2^-n, and above all with the same. Five
    repeats cannot reach more than 93.75 %.
    """
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
    """At each level, from 0 to 1, the smallest value that at least this share of all values does not exceed.

    As in a summary, there is no interpolation. There must be values.
    """
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
