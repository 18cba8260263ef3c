"""A store of runs: made once, by whoever, whatever happens to them; the same bytes in the end."""

from __future__ import annotations

import errno
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sojourn import _core
from sojourn.runs import user_aqm
from sojourn.runs.backends import Simulator
from sojourn.runs.executors import Outcome
from sojourn.store import Store, claims, work
from sojourn.store.claims import Claims
from sojourn.store.listed import make
from sojourn.store.listing import Listing
from sojourn.store.planning import mend
from sojourn.store.plans import StoredPlan
from sojourn.store.query import query
from sojourn.store.status import status
from sojourn.store.work import Ahead, Batches

EXPERIMENT = """
experiment = { name = "grid", duration = "2 s", repeat = 3 }
link = { rate = "4 Mbit/s" }
queue = [{ aqm = "codel" }, { aqm = "pie" }]
traffic = [{ kind = "bulk", flows = 2, rtt = "20 ms" }]
[sweep]
"link.rate" = ["2 Mbit/s", "4 Mbit/s"]
"traffic.0.flows" = [1, 2, 3]
"""
RUNS = 36

Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "grid.toml"
    path.write_text(EXPERIMENT)
    return path


def planned(file: Path, folder: Path, batch_runs: int = 4) -> StoredPlan:
    """A sweep in a new store, with batches of so many runs."""
    return Store.make(folder).add(file, [], _core.Sweep.read_file(str(file), []), batch_runs)


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a store's runs, by name."""
    return {path.name: path.read_bytes() for path in sorted((folder / "runs").glob("*/*.parquet"))}


def test_a_sweep_is_made_once_and_answers_sql(sojourn: Cli, file: Path, tmp_path: Path):
    first = sojourn("sweep", "grid.toml", "--store", "store", "--json")
    assert json.loads(first.stdout) == {"runs": RUNS, "done": RUNS, "running": 0, "failed": 0}
    before = contents(tmp_path / "store")
    assert len(before) == 1
    again = sojourn("sweep", "grid.toml", "--store", "store", "--json")
    assert json.loads(again.stdout)["done"] == RUNS
    assert contents(tmp_path / "store") == before
    assert json.loads(sojourn("status", "--store", "store", "--json").stdout) == json.loads(first.stdout)
    dry = json.loads(sojourn("sweep", "grid.toml", "--store", "store", "--dry-run", "--json").stdout)
    assert (dry["runs"], dry["stored"], dry["estimate_s"]) == (RUNS, RUNS, 0.0)
    sql = (
        'select aqm, "traffic.0.flows" flows, count(*) n, quantile_cont(sojourn_p95_ms, 0.5) p95 from runs '
        "where error is null group by all order by all"
    )
    rows = json.loads(sojourn("query", "--store", "store", sql, "--json").stdout)
    assert [(row["aqm"], row["flows"], row["n"]) for row in rows] == [
        (aqm, flows, 6) for aqm in ("codel", "pie") for flows in (1.0, 2.0, 3.0)
    ]
    assert all(0.0 < row["p95"] < 2000.0 for row in rows)


def test_the_rows_are_what_run_gives(sojourn: Cli, file: Path, tmp_path: Path):
    sojourn("sweep", "grid.toml", "--store", "store")
    sojourn("run", "grid.toml", "--out", "out", "--figures", "none")
    sql = "select place, aqm, seed, sojourn_p95_ms, goodput_bps, summary from runs order by place"
    rows = json.loads(sojourn("query", "--store", "store", sql, "--json").stdout)
    runs = json.loads((tmp_path / "out" / "summary.json").read_text())["runs"]
    assert len(rows) == len(runs) == RUNS
    for place, (row, run) in enumerate(zip(rows, runs, strict=True)):
        assert (row["place"], row["aqm"], row["seed"]) == (place, run["queue"], run["seed"])
        assert row["sojourn_p95_ms"] == run["bottleneck"]["down"]["sojourn_ms"]["p95"]
        run.pop("wall_s")
        assert json.loads(row["summary"]) == run


def test_runs_of_another_sweep_are_not_made_again(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert work.work(planned(file, tmp_path / "store"), jobs=2) is None
    made: list[str] = []
    as_run = work.as_run
    monkeypatch.setattr(work, "as_run", lambda core: made.append(core.summary_json) or as_run(core))
    # Two of three seeds, one more rate, and other names.
    text = EXPERIMENT.replace("repeat = 3", "repeat = 2").replace('"4 Mbit/s"]', '"4 Mbit/s", "6 Mbit/s"]')
    file.write_text(text.replace('"grid"', '"more"').replace('"pie"', '"pie", label = "PIE"'))
    other = planned(file, tmp_path / "store")
    known = work.index(plan for plan in Store(tmp_path / "store").plans() if plan.id != other.id)
    assert len(known) == RUNS
    assert work.work(other, known, jobs=2) is None
    assert len(made) == 12
    assert all(json.loads(summary)["set"]["link.rate"] == "6 Mbit/s" for summary in made)
    fresh = planned(file, tmp_path / "fresh")
    assert work.work(fresh, jobs=1) is None
    assert [part.path.name for part in fresh.parts()] == [part.path.name for part in other.parts()]


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
    assert work.work(undisturbed, jobs=2) is None
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
    assert work.work(disturbed, jobs=2) is None
    assert contents(tmp_path / "disturbed") == contents(tmp_path / "undisturbed")
    assert not [
        path for path in (tmp_path / "disturbed" / "claims").rglob("*") if path.is_file() and path.name == "compact"
    ]


def test_two_masters_at_once_make_the_same_store(file: Path, tmp_path: Path):
    alone = planned(file, tmp_path / "alone", 2)
    assert work.work(alone, jobs=1) is None
    planned(file, tmp_path / "store", 2)
    command = [sys.executable, "-m", "sojourn", "sweep", str(file), "--store", str(tmp_path / "store"), "--json"]
    masters = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for master in masters:
        told, _ = master.communicate(timeout=120)
        assert master.returncode == 0
        assert json.loads(told)["done"] == RUNS
    assert contents(tmp_path / "store") == contents(tmp_path / "alone")


def test_a_damaged_plan_does_not_stop_the_other_sweeps(sojourn: Cli, file: Path, tmp_path: Path):
    for duration in ("1 s", "2 s"):
        sojourn("sweep", "grid.toml", "--set", f'experiment.duration="{duration}"', "--store", "store")
    plan = min((tmp_path / "store" / "plans").glob("*/plan.json"))
    plan.write_text('{"format": ')
    for command in (("query", "select count(*) from runs"), ("status",), ("worker",)):
        ended = sojourn(*command[:1], "--store", "store", *command[1:])
        assert ended.returncode == 0
        assert ended.stderr.startswith(f"note: {plan}: the results are damaged: not JSON")
        assert ended.stderr.count("is left out") == 1
    assert sojourn("explore", "--store", "store", "--out", "page.html").returncode == 0
    # A sweep of that plan says what to do, too.
    swept = [
        sojourn("sweep", "grid.toml", "--set", f'experiment.duration="{duration}"', "--store", "store")
        for duration in ("1 s", "2 s")
    ]
    (refused,) = [one for one in swept if one.returncode]
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"{plan}: the results are damaged")
    assert refused.stderr.endswith(": restore the file, or move its folder away\n")


def test_a_damaged_file_of_one_sweep_does_not_keep_the_others_from_a_query(sojourn: Cli, file: Path, tmp_path: Path):
    for duration in ("1 s", "2 s"):
        sojourn("sweep", "grid.toml", "--set", f'experiment.duration="{duration}"', "--store", "store")
    part = min((tmp_path / "store" / "runs").glob("*/*.parquet"))
    part.write_bytes(part.read_bytes()[:-9])
    asked = sojourn("query", "--store", "store", "select count(*) n from runs", "--json")
    assert (asked.returncode, json.loads(asked.stdout)) == (0, [{"n": RUNS}])
    repeats = "sojourn sweep FILE --store repeats its runs"
    assert asked.stderr == f"note: {part} is damaged; {repeats}; this sweep is left out\n"


def test_a_sweep_of_another_version_does_not_stop_a_worker(sojourn: Cli, file: Path, tmp_path: Path):
    for duration in ("1 s", "2 s"):
        sojourn("sweep", "grid.toml", "--set", f'experiment.duration="{duration}"', "--store", "store", "--plan")
    first = min((tmp_path / "store" / "plans").glob("*/experiment.toml"))
    first.write_text(first.read_text().replace("20 ms", "21 ms"))
    worked = sojourn("worker", "--store", "store")
    assert worked.returncode == 0, worked.stderr
    assert worked.stderr.startswith(f"note: {first.parent}: planned by Sojourn {_core.version}; for this version it")
    assert f"{RUNS} runs made by this worker" in worked.stderr
    # If there is nothing else to do, it is an error.
    worked = sojourn("worker", "--store", "store")
    assert (worked.returncode, "it means different runs" in worked.stderr) == (2, True)


def test_a_mark_of_a_store_that_is_nested_too_deeply_is_one_line(sojourn: Cli, tmp_path: Path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "store.json").write_text("[" * 100_000)
    refused = sojourn("status", "--store", "store")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "store.json: got format null; this version reads 1" in refused.stderr


def test_a_folder_that_cannot_be_written_to_is_wrong_input(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Root writes to any folder, so the operating system's refusal is imitated."""
    from sojourn.cli import app

    def refuse(**_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def ends(*words: str | Path) -> int:
        monkeypatch.setattr("sys.argv", ["sojourn", *map(str, words)])
        return app.status()

    full, planned_only = tmp_path / "full", tmp_path / "planned"
    assert ends("sweep", file, "--store", full) == 0
    assert ends("sweep", file, "--store", planned_only, "--plan") == 0
    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    capsys.readouterr()
    for words in (("sweep", file), ("run", file), ("worker",)):
        for store in (tmp_path / "new", planned_only):
            if words == ("worker",) and store != planned_only:
                continue
            assert ends(*words, "--store", store) == 2
            assert (
                capsys.readouterr().err == f'store: got "{store}"; must be a writable folder (Read-only file system)\n'
            )
    # What needs no writing still works.
    assert ends("sweep", file, "--store", full) == 0
    assert ends("query", "--store", full, "select count(*) from runs") == 0


def test_packets_that_would_not_fit_into_memory_are_refused(sojourn: Cli, tmp_path: Path):
    text = """
experiment = { name = "flood", duration = "100 s" }
link = { rate = "1 bit/s" }
queue = [{ aqm = "pfifo", limit = "1000000000 packets" }]
traffic = [{ kind = "cbr", rate = "100 Gbit/s", rtt = "20 ms" }]
"""
    (tmp_path / "flood.toml").write_text(text)
    said = json.loads(sojourn("run", "flood.toml", "--dry-run", "--json").stdout)
    assert 80_000 < said["estimate_mb"] < 160_000
    for command in (("run",), ("sweep", "--store", "store")):
        refused = sojourn(command[0], "flood.toml", *command[1:])
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
        assert refused.stderr.startswith("flood: pfifo: the queue would hold packets that need 104 GB of memory; this")
    (tmp_path / "flood.toml").write_text(text.replace("1000000000 packets", "1000 packets"))
    said = json.loads(sojourn("run", "flood.toml", "--dry-run", "--json").stdout)
    assert said["estimate_mb"] < 300, "the process alone"


def test_a_damaged_file_is_named_and_its_runs_made_again(sojourn: Cli, file: Path, tmp_path: Path):
    sojourn("sweep", "grid.toml", "--store", "store")
    before = contents(tmp_path / "store")
    (path,) = (tmp_path / "store" / "runs").glob("*/*.parquet")
    path.write_bytes(path.read_bytes()[:-100])
    asked = sojourn("query", "--store", "store", "select count(*) from runs")
    assert asked.returncode == 2
    assert asked.stderr == f"query: {path} is damaged; sojourn sweep FILE --store repeats its runs\n"
    mended = sojourn("sweep", "grid.toml", "--store", "store")
    assert mended.returncode == 0
    assert mended.stderr.startswith(f"{path}: damaged; its runs are repeated\n")
    # The documented pattern of the rows does not meet the damaged file.
    assert contents(tmp_path / "store") == before
    assert path.with_name(f"{path.name}.damaged").exists()


def test_runs_that_failed_are_tried_again_and_the_others_are_not(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    undisturbed = tmp_path / "undisturbed"
    work.work(planned(file, undisturbed), jobs=2)
    plan = planned(file, tmp_path / "store")
    made: list[int] = []
    end = Batches.end

    def failing(batches: Batches, place: int, outcome: Outcome) -> None:
        made.append(place)
        end(batches, place, _core.RunError("out of memory") if place == 17 else outcome)

    monkeypatch.setattr(Batches, "end", failing)
    work.work(plan, jobs=2)
    # All rows are in one file, the failed one too.
    assert status([plan]) == {"runs": RUNS, "done": RUNS, "running": 0, "failed": 1}
    assert len(plan.parts()) == 1
    made.clear()
    monkeypatch.setattr(Batches, "end", lambda batches, place, run: (made.append(place), end(batches, place, run)))
    assert mend(plan) == []
    assert plan.missing() == [4]
    work.work(plan, jobs=2)
    assert sorted(made) == [16, 17, 18, 19]
    assert contents(tmp_path / "store") == contents(undisturbed)


def test_a_file_without_a_name_is_called_like_its_path(sojourn: Cli, tmp_path: Path):
    for name in ("plain", "5", 'a "b" [c]'):
        (tmp_path / f"{name}.toml").write_text(EXPERIMENT.replace('name = "grid", ', ""))
        assert sojourn("sweep", f"{name}.toml", "--out", "store").returncode == 0
    sql = "select distinct experiment from queues order by all"
    rows = json.loads(sojourn("query", "--store", "store", sql, "--json").stdout)
    assert [row["experiment"] for row in rows] == ["5", 'a "b" [c]', "plain"]


def test_what_a_sweep_takes_is_told_without_a_store(sojourn: Cli, file: Path, tmp_path: Path):
    many = ("--set", "experiment.repeat=30000")
    dry = json.loads(sojourn("sweep", "grid.toml", *many, "--dry-run", "--json").stdout)
    assert (dry["runs"], dry["stored"]) == (10_000 * RUNS, 0)
    assert dry["estimate_s"] > 0.0
    refused = sojourn("sweep", "grid.toml")
    assert (refused.returncode, refused.stderr) == (2, "sweep: needs --store, the folder that keeps the runs\n")


def test_a_full_disk_ends_a_sweep_in_one_line_and_the_next_goes_on(sojourn: Cli, file: Path, tmp_path: Path):
    planned(file, tmp_path / "store", 4)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))  # noqa: E731
    full = sojourn("sweep", "grid.toml", "--store", "store", preexec_fn=limit)
    assert full.returncode == 1
    assert "File too large" in full.stderr
    assert "Traceback" not in full.stderr
    assert not [path for path in (tmp_path / "store" / "runs").rglob("*") if path.is_file()]
    assert sojourn("sweep", "grid.toml", "--store", "store").returncode == 0
    assert Store(tmp_path / "store").plans()[0].missing() == []


def test_values_that_cannot_go_together_fail_their_runs_alone(sojourn: Cli, tmp_path: Path):
    text = EXPERIMENT.replace(
        '"traffic.0.flows" = [1, 2, 3]', '"traffic.0.rtt" = ["20 ms", "30 ms"]\n"link.delay" = ["0 ms", "25 ms"]'
    )
    (tmp_path / "grid.toml").write_text(text.replace('rate = "4 Mbit/s" }', 'rate = "4 Mbit/s", delay = "0 ms" }'))
    # 25 ms one way are more than 20 ms both ways. It shows with the first values of the others: nothing is run.
    refused = sojourn("sweep", "grid.toml", "--store", "store")
    assert refused.returncode == 2
    assert "traffic.0.rtt" in refused.stderr
    assert not (tmp_path / "store").exists()
    (tmp_path / "grid.toml").write_text(
        text.replace('["20 ms", "30 ms"]', '["30 ms", "20 ms"]').replace(
            'rate = "4 Mbit/s" }', 'rate = "4 Mbit/s", delay = "0 ms" }'
        )
    )
    found = sojourn("sweep", "grid.toml", "--store", "store")
    assert found.returncode == 1
    assert found.stderr.splitlines()[-1].startswith("sojourn: 12 of 48 runs failed: sojourn query --store store ")
    sql = "select error, count(*) n from runs where error is not null group by error"
    (row,) = json.loads(sojourn("query", "--store", "store", sql, "--json").stdout)
    assert row["n"] == 12
    assert "traffic.0.rtt" in row["error"]


def test_what_is_recorded_of_packets_lies_beside_the_runs(sojourn: Cli, tmp_path: Path):
    (tmp_path / "grid.toml").write_text(EXPERIMENT.replace("[sweep]", "[record]\npackets = true\n[sweep]"))
    assert sojourn("sweep", "grid.toml", "--store", "store").returncode == 0
    import pyarrow.parquet as pq

    (folder,) = (tmp_path / "store" / "recorded").glob("*/packets")
    table = pq.read_table(folder)
    hashes = set(table["hash"].to_pylist())
    rows = json.loads(sojourn("query", "--store", "store", "select hash from runs", "--json").stdout)
    assert hashes == {row["hash"] for row in rows}


def test_own_disciplines_and_traces_go_into_the_store(sojourn: Cli, tmp_path: Path):
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "mobile.trace").write_text("1\n2\n3\n")
    (tmp_path / "mine.py").write_text(
        "import sojourn as sj\n@sj.aqm('mine')\nclass Mine:\n"
        "    def enqueue(self, packet, queue, now):\n        return 'pass'\n"
    )
    text = EXPERIMENT.replace('rate = "4 Mbit/s"', 'rate = { trace = "lines/mobile.trace" }').replace('"pie"', '"mine"')
    (tmp_path / "grid.toml").write_text(text.replace('"link.rate" = ["2 Mbit/s", "4 Mbit/s"]', ""))
    planned = sojourn("--load", "mine.py", "sweep", "grid.toml", "--store", "store", "--plan")
    assert planned.returncode == 0, planned.stderr
    for name in ("mine.py", "grid.toml", "lines/mobile.trace"):
        (tmp_path / name).unlink()
    assert sojourn("worker", "--store", "store").returncode == 0
    assert json.loads(sojourn("status", "--store", "store", "--json").stdout)["done"] == 18


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


def test_what_is_no_store_is_refused_and_left_alone(sojourn: Cli, file: Path, tmp_path: Path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    refused = sojourn("sweep", "grid.toml", "--store", "mine")
    assert (refused.returncode, refused.stderr) == (
        2,
        'store: got "mine"; must be a store, or an empty or new folder\n',
    )
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]
    missing = sojourn("status", "--store", "nowhere")
    assert missing.returncode == 2
    assert missing.stderr.startswith('store: got "nowhere"; there is no such folder')
    Store.make(tmp_path / "store")
    empty = sojourn("query", "--store", "store", "select 1")
    assert empty.returncode == 2
    assert "has no runs yet" in empty.stderr
    (tmp_path / "store" / "store.json").write_text('{"format": 99}')
    newer = sojourn("worker", "--store", "store")
    assert newer.returncode == 2
    assert newer.stderr.endswith("store.json: got format 99; this version reads 1\n")


def test_a_wrong_statement_is_one_line(sojourn: Cli, file: Path):
    sojourn("sweep", "grid.toml", "--store", "store")
    wrong = sojourn("query", "--store", "store", "select nothing from runs")
    assert wrong.returncode == 2
    assert wrong.stderr.count("\n") == 1
    assert wrong.stderr.startswith("query: Binder Error")
    empty = sojourn("query", "--store", "store", "")
    assert (empty.returncode, empty.stdout) == (0, "no rows\n")


def test_a_query_only_reads(sojourn: Cli, file: Path, tmp_path: Path):
    sojourn("sweep", "grid.toml", "--store", "store")
    for sql in (
        "copy (select 1) to 'made.csv'",
        "select 1; copy runs to 'made.csv'",
        "explain analyze copy (select 1) to 'made.csv'",
        "copy (pivot runs on aqm using count(*)) to 'made.csv'",
        "attach 'made.db'",
        "insert into runs values (1)",
        "create table made (x int)",
        "export database 'made'",
        "import database 'made'",
    ):
        refused = sojourn("query", "--store", "store", sql)
        assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1), sql
        assert "must only read" in refused.stderr
    assert not list(tmp_path.glob("made*"))
    for sql in ("from runs", "describe runs", "pivot runs on aqm using count(*) group by seed", "explain from runs"):
        assert sojourn("query", "--store", "store", sql).returncode == 0, sql


def test_a_long_answer_is_printed_as_it_is_computed(sojourn: Cli, file: Path, tmp_path: Path):
    sojourn("sweep", "grid.toml", "--store", "store")
    sql = "select r.range as n from range(1000000000000) r"
    for options in ([], ["--json"]):
        command = [sys.executable, "-m", "sojourn", "query", "--store", str(tmp_path / "store"), sql, *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert b"0" in process.stdout.read(1 << 15)
            process.stdout.close()
            assert process.wait(timeout=60) == 1
    many = sojourn("query", "--store", "store", "select range as n from range(2500)")
    numbers = [line.strip() for line in many.stdout.splitlines()]
    assert [number for number in numbers if number.isdecimal()] == [str(number) for number in range(2500)]
    assert numbers.count("n") == 1
    assert json.loads(sojourn("query", "--store", "store", "select 1 a where false", "--json").stdout) == []


def test_a_claim_is_held_by_one_and_lapses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    mine, theirs = Claims(tmp_path), Claims(tmp_path)
    with mine.hold("7") as is_mine:
        assert is_mine
        assert theirs.held() == {"7"}
        with theirs.hold("7") as is_theirs:
            assert not is_theirs
        # As after ten seconds without a touch.
        monkeypatch.setattr(claims, "LEASE_S", 0.0)
        assert theirs.held() == set()
        with theirs.hold("7") as is_theirs:
            assert is_theirs
            assert mine.hold
    assert not list(tmp_path.iterdir())


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
    from sojourn.store import dask

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs="CRITICAL"
    ) as cluster:
        killed: list[int] = []

        def report(progress: Any) -> None:
            if progress.finished > 4 and not killed:
                pid = next(iter(cluster.workers.values())).pid
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

        assert dask.work(plan, cluster.scheduler_address, report=report) is None
        assert killed
    alone = planned(file, tmp_path / "alone", 2)
    assert work.work(alone, jobs=2) is None
    assert contents(tmp_path / "store") == contents(tmp_path / "alone")


def test_an_address_without_a_scheduler_is_refused(sojourn: Cli, file: Path):
    pytest.importorskip("distributed")
    refused = sojourn("sweep", "grid.toml", "--store", "store", "--dask", "nowhere")
    assert refused.returncode == 2
    assert refused.stderr.startswith('--dask: got "nowhere"; must be the address of a scheduler')


@pytest.fixture(autouse=True)
def _forget_own_disciplines():
    before = dict(user_aqm._classes)
    yield
    for name in set(user_aqm._classes) - set(before):
        user_aqm.unregister_aqm(name)


def test_what_is_compared_and_evaluated_and_studied_is_read_from_a_store(sojourn: Cli, tmp_path: Path):
    compare = ["compare", "codel", "pie", "--rate", "4mbit", "--rtt", "20ms", "--duration", "2s", "--json"]
    plain = json.loads(sojourn(*compare).stdout)
    made = json.loads(sojourn(*compare, "--store", "store").stdout)
    read = json.loads(sojourn(*compare, "--store", "store").stdout)
    assert [run["wall_s"] for run in read["runs"]] == [0.0, 0.0]
    for results in (plain, made, read):
        for run in results["runs"]:
            del run["wall_s"]
    assert made == plain == read
    assert json.loads(sojourn("status", "--store", "store", "--json").stdout)["runs"] == 2


def test_recorded_tables_come_back_from_a_store_as_they_were(sojourn: Cli, tmp_path: Path):
    record = "[record]\npackets = true\nseries = '100 ms'\nrtt = true\npcap = true\n[sweep]"
    (tmp_path / "grid.toml").write_text(EXPERIMENT.replace("[sweep]", record))
    for folder, store in (("plain", []), ("made", ["--store", "store"]), ("read", ["--store", "store"])):
        done = sojourn("run", "grid.toml", "--out", folder, "--figures", "none", *store)
        assert done.returncode == 0, done.stderr
    names = {path.name for path in (tmp_path / "plain").iterdir() if path.suffix in (".parquet", ".pcapng", ".csv")}
    assert "packets.parquet" in names
    for name in names:
        plain = (tmp_path / "plain" / name).read_bytes()
        assert (tmp_path / "made" / name).read_bytes() == plain, name
        assert (tmp_path / "read" / name).read_bytes() == plain, name


def test_listed_runs_are_made_by_workers_and_not_twice(
    sojourn: Cli, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = Store.make(tmp_path / "store")
    specs = list(_core.Plan.read_file(str(file), []))
    plan = store.add_listing(Listing.of("listed", specs), 2)
    assert sojourn("worker", "--store", "store").returncode == 0
    monkeypatch.setattr(work, "as_run", lambda _: pytest.fail("made again"))
    runs, stopped_by = make(store, "listed", specs, jobs=1)
    assert (sorted(runs), stopped_by) == (list(range(RUNS)), None)
    # Others that have some of the same runs do not make them either, and read the same tables.
    some, _ = make(store, "a few of them", specs[:3], jobs=1)
    assert some[2].summary == runs[2].summary
    assert some[2].histogram() == runs[2].histogram()
    assert plan.runs_done() == RUNS


@pytest.mark.parametrize("record", ["", "record = { packets = true, pcap = true }\n"])
def test_sweep_and_run_share_their_runs(file: Path, tmp_path: Path, record: str, monkeypatch: pytest.MonkeyPatch):
    file.write_text(record + EXPERIMENT)
    sweep, specs = _core.Sweep.read_file(str(file), []), list(_core.Plan.read_file(str(file), []))
    swept, listed = Store.make(tmp_path / "swept"), Store.make(tmp_path / "listed")
    plan = swept.add(file, [], sweep, 4)
    assert work.work(plan, {}, jobs=1) is None
    made, _ = make(listed, "listed", specs, jobs=1)
    monkeypatch.setattr(work, "as_run", lambda _: pytest.fail("made again"))
    read, stopped_by = make(swept, "listed", specs, jobs=1)
    assert (len(read), stopped_by) == (RUNS, None)
    for place, run in made.items():
        assert read[place].summary == run.summary
        assert (read[place].histogram(), read[place].packets()) == (run.histogram(), run.packets())
        assert read[place].capture() == run.capture()
    again = listed.add(file, [], sweep, 4)
    assert work.work(again, work.index([listed.find(Listing.of("listed", specs))]), jobs=1) is None
    assert (
        contents(tmp_path / "swept")[plan.parts()[0].path.name]
        == contents(tmp_path / "listed")[again.parts()[0].path.name]
    )


def test_a_damaged_table_of_listed_runs_is_named_and_its_runs_made_again(file: Path, tmp_path: Path):
    said: list[str] = []
    store = Store.make(tmp_path / "store", say=said.append)
    specs = list(_core.Plan.read_file(str(file), []))
    before, _ = make(store, "listed", specs, jobs=1)
    histogram = before[0].histogram()
    damaged = sorted((tmp_path / "store" / "recorded").glob("*/histogram/*.parquet"))[0]
    damaged.write_bytes(damaged.read_bytes()[:-9])
    after, stopped_by = make(store, "listed", specs, jobs=1)
    assert stopped_by is None
    assert said == [f"{damaged}: damaged; its runs are repeated"]
    assert after[0].histogram() == histogram
    assert len(after) == RUNS


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
    simulated, _ = make(store, "listed", specs, jobs=1)
    for release, wanted in (("6.1", 4), ("6.1", 0), ("7.3", 4)):
        backend = Elsewhere(release)
        runs, stopped_by = make(store, "listed", specs, jobs=2, backend=backend)
        assert (len(runs), stopped_by, backend.made) == (4, None, wanted)
    # A part of them is read from the list that has all.
    backend = Elsewhere("7.3")
    assert len(make(store, "some", specs[:2], jobs=1, backend=backend)[0]) == 2
    assert backend.made == 0
    with query(store, "select backend, count(*) n, count(distinct hash) h from runs group by all order by all") as rows:
        assert [row for chunk in rows.chunks for row in chunk] == [("elsewhere", 8, 8), ("sim", 4, 4)]
    assert len(simulated) == 4


def test_listed_runs_of_another_version_are_refused_and_not_counted_as_failed(sojourn: Cli, file: Path, tmp_path: Path):
    store = Store.make(tmp_path / "store")
    specs = list(_core.Plan.read_file(str(file), []))
    documents = [spec.document.replace('"results":', '"results":9') for spec in specs]
    store.add_listing(Listing("listed", tuple(documents)), 4)
    refused = sojourn("worker", "--store", "store")
    assert refused.returncode == 2, refused.stderr
    assert "results: got 9" in refused.stderr.splitlines()[-1]
    found = json.loads(sojourn("status", "--store", "store", "--json").stdout)
    assert (found["done"], found["failed"]) == (0, 0)


@pytest.mark.parametrize("name", ["aqm=codel", "st*r", "[st]ore", "it's"])
def test_a_store_may_have_any_name(sojourn: Cli, file: Path, tmp_path: Path, name: str):
    for folder in (name, "stxr"):
        assert sojourn("sweep", "grid.toml", "--store", folder).returncode == 0
    rows = json.loads(
        sojourn("query", "--store", name, "select aqm, count(*) n from queues group by aqm", "--json").stdout
    )
    assert {row["aqm"]: row["n"] for row in rows} == {"codel": RUNS / 2, "pie": RUNS / 2}


def test_damage_that_can_still_be_decoded_is_found_and_not_passed_on(sojourn: Cli, file: Path, tmp_path: Path):
    assert sojourn("sweep", "grid.toml", "--store", "store").returncode == 0
    before = sojourn(
        "query", "--store", "store", "select hash, sojourn_p95_ms from runs order by hash", "--json"
    ).stdout
    (part,) = (tmp_path / "store" / "runs").glob("*/*.parquet")
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    refused = sojourn("query", "--store", "store", "select 1")
    assert (refused.returncode, "is damaged" in refused.stderr) == (2, True)
    assert sojourn("sweep", "grid.toml", "--set", "experiment.repeat=2", "--store", "store").returncode == 0
    assert sojourn("sweep", "grid.toml", "--store", "store").returncode == 0
    assert (
        sojourn("query", "--store", "store", "select hash, sojourn_p95_ms from runs order by hash", "--json").stdout
        == before
    )


def test_a_copied_plan_does_not_count(sojourn: Cli, file: Path, tmp_path: Path):
    assert sojourn("sweep", "grid.toml", "--store", "store").returncode == 0
    (plan,) = (tmp_path / "store" / "plans").iterdir()
    shutil.copytree(plan, plan.with_name(f"{plan.name}.bak"))
    assert json.loads(sojourn("status", "--store", "store", "--json").stdout)["runs"] == RUNS


def test_what_a_killed_master_left_does_not_lock_a_folder(sojourn: Cli, file: Path, tmp_path: Path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / ".store.json.0123456789ab").write_text("")
    assert sojourn("sweep", "grid.toml", "--store", "store").returncode == 0


def test_a_trace_named_like_a_file_of_the_store_is_refused(sojourn: Cli, tmp_path: Path):
    (tmp_path / "plan.json").write_text("1\n2\n3\n")
    text = EXPERIMENT.replace('rate = "4 Mbit/s"', 'rate = { trace = "plan.json" }')
    (tmp_path / "grid.toml").write_text(text.replace('"link.rate" = ["2 Mbit/s", "4 Mbit/s"]', ""))
    refused = sojourn("sweep", "grid.toml", "--store", "store")
    assert refused.returncode == 2
    assert 'trace: got "plan.json"; must have another name' in refused.stderr
    assert json.loads(sojourn("status", "--store", "store", "--json").stdout)["runs"] == 0


def test_a_damaged_file_is_one_line_in_every_command(sojourn: Cli, file: Path, tmp_path: Path):
    assert sojourn("sweep", "grid.toml", "--store", "store").returncode == 0
    (part,) = (tmp_path / "store" / "runs").glob("*/*.parquet")
    part.write_bytes(b"")
    for command in (["status", "--store", "store"], ["query", "--store", "store", "select 1"]):
        refused = sojourn(*command)
        assert refused.returncode == 2
        assert refused.stderr.splitlines() == [
            f"{command[0]}: {part} is damaged; sojourn sweep FILE --store repeats its runs"
        ]


def test_columns_of_the_same_name_are_refused(sojourn: Cli, file: Path):
    assert sojourn("sweep", "grid.toml", "--store", "store").returncode == 0
    refused = sojourn("query", "--store", "store", "select 1 as a, 2 as a")
    assert (refused.returncode, refused.stderr) == (2, "query: two columns have the same name: a, a; rename with as\n")
    refused = sojourn("query", "--store", "store", "select now() as t")
    assert (refused.returncode, refused.stderr) == (2, "query: column t has a time zone; cast it: t::timestamp\n")


def test_progress_counts_work_not_runs(tmp_path: Path):
    """A run at 1 Gbit/s takes some hundred times as long as one at 1 Mbit/s."""
    text = EXPERIMENT.partition("[sweep]")[0] + '[sweep]\n"link.rate" = ["1 Mbit/s", "1 Gbit/s"]\n'
    (tmp_path / "grid.toml").write_text(text)
    plan = planned(tmp_path / "grid.toml", tmp_path / "store", 1)
    ahead = Ahead(plan)
    efforts = [ahead.effort(batch) for batch in plan.missing()]
    assert max(efforts) > 10 * min(efforts)
    half = ahead.progress(min(efforts) / 2, 0.5)
    assert (half.finished, half.fraction) == (0, pytest.approx(min(efforts) / 2 / sum(efforts)))
    # Another worker finishes the short run.
    work.make_batch(str(plan.store), plan.id, efforts.index(min(efforts)), trusted=False)
    done = ahead.progress(0.0, 2.0)
    assert (done.finished, done.fraction) == (1, pytest.approx(min(efforts) / sum(efforts)))
    assert ahead.progress(sum(efforts) - min(efforts), 2.5).fraction == pytest.approx(1.0)
