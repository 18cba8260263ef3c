"""A store that others change while it is read: what is replaced is not damaged, and no answer misses a row."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from sojourn import RunError, _core
from sojourn.store import Store, batches, files
from sojourn.store.batches import compact
from sojourn.store.cells import Grid
from sojourn.store.files import Part
from sojourn.store.planning import BATCH_EFFORT, batch_of, mend
from sojourn.store.plans import FORMAT, Meta, RunList, StoredPlan, status
from sojourn.store.runner import Runner
from sojourn.store.stored import known_run, runs_of
from store.conftest import fill_unmerged

EXPERIMENT = """
experiment = { name = "grid", duration = "1 s", repeat = 3 }
link = { rate = "4 Mbit/s" }
queue = [{ aqm = "codel" }, { aqm = "pie" }]
traffic = [{ kind = "bulk", flows = 1, rtt = "20 ms" }]
[sweep]
"link.rate" = ["2 Mbit/s", "4 Mbit/s"]
"""
RUNS = 12


@pytest.fixture
def finished(file: Path, tmp_path: Path) -> StoredPlan:
    """A sweep whose batches are all done, but not merged."""
    plan = Store.make(tmp_path / "store").add(file, [], _core.Sweep.read_file(str(file), []), 1)
    fill_unmerged(plan)
    assert len(plan.parts()) == RUNS
    return plan


@pytest.fixture
def merged_once(
    request: pytest.FixtureRequest, finished: StoredPlan, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], bool]:
    """Another process merges the files right after a listing, the first or that of a number given as parameter.

    Returns whether it has happened.
    """
    parts = files.parts
    merging: list[bool] = []
    left = [getattr(request, "param", 1)]
    monkeypatch.setattr(files, "SETTLE_S", 0.0)

    def listed(folder: Path) -> list[Part]:
        found = parts(folder)
        if not merging and folder == finished.results:
            left[0] -= 1
            if not left[0]:
                merging.append(True)
                compact(finished)
                assert not found[0].path.exists()
        return found

    monkeypatch.setattr(files, "parts", listed)
    return lambda: bool(merging)


def ends(monkeypatch: pytest.MonkeyPatch, *words: str | Path) -> int:
    from sojourn.cli import app

    monkeypatch.setattr("sys.argv", ["sojourn", *map(str, words)])
    return app.status()


@pytest.mark.parametrize(
    ("words", "merged_once"),
    [
        (["query", "select count(*) n from runs", "--json"], 1),
        # Before, they count what is missing and done.
        (["status", "--json"], 3),
        (["worker"], 2),
        (["plot", "--kind", "lines", "--x", "link.rate", "--out", "lines.svg"], 1),
        (["explore", "--out", "page.html"], 1),
        (["sweep", "grid.toml", "--json"], 1),
        (["run", "grid.toml", "--json"], 1),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
    indirect=["merged_once"],
)
def test_a_command_lists_again_what_was_merged_meanwhile(
    words: list[str],
    merged_once: Callable[[], bool],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    if words[0] == "explore":
        pytest.importorskip("plotly")
    monkeypatch.chdir(tmp_path)
    if words[0] == "worker":
        few = _core.Sweep.read_file("grid.toml", [("experiment.repeat", "2")])
        Store("store").add(Path("grid.toml"), [("experiment.repeat", "2")], few, 1)
    assert ends(monkeypatch, *words, "--store", "store") == 0
    out, err = capsys.readouterr()
    assert merged_once()
    assert "damaged" not in err
    assert not list((tmp_path / "store").rglob("*.damaged"))
    if words[0] == "query":
        assert json.loads(out) == [{"n": RUNS}]
    if words[0] in ("status", "sweep"):
        assert json.loads(out) == {"runs": RUNS, "done": RUNS, "running": 0, "failed": 0}
    if words[0] == "run":
        assert len(json.loads(out)["runs"]) == RUNS


def test_every_reader_of_runs_lists_again(finished: StoredPlan, merged_once: Callable[[], bool]):
    runs, failed = runs_of(finished)
    assert merged_once()
    assert (sorted(runs), failed) == (list(range(RUNS)), {})


def test_an_index_lists_again(finished: StoredPlan, merged_once: Callable[[], bool]):
    known = batches.known_runs([finished])
    assert merged_once()
    assert sorted(known) == sorted(finished.sweep[index].hash for index in range(RUNS))


def test_a_grid_lists_again(tmp_path: Path, merged_once: Callable[[], bool]):
    grid = Grid(tmp_path / "store")
    assert merged_once()
    assert (grid.runs, len(grid)) == (RUNS, 4)


def test_a_known_run_is_read_from_the_larger_file(finished: StoredPlan, monkeypatch: pytest.MonkeyPatch):
    spec = finished.sweep[5]
    plan, part = batches.known_runs([finished])[spec.hash]
    monkeypatch.setattr(files, "SETTLE_S", 0.0)
    compact(finished)
    assert not part.path.exists()
    run = known_run(plan, part, spec, spec.hash)
    assert run is not None
    summary = json.loads(run.summary_json)
    assert (summary["label"], summary["seed"]) == (spec.label, spec.seed)


def test_listed_runs_are_read_after_a_merge(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A study, a comparison and an evaluation read the runs of a list."""
    store = Store.make(tmp_path / "store")
    specs = list(_core.Plan.read_file(str(file), []))
    plan = store.add_list(RunList.of("listed", specs), 1)
    fill_unmerged(plan)
    monkeypatch.setattr(files, "SETTLE_S", 0.0)
    parts = files.parts
    merging: list[bool] = []

    def listed(folder: Path) -> list[Part]:
        found = parts(folder)
        if not merging and folder == plan.results:
            merging.append(True)
            compact(plan)
        return found

    monkeypatch.setattr(files, "parts", listed)
    runs, stopped_by = Runner(jobs=1).stored(store, "listed", specs)
    assert (len(runs), stopped_by, merging) == (RUNS, None, [True])


def test_an_answer_that_is_being_printed_survives_a_merge(finished: StoredPlan, monkeypatch: pytest.MonkeyPatch):
    from sojourn.store import query

    monkeypatch.setattr(files, "SETTLE_S", 0.0)
    monkeypatch.setattr(query, "CHUNK", 1)
    with query.query(Store(finished.store), "select index from runs order by index") as answer:
        first = next(answer.chunks)
        compact(finished)
        assert [*first, *(row for chunk in answer.chunks for row in chunk)] == [(index,) for index in range(RUNS)]
    # Also if there are more files than a process may open.
    monkeypatch.setattr(files, "_most_pins", lambda: 0)
    with query.query(Store(finished.store), "select count(*) from runs") as answer:
        assert next(answer.chunks) == [(RUNS,)]


def test_files_stay_until_the_folders_clock_has_moved_on(finished: StoredPlan, monkeypatch: pytest.MonkeyPatch):
    there: list[tuple[int, int]] = []

    def settle(wait_s: float) -> None:
        assert wait_s == files.LOOK_S
        names = list(finished.results.glob("*.parquet"))
        there.append((len(names), len(finished.parts())))

    monkeypatch.setattr(files.time, "sleep", settle)
    monkeypatch.setattr(files, "_changed", lambda _: len(there) // 3)  # a clock with steps of three looks
    compact(finished)
    assert there == [(RUNS + 1, 1)] * 3
    assert len(list(finished.results.glob("*.parquet"))) == 1


def test_a_listing_during_which_files_are_merged_misses_no_run(finished: StoredPlan, monkeypatch: pytest.MonkeyPatch):
    """The listing has begun before the larger file was there, and reaches the small ones after they are gone."""
    scandir = os.scandir
    monkeypatch.setattr(files, "SETTLE_S", 0.05)
    begun: list[bool] = []

    class Slow:
        def __init__(self, folder: Path) -> None:
            names = sorted(entry.name for entry in scandir(folder))
            if not begun and folder == finished.results:
                begun.append(True)
                compact(finished)
                names = [name for name in names if (folder / name).exists()]
            self._entries = iter([entry for entry in scandir(folder) if entry.name in names])

        def __iter__(self) -> Iterator[os.DirEntry[str]]:
            return self._entries

    monkeypatch.setattr(files.os, "scandir", Slow)
    listed = finished.parts()
    assert begun
    assert sum(part.last + 1 - part.first for part in listed) == RUNS


def test_a_file_that_stays_gone_is_told(finished: StoredPlan, monkeypatch: pytest.MonkeyPatch):
    """As on a network file system that repeats an old listing for longer than a reader waits."""
    waits: list[float] = []
    monkeypatch.setattr(files.time, "sleep", waits.append)
    listed = files.parts(finished.results)
    listed[3].path.unlink()
    monkeypatch.setattr(files, "parts", lambda folder: listed if folder == finished.results else [])
    with pytest.raises(RunError, match="the folder lists this file, but it is gone"):
        status([finished])
    assert 60.0 < sum(waits) < 120.0


def test_what_another_mender_has_repeated_is_not_renamed(finished: StoredPlan, monkeypatch: pytest.MonkeyPatch):
    part = finished.parts()[3]
    whole = part.path.read_bytes()
    part.path.write_bytes(whole[:-9])
    hold = finished.claims.hold

    @contextlib.contextmanager
    def after_another(_: object, name: str) -> Iterator[bool]:
        part.path.write_bytes(whole)
        with hold(name) as is_ours:
            yield is_ours

    monkeypatch.setattr("sojourn.store.claims.Claims.hold", after_another)
    mend(finished, pytest.fail)
    assert part.path.read_bytes() == whole


def test_small_files_that_a_killed_process_left_are_removed(finished: StoredPlan, tmp_path: Path):
    small = {part.path: part.path.read_bytes() for part in finished.parts()}
    compact(finished)
    (merged,) = finished.parts()
    for path, content in small.items():
        path.write_bytes(content)
    assert finished.parts() == [merged]
    mend(finished, pytest.fail)
    assert [path.name for path in finished.results.iterdir()] == [merged.path.name]


def test_of_two_that_plan_at_once_the_first_counts(file: Path, tmp_path: Path):
    store = Store.make(tmp_path / "store")
    sweep = _core.Sweep.read_file(str(file), [])
    first = store.add(file, [], sweep, 4)
    second = store.add(file, [], sweep, 2)
    assert (first.meta.batch_runs, second.meta.batch_runs) == (4, 4)


def test_a_read_file_lies_in_arrows_memory(finished: StoredPlan):
    # Memory of Python that a thread of Arrow releases while Python ends aborts the process.
    part = finished.parts()[0]
    before = pa.total_allocated_bytes()
    content = part.content()
    assert pa.total_allocated_bytes() - before >= part.path.stat().st_size > 0
    assert content.read() == part.path.read_bytes()


def test_every_run_is_in_one_batch():
    for runs, size in ((10, 4), (5, 1), (1800, 64)):
        plan = StoredPlan(Path(), Meta(FORMAT, "", "", "0" * 64, runs, size, [], {}))
        indices = [plan.indices(batch) for batch in range(plan.batches)]
        assert [index for batch in indices for index in batch] == list(range(runs))
        assert all(plan.batch_of(index) == batch for batch, own in enumerate(indices) for index in own)


def test_a_sweep_has_batches_of_seconds_and_enough_for_many_workers(file: Path):
    def batch(repeat: int, duration: str) -> int:
        overrides = [("experiment.repeat", str(repeat)), ("experiment.duration", f'"{duration}"')]
        return batch_of(_core.Sweep.read_file(str(file), overrides))

    assert batch(3, "1 s") >= RUNS, "one batch"
    assert batch(3, "1000000 s") == 1
    of_many = batch(100_000, "100 s")
    effort = _core.Sweep.read_file(str(file), [("experiment.duration", '"100 s"')])[0].effort
    assert 0.1 < of_many * effort / BATCH_EFFORT < 4.0
    # A sweep of some batches has smaller ones, so that many workers have work to the end.
    some = of_many * 8
    assert of_many / 16 <= batch(some // 4, "100 s") < of_many


@pytest.mark.parametrize("seconds", [pytest.param(float(os.environ.get("SOJOURN_RACE_S", "6")), id="")])
def test_loose_readers_and_workers_of_one_store_get_right_answers(file: Path, tmp_path: Path, seconds: float):
    """Eight readers and four workers. SOJOURN_RACE_S says for how many seconds."""
    store = tmp_path / "store"
    cli = [sys.executable, "-m", "sojourn"]
    wrong: list[str] = []
    over = threading.Event()
    hashes: set[str] = set()

    def read(number: int) -> None:
        commands = [
            ["query", "select count(*) n, count(distinct hash) d, count(error) e from runs", "--json"],
            ["status", "--json"],
            ["plot", "--kind", "lines", "--x", "link.rate", "--out", str(tmp_path / f"lines{number}.svg")],
            ["query", "select hash from runs", "--json"],
        ]
        seen: set[str] = set()
        at = number
        while not over.is_set() or at < number + len(commands):
            command = commands[at % len(commands)]
            at += 1
            done = subprocess.run([*cli, *command, "--store", str(store)], capture_output=True, text=True)
            if done.returncode or done.stderr:
                wrong.append(f"{command[0]}: {done.returncode} {done.stderr}")
            elif "distinct" in command[1]:
                (row,) = json.loads(done.stdout)
                if row["n"] != row["d"] or row["e"]:
                    wrong.append(f"{command[1]}: {row}")
            elif command[1] == "select hash from runs":
                found = {row["hash"] for row in json.loads(done.stdout)}
                if not seen <= found:
                    wrong.append(f"{len(seen - found)} runs are lost")
                seen = found

    def make_runs() -> None:
        while not over.is_set():
            done = subprocess.run(
                [*cli, "worker", "--store", str(store), "--jobs", "1"], capture_output=True, text=True
            )
            if done.returncode:
                wrong.append(f"worker: {done.returncode} {done.stderr}")

    def sweep(seed: int) -> None:
        override = f"experiment.seed={seed}"
        done = subprocess.run(
            [*cli, "sweep", str(file), "--set", override, "--store", str(store), "--json"],
            capture_output=True,
            text=True,
        )
        if done.returncode or json.loads(done.stdout)["done"] != RUNS:
            wrong.append(f"sweep: {done.returncode} {done.stderr} {done.stdout}")

    sweep(1)
    readers = [threading.Thread(target=read, args=(number,)) for number in range(8)]
    workers = [threading.Thread(target=make_runs) for _ in range(4)]
    for thread in [*readers, *workers]:
        thread.start()
    until = time.monotonic() + seconds
    planned = 1
    while time.monotonic() < until or planned < 2:
        # Batches of one run each, so that there is something to merge.
        Store(store).add(
            file,
            [("experiment.seed", str(1 + 3 * planned))],
            _core.Sweep.read_file(str(file), [("experiment.seed", str(1 + 3 * planned))]),
            1,
        )
        sweep(1 + 3 * planned)
        planned += 1
    over.set()
    for thread in [*readers, *workers]:
        thread.join()
    assert wrong == []
    for plan in Store(store).plans():
        assert [part.last for part in plan.parts()] == [RUNS - 1]
        hashes |= {plan.sweep[index].hash for index in range(RUNS)}
    done = subprocess.run(
        [*cli, "query", "select count(*) n from runs", "--store", str(store), "--json"], capture_output=True, text=True
    )
    assert json.loads(done.stdout) == [{"n": len(hashes)}] == [{"n": RUNS * planned}]
