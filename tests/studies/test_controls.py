"""``sojourn evaluate --suite ccwg``: congestion controls by test cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from conftest import Cli, wrong
from sojourn.frame.results import Run
from sojourn.studies.suites import controls, criteria, find
from sojourn.studies.suites.criteria import Seen

SUITE = """
title = "Two cases"
controls = true
open = ["the buffer"]

[[case]]
id = "startup"
draft = "STARTUP ends in DRAIN"
path = "20 Mbit/s, 40 ms"
file = "path.toml"
criteria = [
    { check = "order", phases = "startup drain", by = "draft", text = "STARTUP, DRAIN", controls = ["bbr", "bbr3"] },
    { check = "goodput", at_least = 0.5, from_s = 1, by = "sojourn", text = "half of the link" },
]

[[case]]
id = "slower"
draft = "the link is slower from the beginning of DRAIN on"
path = "20 to 18 Mbit/s"
file = "path.toml"
act = { phase = "drain", set = { "link.rate" = '[["0 s", "20 Mbit/s"], ["{at}", "18 Mbit/s"]]' } }
rate = "18 Mbit/s"
criteria = [
    { check = "goodput_after", at_least = 0.5, within_s = 2, by = "sojourn", text = "half of the link within 2 s" },
]
"""
PATH = """
experiment = { duration = "4 s", repeat = 2 }
link = { rate = "20 Mbit/s", buffer = "2 bdp" }
queue = [{ aqm = "pfifo" }]
traffic = [{ kind = "bulk", rtt = "40 ms" }]
record = { series = "20 ms" }
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "suite.toml").write_text(SUITE)
    (folder / "path.toml").write_text(PATH)
    return folder


def test_verdicts_are_of_the_controls_that_have_the_state_or_of_all(sojourn: Cli, suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = sojourn("evaluate", "bbr3", "--suite", suite, "--against", "cubic", "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    card = json.loads(done.stdout)
    assert card == json.loads((out / "scorecard.json").read_text())
    startup, slower = (case["criteria"] for case in card["cases"])
    met = {"verdict": "met", "met": 2, "missed": 0}
    assert startup[0]["verdicts"] == {"bbr3": met, "cubic": None}
    assert startup[1]["verdicts"] == {"bbr3": met, "cubic": met}
    # CUBIC has no DRAIN at which to act.
    assert slower[0]["verdicts"] == {"bbr3": met, "cubic": {"verdict": "not reached", "met": 0, "missed": 0}}
    assert card["runs"] == 8 + 2
    page = (out / "scorecard.md").read_text()
    assert f"sojourn evaluate bbr3 --suite {suite} --against cubic" in page
    assert "| STARTUP, DRAIN | the draft's | met: 2 of 2 | – |" in page


OWN = """
import sojourn as sj


@sj.congestion_control("mine")
class Mine:
    def ack(self, ack, window):
        window.additive_increase(ack.delivered, window.cwnd)

    def congestion(self, signal, window):
        return max(window.cwnd // 2, 2)
"""


def test_a_control_of_one_s_own_is_a_file(sojourn: Cli, suite: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(OWN)
    done = sojourn("evaluate", file, "--suite", suite)
    assert done.returncode == 0, done.stderr
    # STARTUP is BBR's; no verdict is not the verdict that none is met.
    said = " ".join(done.stdout.split())
    assert "Of the draft's own criteria none is for these controls, or no seed got to it." in said
    assert "With thresholds of ours: mine 1 of 1." in said


def test_a_control_without_its_suite_is_told_so(sojourn: Cli, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(OWN)
    wrong(sojourn("evaluate", file), 'got "mine", a congestion control; must be with --suite ccwg')
    wrong(sojourn("evaluate", "pie", "--against", "cubic"), 'got "cubic", a congestion control')


def test_a_wrong_control_or_criterion_is_one_line(sojourn: Cli, suite: Path) -> None:
    done = sojourn("evaluate", "bbr4", "--suite", suite)
    assert (done.returncode, done.stdout) == (2, "")
    assert 'got "bbr4"' in done.stderr
    (suite / "suite.toml").write_text(SUITE.replace("from_s = 1", "from = 1"))
    done = sojourn("evaluate", "bbr3", "--suite", suite)
    assert done.returncode == 2
    assert "case.0: criteria: goodput: missing a required argument: 'from_s'" in done.stderr


def test_every_case_of_the_suite_has_a_criterion_and_names_a_check_that_there_is() -> None:
    found = find("ccwg")
    assert isinstance(found, controls.ControlSuite)
    cases = found.content.case
    assert len({case.id for case in cases}) == len(cases) >= 22
    assert all(any(one.by == "draft" or one.by == "sojourn" for one in controls.criteria_of(case)) for case in cases)
    for case in cases:
        found.spec_of(case, "bbr3", {})


def test_the_moment_of_an_action_is_exact() -> None:
    assert controls._at('[["0 s", "20 Mbit/s"], ["{at}", "x"], ["{at + 40 ms}", "y"]]', 1.234567891) == (
        '[["0 s", "20 Mbit/s"], ["1234.567891 ms", "x"], ["1274.567891 ms", "y"]]'
    )


# ---- Criteria, on a sender's recording written by hand ---------------------------------------------------------


def seen(*events: tuple[float, str | None, dict[str, Any]], acted_s: float | None = None) -> Seen:
    """A run of which there is a qlog: per moment its time in s, the phase that begins, and the variables."""
    records = [{"file_schema": ""}]
    for at_s, phase, of in events:
        time = {"time": at_s * 1e3}
        records.append({**time, "name": "quic:recovery_metrics_updated", "data": of})
        if phase == "lost":
            records[-1] = {**time, "name": "quic:packet_lost", "data": {}}
        elif phase is not None:
            records.append({**time, "name": "quic:congestion_state_updated", "data": {"new": phase}})
    content = b"".join(b"\x1e" + json.dumps(record).encode() + b"\n" for record in records)
    run = Run(cast("Any", {}), lambda _: None, lambda: {"qlog_*_flow_0.sqlog": content})
    return Seen(run, 20e6, 0.04, acted_s)


def test_drain_ends_at_the_first_acknowledgement_with_at_most_a_bdp_in_flight() -> None:
    def drain(*in_flight: int) -> Seen:
        last = len(in_flight) - 1
        phases = ["startup", "drain", *[None] * (last - 2), "probe_bw_down"]
        moments = (
            (at / 10, phases[at], {"packets_in_flight": n, "inflight_bdp": 70}) for at, n in enumerate(in_flight)
        )
        return seen(*moments)

    leaves = criteria.leaves_at_target
    assert leaves(drain(150, 140, 90, 70), "drain", "probe_bw_down") is True
    assert leaves(drain(150, 140, 90, 71), "drain", "probe_bw_down") is False, "too early"
    assert leaves(drain(150, 140, 70, 69), "drain", "probe_bw_down") is False, "too late"
    assert leaves(drain(150, 140, 90, 70), "drain", "probe_bw") is True, "any phase of it"
    assert leaves(drain(150, 140, 90, 70), "drain", "probe_bw_up") is None, "not reached"


def test_drain_ends_after_three_round_trips() -> None:
    def drain(rounds: int, in_flight: int) -> Seen:
        end = {"round_count": 10 + rounds, "packets_in_flight": in_flight, "inflight_bdp": 70}
        return seen((0.1, "drain", {"round_count": 10}), (0.2, "probe_bw_down", end))

    assert criteria.drain_limit(drain(3, 80), 3) is True
    assert criteria.drain_limit(drain(4, 80), 3) is False
    assert criteria.drain_limit(drain(3, 60), 3) is False, "inflight ended it"


def test_a_bound_without_a_value_is_infinite_and_is_restored_only_if_nothing_is_lower() -> None:
    before = {"bw_shortterm": None, "inflight_shortterm": None, "inflight_longterm": 100}
    lower = {**before, "inflight_longterm": 70}
    moments = [(1.0, "probe_bw_up", before), (1.1, "lost", {}), (1.11, None, lower)]
    assert criteria.restored(seen(*moments, (1.15, None, before), (1.3, None, {}))) is True
    assert criteria.restored(seen(*moments, (1.3, None, {}))) is False
    assert criteria.restored(seen(*moments[:1])) is None, "no loss"


def test_a_phase_was_resumed_if_it_has_begun_again_and_perhaps_ended_since() -> None:
    bounds = {"bw_shortterm": None, "inflight_shortterm": None, "inflight_longterm": None}
    until = [(1.0, "probe_bw_up", bounds), (1.1, "lost", {}), (1.11, "probe_bw_down", {})]
    again, ended = [(1.13, "probe_bw_up", {})], [(1.15, "probe_bw_down", {}), (1.3, None, {})]
    for resumed, more in ((True, again), (True, [*again, *ended]), (False, ended)):
        assert criteria.restored(seen(*until, *more), "probe_bw_up") is resumed, more


def test_probe_rtt_is_timed() -> None:
    stays = seen(
        (1.0, "probe_rtt", {}), (1.25, "probe_bw_cruise", {}), (6.3, "probe_rtt", {}), (6.55, "probe_bw_cruise", {})
    )  # fmt: skip
    assert criteria.probe_rtt_every(stays, 5) is True
    assert criteria.probe_rtt_every(stays, 4) is False
    assert criteria.probe_rtt_lasts(stays, 0.2, 2) is True
    assert criteria.probe_rtt_lasts(stays, 0.2, 1) is False
    assert criteria.probe_rtt_then(stays, "probe_bw") is True
    assert criteria.probe_rtt_then(stays, "startup") is False
