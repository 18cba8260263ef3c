"""Medians, their intervals, and curves from quantiles."""

from __future__ import annotations

import math
from typing import cast

import numpy as np
import pytest

from sojourn.frame.groups import shown_groups
from sojourn.frame.metrics import metric_called
from sojourn.frame.statistics import Interval, coverage_limit, interval_note, median_interval, pooled_curve, quantiles
from sojourn.page.tables import interval_text
from sojourn.schema import Distribution, Run
from sojourn.studies.measures import Values


def uniform(low: float, high: float, n: int) -> Distribution:
    """The summary of packets whose sojourn times are spread evenly from ``low`` to ``high``."""

    def at(level: float) -> float:
        return low + level * (high - low)

    return {
        "n": n, "mean": at(0.5), "min": low, "p1": at(0.01), "p5": at(0.05), "p10": at(0.1), "p25": at(0.25),
        "p50": at(0.5), "p75": at(0.75), "p90": at(0.9), "p95": at(0.95), "p99": at(0.99), "p99_9": at(0.999),
        "max": high,
    }  # fmt: skip


def pooled_quantile(distributions: list[Distribution], level: float) -> float:
    """The quantile at ``level`` of the packets of several runs together."""
    values, levels = pooled_curve(distributions)
    return float(np.interp(level, levels, values))


def test_the_interval_of_one_value_is_the_value():
    interval = median_interval([4.0])
    assert (interval.middle, interval.low, interval.high, interval.n) == (4.0, 4.0, 4.0, 1)


def test_the_interval_of_three_values_reaches_from_the_least_to_the_greatest():
    # A resample's median is 1 when 1 is drawn at least twice in three: 3 * (1/3)^2 * (2/3) + (1/3)^3 = 7/27 = 26 %,
    # far more than the 2.5 % that is cut off; the same for 9.
    interval = median_interval([9.0, 1.0, 2.0])
    assert (interval.middle, interval.low, interval.high) == (2.0, 1.0, 9.0)


def test_the_interval_of_many_values_leaves_out_the_extremes():
    # 101 values 0, 1, …, 100. The median's standard error is about 0.5 * sqrt(101) = 5 ranks, so 95 % is about ±10.
    interval = median_interval([float(value) for value in range(101)])
    assert interval.middle == 50.0
    assert 35.0 < interval.low < 45.0
    assert 55.0 < interval.high < 65.0


@pytest.mark.parametrize("n", [8, 24])
def test_the_interval_has_the_quantiles_of_the_medians_of_ten_thousand_resamples(n):
    # Of both an end lies between two unequal medians.
    sample = np.sort(np.random.default_rng(n).lognormal(size=n))
    drawn = np.random.default_rng(20120506).integers(0, n, size=(10_000, n))
    low, high = np.quantile(np.median(sample[drawn], axis=1), [0.025, 0.975])
    interval = median_interval(sample.tolist())
    assert (interval.low, interval.high) == pytest.approx((low, high), rel=1e-12)


def test_the_interval_is_the_same_every_time():
    values = [3.0, 1.0, 4.0, 1.5, 5.0, 9.0, 2.0, 6.0]
    assert median_interval(values) == median_interval(values)


def test_nan_values_are_left_out():
    assert median_interval([math.nan, 7.0]).middle == 7.0
    assert math.isnan(median_interval([math.nan]).middle)


def test_few_repeats_are_said_not_to_reach_95_percent():
    # 1 - 2 * (1/2)^5 = 93.75 % for five, 96.875 % for six.
    assert coverage_limit(5) == pytest.approx(0.9375)
    assert "93%" in interval_note(5, 5)
    assert "cannot" not in interval_note(6, 6)
    assert "median of 5 to 6 repeats" in interval_note(5, 6)
    assert "(with 5 it cannot cover more than 93%)" in interval_note(5, 6)


def test_a_value_of_zero_has_the_digits_of_its_interval():
    assert interval_text(Interval(0.0, 0.0, 0.0034, 6), 2) == "0.0000\n0.0000–0.0034"
    assert interval_text(Interval(0.0, 0.0, 0.0, 6), 2) == "0.00\n0.00–0.00"
    assert interval_text(Interval(0.0, 0.0, 154.6, 6), 2) == "0\n0–155"


def test_pooling_weighs_runs_by_their_packets():
    # 300 packets in 0..10 ms and 100 in 10..20 ms: three quarters of all are at or below 10 ms.
    distributions = [uniform(0.0, 10.0, 300), uniform(10.0, 20.0, 100)]
    assert pooled_quantile(distributions, 0.75) == pytest.approx(10.0)
    # Half of all packets: 2/3 of the first run's, at 6.67 ms.
    assert pooled_quantile(distributions, 0.5) == pytest.approx(20.0 / 3.0)


def test_a_run_without_packets_does_not_matter():
    assert pooled_quantile([uniform(0.0, 10.0, 50), uniform(0.0, 0.0, 0)], 0.5) == pytest.approx(5.0)
    assert pooled_curve([uniform(0.0, 0.0, 0)])[0].size == 0


def test_a_jump_in_the_distribution_stays_a_jump():
    # All packets wait exactly 0: the curve goes from 0 to 1 at 0.
    values, levels = pooled_curve([uniform(0.0, 0.0, 10)])
    assert list(values) == [0.0, 0.0]
    assert list(levels) == [0.0, 1.0]


def test_what_many_packets_share_is_a_step_of_the_curve():
    # From p90 on all packets wait as long: the curve goes up from 0.9, and p95 is that wait.
    full: Distribution = {**uniform(0.0, 10.0, 100), "p90": 9.0, "p95": 9.0, "p99": 9.0, "p99_9": 9.0, "max": 9.0}
    values, levels = pooled_curve([full])
    assert list(zip(values, levels, strict=True))[-2:] == [(9.0, 0.9), (9.0, 1.0)]
    assert pooled_quantile([full], 0.95) == 9.0
    # The same in the middle of the curve.
    step: Distribution = {**uniform(0.0, 10.0, 100), "p25": 6.0, "p50": 6.0}
    assert pooled_quantile([step], 0.3) == 6.0
    assert pooled_quantile([step, uniform(20.0, 30.0, 100)], 0.15) == 6.0


@pytest.mark.parametrize(
    ("values", "digits", "text"),
    [([4.0], 2, "4.00"), ([1.0, 2.0, 9.0], 2, "2.00\n1.00–9.00"), ([110.4, 1071.64, 1200.0], 2, "1072\n110–1200"),
     ([97.04], 1, "97.0"), ([42.126], 2, "42.1"), ([], 2, "–"), ([3.0, 4.0], 0, "4\n3–4")],
)  # fmt: skip
def test_intervals_as_text(values, digits, text):
    assert interval_text(median_interval(values), digits) == text


def test_a_quantile_is_the_smallest_value_that_the_share_does_not_exceed():
    # Half of 1, 2, 3, 4 do not exceed 2; for any more of them it takes 3.
    values = np.array([4.0, 1.0, 3.0, 2.0])
    levels = np.array([0.0, 0.25, 0.5, 0.51, 0.95, 1.0])
    assert quantiles(values, levels).tolist() == [1.0, 1.0, 2.0, 3.0, 4.0, 4.0]
    assert math.isnan(Values(np.array([])).statistic("median"))


def test_sums_of_flows_are_rounded_once_whatever_the_python():
    goodput = metric_called("goodput_bps")
    flows = [{"direction": "down", "goodput_bps": 0.1} for _ in range(10)]
    assert goodput.value(cast("Run", {"flows": flows}), "down") == 1.0


def test_flows_belong_to_no_single_one_of_several_links():
    flows = [{"direction": "down", "goodput_bps": 5.0}]
    assert math.isnan(metric_called("goodput_bps").value(cast("Run", {"flows": flows}), "home/down"))


def test_a_total_stands_at_the_place_of_its_groups_in_the_file():
    # A summary has totals behind all groups.
    groups = [
        {"name": "home 1", "traffic": 0, "total": "homes"},
        {"name": "office", "traffic": 2},
        {"name": "homes", "traffic": 0},
    ]
    assert [group["name"] for group in shown_groups(cast("Run", {"groups": groups}))] == ["homes", "office"]
