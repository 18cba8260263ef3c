"""What the documentation says is so: its examples run, its generated page is up to date."""

from __future__ import annotations

import doctest
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import sojourn
from conftest import EXPERIMENT
from sojourn import _core
from sojourn.frame import results

sys.path.insert(0, str(Path(__file__).parents[1] / "docs" / "pictures"))
import draw

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
import result_keys

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(language: str) -> list[object]:
    """Every code block in a language, as test parameters."""
    found = []
    for page in PAGES:
        for match in re.finditer(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
            found.append(pytest.param(match.group(1), id=f"{page.name}-{len(found)}"))
    return found


@pytest.mark.parametrize("code", blocks("python"))
def test_python_examples_run(code: str, tmp_path: Path):
    (tmp_path / "experiment.toml").write_text(EXPERIMENT, encoding="utf-8")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert len(code.strip().splitlines()) <= 10


@pytest.mark.parametrize("text", blocks(r"toml(?: tree\.toml)?"))
def test_experiments_in_the_documentation_are_accepted(text: str):
    if "duration" in tomllib.loads(text).get("experiment", {}):
        assert _core.Plan.read_text(text, "example", []).jobs


@pytest.mark.parametrize("module", [sojourn, results], ids=lambda module: module.__name__)
def test_examples_in_docstrings_run(module):
    outcome = doctest.testmod(module)
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_what_is_generated_is_up_to_date():
    # In a process of its own: tests before this one may have registered disciplines.
    code = "import generate, json; print(json.dumps([generate.page(), generate.recipe_schema(), str(generate.SCHEMA)]))"
    made = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "docs", stdout=subprocess.PIPE, check=True)
    page, schema, place = json.loads(made.stdout)
    assert (ROOT / "docs" / "experiment.md").read_text(encoding="utf-8") == page, "run make docs"
    assert Path(place).read_text(encoding="utf-8") == schema, "run make docs"
    assert result_keys.SCHEMA.read_text(encoding="utf-8") == result_keys.schema(), "run make docs"
    assert result_keys.PAGE.read_text(encoding="utf-8") == result_keys.page(), "run make docs"


def test_links_between_pages_lead_somewhere():
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "studies" / "README.md"]:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_example_of_a_trace_runs():
    results = sojourn.run(ROOT / "examples" / "varying-rate" / "varying-rate.toml", set={"experiment.duration": "7 s"})
    for run in results.runs:
        # The trace has 625 packets a second, of 1448 bytes of payload each.
        goodput = sum(flow["goodput_bps"] for flow in run.summary["flows"])
        used = run.summary["bottleneck"]["down"]["utilization"]
        assert used == pytest.approx(goodput / (625 * 1448 * 8), rel=0.03)
    assert results.runs[0].summary["bottleneck"]["down"]["utilization"] > 0.99


def test_the_commands_of_the_gallery_draw_its_pictures(tmp_path: Path):
    assert len(draw.entries()) == draw.PAGE.read_text(encoding="utf-8").count("](pictures/")
    for command in {tuple(entry.command) for entry in draw.entries()}:
        draw.draw([*command, "--set", "experiment.repeat=1", "--set", 'experiment.duration="20 s"'], tmp_path)
    for entry in draw.entries():
        assert (tmp_path / entry.file).is_file(), entry
        assert (draw.PAGE.parent / entry.picture).is_file(), entry
