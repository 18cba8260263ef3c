"""The page in a browser: compiled once, with the reason if it cannot be."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ASKED = "SOJOURN_WEB_TESTS"
"""Set by `make web-test` and `make web-check`: compiling takes a minute, longer than a test may."""
NO_STD = 3
"""Exit status of tools/build-wasm without a standard library for the target."""


@pytest.fixture(scope="session")
def module() -> Path:
    """The compiled simulator."""
    if not os.environ.get(ASKED):
        pytest.skip("the simulator is compiled for the page, which takes a minute, by: make web-test")
    built = subprocess.run(
        [ROOT / "tools" / "with-rust", ROOT / "tools" / "build-wasm"], cwd=ROOT, capture_output=True, text=True
    )
    if built.returncode == NO_STD:
        pytest.skip(built.stderr.strip())
    assert built.returncode == 0, built.stderr
    return ROOT / built.stdout.strip()


@pytest.fixture(scope="session")
def page(module: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page, as `make web` writes it."""
    to = tmp_path_factory.mktemp("web") / "sojourn.html"
    subprocess.run([sys.executable, ROOT / "web" / "build.py", module, to], check=True, capture_output=True)
    return to


@pytest.fixture(scope="session")
def node() -> str:
    """Node.js, which runs modules without a browser."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("no node to run the module with")
    return found
