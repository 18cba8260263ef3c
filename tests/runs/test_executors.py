"""Runs as values, and where they are made: the same bytes on threads, in processes and from a document."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn import _core
from sojourn.runs import user_aqm
from sojourn.runs.backends import Simulator
from sojourn.runs.execution import execute
from sojourn.runs.executors import Processes, Threads

EXPERIMENT = """
experiment = { name = "short", duration = "2 s", repeat = 2 }
link = { rate = "4 Mbit/s" }
queue = [{ aqm = "codel" }, { aqm = "pie" }]
record = { packets = true, series = "100 ms" }
traffic = [{ kind = "bulk", flows = 2, rtt = "20 ms" }]
sweep = { "traffic.0.flows" = [1, 3] }
"""

OWN = """
import sojourn as sj

@sj.aqm("every_tenth")
class EveryTenth:
    def __init__(self, every=10):
        self.every, self.count = every, 0

    def enqueue(self, packet, queue, now):
        self.count += 1
        return "drop" if self.count % self.every == 0 else "pass"
"""


def plan_of(text: str) -> _core.Plan:
    return _core.Plan.read_text(text, "short.toml", [])


def steady(results: sj.Results) -> list[dict[str, Any]]:
    """Summaries without the time that the runs took."""
    return [{key: value for key, value in run.summary.items() if key != "wall_s"} for run in results.runs]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "short.toml"
    path.write_text(EXPERIMENT)
    return path


@pytest.fixture
def own_file(tmp_path: Path) -> Path:
    path = tmp_path / "every_tenth.py"
    path.write_text(OWN)
    return path


def test_a_plan_is_a_sequence_of_runs():
    plan = plan_of(EXPERIMENT)
    assert len(plan) == 8
    assert [(spec.label, spec.seed) for spec in plan][:4] == [("codel", 1), ("pie", 1), ("codel", 2), ("pie", 2)]
    assert json.loads(plan[7].set_json) == {"traffic.0.flows": 3}
    with pytest.raises(IndexError):
        plan[8]


def test_a_pickled_run_is_the_same_run():
    for spec in plan_of(EXPERIMENT):
        again = pickle.loads(pickle.dumps(spec))
        assert (again, again.hash, again.set_json) == (spec, spec.hash, spec.set_json)
        first, second = (json.loads(one.run(_core.Monitor()).summary_json) for one in (spec, again))
        first.pop("wall_s"), second.pop("wall_s")
        assert first == second


def test_a_run_is_told_from_others_by_all_that_decides_and_nothing_else():
    specs = list(plan_of(EXPERIMENT))
    assert len({spec.hash for spec in specs}) == len(set(specs)) == 8
    renamed = plan_of(EXPERIMENT.replace('"short"', '"other"'))
    assert [spec.hash for spec in renamed] == [spec.hash for spec in specs]
    # A default that is spelled out.
    spelled = plan_of(EXPERIMENT.replace('"codel"', '"codel", target = "5 ms", label = "codel"'))
    assert spelled[0].hash == specs[0].hash
    assert plan_of(EXPERIMENT.replace("4 Mbit/s", "5 Mbit/s"))[0].hash != specs[0].hash


def test_processes_give_what_threads_give(file: Path):
    on_threads = sj.run(file, jobs=2)
    in_processes = sj.run(file, jobs=2, executor="processes")
    assert steady(in_processes) == steady(on_threads)
    for one, other in zip(on_threads.runs, in_processes.runs, strict=True):
        assert one.packets() == other.packets()
        assert one.queue_series() == other.queue_series()
        assert one.histogram() == other.histogram()


def test_own_disciplines_of_a_file_run_in_processes(file: Path, own_file: Path):
    user_aqm.load(own_file)
    try:
        text = EXPERIMENT.replace('{ aqm = "pie" }', '{ aqm = "every_tenth", every = 20 }')
        file.write_text(text)
        assert steady(sj.run(file, executor="processes")) == steady(sj.run(file))
    finally:
        sj.unregister_aqm("every_tenth")


def test_a_class_that_no_process_can_import_is_refused_where_it_is_used_and_nowhere_else(file: Path):
    namespace: dict[str, Any] = {}
    exec(OWN, namespace)
    try:
        on_threads = sj.run(file)
        assert steady(sj.run(file, executor="processes")) == steady(on_threads)
        file.write_text(EXPERIMENT.replace("pie", "every_tenth"))
        with pytest.raises(sj.ExperimentError, match='got "processes", which cannot import the class of "every_tenth"'):
            sj.run(file, executor="processes")
    finally:
        sj.unregister_aqm("every_tenth")


def test_an_own_discipline_of_another_source_is_not_mistaken(own_file: Path):
    user_aqm.load(own_file)
    try:
        spec = plan_of(EXPERIMENT.replace("pie", "every_tenth"))[1]
        document, before = spec.document, spec.hash
        own_file.write_text(OWN.replace("every=10", "every=11"))
        user_aqm.load(own_file)
        with pytest.raises(sj.ExperimentError, match=r'"every_tenth" is registered here from another source'):
            _core.RunSpec.read(document)
        assert plan_of(EXPERIMENT.replace("pie", "every_tenth"))[1].hash != before
        own_file.write_text(OWN)
        user_aqm.load(own_file)
        assert _core.RunSpec.read(document).hash == before
    finally:
        sj.unregister_aqm("every_tenth")
    with pytest.raises(sj.ExperimentError, match="every_tenth"):
        _core.RunSpec.read(document)


def test_a_copy_of_a_file_takes_its_place(own_file: Path, tmp_path: Path):
    user_aqm.load(own_file)
    count = len(user_aqm.registered().files)
    copy = tmp_path / "copy.py"
    copy.write_bytes(own_file.read_bytes())
    user_aqm.load(copy)
    files = user_aqm.registered().files
    assert (len(files), str(copy) in files, str(own_file) in files) == (count, True, False)


def test_a_process_that_dies_fails_its_runs_in_one_line():
    class Dying(Processes):
        def start(self, index: int, spec: _core.RunSpec) -> None:
            super().start(index, spec)
            if index == 1:
                for pid in self._pool._processes:
                    os.kill(pid, signal.SIGKILL)

    executor = Dying(Simulator(), 1)
    specs = list(plan_of(EXPERIMENT))[:2]
    error = execute(specs, lambda *_: None, executor=executor)
    assert isinstance(error, sj.RunError)
    assert str(error) == "short: codel, traffic.0.flows 1, seed 1: a worker process died, or could not be started"


def test_names_of_executors_and_where_they_go(file: Path):
    with pytest.raises(sj.ExperimentError, match='executor: got "cloud"; must be one of threads, processes'):
        sj.run(file, executor="cloud")
    made: list[int] = []

    def mine(backend: Any, workers: int) -> Threads:
        made.append(workers)
        return Threads(backend, workers)

    assert steady(sj.run(file, jobs=3, executor=mine)) == steady(sj.run(file))
    assert made == [3]


def test_a_ctrl_c_ends_the_processes(tmp_path: Path):
    file = tmp_path / "long.toml"
    file.write_text(EXPERIMENT.replace("2 s", "100000 s"))
    command = [sys.executable, "-m", "sojourn", "run", str(file), "--executor", "processes", "--jobs", "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True, text=True)
    workers: list[str] = []
    while not workers:
        time.sleep(0.2)
        assert process.poll() is None
        found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True)
        workers = found.stdout.split()
    time.sleep(1.0)
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in told
    # The tracker of multiprocessing ends a moment after its parent.
    until = time.monotonic() + 10.0
    while any(is_alive(pid) for pid in workers) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(is_alive(pid) for pid in workers)


def is_alive(pid: str) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"
