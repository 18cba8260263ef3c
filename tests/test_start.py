"""What the command line loads for a command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXPERIMENT = """
experiment = { name = "start", duration = "100 ms" }
link = { rate = "4 Mbit/s" }
queue = [{ aqm = "codel" }]
traffic = [{ kind = "bulk", flows = 1, rtt = "20 ms" }]
"""


def loaded(names: list[str], *arguments: str, cwd: Path | None = None) -> list[str]:
    """Which of these modules are loaded after a command."""
    code = (
        "import atexit, sys\n"
        "names = sys.argv[1].split()\n"
        "atexit.register(lambda: print(*[name for name in names if name in sys.modules], file=sys.stderr))\n"
        "sys.argv = ['sojourn', *sys.argv[2:]]\n"
        "from sojourn.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, " ".join(names), *arguments],
        capture_output=True, text=True, check=True, timeout=60, cwd=cwd,
    )  # fmt: skip
    return done.stderr.split()


def test_the_version_loads_no_command_line():
    assert loaded(["typer", "rich", "sojourn.cli.app", "sojourn.frame.results"], "--version") == []


def test_a_command_loads_its_own_module_only():
    modules = ["sojourn.cli.names", "sojourn.cli.run", "sojourn.cli.study", "numpy", "pyarrow", "matplotlib"]
    assert loaded(modules, "list", "aqm") == ["sojourn.cli.names"]


def test_a_run_without_figures_draws_nothing_and_needs_no_pandas(tmp_path: Path):
    (tmp_path / "start.toml").write_text(EXPERIMENT)
    names = ["pyarrow", "pandas", "matplotlib", "duckdb", "sojourn.figure.plots", "sojourn.studies"]
    assert loaded(names, "run", "start.toml", "--out", "out", "--figures", "none", cwd=tmp_path) == ["pyarrow"]
    assert loaded(names, "run", "start.toml", cwd=tmp_path) == []


def test_texts_on_the_command_line_need_no_pydantic(tmp_path: Path):
    (tmp_path / "start.toml").write_text(EXPERIMENT)
    given = ["--out", "out", "--figures", "none", "--set", 'link.rate="5 Mbit/s"']
    assert loaded(["pydantic", "pyarrow"], "run", "start.toml", *given, cwd=tmp_path) == ["pyarrow"]
    assert loaded(["pydantic"], "run", "start.toml", "--jobs", "1", cwd=tmp_path) == ["pydantic"]
    compare = ["compare", "pfifo", "codel", "--rate", "5 Mbit/s", "--rtt", "20 ms", "--duration", "1 s"]
    assert loaded(["pydantic"], *compare) == []


def test_figures_need_no_pandas(tmp_path: Path):
    (tmp_path / "start.toml").write_text(EXPERIMENT)
    names = ["pandas", "matplotlib"]
    assert loaded(names, "run", "start.toml", "--out", "out", cwd=tmp_path) == ["matplotlib"]


def test_a_sweep_needs_neither_pandas_nor_the_datasets_of_arrow(tmp_path: Path):
    (tmp_path / "start.toml").write_text(EXPERIMENT)
    names = ["pyarrow", "pandas", "pyarrow.compute", "pyarrow.dataset", "duckdb", "matplotlib"]
    for _ in range(2):
        assert loaded(names, "sweep", "start.toml", "--store", "store", cwd=tmp_path) == ["pyarrow"]
