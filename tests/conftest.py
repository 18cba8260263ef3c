"""What the end-to-end tests share: the command line as a user calls it, and small experiments."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

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


@pytest.fixture
def sojourn(tmp_path: Path) -> Cli:
    """Runs the command line in an empty directory."""

    def run(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [SOJOURN, *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "160"},
            capture_output=True,
            text=True,
            timeout=120,
            **options,  # type: ignore[call-overload]
        )

    return run


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    """A small experiment file: two queues, two repeats."""
    path = tmp_path / "experiment.toml"
    path.write_text(EXPERIMENT, encoding="utf-8")
    return path
