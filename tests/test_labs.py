"""The labs: every cell of a sheet runs, and every number of a teacher's sheet is the one that the runs have."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from conftest import ROOT
from sojourn import _core
from sojourn.frame.swept import as_toml

LABS = ROOT / "docs" / "labs"
sys.path.insert(0, str(LABS))

import make  # noqa: E402
import sheets  # noqa: E402


@pytest.mark.parametrize("lab", make.labs())
def test_the_links_of_a_sheet_carry_what_its_cells_run(lab: str):
    sheet = (LABS / f"{lab}.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    count = 0
    for _, text in (cell for cell in make.cells(sheet) if cell[0] == "code" and not cell[1].startswith("%%")):
        for _, file, given in make.runs(text, names):
            base = make.files(sheet)[file]
            written = _core.Plan.read_text(make.changed(base, given), file, [])
            as_set = [(key, as_toml(value)) for key, value in given.items()]
            assert [run.hash for run in written] == [run.hash for run in _core.Plan.read_text(base, file, as_set)]
            assert sheets.link(make.changed(base, given)) in sheet
            count += 1
    assert count == len(re.findall(r"= sj\.run\(", sheet))


@pytest.mark.parametrize("lab", make.labs())
def test_a_lab_is_what_its_sheet_makes(lab: str):
    for path, text in make.made(lab).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run python docs/labs/make.py"


def test_the_index_names_every_lab():
    index = (LABS / "README.md").read_text(encoding="utf-8")
    for lab in make.labs():
        for suffix in (".md", ".ipynb", ".teacher.md"):
            assert f"({lab}{suffix})" in index


def test_a_notebook_has_the_cells_of_the_sheet_and_no_output():
    notebook = json.loads((LABS / "codel.ipynb").read_text(encoding="utf-8"))
    cells = notebook["cells"]
    assert cells[0]["source"][0] == "# Lab 2: CoDel's control law, step by step\n"
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code[0]["source"][0] == "%%writefile codel.toml\n"
    assert all(cell["outputs"] == [] for cell in code)
    assert len({cell["id"] for cell in cells}) == len(cells)


def test_a_wrong_number_is_noticed(tmp_path: Path):
    answers = "Goodput <!-- not code --> {{number(one, 'goodput_bps') / 1e6:.1f}}"
    sheet = (LABS / "codel.md").read_text(encoding="utf-8")
    first = sheet[: sheet.index("**1a.**")]
    assert make.answered(answers.replace("'", '"'), make.execute(first)).endswith(" 8.1")
