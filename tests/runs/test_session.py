"""``sj.Session``: a run driven from Python gives what ``run`` gives, and can be changed on the way."""

from __future__ import annotations

import math
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sojourn as sj

EXPERIMENT = """
experiment = { duration = "5 s", warmup = "1 s", repeat = 2, seed = 3 }
link = { rate = "10 Mbit/s", up = { rate = "1 Mbit/s" } }
queue = [{ aqm = "codel" }, { aqm = "pie", label = "PIE 15" }]
traffic = [{ kind = "bulk", flows = 2, rtt = "20 ms" }, { kind = "ping", rtt = "20 ms" }]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "two.toml"
    path.write_text(EXPERIMENT)
    return path


def steady(run: sj.Run) -> dict[str, Any]:
    return {key: value for key, value in run.summary.items() if key != "wall_s"}


def test_a_session_gives_what_run_gives(file: Path):
    runs = {(run.label, run.seed): run for run in sj.run(file).runs}
    for label, seed in [("codel", 3), ("PIE 15", 4)]:
        session = sj.Session(file, queue=label, seed=seed)
        assert (session.now_s, session.end_s, session.finished) == (0.0, 5.0, False)
        while not session.finished:
            session.step("130 ms")
            session.observe()
        (run,) = session.results().runs
        assert steady(run) == steady(runs[label, seed])
        assert session.results() is session.results()


def test_results_of_a_session_that_has_not_ended_run_it_to_its_end(file: Path):
    session = sj.Session(file)
    session.step(0.5)
    assert session.now_s == 0.5
    assert session.results().runs[0].summary["simulated_s"] == 5.0
    with pytest.raises(sj.RunError, match="the session has finished"):
        session.step("1 s")


def test_an_observation_says_what_stands_and_what_happened(file: Path):
    session = sj.Session(file, queue="PIE 15")
    session.step("2 s")
    first = session.observe()
    assert (first.since_s, first.now_s) == (0.0, 2.0)
    assert list(first.queues) == ["down", "up"]
    queue = first.queues["down"]
    assert 1000 < queue.packets < 1700
    assert 0.0 < queue.sojourn_mean_ms <= queue.sojourn_max_ms
    assert queue.backlog_bytes >= 1500 * (queue.backlog_packets - 1)
    assert 0.0 <= queue.state["probability"] <= 1.0
    bulk, other, ping = first.flows
    assert 5e6 < bulk.goodput_bps + other.goodput_bps < 10e6
    assert bulk.cwnd_segments >= 1.0
    assert math.isnan(ping.cwnd_segments)
    assert bulk.rtt_ms > 20.0
    again = session.observe()
    assert (again.since_s, again.queues["down"].packets) == (2.0, 0)
    assert math.isnan(again.queues["down"].sojourn_mean_ms)


def test_a_key_can_be_set_on_the_way(file: Path):
    delays = []
    for target in (None, "2 ms"):
        session = sj.Session(file, queue="PIE 15")
        session.step("2 s")
        session.observe()
        if target is not None:
            session.set("queue.target", target)
        session.set("link.rate", "5 Mbit/s")
        session.step("3 s")
        seen = session.observe()
        assert 800 < seen.queues["down"].packets < 1300
        delays.append(seen.queues["down"].sojourn_mean_ms)
    assert delays[1] < 0.7 * delays[0]


def test_what_is_wrong_is_told_in_one_line(file: Path):
    with pytest.raises(sj.ExperimentError, match=r'^queue: got "red"; must be one of codel, PIE 15$'):
        sj.Session(file, queue="red")
    session = sj.Session(file)
    with pytest.raises(
        sj.ExperimentError, match=r"^queue.tagret: codel has no such key; it has limit, ecn, target, interval, .*$"
    ):
        session.set("queue.tagret", "5 ms")
    with pytest.raises(sj.ExperimentError, match=r'^queue.limit: got "0 packets"; must be .* above 0$'):
        session.set("queue.limit", "0 packets")
    with pytest.raises(sj.ExperimentError, match=r"^step: got 'soon'; must be a time"):
        session.step("soon")
    with pytest.raises(sj.ExperimentError, match=r"^step: got -1.0; must be a time"):
        session.step(-1.0)


def test_a_run_as_a_value_can_be_driven_too(file: Path):
    spec = sj.plan(file)[1]
    assert steady(sj.Session(spec).results().runs[0]) == steady(sj.run(file).runs[1])


def test_a_discipline_in_python_that_fails_ends_the_step(file: Path):
    class Failing:
        def enqueue(self, packet, queue, now):
            return 1 / 0 if now > 1.0 else "pass"

    sj.register_aqm("failing", Failing)
    try:
        session = sj.Session(file, set={"queue.0.aqm": "failing"})
        session.step("1 s")
        with pytest.raises(sj.RunError, match="division by zero"):
            session.step("1 s")
    finally:
        sj.unregister_aqm("failing")


def test_a_ctrl_c_ends_a_long_step(file: Path):
    code = (
        "import sojourn as sj, sys\n"
        f"session = sj.Session({str(file)!r}, set={{'experiment.duration': '100000 s'}})\n"
        "try:\n    print('begun', flush=True)\n    session.step('100000 s')\n"
        "except KeyboardInterrupt:\n    sys.exit(session.now_s < 100000.0)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 1


def test_what_a_prompt_shows_of_a_session_a_run_and_its_figures_is_one_line(file: Path):
    session = sj.Session(file, queue="PIE 15")
    session.step("500 ms")
    assert repr(session) == "<Session PIE 15, seed 3, at 0.5 of 5 s>"
    results = session.results()
    assert repr(results.runs[0]) == "<Run PIE 15, seed 3>"
    assert repr(results.plot).startswith("<Plots: aggregates, airtime, bars, box, cdf, ")


@pytest.mark.parametrize(("limit", "unit"), [("200 packets", "packets"), ("300 kB", "bytes")])
def test_a_limit_can_be_set_by_its_number(file: Path, limit: str, unit: str):
    """Ten packets of 1514 bytes are queued at most from then on, in the unit of the limit."""
    session = sj.Session(file, set={"queue.0.limit": limit, "queue.0.target": "500 ms", "queue.0.interval": "900 ms"})
    numbers = {action.key: number for number, action in enumerate(session.space().actions)}
    action = session.space().actions[numbers["queue.limit"]]
    assert action.unit == unit and action.low <= 10 < 1500 <= action.high
    session.step("2 s")
    session.act(numbers["queue.limit"], 10 if unit == "packets" else 15_140)
    session.step("1 s")
    assert 0 < session.observe().queues["down"].backlog_packets <= 10


def test_a_snapshot_leads_back_to_its_moment(file: Path):
    session = sj.Session(file)
    space = session.space()
    assert space.actions[0].key == "link.rate"
    target = [action.key for action in space.actions].index("queue.target")
    session.step("500 ms")
    session.act(target, 20.0)
    numbers = np.empty(len(space.observations))
    session.observe_into(numbers)
    moment = pickle.loads(pickle.dumps(session.snapshot()))
    session.step("500 ms")
    session.observe_into(numbers)
    session.set("link.rate", "5 Mbit/s")
    session.step("500 ms")
    session.restore(moment)
    assert session.now_s == 0.5
    session.step("500 ms")
    again = np.empty(len(space.observations))
    session.observe_into(again)
    assert again.tolist() == numbers.tolist()
    with pytest.raises(sj.ExperimentError, match="another run"):
        session.restore(sj.Session(file, seed=9).snapshot())
