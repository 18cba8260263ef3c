"""Distribution against distribution: its arithmetic, and that what is kept belongs to the scenarios."""

from __future__ import annotations

import random
import sys
from math import comb
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import ROOT

VALIDATION = ROOT / "validation"
sys.path.insert(0, str(VALIDATION))

import distributions  # noqa: E402
import distributions_page  # noqa: E402
from comparison import JUDGED, compare  # noqa: E402
from distributions import given, keep, read  # noqa: E402
from distributions_page import STEPS, Scenario, p_value, page, settling  # noqa: E402


def test_the_probability_is_exact():
    # Apart entirely: one way of comb(10, 5), on either side.
    assert p_value([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]) == pytest.approx(2 / comb(10, 5))
    assert p_value([6, 7, 8], [1, 2, 3, 4]) == pytest.approx(2 / comb(7, 3))
    # Rank sums of 2 of 4: 3 4 5 5 6 7, the mean 5. That of {1, 3} is 4: as far or farther are 3, 4, 6 and 7.
    assert p_value([1, 3], [2, 4]) == pytest.approx(4 / 6)
    # Ranks 1, 2.5, 2.5, 4 and the sum 3.5 of {1, 2.5}: so are two of six, and two as far above.
    assert p_value([1, 2], [2, 3]) == pytest.approx(4 / 6)
    assert p_value([7, 7, 7], [7, 7]) == 1.0


@pytest.mark.parametrize(
    ("first", "second", "choices"),
    [
        ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0], 2),  # rank sums 6 and 15
        ([1.0, 2.0, 4.0], [3.0, 5.0, 6.0], 4),  # 7 or less, 14 or more: 1+2+3, 1+2+4 and their mirrors
        ([1.0, 4.0, 5.0], [2.0, 3.0, 6.0], 20),  # 10 of 10.5: every choice is as uneven
    ],
)
def test_the_rank_sum_test_counts_choices(first: list[float], second: list[float], choices: int):
    assert p_value(first, second) == pytest.approx(choices / 20)


@pytest.mark.parametrize("apart", [0.0, 0.3, 0.6])
def test_with_many_values_the_probability_is_nearly_exact(monkeypatch: pytest.MonkeyPatch, apart: float):
    draw = random.Random(1)
    # Whole numbers, so that many are equal.
    first = [float(round(draw.gauss(5 + apart, 1))) for _ in range(60)]
    second = [float(round(draw.gauss(5, 1))) for _ in range(90)]
    nearly = p_value(first, second)
    monkeypatch.setattr(distributions_page, "EXACT", len(first) + len(second))
    assert nearly == pytest.approx(p_value(first, second), rel=0.03, abs=1e-5)


def test_many_equal_values_do_not_differ():
    assert p_value([7.0] * 60, [7.0] * 240) == 1.0


def run(**figures: Any) -> dict[str, Any]:
    return {"p50_ms": 10.0, "p95_ms": 20.0, "goodput_mbps": 9.5, "drops_and_marks": 100.0} | figures


def test_medians_are_judged_and_samples_tested():
    linux = [run(p50_ms=10.0 + seed) for seed in range(5)]
    ours = [run(p50_ms=10.9 + seed, goodput_mbps=9.0) for seed in range(5)]
    found = {pair.metric.key: pair for pair in compare(linux, ours, JUDGED)}
    assert found["p50_ms"].within
    assert found["p50_ms"].distance(found["p50_ms"].median) == pytest.approx(0.9)
    assert p_value(found["p50_ms"].reference, found["p50_ms"].values) > 0.1
    assert not found["goodput_mbps"].within
    assert p_value(found["goodput_mbps"].reference, found["goodput_mbps"].values) == pytest.approx(2 / comb(10, 5))
    assert "timeouts" not in found


def test_figures_that_scatter_more_need_more_seeds():
    def scattered(share: float) -> list[dict[str, float]]:
        return [run(p50_ms=10.0 * (1.0 + share * ((37 * seed) % 120 / 120 - 0.5))) for seed in range(120)]

    assert settling("alike", scattered(0.0)) == STEPS[0]
    assert STEPS[0] < settling("a scatter of 40 %", scattered(0.4)) < STEPS[-1]
    # Two values, each in half of the runs: no number of seeds tells which half is larger.
    assert settling("in two", [run(goodput_mbps=9.0 + seed % 2) for seed in range(120)]) == STEPS[-1]


@pytest.mark.parametrize(("settled_by", "runs"), [(60, 120), (120, 240)])
def test_the_simulator_has_twice_the_runs_where_half_do_not_settle_it(
    monkeypatch: pytest.MonkeyPatch, settled_by: int, runs: int
):
    monkeypatch.setattr(distributions, "simulate", lambda _scenario, _version, seeds: [run()] * seeds)
    monkeypatch.setattr(distributions, "settling", lambda _name, _ours: settled_by)
    assert len(distributions.beside("any", None, "6.12", None)) == runs  # type: ignore[arg-type]
    assert len(distributions.beside("any", None, "6.12", 7)) == 7  # type: ignore[arg-type]


def test_every_scenario_has_its_first_seeds_before_one_has_more(monkeypatch: pytest.MonkeyPatch):
    kept: dict[str, list[dict[str, Any]]] = {}
    done: list[tuple[str, int]] = []

    def measured(scenario: Any, _backend: Any, runs: int, *, first: int) -> list[dict[str, Any]]:
        done.append((scenario.path.stem, first + runs - 1))
        return [run()] * runs

    wanted = {"alike": STEPS[0], "scattered": STEPS[2]}
    monkeypatch.setattr(distributions, "built", lambda: [SimpleNamespace(release="6.12.1")])
    monkeypatch.setattr(distributions, "Linux", lambda kernel: kernel)
    monkeypatch.setattr(distributions, "measured", measured)
    monkeypatch.setattr(distributions, "read", lambda: {"6.12.1": kept})
    monkeypatch.setattr(distributions, "keep", lambda _release, name, rows: kept.update({name: rows}))
    monkeypatch.setattr(distributions, "simulate", lambda _scenario, _version, _seeds: [])
    monkeypatch.setattr(distributions, "settling", lambda name, _ours: wanted[name])
    chosen = {name: SimpleNamespace(path=VALIDATION / f"{name}.toml") for name in wanted}
    distributions.measure("6.12", chosen, None, minutes=0.0)  # type: ignore[arg-type]
    assert done == []
    distributions.measure("6.12", chosen, None, minutes=60.0)  # type: ignore[arg-type]
    assert done == [("alike", 5), ("scattered", 5), ("scattered", 15), ("scattered", 30)]


def test_the_page_lists_what_failed_first():
    same, slower = [run()] * 5, [run(p50_ms=30.0)] * 5
    text = page(
        [Scenario("first", dict.fromkeys(("6.1.9", "6.12.1"), same), {"6.1.9": same, "6.12.1": slower})],
        {"first": "It is slow."},
        of=2,
    )
    assert "Linux 6.1.9: 1 of 1 (100%, target 95%) scenarios" in text
    assert "Linux 6.12.1: 0 of 1 (0%, target 95%) scenarios" in text
    assert "1 of 2 scenarios were measured" in text
    assert text.count("- In 0 of 1 a figure is beyond its tolerance and differs by the test, too.") == 1
    assert text.count("- In 1 of 1 a figure is beyond its tolerance and differs by the test, too.") == 1
    assert text.index("## What failed") < text.index("## 6.1.9 and 6.12.1") < text.index("## All scenarios")
    assert "| first | 6.12.1 | sojourn p50 ms | 30 (30 to 30) | 10 (10 to 10) | 8.3 | " in text
    assert "- first: It is slow." in text
    assert "| first | within |  | sojourn p50 off |  |" in text


def test_a_sample_is_compared_with_itself():
    steady = Scenario("steady", {"7.3": [run()] * 15}, {"7.3": [run()] * 5})
    assert steady.by_chance("7.3") == 1.0
    wild = Scenario("wild", {"7.3": [run(p50_ms=10.0 * seed) for seed in range(15)]}, {"7.3": [run()] * 5})
    chance = wild.by_chance("7.3")
    assert chance is not None and 0.0 < chance < 0.3
    assert (steady.is_unsettled("7.3"), wild.is_unsettled("7.3")) == (False, True)
    assert Scenario("few", {"7.3": [run()] * 5}, {"7.3": [run()] * 5}).by_chance("7.3") is None


def test_what_is_kept_is_of_known_scenarios_and_whole():
    scenarios = given()
    for of_kernel in read().values():
        assert of_kernel.keys() <= scenarios.keys()
        for rows in of_kernel.values():
            assert len(rows) >= 5
            for row in rows:
                assert {metric.key for metric in JUDGED} <= row.keys()


def test_what_is_kept_is_read_back(tmp_path):
    rows = [run(ping_p50_ms=None), run(p50_ms=11.0, ping_p50_ms=3.0, invalid=["late"])]
    keep("6.1.9", "first", rows, tmp_path)
    keep("6.1.9", "second", [run()], tmp_path)
    assert read(tmp_path) == {"6.1.9": {"first": rows, "second": [run()]}}


def test_our_figures_are_made_once(tmp_path, monkeypatch):
    monkeypatch.setattr(distributions, "MADE", tmp_path)
    made = []

    def runs(path, *, set):
        made.append((set["experiment.seed"], set["experiment.repeat"]))
        return SimpleNamespace(runs=range(set["experiment.seed"], set["experiment.seed"] + set["experiment.repeat"]))

    monkeypatch.setattr(distributions.sj, "run", runs)
    monkeypatch.setattr(distributions, "our_figures", lambda seed, window_s: run(p50_ms=seed))
    scenario = given()["cubic4-codel"]
    for seeds in (2, 5, 3):
        assert [row["p50_ms"] for row in distributions.simulate(scenario, "6.1", seeds)] == [1, 2, 3, 4, 5][:seeds]
    assert made == [(1, 2), (3, 3)]
    distributions.simulate(scenario, "6.12", 1)
    assert made[2:] == [(1, 1)]
