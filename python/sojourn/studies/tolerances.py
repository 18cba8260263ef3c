"""Tolerances around a reference, and whether two backends agree within one, by the scatter of both over their seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from statistics import NormalDist, median
from typing import NamedTuple, TypeAlias

from sojourn.frame.statistics import Interval, fewest, shift

Sample: TypeAlias = Sequence[float]

ERROR = 0.05  # chance of a wrong verdict: of ``agrees`` for a figure, of ``differs`` for all figures together
MOST = 1000  # repeats beyond which no estimate is given


class Tolerance(NamedTuple):
    """Two values agree if they differ by at most the larger of a relative and an absolute bound."""

    relative: float
    absolute: float

    def bound(self, reference: float) -> float:
        """The largest difference that agrees with this reference, in the metric's unit."""
        return max(self.relative * abs(reference), self.absolute)

    def within(self, reference: float, value: float) -> bool:
        """Whether a value agrees with its reference."""
        return abs(value - reference) <= self.bound(reference)


TOLERANCES = {
    "sojourn_p50_ms": Tolerance(0.08, 1.0),
    "sojourn_p95_ms": Tolerance(0.12, 3.0),
    "goodput_bps": Tolerance(0.01, 0.0),
    "dropped_packets": Tolerance(0.15, 5.0),
    "marked_packets": Tolerance(0.15, 5.0),
    # With two flows: shares of 71 and 29 % against halves.
    "jain_goodput": Tolerance(0.0, 0.15),
}
"""Of two backends, by metric of a bottleneck's queue. Other metrics are shown, not judged."""


class Equivalence(StrEnum):
    """Of a figure, or of all."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNDECIDED = "not enough repeats to say"


@dataclass(frozen=True)
class EquivalenceTest:
    """The verdict on one figure, with the difference on which it rests."""

    verdict: Equivalence
    difference: Interval
    """Second minus first, with its 95 % interval (``statistics.shift``)."""
    repeats: int | None
    """Repeats that a verdict takes, estimated from the scatter; None if above ``MOST``, or if there is a verdict."""


def judge(first: Sample, second: Sample, tolerance: Tolerance, figures: int, look: int = 1) -> EquivalenceTest | None:
    """Judges a figure; None if neither backend has values.

    ``agrees`` needs a 95 % interval within the tolerance around zero. ``differs`` needs one beyond it that allows for
    the number of ``figures`` that are judged together (Bonferroni). A later ``look`` at the same runs with further
    repeats has half of the former's chance of error, so that all looks together have at most ``ERROR``.
    """
    one, other = ([value for value in values if not math.isnan(value)] for values in (first, second))
    if not one and not other:
        return None
    if not one or not other:
        return EquivalenceTest(Equivalence.DIFFERS, shift(one, other, 1.0 - ERROR), None)
    chance = ERROR / 2 ** (look - 1)
    difference = shift(one, other, 1.0 - chance)
    bound = tolerance.bound(median(one))
    if -bound <= difference.low and difference.high <= bound:
        return EquivalenceTest(Equivalence.AGREES, difference, None)
    strict = 1.0 - chance / figures
    surer = shift(one, other, strict)
    if surer.low > bound or surer.high < -bound:
        return EquivalenceTest(Equivalence.DIFFERS, difference, None)
    least = _fewest(strict if abs(difference.middle) > bound else 1.0 - chance)
    return EquivalenceTest(Equivalence.UNDECIDED, difference, _needed(difference, 1.0 - chance, bound, least))


def _needed(difference: Interval, confidence: float, bound: float, least: int) -> int | None:
    """Repeats after which the interval no longer contains the tolerance's end, with even chances.

    It narrows with the root of the repeats. How far the true difference is from that end is not known better than the
    difference: the median distance over the values that the scatter allows counts, not that of the middle.
    """
    if not math.isfinite(difference.low):
        return max(least, difference.n + 1)
    reach = max(difference.high - difference.middle, difference.middle - difference.low)
    deviation = reach / NormalDist().inv_cdf(0.5 + confidence / 2)
    gap = median(abs(abs(difference.middle + deviation * step) - bound) for step in _STEPS)
    if gap * math.sqrt(MOST) <= reach * math.sqrt(difference.n):
        return None
    return max(least, difference.n + 1, math.ceil(difference.n * (reach / gap) ** 2))


_STEPS = NormalDist().quantiles(100)
"""Values of a normal distribution that are equally likely to lie between each other."""

_fewest = lru_cache(maxsize=64)(fewest)


def overall(judgements: Sequence[EquivalenceTest]) -> Equivalence:
    """``differs`` if any figure does, ``agrees`` if all do."""
    verdicts = {judgement.verdict for judgement in judgements}
    for verdict in (Equivalence.DIFFERS, Equivalence.UNDECIDED):
        if verdict in verdicts:
            return verdict
    return Equivalence.AGREES


def needed(judgements: Sequence[EquivalenceTest]) -> int | None:
    """Repeats that a verdict on all figures takes; None if that is above ``MOST``, or nothing is open."""
    open_figures = [one.repeats for one in judgements if one.verdict is Equivalence.UNDECIDED]
    known = [repeats for repeats in open_figures if repeats is not None]
    return max(known) if known and len(known) == len(open_figures) else None
