"""Whether two samples differ at all: the exact rank-sum test (Wilcoxon 1945; Mann and Whitney 1947)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


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
