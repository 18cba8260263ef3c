"""What the end-to-end tests share: the command line as a user calls it, and small experiments."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# Who runs the tests in the background may ignore Ctrl-C; the programs that they start are to hear it.
signal.signal(signal.SIGINT, signal.default_int_handler)

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

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


def visible(folder: Path) -> set[str]:
    """The names in a folder, without Sojourn's own list and workspaces."""
    return {path.name for path in folder.iterdir() if not path.name.startswith(".sojourn-")}


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
