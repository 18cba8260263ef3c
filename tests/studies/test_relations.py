"""The language of claims, and its evaluation over a grid of runs."""

from __future__ import annotations

import pytest

from sojourn.frame.results import Run
from sojourn.studies.evaluate import Missing, Slack, check_names, instances, outcomes
from sojourn.studies.grid import Alias, Cell, Grid
from sojourn.studies.measures import Measure, Single, Values
from sojourn.studies.relation import RelationError, parse
from sojourn.studies.tolerances import Tolerance


class Fake(Measure):
    """A measure whose run is its sample."""

    def sample(self, run):
        return run


def fake(name):
    return Fake("sojourn_ms", "ms", name)


def grid(values, measure="delay", aliases=None, constants=None):
    """A grid of one metric: ``{(scheme, (axis, value), …): sample}``."""
    cells = [Cell(scheme, dict(point), (sample,)) for (scheme, *point), sample in values.items()]
    return Grid(cells, {measure: fake(measure)}, aliases or {}, constants or {})


def single(**cells):
    """``single(a_1=3.0)``: scheme a at flows = 1 has delay 3."""
    split = {}
    for name, value in cells.items():
        scheme, flows = name.split("_")
        split[(scheme, ("flows", float(flows)))] = Single(value)
    return grid(split)


def test_a_number_may_have_the_unit_of_what_it_is_compared_with():
    planned = grid({(scheme, ("flows", 1.0)): Single(1.0) for scheme in "ab"})
    for right in ("range(a.delay.median, flows) <= 3 ms", "a.delay < b.delay + 3 ms", "a.delay.count > 2 packets"):
        check_names(right, planned, {}, number=False)
    for wrong in (
        "range(a.delay.median, flows) <= 3 s",
        "1 < 2 and a.delay < b.delay + 3 s",
        "max(a.delay, 1 ms) < 5 s",
    ):
        with pytest.raises(RelationError, match=r"[35] s: a\.delay.* is in ms"):
            check_names(wrong, planned, {}, number=False)


def holds(formula, on, **options):
    return [one.value for one in instances(formula, on, **options)]


@pytest.mark.parametrize(
    "text",
    ["a.delay.median <", "1 +", "f(a)", "a..b", "a.delay[flows]", "(a.delay", "increasing(a.delay.median, flows) and",
     "a $ b", "max(1).x", " + ".join(["a.delay.median"] * 3000)],
)  # fmt: skip
def test_what_is_not_a_formula_is_refused(text):
    with pytest.raises(RelationError):
        parse(text)
        instances(text, single(a_1=1.0))


def test_a_hyphen_inside_a_word_belongs_to_it():
    assert parse("m16-poc.delay") == parse("m16-poc . delay")
    assert parse("a - b") != parse("a-b")


def test_numbers_may_begin_with_zeros_and_comparisons_may_stand_in_brackets():
    assert parse("a.delay < 010") == parse("(a.delay < 10)")
    assert parse("(a.delay < 0.5) and (1 < a.delay)") == parse("a.delay < 00.5 and 1 < a.delay")


def test_a_relation_is_evaluated_in_every_cell():
    on = single(a_1=1.0, b_1=2.0, a_4=5.0, b_4=4.0)
    found = instances("a.delay.median < b.delay.median", on)
    assert [(one.point["flows"], one.value) for one in found] == [(1.0, True), (4.0, False)]


def test_cells_without_data_are_left_out():
    assert holds("a.delay < b.delay", single(a_1=1.0, b_1=2.0, a_4=5.0)) == [True]


def test_chained_comparisons_must_all_hold():
    assert holds("a.delay < b.delay < 3", single(a_1=1.0, b_1=2.0)) == [True]
    assert holds("a.delay < b.delay < 2", single(a_1=1.0, b_1=2.0)) == [False]
    # Each with its neighbour, not each with the last: 2 and 1 are both less than 3.
    assert holds("a.delay < b.delay < 3", single(a_1=2.0, b_1=1.0)) == [False]


def test_operators_of_one_rank_are_taken_from_the_left():
    on = single(a_1=10.0)
    assert holds("a.delay - 3 - 2 == 5 and a.delay - 3 + 2 == 9", on) == [True]
    assert holds("a.delay / 5 / 2 == 1 and a.delay / 5 * 2 == 4", on) == [True]


def test_product_binds_tighter_than_sum():
    assert holds("a.delay + 2 * 3 == 7", single(a_1=1.0)) == [True]
    assert holds("(a.delay + 2) * 3 == 9", single(a_1=1.0)) == [True]


def test_the_margin_loosens_an_inequality_by_a_share_of_its_right_side():
    on = single(a_1=102.0, b_1=100.0)
    assert holds("a.delay <= b.delay", on) == [False]
    assert holds("a.delay <= b.delay", on, slack=Slack(margin=0.02)) == [True]
    # 2 % of 100 are 2: 102.03 is outside, though it would be within 2 % of itself; and from above, 98 is the last.
    assert holds("a.delay <= b.delay", single(a_1=102.03, b_1=100.0), slack=Slack(margin=0.02)) == [False]
    assert holds("a.delay >= b.delay", single(a_1=98.0, b_1=100.0), slack=Slack(margin=0.02)) == [True]
    assert holds("a.delay >= b.delay", single(a_1=97.97, b_1=100.0), slack=Slack(margin=0.02)) == [False]


def test_the_margin_loosens_below_zero_too():
    # 2 % of -10 are 0.2: -9.9 is at most -9.8.
    on = single(a_1=0.1, b_1=10.0)
    assert holds("a.delay - b.delay <= 0 - 10", on) == [False]
    assert holds("a.delay - b.delay <= 0 - 10", on, slack=Slack(margin=0.02)) == [True]
    assert holds("0 - 10 >= a.delay - b.delay", on, slack=Slack(margin=0.02)) == [True]


def test_about_equal_is_within_a_share_of_the_larger():
    on = single(a_1=97.0, b_1=100.0)
    assert holds("a.delay ~= b.delay", on, slack=Slack(equal=Tolerance(0.03, 0.0))) == [True]
    # The same whichever side is the larger: 3 % of 97 would be 2.91.
    assert holds("b.delay ~= a.delay", on, slack=Slack(equal=Tolerance(0.03, 0.0))) == [True]
    assert holds("a.delay ~= b.delay", on, slack=Slack(equal=Tolerance(0.02, 0.0))) == [False]
    assert holds("a.delay ~= b.delay", on, slack=Slack(equal=Tolerance(0.0, 3.0))) == [True]
    # The wider of the two, not their sum: 2 % of 100 and 1 are 2 and 1.
    assert holds("a.delay ~= b.delay", on, slack=Slack(equal=Tolerance(0.02, 1.0))) == [False]


def test_any_stands_for_each_scheme_in_turn():
    found = instances("any.delay.median < 2", single(a_1=1.0, b_1=3.0))
    assert [(one.scheme, one.value) for one in found] == [("a", True), ("b", False)]


def test_any_other_leaves_out_the_schemes_that_are_named():
    found = instances("a.delay > any_other.delay", single(a_1=4.0, b_1=3.0, c_1=5.0))
    assert [(one.scheme, one.value) for one in found] == [("b", True), ("c", False)]


def test_a_metric_alone_is_of_each_scheme_and_an_axis_alone_is_its_value():
    on = single(a_1=1.0, b_1=3.0)
    assert holds("median(delay) <= flows", on, schemes=["a", "b"]) == [True, False]


def test_increasing_runs_along_its_axis_in_order_of_value():
    # 4, 16, 64, not 16, 4, 64 as text would sort.
    on = single(a_16=2.0, a_4=1.0, a_64=3.0)
    assert holds("increasing(a.delay.median, flows)", on) == [True]
    assert holds("decreasing(a.delay.median, flows)", on) == [False]
    assert holds("increasing(a.delay.median, flows)", single(a_4=1.0, a_16=1.0)) == [False]


def test_a_margin_lets_a_trend_step_back_a_little():
    on = single(a_4=1.0, a_16=0.995, a_64=2.0)
    assert holds("increasing(a.delay.median, flows)", on, slack=Slack(margin=0.01)) == [True]
    # A share of the value from which it steps back: 2 % of 100 are 2, of 98.01 they would be 1.96.
    assert holds("increasing(a.delay, flows)", single(a_1=100.0, a_2=98.01), slack=Slack(margin=0.02)) == [True]
    assert holds("decreasing(a.delay, flows)", single(a_1=98.01, a_2=100.0), slack=Slack(margin=0.02)) == [True]
    assert holds("increasing(a.delay, flows)", single(a_1=100.0, a_2=97.99), slack=Slack(margin=0.02)) == [False]


def test_slope_is_that_of_least_squares():
    # Through (1, 3), (2, 5), (3, 7): slope 2.
    assert holds("slope(a.delay, flows)", single(a_1=3.0, a_2=5.0, a_3=7.0)) == [pytest.approx(2.0)]


def test_along_an_axis_what_was_not_run_outweighs_what_was_not_seen():
    never = Single(float("nan"))
    flows = [("flows", number) for number in (1.0, 4.0, 16.0)]
    on = grid({("a", flows[0]): never, ("a", flows[1]): never, ("b", flows[0]): never, ("b", flows[2]): Single(1.0)})
    found = [outcomes(f"increasing({scheme}.delay, flows)", on)[0].value for scheme in "ab"]
    assert found == [Missing.NOT_RUN, Missing.NOT_RUN]
    both = grid({("a", flows[0]): never, ("a", flows[1]): Single(1.0)})
    assert outcomes("increasing(a.delay, flows)", both)[0].value == Missing.NOT_SEEN


def test_range_and_mean_along_an_axis():
    on = single(a_1=2.0, a_2=6.0, a_3=4.0)
    assert holds("range(a.delay, flows) / mean(a.delay, flows)", on) == [pytest.approx(1.0)]


def test_reaching_is_where_the_line_between_two_points_meets_the_level():
    # The axis itself is the height: 2.5 lies a quarter of the way from 2 to 4, 15 a quarter of that from 10 to 30.
    on = single(a_1=7.0, a_2=10.0, a_4=30.0)
    assert holds("reaching(a.delay, flows, 2.5, flows)", on) == [15.0]
    assert holds("reaching(a.delay, flows, 4, flows)", on) == [30.0]
    assert holds("reaching(a.delay, flows, 5, flows)", on) == []


def test_a_place_may_have_a_name_with_a_number():
    on = grid({("a", ("cc", "cubic-2005")): Single(3.0), ("a", ("cc", "reno")): Single(4.0)})
    assert holds("a.delay[cc=cubic-2005] + 1 == a.delay[cc=reno]", on) == [True]


def test_spread_is_p90_minus_p10():
    import numpy as np

    on = grid({("a", ("flows", 1.0)): Values(np.arange(101.0))})
    assert holds("spread(a.delay)", on) == [pytest.approx(80.0)]


def test_a_suffix_after_a_function_belongs_to_its_arguments():
    on = single(a_1=1.0, b_1=2.0, c_1=3.0)
    assert holds("max(a, b).delay < c.delay", on) == [True]
    assert holds("min(b, c).delay", on) == [2.0]


def test_a_place_in_brackets_settles_the_axis():
    on = grid({("a", ("ecn", True)): Single(3.0), ("a", ("ecn", False)): Single(2.0)})
    assert holds("a.delay[ecn=true] > a.delay[ecn=false]", on) == [True]


def test_another_word_for_an_axis_is_converted():
    on = single(a_4=1.0, a_16=2.0)
    on.aliases = {"per_pair": Alias("flows", 0.25)}
    assert holds("a.delay[per_pair=4]", on) == [2.0]
    assert holds("per_pair", on) == [1.0, 4.0]


def test_a_share_of_nothing_was_not_seen():
    (one,) = outcomes("a.delay / b.delay", single(a_1=1.0, b_1=0.0))
    assert one.value == Missing.NOT_SEEN


def test_a_constant_of_the_experiment_can_be_named():
    on = grid({("a", ("flows", 1.0)): Single(104.0)}, constants={"rtt_ms": 100.0})
    assert holds("a.delay - rtt_ms", on) == [4.0]


def test_a_derived_metric_is_put_in_for_its_scheme():
    with_ecn, without = ("ecn", True), ("ecn", False)
    of_each = {("a", with_ecn): 6.0, ("a", without): 2.0, ("b", with_ecn): 5.0, ("b", without): 5.0}
    on = grid({cell: Single(delay) for cell, delay in of_each.items()})
    derived = {"ratio": "each.delay[ecn=true] / each.delay[ecn=false]"}
    assert holds("each.ratio.value", on, derived=derived) == [3.0, 1.0]
    assert holds("a.ratio > 2", on, derived=derived) == [True]
    assert holds("b.ratio - a.ratio", on, derived=derived) == [-2.0]


@pytest.mark.parametrize("formula", ["z.delay < 1", "a.size < 1", "a.delay[depth=1]", "slope(a.delay, depth)", "depth"])
def test_names_that_the_grid_does_not_have_are_refused(formula):
    with pytest.raises(RelationError):
        instances(formula, single(a_1=1.0, a_2=1.0))


def test_a_run_counts_with_the_mean_over_its_repeats():
    cell = Cell("a", {"flows": 1.0}, (Single(1.0), Single(4.0)))
    assert holds("a.delay", Grid([cell], {"delay": fake("delay")})) == [2.5]


def test_runs_are_read_by_measures():
    summary = {"bottleneck": {"down": {"dropped_aqm": 3, "dropped_overflow": 2}}}
    assert Measure("dropped_packets", "packets", "drops").statistic(Run(summary, lambda _: None), "value", {}) == 5
