"""Ctrl-C, a terminated process, a full disk: finished repeats are kept, no file is broken."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
from pathlib import Path

import pytest

from conftest import EXPERIMENT, SOJOURN, Cli

LONG = EXPERIMENT.replace('"4 s"', '"60 s"').replace("10 Mbit", "100 Mbit").replace("repeat = 2", "repeat = 1000")
ENDLESS = EXPERIMENT.replace('"4 s"', '"1000000 s"').replace("repeat = 2", "repeat = 1")


def start(tmp_path: Path, text: str, *arguments: str) -> subprocess.Popen[str]:
    """A run in the background, once it has shown progress."""
    (tmp_path / "experiment.toml").write_text(text, encoding="utf-8")
    process = subprocess.Popen(
        [SOJOURN, "run", "experiment.toml", "--jobs", "2", *arguments],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # Tests that run in the background may have been told to ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stderr is not None
    assert " runs, " in process.stderr.readline()
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_experiment_keeps_its_finished_repeats(tmp_path: Path, number):
    process = start(tmp_path, LONG, "--out", "out", "--json")
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stderr.splitlines()[-1].startswith("sojourn: interrupted; ")
    assert "Traceback" not in stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert summary == json.loads(stdout)
    assert summary["partial"] is True
    assert summary["planned_runs"] == 2000
    assert 0 < len(summary["runs"]) < 2000
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"summary.json", "summary.csv", "experiment.json"}


def test_a_long_run_is_given_up_in_the_middle(tmp_path: Path):
    process = start(tmp_path, ENDLESS, "--out", "out")
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stderr.splitlines()[-1] == "sojourn: interrupted; 0 of 2 runs finished"
    assert stdout == ""
    assert list((tmp_path / "out").iterdir()) == []


def test_a_full_disk_leaves_no_file_behind(sojourn: Cli, tmp_path: Path):
    record = '\n[record]\npackets = true\nseries = "100 ms"\n'
    (tmp_path / "experiment.toml").write_text(EXPERIMENT + record, encoding="utf-8")
    # A limit on the size of files stands for a disk that fills up: writes fail halfway.
    limit = 20_000
    result = sojourn("run", "experiment.toml", "--out", "out",
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))  # fmt: skip
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("sojourn: out: cannot write the results: ")
    assert "Traceback" not in result.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_a_full_disk_leaves_earlier_results_alone(sojourn: Cli, tmp_path: Path):
    (tmp_path / "experiment.toml").write_text(EXPERIMENT + "\n[record]\npackets = true\n", encoding="utf-8")
    assert sojourn("run", "experiment.toml", "--out", "out").returncode == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    result = sojourn("run", "experiment.toml", "--out", "out", "--set", "experiment.seed=9",
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)))  # fmt: skip
    assert result.returncode == 1
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
