"""What studies measure of runs: parts of series, shares, first and last times, sparse distributions."""

import math

import numpy as np
import pyarrow as pa
import pytest

import sojourn as sj
from sojourn.frame import series
from sojourn.frame.registry import declared
from sojourn.frame.results import Run
from sojourn.studies.measures import Measure, Part, Quantiles


@pytest.fixture
def run():
    """Four bins of 1 s; the queue holds 0, 4, 6 and 2 packets at their ends."""
    table = pa.table(
        {
            "time_s": [0.0, 1.0, 2.0, 3.0],
            "direction": [0, 0, 0, 0],
            "backlog_packets": [0, 4, 6, 2],
            "sojourn_mean_ms": [math.nan, 10.0, 20.0, 30.0],
        }
    )
    return Run({"flows": [], "links": {}}, lambda name: table if name == "queue_series" else None)


def backlog(**changes):
    return Measure("queue_series", "packets", "backlog", column="backlog_packets", **changes)


def test_a_column_of_the_series_is_a_distribution(run):
    assert backlog().statistic(run, "mean", {}) == 3.0
    assert backlog().statistic(run, "max", {}) == 6.0


def test_bins_count_by_their_middle(run):
    # The bin from 1 s to 2 s has its middle at 1.5 s.
    assert backlog(from_s=1.6).statistic(run, "mean", {}) == 4.0
    assert backlog(to_s=1.6).statistic(run, "mean", {}) == 2.0
    # A part begins where the one before ends: each bin is in one of them.
    assert backlog(from_s=1.5).statistic(run, "mean", {}) == 4.0
    assert backlog(to_s=1.5).statistic(run, "mean", {}) == 0.0


def test_bins_without_packets_have_no_delay(run):
    delay = Measure("queue_series", "ms", "delay", column="sojourn_mean_ms")
    assert delay.statistic(run, "median", {}) == 20.0


def test_share_first_and_last_of_what_reaches_a_value(run):
    assert backlog(at_least=4).statistic(run, "value", {}) == 0.5
    assert backlog(at_least=4, tell="first").statistic(run, "value", {}) == 1.5
    assert backlog(at_least=4, tell="last").statistic(run, "value", {}) == 2.5
    assert math.isnan(backlog(at_least=7, tell="first").statistic(run, "value", {}))


def test_until_when_a_value_is_kept(run):
    assert backlog(at_least=4, tell="until").statistic(run, "value", {}) == 3.5
    # It still is at the end of the part.
    assert backlog(at_least=4, tell="until", to_s=3).statistic(run, "value", {}) == 2.5


def test_a_threshold_is_in_the_metrics_unit(run):
    # 0.6 hundred packets never, 0.06 hundred packets in one bin of four.
    assert backlog(factor=0.01, at_least=0.06).statistic(run, "value", {}) == 0.25
    assert backlog(factor=0.01, at_least=0.6).statistic(run, "value", {}) == 0.0


def test_axes_are_added_to_locations_and_not_to_spreads(run):
    shifted = backlog(plus={"rtt_base_ms": -0.5})
    assert shifted.statistic(run, "mean", {"rtt_base_ms": 4.0}) == 1.0
    assert shifted.statistic(run, "std", {"rtt_base_ms": 4.0}) == pytest.approx(math.sqrt(5.0))


def test_a_discipline_without_the_column_has_no_such_metric(run):
    absent = Measure("queue_series", "1", "p", column="probability")
    assert math.isnan(absent.statistic(run, "max", {}))


def test_round_trip_times_by_the_bin_and_one_by_one():
    # Two flows down the link, of which the second measures nothing in the first bin, and one up.
    bins = pa.table(
        {
            "time_s": [0.0, 0.0, 0.0, 1.0, 1.0, 1.0],
            "flow": [0, 1, 2, 0, 1, 2],
            "rtt_ms": [40.0, math.nan, 9.0, 50.0, 70.0, 9.0],
        }
    )
    rows = pa.table({"time_ns": [500_000_000, 700_000_000], "flow": [1, 2], "rtt_ns": [40_000_000, 9_000_000]})
    flows = [{"direction": way, "traffic": entry} for way, entry in (("down", 0), ("down", 1), ("up", 2))]
    found = Run({"flows": flows, "links": {}}, {"flow_series": bins, "rtts": rows}.get)
    assert series.rtt(found).value.tolist() == [40.0, 60.0]
    assert series.rtt(found, traffic=0).value.tolist() == [40.0, 50.0]
    assert series.round_trips(found).t_s.tolist() == [0.5]
    assert series.round_trips(found, "up").value.tolist() == [9.0]
    assert Measure("rtt_series_ms", "ms", "RTT").statistic(found, "max", {}) == 60.0
    assert Measure("recorded_rtt_ms", "ms", "RTT").statistic(found, "mean", {}) == 40.0


def test_few_quantiles_are_not_interpolated():
    few = Quantiles(np.array([0.05, 0.5, 0.95]), np.array([1.0, 2.0, 9.0]), 3.0, between=False)
    assert few.statistic("median") == 2.0
    assert few.statistic("mean") == 3.0
    assert math.isnan(few.statistic("p75"))


def test_the_delay_at_a_drop_is_that_of_the_next_packet_let_in():
    # Two packets arrive at 1 ms and 5 ms and wait 2 ms and 4 ms; drops at 2 ms, and at 9 ms after the last of them.
    packets = pa.table(
        {
            "time_ns": [3_000_000, 9_000_000, 2_000_000, 9_000_000],
            "sojourn_ns": [2_000_000, 4_000_000, 0, 0],
            "direction": [0, 0, 0, 0],
            "fate": [0, 0, 2, 3],
        }
    )
    found = series.delay_at_drops(Run({"links": {}}, lambda _name: packets))
    assert found.t_s.tolist() == [0.002]
    assert found.value.tolist() == [4.0]


def test_the_packets_of_one_traffic_are_its_data_after_the_warm_up():
    # A packet of the warm-up; then two of the game, an acknowledgement of it, and one of the download.
    packets = pa.table(
        {
            "sojourn_ns": [9_000_000, 1_000_000, 2_000_000, 3_000_000, 4_000_000],
            "flow": [0, 0, 0, 0, 1],
            "returning": [0, 0, 0, 1, 0],
            "direction": [1, 1, 1, 1, 1],
            "fate": [0, 0, 0, 0, 0],
        }
    )
    summary = {"links": {}, "flows": [{"traffic": 0}, {"traffic": 1}], "bottleneck": {"up": {"sojourn_ms": {"n": 4}}}}
    run = Run(summary, lambda name: packets if name == "packets" else None)

    def of(traffic):
        measure = Measure("packet_sojourn_ms", "ms", "delay", direction="up", traffic=traffic)
        return measure.values(run, {}).tolist()

    assert of(0) == [1.0, 2.0]
    assert of(1) == [4.0]
    assert of(None) == [1.0, 2.0, 3.0, 4.0]


def test_a_series_in_longer_bins_has_their_means():
    found = series.Series(np.array([0.5, 1.5, 2.5, 3.5]), np.array([2.0, 4.0, math.nan, 7.0]))
    longer = series.binned(found, 2.0)
    assert longer.t_s.tolist() == [1.0, 3.0]
    assert longer.value.tolist() == [3.0, 7.0]


def test_a_packets_passage_is_when_it_came_and_went():
    table = pa.table(
        {
            "time_ns": [1_000_000_000, 1_010_000_000, 1_020_000_000],
            "sojourn_ns": [0, 9_000_000, 18_000_000],
            "bytes": [1500, 1500, 750],
            "fate": [0, 0, 2],
            "direction": [0, 0, 0],
        }
    )
    found = series.passages(Run({"flows": [], "links": {}}, lambda name: table if name == "packets" else None))
    assert found.arrival_s == pytest.approx([1.0, 1.001])
    assert found.departure_s == pytest.approx([1.0, 1.01])
    assert found.bits.tolist() == [12000.0, 12000.0]


CHAIN = """
experiment = { name = "chain", duration = "2 s" }
link = [
  { name = "router", from = "home", to = "modem", rate = "9 Mbit/s" },
  { name = "line", from = "modem", to = "internet", rate = "8 Mbit/s", queue = { aqm = "dualpi2" } },
]
queue = [{ aqm = "codel" }]
traffic = [{ kind = "bulk", from = "home", to = "internet", rtt = "20 ms" }]
"""
CELL = """
experiment = { name = "cell", duration = "2 s" }
queue = [{ aqm = "fq_codel" }]
[[link]]
kind = "wifi"
name = "wifi"
standard = "802.11n"
from = "ap"
to = ["near", "far"]
station = { far = { rate = "6500 kbit/s" } }
[[traffic]]
kind = "bulk"
from = "ap"
to = "near"
rtt = "20 ms"
[[traffic]]
kind = "bulk"
from = "ap"
to = "far"
rtt = "20 ms"
"""


@pytest.fixture(scope="module")
def chain():
    return sj.run_text(CHAIN).runs[0]


def number(run, source, **part):
    measure = Measure(source, "1", "one", **part)
    return measure.statistic(run, "value", {}) if measure.applies_to(run, {}) else None


def test_a_metric_is_of_the_first_queue_under_test_or_of_the_link_that_it_names(chain):
    links = chain.summary["links"]
    assert number(chain, "dropped_aqm") == links["router"]["down"]["dropped_aqm"]
    assert number(chain, "sojourn_p95_ms", link="line") == links["line"]["down"]["sojourn_ms"]["p95"]
    assert number(chain, "sojourn_p95_ms", link="line", direction="up") is None
    delay = Measure("sojourn_ms", "ms", "delay", link="line")
    assert delay.statistic(chain, "p95", {}) == links["line"]["down"]["sojourn_ms"]["p95"]


def test_a_metric_of_an_inner_queue(chain):
    classic = chain.summary["links"]["line"]["down"]["queues"]["c"]
    assert number(chain, "delivered_packets", link="line", queue="c") == classic["delivered_packets"] > 0
    assert math.isnan(number(chain, "delivered_packets", link="line", queue="sparse"))


def test_a_metric_of_a_station():
    run = sj.run_text(CELL).runs[0]
    stations = run.summary["links"]["wifi"]["stations"]
    assert number(run, "airtime_share", station="far") == stations["far"]["airtime_share"] > 0
    assert number(run, "down_goodput_bps", station="near") == stations["near"]["down"]["goodput_bps"]
    assert number(run, "sojourn_p50_ms", link="wifi") == run.sojourn_ms()["p50"]


def test_every_number_of_the_registry_is_a_source(chain):
    for metric in declared("run", "direction", "queue"):
        assert number(chain, metric.name) is not None


def test_rates_and_counts_are_added_over_both_directions_and_quantiles_are_not():
    added = [name for name in ("goodput_bps", "dropped_packets", "rtt_ms", "timeouts") if Part().can_add(name)]
    assert len(added) == 4
    assert not any(map(Part().can_add, ("sojourn_ms", "sojourn_p95_ms", "utilization", "queue_series")))
