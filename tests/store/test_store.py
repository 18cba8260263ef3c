"""A store of runs: made once, by whoever, and read back as they were."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Cli
from sojourn import _core
from sojourn.store import Store, batches
from sojourn.store.plans import RunList
from sojourn.store.runner import Runner
from store.conftest import EXPERIMENT, RUNS, contents, fill, planned


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
    sql = "select index, aqm, seed, sojourn_p95_ms, goodput_bps, summary from runs order by index"
    rows = json.loads(sojourn("query", "--store", "store", sql, "--json").stdout)
    runs = json.loads((tmp_path / "out" / "summary.json").read_text())["runs"]
    assert len(rows) == len(runs) == RUNS
    for index, (row, run) in enumerate(zip(rows, runs, strict=True)):
        assert (row["index"], row["aqm"], row["seed"]) == (index, run["queue"], run["seed"])
        assert row["sojourn_p95_ms"] == run["bottleneck"]["down"]["sojourn_ms"]["p95"]
        run.pop("wall_s")
        assert json.loads(row["summary"]) == run


def test_runs_of_another_sweep_are_not_made_again(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert fill(planned(file, tmp_path / "store")) is None
    made: list[str] = []
    end = batches.Batches.end
    monkeypatch.setattr(batches.Batches, "end", lambda *args: made.append(args[3].summary_json) or end(*args))
    # Two of three seeds, one more rate, and other names.
    text = EXPERIMENT.replace("repeat = 3", "repeat = 2").replace('"4 Mbit/s"]', '"4 Mbit/s", "6 Mbit/s"]')
    file.write_text(text.replace('"grid"', '"more"').replace('"pie"', '"pie", label = "PIE"'))
    other = planned(file, tmp_path / "store")
    known = batches.known_runs(plan for plan in Store(tmp_path / "store").plans() if plan.id != other.id)
    assert len(known) == RUNS
    assert fill(other) is None
    assert len(made) == 12
    assert all(json.loads(summary)["set"]["link.rate"] == "6 Mbit/s" for summary in made)
    fresh = planned(file, tmp_path / "fresh")
    assert fill(fresh, jobs=1) is None
    assert [part.path.name for part in fresh.parts()] == [part.path.name for part in other.parts()]


def test_what_a_sweep_takes_is_told_without_a_store(sojourn: Cli, file: Path, tmp_path: Path):
    many = ("--set", "experiment.repeat=30000")
    dry = json.loads(sojourn("sweep", "grid.toml", *many, "--dry-run", "--json").stdout)
    assert (dry["runs"], dry["stored"]) == (10_000 * RUNS, 0)
    assert dry["estimate_s"] > 0.0
    refused = sojourn("sweep", "grid.toml")
    assert (refused.returncode, refused.stderr) == (2, "sweep: needs --store, the folder that keeps the runs\n")


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


@pytest.mark.parametrize("record", ["", "record = { packets = true, pcap = true }\n"])
def test_sweep_and_run_share_their_runs(file: Path, tmp_path: Path, record: str, monkeypatch: pytest.MonkeyPatch):
    file.write_text(record + EXPERIMENT)
    sweep, specs = _core.Sweep.read_file(str(file), []), list(_core.Plan.read_file(str(file), []))
    swept, listed = Store.make(tmp_path / "swept"), Store.make(tmp_path / "listed")
    plan = swept.add(file, [], sweep, 4)
    assert fill(plan, jobs=1) is None
    made, _ = Runner(jobs=1).stored(listed, "listed", specs)
    monkeypatch.setattr(batches.Batches, "end", lambda *_: pytest.fail("made again"))
    read, stopped_by = Runner(jobs=1).stored(swept, "listed", specs)
    assert (len(read), stopped_by) == (RUNS, None)
    for index, run in made.items():
        assert read[index].summary == run.summary
        assert (read[index].histogram(), read[index].packets()) == (run.histogram(), run.packets())
        assert read[index].capture() == run.capture()
    again = listed.add(file, [], sweep, 4)
    assert fill(again, jobs=1) is None
    assert (
        contents(tmp_path / "swept")[plan.parts()[0].path.name]
        == contents(tmp_path / "listed")[again.parts()[0].path.name]
    )


def test_listed_runs_of_another_version_are_refused_and_not_counted_as_failed(sojourn: Cli, file: Path, tmp_path: Path):
    store = Store.make(tmp_path / "store")
    specs = list(_core.Plan.read_file(str(file), []))
    documents = [spec.document.replace('"results":', '"results":9') for spec in specs]
    store.add_list(RunList("listed", tuple(documents)), 4)
    refused = sojourn("worker", "--store", "store")
    assert refused.returncode == 2, refused.stderr
    assert "results: got 9" in refused.stderr.splitlines()[-1]
    found = json.loads(sojourn("status", "--store", "store", "--json").stdout)
    assert (found["done"], found["failed"]) == (0, 0)
