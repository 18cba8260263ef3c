"""What a store refuses, and damage that it finds: one line each, and its runs are made again."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
from pathlib import Path

import pytest

from conftest import Cli
from sojourn import _core
from sojourn.runs.executors import Outcome
from sojourn.store import Store
from sojourn.store.batches import Batches, known_runs
from sojourn.store.planning import mend
from sojourn.store.plans import status
from sojourn.store.runner import Runner
from store.conftest import EXPERIMENT, RUNS, contents, fill, planned


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
    assert "store.json: got format null; this version reads 3" in refused.stderr


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
    fill(planned(file, undisturbed))
    plan = planned(file, tmp_path / "store")
    made: list[int] = []
    end = Batches.end

    def failing(batches: Batches, index: int, spec: _core.RunSpec, outcome: Outcome) -> None:
        made.append(index)
        end(batches, index, spec, _core.RunError("out of memory") if index == 17 else outcome)

    monkeypatch.setattr(Batches, "end", failing)
    fill(plan)
    # All rows are in one file, the failed one too.
    assert status([plan]) == {"runs": RUNS, "done": RUNS, "running": 0, "failed": 1}
    assert len(plan.parts()) == 1
    # Another sweep makes the failed run, too.
    assert set(known_runs([plan])) == {plan.sweep[index].hash for index in range(RUNS) if index != 17}
    made.clear()
    monkeypatch.setattr(Batches, "end", lambda batches, index, *run: (made.append(index), end(batches, index, *run)))
    mend(plan, pytest.fail)
    assert plan.missing() == [4]
    fill(plan)
    assert sorted(made) == [16, 17, 18, 19]
    assert contents(tmp_path / "store") == contents(undisturbed)


def test_a_file_without_a_name_is_called_like_its_path(sojourn: Cli, tmp_path: Path):
    for name in ("plain", "5", 'a "b" [c]'):
        (tmp_path / f"{name}.toml").write_text(EXPERIMENT.replace('name = "grid", ', ""))
        assert sojourn("sweep", f"{name}.toml", "--out", "store").returncode == 0
    sql = "select distinct experiment from queues order by all"
    rows = json.loads(sojourn("query", "--store", "store", sql, "--json").stdout)
    assert [row["experiment"] for row in rows] == ["5", 'a "b" [c]', "plain"]


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
    # They would fail again: the next sweep does not repeat them.
    rows = {path: path.stat().st_mtime_ns for path in (tmp_path / "store" / "runs").glob("*/*")}
    assert sojourn("sweep", "grid.toml", "--store", "store").returncode == 1
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "store" / "runs").glob("*/*")} == rows


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
    assert newer.stderr.endswith("store.json: got format 99; this version reads 3\n")


def test_a_damaged_table_of_listed_runs_is_named_and_its_runs_made_again(file: Path, tmp_path: Path):
    said: list[str] = []
    store = Store.make(tmp_path / "store", say=said.append)
    specs = list(_core.Plan.read_file(str(file), []))
    before, _ = Runner(jobs=1).stored(store, "listed", specs)
    histogram = before[0].histogram()
    damaged = sorted((tmp_path / "store" / "recorded").glob("*/histogram/*.parquet"))[0]
    damaged.write_bytes(damaged.read_bytes()[:-9])
    after, stopped_by = Runner(jobs=1).stored(store, "listed", specs)
    assert stopped_by is None
    assert said == [f"{damaged}: damaged; its runs are repeated"]
    assert after[0].histogram() == histogram
    assert len(after) == RUNS


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


def test_runs_without_their_recorded_tables_are_not_taken_from_another_sweep(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    first = planned(file, tmp_path / "store")
    assert fill(first) is None
    shutil.rmtree(first.recorded)
    made: list[int] = []
    end = Batches.end
    monkeypatch.setattr(Batches, "end", lambda *args: made.append(args[1]) or end(*args))
    file.write_text(EXPERIMENT.replace("repeat = 3", "repeat = 1"))
    fewer = planned(file, tmp_path / "store")
    assert fill(fewer) is None
    assert len(made) == len(fewer.sweep) == RUNS // 3
    assert (fewer.recorded / "histogram").is_dir()


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
