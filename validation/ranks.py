"""Whether two samples differ at all: the exact rank-sum test (Wilcoxon 1945; Mann and Whitney 1947)."""

from __future__ import annotations

from collections.abc import Sequence


def p_value(first: Sequence[float], second: Sequence[float]) -> float:
    """The two-sided probability of ranks as uneven as these, or more, if both samples are of one distribution.

    Exact with equal values too: their ranks are the mean of those they take up, and every choice of ranks for the first
    sample is counted.
    """
    values = sorted([*first, *second])
    # Twice the mean rank, which is a whole number.
    doubled = {value: 2 * values.index(value) + 1 + values.count(value) for value in set(values)}
    ways = [{0: 1}, *({} for _ in first)]
    for value in values:
        for taken in range(len(first), 0, -1):
            for total, count in ways[taken - 1].items():
                total += doubled[value]
                ways[taken][total] = ways[taken].get(total, 0) + count
    totals = ways[len(first)]
    # Twice the mean of twice the sum of the ranks, again a whole number.
    middle = 2 * len(first) * (len(values) + 1)
    observed = abs(2 * sum(doubled[value] for value in first) - middle)
    uneven = sum(count for total, count in totals.items() if abs(2 * total - middle) >= observed)
    return uneven / sum(totals.values())
