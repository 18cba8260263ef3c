"""What surroundings, other people's code and damaged files may do to a run: one line, and what was finished is kept."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_interruption import RUN, killed

import sojourn as sj
from conftest import EXPERIMENT, Cli, visible, wrong

SHORT = EXPERIMENT.replace("repeat = 2", "repeat = 1").replace('"4 s"', '"2 s"')
OWN = """\
import os
import sojourn

@sojourn.aqm("mine")
class Mine:
    def enqueue(self, packet, queue, now):
        {does}
        return "pass"

    def state(self):
        return {state}
"""
RECORDED = SHORT.replace('aqm = "pfifo"', 'aqm = "mine"') + '\n[record]\nseries = "500 ms"\n'


def with_own(sojourn: Cli, tmp_path: Path, does: str = "pass", state: str = "{}"):
    """A run of a discipline that does something when it is asked, and shows a state."""
    (tmp_path / "mine.py").write_text(OWN.format(does=does, state=state), encoding="utf-8")
    (tmp_path / "e.toml").write_text(RECORDED, encoding="utf-8")
    return sojourn("--load", "mine.py", "run", "e.toml", "--out", "out", "--figures", "none")


@pytest.mark.parametrize("name", ["packets.parquet", "series.parquet", "histograms.parquet"])
def test_damaged_tables_are_named(sojourn: Cli, tmp_path: Path, name: str):
    record = '\n[record]\npackets = true\nseries = "500 ms"\n'
    (tmp_path / "e.toml").write_text(SHORT + record, encoding="utf-8")
    assert sojourn("run", "e.toml", "--out", "out", "--figures", "none").returncode == 0
    table = tmp_path / "out" / name
    for damaged in (table.read_bytes()[:100], b"PAR1" + bytes(500) + b"PAR1"):
        table.write_bytes(damaged)
        wrong(sojourn("export", "out", "--format", "csv"), f"out/{name}: the results are damaged")
        with pytest.raises(sj.ExperimentError, match="the results are damaged"):
            results = sj.load(tmp_path / "out")
            _ = (results.packets(), results.queue_series(), results.histogram())


@pytest.mark.parametrize(
    "content",
    [
        '{"format": 1, "runs": []}',
        '{"format": 1, "sojourn": "x", "experiment": "x", "backend": "sim", "runs": [{"label": "a"}]}',
        '{"format": 1, "sojourn": "x", "experiment": 7, "backend": "sim", "runs": []}',
    ],
)
def test_a_damaged_summary_is_refused_when_it_is_read(tmp_path: Path, content: str):
    (tmp_path / "summary.json").write_text(content, encoding="utf-8")
    with pytest.raises(sj.ExperimentError, match=r"summary\.json: the results are damaged"):
        sj.load(tmp_path)


@pytest.mark.parametrize(
    ("place", "told"),
    [
        (("bottleneck", "down", "utilization"), 'runs.0.bottleneck.down: utilization: got "many"; must be a number'),
        (("bottleneck", "down", "sojourn_ms", "p95"), 'sojourn_ms: p95: got "many"; must be a number'),
        (("flows", 0, "goodput_bps"), 'runs.0.flows.0: goodput_bps: got "many"; must be a number'),
        (("groups", 0, "rtt_ms", "p50"), 'runs.0.groups.0.rtt_ms: p50: got "many"; must be a number'),
        (("seed",), 'runs.0: seed: got "many"; must be a number'),
        (("flows",), 'runs.0: flows: got "many"; must be a list'),
    ],
)
def test_a_text_for_a_number_in_a_summary_is_named(sojourn: Cli, tmp_path: Path, place: tuple, told: str):
    results = sj.run_text(SHORT)
    *way, key = place
    part = results.summary["runs"][0]
    for step in way:
        part = part[step]
    part[key] = "many"
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "summary.json").write_text(json.dumps(results.summary), encoding="utf-8")
    wrong(sojourn("report", "out"), "out/summary.json: the results are damaged", told)


def test_swept_values_of_every_kind_are_read_back(tmp_path: Path):
    sweep = '\n[sweep]\n"traffic.0.flows" = [1]\n"link.rate" = ["5 Mbit/s"]\n"record.packets" = [true]\n'
    results = sj.run_text(SHORT + sweep)
    results.save(tmp_path / "out", plots=False)
    assert sj.load(tmp_path / "out").runs[0].summary["set"] == {
        "traffic.0.flows": 1, "link.rate": "5 Mbit/s", "record.packets": True,
    }  # fmt: skip


def test_a_run_without_packets_is_read_back(tmp_path: Path):
    sj.run_text(SHORT.replace('start = "0..100 ms"', 'start = "0 s"\nstop = "100 ms"')).save(
        tmp_path / "out", plots=False
    )
    assert sj.load(tmp_path / "out").runs[0].sojourn_ms()["n"] == 0


@pytest.mark.parametrize("module", ["sojourn._core", "sojourn.cli.app", "sojourn.frame.results", "typer", "numpy"])
def test_an_interrupt_while_things_are_loaded_ends_quietly(module: str):
    code = (
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from sojourn.cli import main\n"
        "sys.argv = 'sojourn compare --rate 1mbit --rtt 10ms --duration 1s --repeat 2 pfifo'.split()\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "sojourn: interrupted\n")


def test_a_link_to_nothing_and_bytes_are_told_in_plain_words(sojourn: Cli, tmp_path: Path):
    (tmp_path / "link.toml").symlink_to("nowhere.toml")
    (tmp_path / "bytes").write_bytes(b"a\0\xff")
    is_link = ("link.toml: is a link to", "nowhere.toml", "which does not exist")
    wrong(sojourn("run", "link.toml"), *is_link)
    wrong(sojourn("replay", "link.toml", "--aqm", "codel"), *is_link)
    wrong(sojourn("--load", "link.toml", "list", "aqm"), *is_link)
    told = sojourn("--load", "bytes", "list", "aqm")
    wrong(told, "bytes", "not Python")
    assert "None" not in told.stderr


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"a = " + b"[" * 3000 + b"]" * 3000, "not TOML: nested too deeply"), (b"a = \xff", "not UTF-8 text (byte 4)")],
)
def test_what_is_no_recipe_is_told_in_plain_words(sojourn: Cli, study: Path, content: bytes, told: str):
    (study / "study.toml").write_bytes(content)
    wrong(sojourn("study", "run", study), "study.toml", told)


def test_a_notebooks_backend_for_figures_is_not_ours(sojourn: Cli, experiment: Path, tmp_path: Path):
    surroundings = {**os.environ, "MPLBACKEND": "module://nothing_of_this_name"}
    result = sojourn("run", experiment, "--out", "out", "--figures", "png", env=surroundings)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "out" / "overview.png").exists()


def test_figures_that_fail_do_not_cost_the_results(sojourn: Cli, experiment: Path, tmp_path: Path):
    # matplotlib reads this before it writes a PDF.
    surroundings = {**os.environ, "SOURCE_DATE_EPOCH": "no number"}
    result = sojourn("run", experiment, "--out", "out", "--figures", "pdf", env=surroundings)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert "sojourn: out: left out figures: ValueError" in result.stderr
    assert len(sj.load(tmp_path / "out").runs) == 4


@pytest.mark.parametrize("name", ["run", "seed", "time_s", "packets", "sojourn_mean_ms", "marked"])
def test_a_state_may_not_be_called_like_a_column_of_ours(sojourn: Cli, tmp_path: Path, name: str):
    result = with_own(sojourn, tmp_path, state=f'{{"{name}": 1.0}}')
    assert result.returncode == 1
    what = f'Mine.state returned "{name}"; must be another name: the series has this column already (mine.py:'
    assert what in result.stderr
    assert "Traceback" not in result.stderr


def test_a_state_that_is_no_number_is_named(sojourn: Cli, tmp_path: Path):
    result = with_own(sojourn, tmp_path, state='{"mood": "good"}')
    assert result.returncode == 1
    what = 'Mine.state returned {"mood": "good"}; must be a dict of numbers by name, as {"probability": 0.1} (mine.py:'
    assert what in result.stderr.replace("'", '"')


def test_results_go_where_they_were_to_go_whatever_a_discipline_does(sojourn: Cli, tmp_path: Path):
    (tmp_path / "elsewhere").mkdir()
    result = with_own(sojourn, tmp_path, does=f'os.chdir("{tmp_path}/elsewhere")')
    assert result.returncode == 0, result.stderr
    assert "summary.json" in visible(tmp_path / "out")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_what_a_discipline_says_is_one_line_of_bounded_length(sojourn: Cli, tmp_path: Path):
    result = with_own(sojourn, tmp_path, does='raise RuntimeError("\\x1b[31m" + "x" * 1000000)')
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert "\x1b" not in last
    assert "x1b[31mxxx" in last
    assert re.search(r"… \(\d{7} characters\)$", last)
    assert len(last) < 3000


@pytest.mark.parametrize("given", [("--out", b"\xff\xfe"), ("--set", b'queue.0.label="\xff"')])
def test_bytes_that_are_no_text_are_refused_before_anything_is_run(
    sojourn: Cli, experiment: Path, tmp_path: Path, given: tuple[str, bytes]
):
    before = visible(tmp_path)
    result = sojourn("run", experiment, given[0], os.fsdecode(given[1]))
    wrong(result, given[0], "UTF-8")
    assert visible(tmp_path) == before


def test_what_a_discipline_prints_is_not_in_our_output(sojourn: Cli, tmp_path: Path):
    (tmp_path / "mine.py").write_text(OWN.format(does='print("noise")', state="{}"), encoding="utf-8")
    (tmp_path / "e.toml").write_text(RECORDED, encoding="utf-8")
    result = sojourn("--load", "mine.py", "run", "e.toml", "--json")
    assert len(json.loads(result.stdout)["runs"]) == 2
    assert "noise" in result.stderr


def test_the_largest_seed_fits_the_tables(sojourn: Cli, experiment: Path, tmp_path: Path):
    largest = ("run", experiment, "--out", "out", "--figures", "none", "--set", f"experiment.seed={2**62}")
    assert sojourn(*largest).returncode == 0
    assert sj.load(tmp_path / "out").to_pandas()["seed"].max() == 2**62 + 1
    wrong(sojourn("run", experiment, "--set", f"experiment.seed={2**63 - 1}"), "experiment.seed", str(2**62))


def test_nobody_needs_to_listen(sojourn: Cli, experiment: Path, tmp_path: Path):
    result = sojourn("run", experiment, "--out", "out", "--figures", "none", preexec_fn=lambda: os.close(1))
    assert result.returncode == 0, result.stderr
    assert len(sj.load(tmp_path / "out").runs) == 4


def test_flows_and_groups_are_bounded_in_all(sojourn: Cli, tmp_path: Path):
    many = '\n[[traffic]]\nkind = "bulk"\nrtt = "10 ms"\nflows = 100000\n'
    (tmp_path / "e.toml").write_text(EXPERIMENT + many * 10, encoding="utf-8")
    wrong(sojourn("run", "e.toml"), "traffic.10", "1000002 flows; must be at most 1000000 in all")
    counted = many.replace("100000", "1\ncount = 10000")
    (tmp_path / "e.toml").write_text(EXPERIMENT + counted * 2, encoding="utf-8")
    wrong(sojourn("run", "e.toml"), "traffic", "at most 20000 tables [[traffic]]")


def test_an_altered_line_of_the_journal_is_run_again(sojourn: Cli, tmp_path: Path):
    finished = killed(sojourn, tmp_path)
    (journal,) = (tmp_path / "out").glob(".sojourn-*/journal")
    journal.write_bytes(journal.read_bytes().replace(b'"seed":1', b'"seed":9', 1))
    result = sojourn(*RUN, "--resume")
    assert result.returncode == 0, result.stderr
    told = f"{finished - 1} of 8 runs are already finished; damaged, and run again: 1"
    assert result.stderr.splitlines()[0] == told
    assert {run.seed for run in sj.load(tmp_path / "out").runs} == {1, 2, 3, 4}


def test_a_pipe_in_place_of_the_journal_does_not_hold_us_up(sojourn: Cli, tmp_path: Path):
    killed(sojourn, tmp_path)
    (journal,) = (tmp_path / "out").glob(".sojourn-*/journal")
    journal.unlink()
    os.mkfifo(journal)
    assert sojourn(*RUN, "--resume", timeout=60).returncode == 0
