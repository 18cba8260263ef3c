"""Ctrl-C, a terminated process, a full disk: finished repeats are kept, no file is broken."""

from __future__ import annotations

import json
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import sojourn as sj
from conftest import EXPERIMENT, SOJOURN, Cli, visible
from sojourn.cli import run as run_command
from sojourn.files.interrupts import SIGNALS

LONG = EXPERIMENT.replace('"4 s"', '"20 s"').replace("10 Mbit", "100 Mbit").replace("repeat = 2", "repeat = 1000")
UNHURRIED = EXPERIMENT.replace('"codel"\ntarget = "5 ms"', '"unhurried"').replace("repeat = 2", "repeat = 15")
"""30 runs, which take a few seconds on the fastest machine."""
OWN = """\
import time
import sojourn as sj

@sj.aqm("unhurried")
class Unhurried:
    def __init__(self):
        time.sleep(0.3)

    def enqueue(self, packet, queue, now):
        return "pass"
"""
ENDLESS = EXPERIMENT.replace('"4 s"', '"1000000 s"').replace("repeat = 2", "repeat = 1")


def start(
    tmp_path: Path,
    text: str,
    *arguments: str,
    some: bool = True,
    first: str | None = None,
    before: Sequence[str] = (),
) -> subprocess.Popen[str]:
    """A run in the background, once it shows progress, or a ``first`` line; with ``some`` once runs are finished."""
    (tmp_path / "experiment.toml").write_text(text, encoding="utf-8")
    process = subprocess.Popen(
        [SOJOURN, *before, "run", "experiment.toml", "--jobs", "2", *arguments],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # Tests that run in the background may have been told to ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stderr is not None
    line = process.stderr.readline()
    assert re.fullmatch(first or r".* runs, .*\n", line), line
    while some and line.startswith("0 of "):
        line = process.stderr.readline()
    return process


@pytest.mark.parametrize("number", SIGNALS)
def test_an_interrupted_experiment_keeps_its_finished_repeats(tmp_path: Path, number):
    process = start(tmp_path, LONG, "--out", "out", "--figures", "none", "--json")
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert re.search(r"^interrupted: keeping \d+ finished of 2000 runs, writing out; another Ctrl-C", stderr, re.M)
    assert stderr.splitlines()[-1].startswith("sojourn: interrupted; ")
    assert "Traceback" not in stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary == json.loads(stdout)
    assert summary["partial"] is True
    assert summary["planned_runs"] == 2000
    assert 0 < len(summary["runs"]) < 2000
    assert visible(tmp_path / "out") == {"summary.json", "summary.csv", "experiment.json", "histograms.parquet"}


def test_a_long_run_is_given_up_in_the_middle(tmp_path: Path):
    process = start(tmp_path, ENDLESS, "--out", "out", some=False)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stderr.splitlines()[-1] == "sojourn: interrupted; 0 of 2 runs finished"
    assert stdout == ""
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("waits_s", [5, 0], ids=["comes again", "at the end"])
def test_an_interruption_in_a_destructor_is_not_lost(waits_s: int):
    code = f"""
import signal, time
from sojourn.cli import app, main

class Late:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

def status():
    Late()
    for _ in range({waits_s} * 100):
        time.sleep(0.01)
    return 0

app.status = status
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (130, "sojourn: interrupted\n")


def limited(size: int) -> Callable[[], None]:
    """Stands for a disk that fills up: writes fail halfway."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_keeps_the_small_results_and_names_what_it_left_out(sojourn: Cli, tmp_path: Path):
    record = '\n[record]\npackets = true\nseries = "100 ms"\n'
    (tmp_path / "experiment.toml").write_text(EXPERIMENT + record, encoding="utf-8")
    result = sojourn("run", "experiment.toml", "--out", "out", preexec_fn=limited(30_000))
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    last = result.stderr.splitlines()[-1]
    assert last.startswith("sojourn: out: left out packets.parquet, ")
    assert "File too large" in last
    assert {"summary.json", "summary.csv", "experiment.json"} <= visible(tmp_path / "out")
    assert len(sj.load(tmp_path / "out").runs) == 4
    assert sj.load(tmp_path / "out").packets() is None
    assert not list((tmp_path / "out").glob("*.partial"))


def test_a_disk_without_any_room_leaves_earlier_results_alone(sojourn: Cli, tmp_path: Path):
    (tmp_path / "experiment.toml").write_text(EXPERIMENT + "\n[record]\npackets = true\n", encoding="utf-8")
    assert sojourn("run", "experiment.toml", "--out", "out", "--figures", "none").returncode == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    again = ("run", "experiment.toml", "--out", "out", "--figures", "none", "--set", "experiment.seed=9")
    result = sojourn(*again, preexec_fn=limited(200))
    assert result.returncode == 1
    assert "sojourn: out: cannot write the results: " in result.stderr
    assert "Traceback" not in result.stderr
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir() if path.is_file()} == before


# Made for the fifth time it kills the process, unless there is a file that says it is to go on.
FATAL = """\
import itertools, os, pathlib, signal
import sojourn

made = itertools.count()

@sojourn.aqm("fatal")
class Fatal:
    def __init__(self):
        # Once while the file is checked.
        if next(made) == 4 and not pathlib.Path("go_on").exists():
            os.kill(os.getpid(), signal.SIGKILL)

    def enqueue(self, packet, queue, now):
        return "pass"
"""
RECORDED = (
    EXPERIMENT.replace('aqm = "codel"\ntarget = "5 ms"', 'aqm = "fatal"').replace("repeat = 2", "repeat = 4")
    + '\n[record]\npackets = true\nseries = "500 ms"\nrtt = true\n'
)
RUN = ("--load", "fatal.py", "run", "experiment.toml", "--jobs", "1", "--figures", "none", "--out", "out")


def killed(sojourn: Cli, tmp_path: Path) -> int:
    """An experiment killed once some of its 8 runs are finished; how many."""
    (tmp_path / "experiment.toml").write_text(RECORDED, encoding="utf-8")
    (tmp_path / "fatal.py").write_text(FATAL, encoding="utf-8")
    assert sojourn(*RUN).returncode == -signal.SIGKILL
    (tmp_path / "go_on").touch()
    assert visible(tmp_path / "out") == set()
    (journal,) = (tmp_path / "out").glob(".sojourn-*/journal")
    return journal.read_bytes().count(b'"run":')


def same(folder: Path, other: Path) -> None:
    """Checks that two folders hold the same results but for the time that they took."""
    assert visible(folder) == visible(other)
    for name in sorted(visible(folder)):
        contents = [(one / name).read_bytes() for one in (folder, other)]
        if name == "summary.json":
            contents = [re.sub(rb'"wall_s": [^,]*', b"", content) for content in contents]
        assert contents[0] == contents[1], name


def test_a_killed_run_is_resumed_to_the_same_bytes(sojourn: Cli, tmp_path: Path):
    finished = killed(sojourn, tmp_path)
    assert 0 < finished < 8
    # An entry that was cut, as a power cut leaves it.
    (journal,) = (tmp_path / "out").glob(".sojourn-*/journal")
    with journal.open("ab") as file:
        file.write(b'00000000 {"run":7,"sizes":{"packets":99999999999},"summary":{}}\n00000000 {"run":6,"siz')
    other = sojourn(*RUN, "--resume", "--set", "link.rate=9 Mbit/s")
    assert other.returncode == 2
    assert other.stderr.count("\n") == 1
    assert "finished runs of another experiment" in other.stderr

    result = sojourn(*RUN, "--resume")
    assert result.returncode == 0, result.stderr
    assert result.stderr.splitlines()[0] == f"{finished} of 8 runs are already finished"
    assert [path.name for path in (tmp_path / "out").glob(".sojourn-*")] == [".sojourn-manifest.json"]
    assert sojourn(*RUN[:-1], "fresh").returncode == 0
    same(tmp_path / "out", tmp_path / "fresh")

    again = sojourn(*RUN, "--resume", "--json")
    assert again.stderr == "all 8 runs are already in out\n"
    assert json.loads(again.stdout) == sj.load(tmp_path / "out").summary
    other = sojourn(*RUN, "--resume", "--set", "link.rate=9 Mbit/s")
    assert other.returncode == 2
    assert other.stderr.startswith("--resume: out has results of another experiment")


def test_what_a_killed_run_left_goes_when_it_is_run_again(sojourn: Cli, tmp_path: Path):
    finished = killed(sojourn, tmp_path)
    estimate = json.loads(sojourn(*RUN, "--resume", "--dry-run", "--json").stdout)
    assert estimate.keys() == {"runs", "stored", "estimate_s", "figures_s", "estimate_mb", "disk_mb"}
    assert (estimate["runs"], estimate["stored"]) == (8, finished)
    result = sojourn(*RUN)
    assert result.returncode == 0
    assert f"note: {finished} of 8 runs were finished before" in result.stderr
    assert "--resume" in result.stderr
    assert [path.name for path in (tmp_path / "out").glob(".sojourn-*")] == [".sojourn-manifest.json"]


def test_an_interrupted_run_is_resumed(sojourn: Cli, tmp_path: Path):
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    process = start(tmp_path, UNHURRIED, "--out", "out", "--figures", "none", before=("--load", "own.py"))
    process.send_signal(signal.SIGINT)
    stdout, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert len(stdout.splitlines()) < 25
    result = sojourn("--load", "own.py", "run", "experiment.toml", "--out", "out", "--figures", "none", "--resume")
    assert result.returncode == 0, result.stderr
    assert "of 30 runs are already finished" in result.stderr
    results = sj.load(tmp_path / "out")
    assert len(results.runs) == 30
    assert not results.partial


def test_a_second_interrupt_loses_no_finished_run(sojourn: Cli, tmp_path: Path):
    """Wherever it comes: before the results are written, while they are, or after."""
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    process = start(tmp_path, UNHURRIED, "--out", "out", "--figures", "none", before=("--load", "own.py"))
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    line = process.stderr.readline()
    while not line.startswith("interrupted: keeping "):
        line = process.stderr.readline()
    finished = int(line.split()[2])
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    result = sojourn("--load", "own.py", "run", "experiment.toml", "--out", "out", "--figures", "none", "--resume")
    assert result.returncode == 0, result.stderr
    told = re.search(r"^(\d+) of 30 runs are already finished", result.stderr, re.M)
    assert told is not None
    assert int(told[1]) >= finished > 0
    assert len(sj.load(tmp_path / "out").runs) == 30


def test_the_table_of_an_interrupted_sweep_is_cut(capsys: pytest.CaptureFixture[str]):
    queues = [f"codel:target={milliseconds}ms" for milliseconds in range(1, 15)]
    results = sj.compare(*queues, rate="1 Mbit/s", rtt="10 ms", flows=1, duration="200 ms", warmup="0 s")
    for arms, more in ((14, 2), (13, 1), (12, None)):
        runs = [run for arm in results.arms[:arms] for run in arm.runs]
        kept = sj.Results({**results.summary, "runs": [run.summary for run in runs]}, runs)
        run_command._print(kept, baseline=None, json=False, out=Path("out"), short=True)
        shown = capsys.readouterr().out
        assert len(re.findall(r"^ *codel", shown, re.M)) == 12
        told = [line for line in shown.splitlines() if line.startswith("and ")]
        assert told == ([] if more is None else [f"and {more} more: all are in {Path('out/summary.csv')}"])


def test_a_large_experiment_says_first_what_it_will_take(tmp_path: Path):
    text = EXPERIMENT.replace('"4 s"', '"1100 ms"').replace("repeat = 2", "repeat = 10_000")
    process = start(
        tmp_path, text, some=False, first=r"20000 runs: about .*, [\d.]+ [MG]B of memory and with --out .* on disk\n"
    )
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130


def test_a_directory_takes_the_runs_of_one_process(sojourn: Cli, tmp_path: Path):
    first = start(tmp_path, LONG, "--out", "out", "--figures", "none")
    run = ("run", "experiment.toml", "--figures", "none")
    others = (
        run, (*run, "--resume"), (*run, "--set", "experiment.repeat=1"), ("agree", "experiment.toml"),
        ("study", "run", "khademi2013", "--quick"), ("evaluate", "pie", "--suite", "rfc7928", "--quick"),
    )  # fmt: skip
    for other in others:
        refused = sojourn(*other, "--out", "out")
        assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
        assert refused.stderr.startswith(
            f'--out: got "out"; process {first.pid} is making runs for it: wait for its end'
        )
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)
    assert first.returncode == 130
    finished = len(sj.load(tmp_path / "out").runs)
    assert finished > 0, "nothing was lost"
    short = ("--set", "experiment.repeat=1", "--set", "experiment.duration='2 s'")
    assert sojourn("run", "experiment.toml", "--out", "out", "--figures", "none", *short).returncode == 0


LOOPS = """\
import time
import sojourn

@sojourn.aqm("stuck")
class Stuck:
    def enqueue(self, packet, queue, now):
        if now > 0.5:
            while True:
                BODY
"""


@pytest.mark.parametrize("body", ["pass", "time.sleep(10_000)"])
@pytest.mark.parametrize("number", SIGNALS)
def test_an_aqm_in_an_endless_loop_does_not_keep_the_process(tmp_path: Path, body, number):
    (tmp_path / "stuck.py").write_text(LOOPS.replace("BODY", body), encoding="utf-8")
    text = EXPERIMENT.replace('aqm = "codel"\ntarget = "5 ms"', 'aqm = "stuck"').replace("repeat = 2", "repeat = 1")
    (tmp_path / "experiment.toml").write_text(text, encoding="utf-8")
    process = subprocess.Popen(
        [SOJOURN, "--load", "stuck.py", "run", "experiment.toml", "--jobs", "2", "--out", "out", "--figures", "none"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stderr is not None
    assert "1 of 2 runs, " in process.stderr.readline()
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 128 + number, stderr
    assert "Traceback" not in stderr
    assert stderr.splitlines()[-1].startswith("sojourn: interrupted; 1 of 2 runs finished, kept in out/summary.json")
    assert "pfifo" in stdout
    assert [run.label for run in sj.load(tmp_path / "out").runs] == ["pfifo"]
