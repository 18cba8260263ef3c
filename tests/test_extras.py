"""An installation without extras: the engine, the command line and tables; whatever needs more says what."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from conftest import EXPERIMENT
from sojourn.files.extras import EXTRA_OF

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
WITHOUT = (
    "import sys\n"
    f"sys.modules.update(dict.fromkeys({sorted(EXTRA_OF)!r}))\n"
    "sys.argv = ['sojourn', *sys.argv[1:]]\n"
    "from sojourn.cli import main\n"
    "main()\n"
)


def bare(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command line where no package of an extra can be imported."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments], capture_output=True, text=True, cwd=cwd, timeout=60, check=False
    )


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    return tmp_path


def test_every_package_is_in_its_extra():
    extras = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = {package: {re.split(r"[>=~\[]", one)[0] for one in packages} for package, packages in extras.items()}
    direct = {package: extra for package, extra in EXTRA_OF.items() if package != "markupsafe"}
    assert all(package in named[extra] for package, extra in direct.items())
    assert set(EXTRA_OF.values()) | {"all"} == set(extras)


def test_a_run_needs_no_extra_and_says_what_its_folder_lacks(experiment: Path, sojourn):
    done = bare("run", "experiment.toml", "--out", "bare", cwd=experiment)
    assert done.returncode == 0, done.stderr
    assert "codel" in done.stdout
    assert done.stderr.splitlines() == [
        "note: no figures: needs matplotlib: pip install 'sojourn[plots]'",
        "note: no recorded tables: needs pyarrow: pip install 'sojourn[store]'",
    ]
    assert sorted(path.name for path in (experiment / "bare").glob("[!.]*")) == [
        "experiment.json", "summary.csv", "summary.json",
    ]  # fmt: skip
    sojourn("run", "experiment.toml", "--out", "whole", "--figures", "none")
    csv = [(experiment / folder / "summary.csv").read_bytes() for folder in ("bare", "whole")]
    assert csv[0] == csv[1]
    assert len(json.loads((experiment / "bare" / "summary.json").read_text())["runs"]) == 4


def test_only_frames_of_pandas_and_polars_need_these(experiment: Path):
    code = """
import sys
sys.modules.update(pandas=None, polars=None)
import sojourn as sj
from sojourn.studies.suites.criteria import Seen, loss
results = sj.run("experiment.toml", set={"record.series": "100 ms"})
seen = Seen(results.runs[0], 10e6, 0.04, None)
print(loss(seen, at_most=0.5, from_s=1), loss(seen, at_most=0, from_s=0))
for make in (results.to_pandas, results.to_frame().to_pandas, results.to_frame().to_polars):
    try:
        make()
    except ModuleNotFoundError as error:
        print(error)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=experiment, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    pandas = "needs pandas: pip install 'sojourn[pandas]'"
    assert done.stdout.splitlines() == ["True False", pandas, pandas, "needs polars: pip install polars"]


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        (("run", "experiment.toml", "--out", "out", "--figures", "png"), "matplotlib: pip install 'sojourn[plots]'"),
        (("sweep", "experiment.toml", "--store", "runs"), "pyarrow: pip install 'sojourn[store]'"),
        (("report", "bare"), "jinja2: pip install 'sojourn[report]'"),
    ],
)
def test_a_lacking_package_is_one_line(experiment: Path, command: tuple[str, ...], needed: str):
    done = bare(*command, cwd=experiment)
    assert done.returncode == 2, done.stderr
    assert done.stderr.endswith(f"needs {needed}\n")
    assert len(done.stderr.splitlines()) == 1
    assert not (experiment / "out").exists()


def test_commands_that_lack_a_package_are_listed(experiment: Path, monkeypatch: pytest.MonkeyPatch):
    listed = bare("--help", cwd=experiment)
    assert listed.returncode == 0, listed.stderr
    assert re.search(r"^ +report +needs jinja2", listed.stdout, re.M)
    for name, value in (("_SOJOURN_COMPLETE", "complete_bash"), ("COMP_WORDS", "sojourn re"), ("COMP_CWORD", "1")):
        monkeypatch.setenv(name, value)
    completed = bare(cwd=experiment)
    assert (completed.stdout.split(), completed.stderr) == (["replay", "report"], "")
