"""Workers of a store: whatever happens to them, the same bytes in the end."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import Cli
from sojourn import _core
from sojourn.files.interrupts import Presses
from sojourn.runs.backends import Simulator
from sojourn.runs.executors import Dask, Outcome
from sojourn.store import Store, batches, claims
from sojourn.store.batches import Batches, Remaining
from sojourn.store.claims import Claims
from sojourn.store.plans import RunList
from sojourn.store.query import query
from sojourn.store.runner import Runner
from store.conftest import EXPERIMENT, RUNS, contents, fill, planned


def start_worker(folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "sojourn", "worker", "--store", str(folder), "--jobs", "2"]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


def test_workers_that_are_killed_lose_nothing_that_was_finished(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file.write_text(EXPERIMENT.replace('"2 s"', '"300 s"'))
    undisturbed = planned(file, tmp_path / "undisturbed", 1)
    disturbed = planned(file, tmp_path / "disturbed", 1)
    started = time.monotonic()
    assert fill(undisturbed) is None
    whole = time.monotonic() - started
    chance = random.Random(7)
    kept: set[str] = set()
    for _ in range(5):
        worker = start_worker(tmp_path / "disturbed")
        # Until it has finished something, then for a part of the work, however fast the machine is.
        while set(contents(tmp_path / "disturbed")) == kept:
            assert worker.poll() is None
            time.sleep(0.01)
        time.sleep(chance.random() * whole / 20.0)
        worker.kill()
        worker.wait()
        there = set(contents(tmp_path / "disturbed"))
        assert kept <= there, "what was finished is still there"
        kept = there
    assert disturbed.missing(), "they were killed in the middle"
    # The claims of the dead lapse at once here.
    monkeypatch.setattr(claims, "LEASE_S", 0.0)
    assert fill(disturbed) is None
    assert contents(tmp_path / "disturbed") == contents(tmp_path / "undisturbed")
    assert not [
        path for path in (tmp_path / "disturbed" / "claims").rglob("*") if path.is_file() and path.name == "compact"
    ]


def test_two_masters_at_once_make_the_same_store(file: Path, tmp_path: Path):
    alone = planned(file, tmp_path / "alone", 2)
    assert fill(alone, jobs=1) is None
    planned(file, tmp_path / "store", 2)
    command = [sys.executable, "-m", "sojourn", "sweep", str(file), "--store", str(tmp_path / "store"), "--json"]
    masters = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for master in masters:
        told, _ = master.communicate(timeout=120)
        assert master.returncode == 0
        assert json.loads(told)["done"] == RUNS
    assert contents(tmp_path / "store") == contents(tmp_path / "alone")


def test_a_worker_names_the_code_that_it_runs_and_refuses_that_of_others(sojourn: Cli, tmp_path: Path):
    (tmp_path / "mine.py").write_text(
        "import sojourn as sj\nprint('ran')\n@sj.aqm('mine')\nclass Mine:\n"
        "    def enqueue(self, packet, queue, now):\n        return 'pass'\n"
    )
    (tmp_path / "grid.toml").write_text(EXPERIMENT.replace('"pie"', '"mine"'))
    assert sojourn("--load", "mine.py", "sweep", "grid.toml", "--store", "store", "--plan").returncode == 0
    store = tmp_path / "store"
    (code,) = store.glob("plans/*/own-0-mine.py")
    text = code.read_text()
    code.write_text(f"{text}\n")
    changed = sojourn("worker", "--store", "store")
    assert (changed.returncode, changed.stdout) == (2, ""), "it has not run"
    assert f"{code}: got SHA-256 " in changed.stderr
    code.write_text(text)
    for path, mode in ((store, 0o777), (store / "plans", 0o775), (code.parent, 0o757), (code, 0o664)):
        before = path.stat().st_mode
        path.chmod(mode)
        refused = sojourn("worker", "--store", "store")
        assert (refused.returncode, refused.stdout) == (2, "")
        told = f"{path}: may be written to by others (mode {mode:o}), and the sweep has Python code"
        assert refused.stderr.splitlines()[-1].startswith(told)
        path.chmod(before)
    if os.geteuid() == 0:
        os.chown(code, 1, -1)
        refused = sojourn("worker", "--store", "store")
        assert (refused.returncode, f"{code}: belongs to user 1" in refused.stderr) == (2, True)
        os.chown(code, 0, -1)
    store.chmod(0o777)
    worked = sojourn("worker", "--store", "store", "--trust")
    assert (worked.returncode, worked.stdout) == (0, "ran\n")
    assert worked.stderr.startswith(f"note: runs the code of {code} (SHA-256 ")
    # Who brings the code does not need that of the store.
    (tmp_path / "grid.toml").write_text(EXPERIMENT.replace('"pie"', '"mine"').replace("repeat = 3", "repeat = 1"))
    assert sojourn("--load", "mine.py", "sweep", "grid.toml", "--store", "store").returncode == 0


def test_a_claim_is_held_by_one_and_lapses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    mine, theirs = Claims(tmp_path), Claims(tmp_path)
    with mine.hold("7") as is_mine:
        assert is_mine
        assert theirs.held() == {"7"}
        with theirs.hold("7") as is_theirs:
            assert not is_theirs
        # As after ten seconds without a touch.
        monkeypatch.setattr(claims, "LEASE_S", -1.0)  # files of one tick have one time
        assert theirs.held() == set()
        with theirs.hold("7") as is_theirs:
            assert is_theirs
            assert mine.hold
    assert not list(tmp_path.iterdir())


def test_a_claim_lapses_by_the_clock_of_the_folder_and_not_by_that_of_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    now = time.time
    with Claims(tmp_path).hold("7"):
        for apart_s in (3600.0, -3600.0):
            monkeypatch.setattr(time, "time", lambda apart_s=apart_s: now() + apart_s)
            assert Claims(tmp_path).held() == {"7"}
            with Claims(tmp_path).hold("7") as is_theirs:
                assert not is_theirs


def test_a_batch_that_another_has_finished_since_the_last_look_is_not_made_again(file: Path, tmp_path: Path):
    plan = planned(file, tmp_path / "store", 12)
    with Batches(plan, {}, Presses(), wait=False) as batches:
        first = batches.next()
        assert first is not None
        # Another worker makes the two batches that were free at the look.
        assert fill(plan, wait=False) is None
        given = [first[0], *(index for index, _ in iter(batches.next, None))]
    assert {plan.batch_of(index) for index in given} == set(plan.missing()) == {plan.batch_of(first[0])}


def test_who_lost_a_claim_leaves_that_of_its_successor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(claims, "BEAT_S", 0.05)

    def is_kept_alive() -> bool:
        return any(thread.name == "claim 0" for thread in threading.enumerate())

    with Claims(tmp_path).hold("0") as is_ours:
        assert is_ours
        assert is_kept_alive()
        (tmp_path / "0").write_text("another worker's, since this one was stopped for too long", encoding="utf-8")
        until = time.monotonic() + 20.0
        while is_kept_alive() and time.monotonic() < until:
            time.sleep(0.05)
        assert not is_kept_alive()
    assert (tmp_path / "0").exists()


def test_a_claim_is_kept_alive_while_it_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(claims, "BEAT_S", 0.05)
    with Claims(tmp_path).hold("1"):
        first = (tmp_path / "1").stat().st_mtime_ns
        until = time.monotonic() + 20.0
        while (tmp_path / "1").stat().st_mtime_ns == first and time.monotonic() < until:
            time.sleep(0.05)
        assert (tmp_path / "1").stat().st_mtime_ns > first


def test_a_ctrl_c_keeps_what_is_finished(file: Path, tmp_path: Path):
    file.write_text(EXPERIMENT.replace('"2 s"', '"300 s"'))
    plan = planned(file, tmp_path / "store", 1)
    command = [sys.executable, "-m", "sojourn", "sweep", str(file), "--store", str(tmp_path / "store")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not plan.parts():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (
        f"{plan.runs_done()} of {RUNS} runs are in the store; the same command continues from there"
        in told.splitlines()[-1]
    )
    assert plan.claims.held() == set()


def test_a_worker_of_dask_that_is_killed_is_made_up_for(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    distributed: Any = pytest.importorskip("distributed")
    file.write_text(EXPERIMENT.replace('"2 s"', '"200 s"'))
    plan = planned(file, tmp_path / "store", 2)

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs="CRITICAL"
    ) as cluster:
        killed: list[int] = []

        class Killing(Dask):
            def ended(self, wait_s: float) -> Iterator[tuple[int, Outcome]]:
                if not killed:  # runs have begun, and none has been collected
                    pid = next(iter(cluster.workers.values())).pid
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
                yield from super().ended(wait_s)

        runner = Runner(executor=lambda *_: Killing(cluster.scheduler_address, []))
        assert runner.fill(Store(plan.store), plan) is None
        assert killed
    alone = planned(file, tmp_path / "alone", 2)
    assert fill(alone) is None
    assert contents(tmp_path / "store") == contents(tmp_path / "alone")


def test_an_address_without_a_scheduler_is_refused(sojourn: Cli, file: Path):
    pytest.importorskip("distributed")
    refused = sojourn("sweep", "grid.toml", "--store", "store", "--dask", "nowhere")
    assert refused.returncode == 2
    assert refused.stderr.startswith('--dask: got "nowhere"; must be the address of a scheduler')


def test_listed_runs_are_made_by_workers_and_not_twice(
    sojourn: Cli, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = Store.make(tmp_path / "store")
    specs = list(_core.Plan.read_file(str(file), []))
    plan = store.add_list(RunList.of("listed", specs), 2)
    assert sojourn("worker", "--store", "store").returncode == 0
    monkeypatch.setattr(batches.Batches, "end", lambda *_: pytest.fail("made again"))
    runs, stopped_by = Runner(jobs=1).stored(store, "listed", specs)
    assert (sorted(runs), stopped_by) == (list(range(RUNS)), None)
    # Others that have some of the same runs do not make them either, and read the same tables.
    some, _ = Runner(jobs=1).stored(store, "a few of them", specs[:3])
    assert some[2].summary == runs[2].summary
    assert some[2].histogram() == runs[2].histogram()
    assert plan.runs_done() == RUNS


def test_cells_of_a_sweep_are_repeated_until_they_are_precise(sojourn: Cli, file: Path, tmp_path: Path):
    file.write_text(EXPERIMENT.replace("repeat = 3", "repeat = 12"))
    sweep = ["sweep", "grid.toml", "--store", "store", "--until", "sojourn_mean_ms=4%", "--json"]
    first = json.loads(sojourn(*sweep).stdout)
    counted = 'select count(*) n from runs group by "link.rate", "traffic.0.flows", aqm'
    cells = json.loads(sojourn("query", "--store", "store", counted, "--json").stdout)
    repeats = [cell["n"] for cell in cells]
    assert sum(repeats) == first["runs"]
    assert len(repeats) == 12
    assert min(repeats) == 5 < max(repeats) <= 12
    assert json.loads(sojourn(*sweep).stdout) == first
    refused = sojourn(*sweep, "--plan")
    assert refused.returncode == 2
    assert refused.stderr.startswith("--until: ")
    few = sojourn("sweep", "grid.toml", "--set", "experiment.repeat=3", "--store", "new", "--until", "goodput_bps=1%")
    assert (few.returncode, (tmp_path / "new").exists()) == (2, False)


def test_a_store_keeps_runs_that_processes_make(sojourn: Cli, file: Path):
    run = ("run", "grid.toml", "--store", "store", "--json")
    made = json.loads(sojourn(*run, "--executor", "processes", "--jobs", "2").stdout)["runs"]
    read = json.loads(sojourn(*run).stdout)["runs"]
    assert [run.pop("wall_s") for run in read] == [0.0] * RUNS
    assert [{**run, "wall_s": 0} for run in made] == [{**run, "wall_s": 0} for run in read]


class Elsewhere(Simulator):
    """A backend whose results another backend does not have."""

    name = "elsewhere"

    def __init__(self, release: str) -> None:
        self.release = release
        self.made = 0

    def __repr__(self) -> str:
        return "Elsewhere()"

    def run(self, spec: _core.RunSpec, monitor: _core.Monitor) -> _core.Run:
        self.made += 1
        return super().run(spec, monitor)


def test_a_store_keeps_the_runs_of_each_backend_apart(file: Path, tmp_path: Path):
    store = Store.make(tmp_path / "store")
    specs = list(_core.Plan.read_file(str(file), []))[:4]
    simulated, _ = Runner(jobs=1).stored(store, "listed", specs)
    for release, wanted in (("6.1", 4), ("6.1", 0), ("7.3", 4)):
        backend = Elsewhere(release)
        runs, stopped_by = Runner(backend, jobs=2).stored(store, "listed", specs)
        assert (len(runs), stopped_by, backend.made) == (4, None, wanted)
    # A part of them is read from the list that has all.
    backend = Elsewhere("7.3")
    assert len(Runner(backend, jobs=1).stored(store, "some", specs[:2])[0]) == 2
    assert backend.made == 0
    with query(store, "select backend, count(*) n, count(distinct hash) h from runs group by all order by all") as rows:
        assert [row for chunk in rows.chunks for row in chunk] == [("elsewhere", 8, 8), ("sim", 4, 4)]
    assert len(simulated) == 4


def test_progress_counts_work_not_runs(tmp_path: Path):
    """A run at 1 Gbit/s takes some hundred times as long as one at 1 Mbit/s."""
    text = EXPERIMENT.partition("[sweep]")[0] + '[sweep]\n"link.rate" = ["1 Mbit/s", "1 Gbit/s"]\n'
    (tmp_path / "grid.toml").write_text(text)
    plan = planned(tmp_path / "grid.toml", tmp_path / "store", 1)
    remaining = Remaining(plan)
    efforts = [remaining.effort(batch) for batch in plan.missing()]
    assert max(efforts) > 10 * min(efforts)
    # Before the first look into the store: the next one waits for longer on a busy machine.
    half = remaining.progress(min(efforts) / 2, 0.0)
    assert (half.finished, half.fraction) == (0, pytest.approx(min(efforts) / 2 / sum(efforts)))
    # Another worker finishes the short run.
    with contextlib.ExitStack() as others:
        for batch in set(plan.missing()) - {efforts.index(min(efforts))}:
            others.enter_context(plan.claims.hold(str(batch)))
        assert fill(plan, wait=False) is None
    done = remaining.progress(0.0, 2.0)
    assert (done.finished, done.fraction) == (1, pytest.approx(min(efforts) / sum(efforts)))
    assert remaining.progress(sum(efforts) - min(efforts), 2.5).fraction == pytest.approx(1.0)
