"""Two samples by their ranks: whether they differ at all, and by how much, without a normal distribution.

- ``p_value``: the exact rank-sum test (Wilcoxon 1945; Mann and Whitney 1947)
- ``shift``: the difference between the samples and its confidence interval (Hodges and Lehmann 1963; Moses 1965)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

from sojourn.frame.later import np
from sojourn.frame.statistics import Interval

_LARGE = 2500
"""Pairs above which the distribution of the rank sum is taken as normal."""


def p_value(first: Sequence[float], second: Sequence[float]) -> float:
    """The two-sided probability of ranks as uneven as these, or more, if both samples are of one distribution.

    Exact with equal values too: their ranks are the mean of those they take up, and every choice of ranks for the first
    sample is counted.
    """
    values = sorted([*first, *second])
    # Twice the mean rank, which is a whole number.
    doubled = {value: 2 * values.index(value) + 1 + values.count(value) for value in set(values)}
    # ways[taken, total]: of how many choices of so many values the doubled ranks sum up to that.
    ways = np.zeros((len(first) + 1, 1 + sum(doubled[value] for value in values)))
    ways[0, 0] = 1.0
    for value in values:
        rank = doubled[value]
        ways[1:, rank:] += ways[:-1, :-rank]
    totals = ways[len(first)]
    # Twice the mean of twice the sum of the ranks, again a whole number.
    middle = 2 * len(first) * (len(values) + 1)
    observed = abs(2 * sum(doubled[value] for value in first) - middle)
    uneven = np.abs(2 * np.arange(len(totals)) - middle) >= observed
    return float(totals[uneven].sum() / totals.sum())


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
