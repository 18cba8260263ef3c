"""What the end-to-end tests share: the command line as a user calls it, and small experiments."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# Who runs the tests in the background may ignore signals of the terminal; what the tests start is to hear them.
signal.signal(signal.SIGINT, signal.default_int_handler)
for _number in ("SIGHUP", "SIGQUIT"):
    if hasattr(signal, _number):
        signal.signal(getattr(signal, _number), signal.SIG_DFL)

ROOT = Path(__file__).parents[1]
SOJOURN = Path(sys.executable).with_name("sojourn")

EXPERIMENT = """\
[experiment]
name = "two flows"
duration = "4 s"
warmup = "1 s"
repeat = 2

[link]
rate = "10 Mbit/s"
buffer = "100 packets"

[[queue]]
aqm = "pfifo"

[[queue]]
aqm = "codel"
target = "5 ms"

[[traffic]]
kind = "bulk"
flows = 2
rtt = "40 ms"
start = "0..100 ms"
"""

SWEEP = """
experiment = { name = "grid", duration = "2 s", repeat = 3 }
link = { rate = "4 Mbit/s" }
queue = [{ aqm = "pfifo" }, { aqm = "codel", label = "CoDel" }]
traffic = [{ kind = "bulk", flows = 2, rtt = "20 ms" }]
[sweep]
"link.rate" = ["2 Mbit/s", "1000 kbit/s", "20 Mbit/s"]
"traffic.0.flows" = [1, 3]
"traffic.0.tcp" = ["reno", "cubic"]
"""
"""Eighteen cells with three repeats each."""

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The folders with the longest files come first, so that none of them is left alone at the end."""
    longest = ["linux", "store", "studies"]
    items.sort(key=lambda item: [*longest, item.path.parent.name].index(item.path.parent.name))


def visible(folder: Path) -> set[str]:
    """The names in a folder, without Sojourn's own list and workspaces."""
    return {path.name for path in folder.iterdir() if not path.name.startswith(".sojourn-")}


def wrong(result, *parts: str) -> None:
    """Checks the form of a refusal, and that it names these parts."""
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    assert "Traceback" not in result.stderr
    for part in parts:
        assert part in result.stderr


def blocks(language: str, page: str) -> list[tuple[str, str]]:
    """Code blocks of a page's text, with the name of their file."""
    return re.findall(rf"^```{language}(?: (\S+))?\n(.*?)^```", page, re.M | re.S)


@pytest.fixture
def sojourn(tmp_path: Path) -> Cli:
    """Runs the command line in an empty directory."""

    def run(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
        usual = {"env": {**os.environ, "COLUMNS": "160"}, "capture_output": True, "text": True, "timeout": 120}
        return subprocess.run([SOJOURN, *map(str, arguments)], cwd=tmp_path, **{**usual, **options})  # type: ignore[call-overload]

    return run


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    """A small experiment file: two queues, two repeats."""
    path = tmp_path / "experiment.toml"
    path.write_text(EXPERIMENT, encoding="utf-8")
    return path


STUDY = """
title = "Two flows"
source = "this test"
quick = { "experiment.repeat" = "1" }

[metrics.queue_delay]
from = "sojourn_ms"
unit = "ms"
label = "queueing delay"

[metrics.goodput]
from = "goodput_bps"
factor = 1e-6
unit = "Mbit/s"

[[experiment]]
id = "e"
parts = [{ file = "experiment.toml" }]
axes = { flows = "traffic.0.flows" }

[[experiment]]
id = "radio"
unavailable = "needs a radio"

[[figure]]
name = "fig1"
title = "Delay"
kind = "box"
experiment = "e"
metric = "queue_delay"
x = "flows"
"""

CLAIMS = """
[[claim]]
id = "shorter"
experiment = "e"
kind = "ordering"
check = "auto"
statement = "CoDel's queue is shorter."
relation = "codel.queue_delay.median < pfifo.queue_delay.median"

[[claim]]
id = "exact"
experiment = "e"
kind = "number"
check = "auto"
statement = "CoDel's median is 500 ms."
metric = "queue_delay"
statistic = "median"
unit = "ms"
qdisc = "codel"
value = 500
tol_rel = 0.1

[[claim]]
id = "air"
experiment = "radio"
kind = "ordering"
check = "auto"
statement = "So it is by radio."
relation = "codel.queue_delay.median < pfifo.queue_delay.median"
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A small study: two claims that can be judged and one that cannot."""
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    (folder / "claims.toml").write_text(CLAIMS, encoding="utf-8")
    sweep = '\n[sweep]\n"traffic.0.flows" = [1, 2]\n'
    (folder / "experiment.toml").write_text(EXPERIMENT + sweep, encoding="utf-8")
    return folder
