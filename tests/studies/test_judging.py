"""The rule by which two backends agree, on samples small enough to count by hand."""

from __future__ import annotations

import math

import pytest

from sojourn.frame.statistics import Interval
from sojourn.studies.tolerances import Equivalence, EquivalenceTest, Tolerance, judge, needed, overall

TENTH = Tolerance(0.1, 0.0)
AGREES, DIFFERS, UNDECIDED = Equivalence.AGREES, Equivalence.DIFFERS, Equivalence.UNDECIDED


def found(verdict: Equivalence, repeats: int | None = None) -> EquivalenceTest:
    return EquivalenceTest(verdict, Interval(0.0, 0.0, 0.0, 4), repeats)


def test_of_two_tolerances_the_wider_counts_and_not_their_sum():
    both = Tolerance(0.1, 3.0)
    assert [both.bound(reference) for reference in (10.0, -100.0)] == [3.0, 10.0]
    assert both.within(10.0, 13.0)
    assert not both.within(10.0, 13.5)


def test_a_later_look_needs_more_certainty():
    # Of four values each the surest interval has 1 - 2/70, 97.1 %: more than the 95 % of a first look, less than the
    # 97.5 % of a second one. Five values have 1 - 2/252.
    same = [1.0, 1.0, 1.0, 1.0]
    verdicts = [judge(same, same, TENTH, 1, look) for look in (1, 2)]
    assert [(one.verdict, one.repeats) for one in verdicts if one] == [(AGREES, None), (UNDECIDED, 5)]


def test_of_more_figures_each_needs_more_certainty_to_differ():
    one, other = [1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0]
    for first, second in ((one, other), (other, one)):
        verdicts = [judge(first, second, TENTH, figures) for figures in (1, 2)]
        assert [(made.verdict, made.repeats) for made in verdicts if made] == [(DIFFERS, None), (UNDECIDED, 5)]


def test_the_tolerance_is_a_share_of_the_first_which_is_the_reference():
    # 19 % of 10 are 1.9, of 12 they are 2.28.
    ten, twelve = [10.0] * 4, [12.0] * 4
    verdicts = [judge(*pair, Tolerance(0.19, 0.0), 1) for pair in ((ten, twelve), (twelve, ten))]
    assert [one.verdict for one in verdicts if one] == [DIFFERS, AGREES]


def test_what_only_one_of_them_has_differs_and_what_none_has_is_not_judged():
    assert judge([math.nan], [], TENTH, 1) is None
    only = judge([math.nan], [1.0], TENTH, 1)
    assert only is not None
    assert only.verdict is DIFFERS


@pytest.mark.parametrize(
    ("judgements", "verdict", "repeats"),
    [
        ([found(AGREES), found(AGREES)], AGREES, None),
        ([found(AGREES), found(UNDECIDED, 8), found(UNDECIDED, 20)], UNDECIDED, 20),
        ([found(UNDECIDED, 8), found(UNDECIDED)], UNDECIDED, None),
        ([found(DIFFERS), found(UNDECIDED, 8)], DIFFERS, 8),
    ],
)
def test_all_figures_together_take_as_many_repeats_as_the_one_that_needs_most(judgements, verdict, repeats):
    assert (overall(judgements), needed(judgements)) == (verdict, repeats)
