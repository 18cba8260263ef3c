"""The comparison with Linux: its arithmetic, and that its scenarios and figures belong together."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from conftest import ROOT
from sojourn import _core

VALIDATION = ROOT / "validation"
sys.path.insert(0, str(VALIDATION))

from comparison import JUDGED, Comparison, Departures, Metric, compare, mean_distance  # noqa: E402
from fidelity_page import ScenarioResult, tally  # noqa: E402

P50 = next(metric for metric in JUDGED if metric.key == "p50_ms")
DROPS = next(metric for metric in JUDGED if metric.key == "drops_and_marks")


@pytest.mark.parametrize(
    ("metric", "linux", "ours", "agrees"),
    [
        (P50, 100.0, 108.0, True),  # 8 % of 100 ms
        (P50, 100.0, 108.1, False),
        (P50, 2.0, 2.9, True),  # 8 % would be 0.16 ms, but 1 ms agrees in any case
        (P50, 2.0, 3.1, False),
        (DROPS, 200.0, 230.0, True),  # 15 % of 200
        (DROPS, 200.0, 169.0, False),
        (DROPS, 0.0, 5.0, True),
        (DROPS, 0.0, 6.0, False),
    ],
)
def test_the_wider_of_both_tolerances_decides(metric: Metric, linux: float, ours: float, agrees: bool):
    assert Comparison(metric, (linux,), (ours,)).within is agrees


def test_the_median_over_the_seeds_is_judged():
    assert Comparison(P50, (10.0,), (10.0, 10.2, 90.0)).within
    assert not Comparison(P50, (10.0,), (10.0, 90.0, 91.0)).within


def test_what_linux_or_a_run_did_not_measure_is_not_compared():
    linux = {"p50_ms": 10.0, "startup_peak_ms": None, "ping_p50_ms": 100.0}
    ours = [{"p50_ms": 10.0, "startup_peak_ms": 5.0, "ping_p50_ms": None}]
    assert [one.metric.key for one in compare([linux], ours)] == ["p50_ms"]


def test_the_distance_is_the_mean_error_in_tolerances():
    # 4 of 8 ms and 30 of 30 packets: (0.5 + 1) / 2. The other simulator: 8 of 8 ms, and no drops known.
    comparisons = [Comparison(P50, (100.0,), (104.0,)), Comparison(DROPS, (200.0,), (230.0,))]
    assert mean_distance(comparisons) == pytest.approx(0.75)
    assert mean_distance(comparisons, {"p50_ms": 92.0}) == pytest.approx(1.0)


def test_a_scenario_that_was_not_run_is_not_within():
    within = ScenarioResult("a", "pfifo", [Comparison(P50, (10.0,), (10.0,))])
    not_run = ScenarioResult("b", "pfifo", not_run="unknown congestion control")
    assert within.within and not not_run.within
    assert tally([within, not_run]) == "1 of 2 scenarios within every tolerance (target 90 %: missed)"


def test_further_scenarios_are_counted_apart():
    within = ScenarioResult("a", "pfifo", [Comparison(P50, (10.0,), (10.0,))])
    further = [replace(within, name=name, further=True) for name in "bc"]
    assert tally([within, *further]) == (
        "1 of 1 scenarios within every tolerance (target 90 %: reached); of further ones 2 of 2"
    )


def test_sojourn_times_are_cut_by_departure():
    left = Departures(np.array([0.05, 0.15, 0.18, 0.35]), np.array([1.0, 2.0, 4.0, 8.0]))
    assert left.within(0.15, 0.35).tolist() == [2.0, 4.0]
    np.testing.assert_equal(left.means_ms(4, 0.1), [1.0, 3.0, np.nan, 8.0])


def test_every_scenario_has_figures_and_is_accepted():
    figures = json.loads((VALIDATION / "linux" / "figures.json").read_text())
    files = sorted((VALIDATION / "linux").glob("*.toml"))
    assert [file.stem for file in files] == sorted(figures)
    for file in files:
        assert len(_core.Plan.read_file(str(file), []).jobs) == 5


def test_scenarios_of_the_speed_comparison_are_accepted():
    for file in (ROOT / "benches" / "scenarios").glob("*.toml"):
        assert len(_core.Plan.read_file(str(file), []).jobs) == 1
