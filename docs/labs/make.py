"""Makes the notebooks, the teacher's sheets and the links of the labs: ``python docs/labs/make.py``.

A lab is a student's sheet, ``NAME.md``, and ``NAME.answers.md``. In a sheet a ``toml NAME.toml`` fence is an experiment
file, followed by a link that opens it in the browser, and a ``python`` fence is a cell of the notebook. Answers are
text with ``{{expression}}``, which is evaluated after all cells of the sheet, with ``number`` and ``median``; code in
``<!-- python … -->`` runs before. So every number in a teacher's sheet is of the runs that the students make.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import re
import statistics
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sojourn as sj

HERE = Path(__file__).parent
PAGE = "https://sojourn-lab.github.io/sojourn/lab/"
FENCE = re.compile(
    r"^```(python|toml (\S+\.toml))\n(.*?)^```\n(?:\[In the browser\]\([^)]*\)\n)?", re.MULTILINE | re.DOTALL
)
CODE = re.compile(r"^<!-- python\n(.*?)-->\n", re.MULTILINE | re.DOTALL)


def labs() -> list[str]:
    """The names of all labs."""
    return sorted(path.name.removesuffix(".answers.md") for path in HERE.glob("*.answers.md"))


def link(text: str) -> str:
    """The address of the page with this experiment, as its *Share* makes it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = base64.urlsafe_b64encode(packer.compress(text.encode()) + packer.flush()).decode()
    return f"{PAGE}#file={packed.rstrip('=')}"


def linked(sheet: str) -> str:
    """The sheet with a link behind each experiment."""

    def one(found: re.Match[str]) -> str:
        fence = f"```{found[1]}\n{found[3]}```\n"
        return fence if found[2] is None else f"{fence}[In the browser]({link(found[3])})\n"

    return FENCE.sub(one, sheet)


def cells(sheet: str) -> Iterator[tuple[str, str]]:
    """The cells of a sheet: ``markdown`` or ``code`` with the text. A file is a cell that writes it."""
    end = 0
    for found in FENCE.finditer(sheet):
        yield "markdown", sheet[end : found.start()]
        yield "code", found[3] if found[2] is None else f"%%writefile {found[2]}\n{found[3]}"
        end = found.end()
    yield "markdown", sheet[end:]


def notebook(sheet: str) -> str:
    """The sheet as a Jupyter notebook (nbformat 4.5), not executed."""
    found = [(kind, text.strip("\n")) for kind, text in cells(sheet)]
    more: dict[str, dict[str, Any]] = {"markdown": {}, "code": {"execution_count": None, "outputs": []}}
    document = {
        "cells": [
            {"cell_type": kind, "id": f"cell-{index}", "metadata": {}, **more[kind], "source": text.splitlines(True)}
            for index, (kind, text) in enumerate(one for one in found if one[1])
        ],
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def execute(sheet: str) -> dict[str, Any]:
    """Runs all cells in a folder of their own; returns their variables."""
    names: dict[str, Any] = {"display": lambda *_: None}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)
        try:
            for kind, text in cells(sheet):
                if text.startswith("%%writefile "):
                    name, _, content = text.removeprefix("%%writefile ").partition("\n")
                    Path(name).write_text(content, encoding="utf-8")
                elif kind == "code":
                    exec(text, names)
        finally:
            os.chdir(before)
    return names


def number(results: sj.Results, metric: str, label: str | None = None, **where: object) -> float:
    """The median of a column of ``results.rows()`` over the repeats, of the rows with this label and these values."""
    fits = {**where} if label is None else {**where, "label": label}
    rows = [row for row in results.rows() if all(row[key] == value for key, value in fits.items())]
    return statistics.median(float(row[metric]) for row in rows if row["direction"] == rows[0]["direction"])


def answered(answers: str, names: dict[str, Any]) -> str:
    """The teacher's sheet: the answers with their numbers."""
    names = {**names, "number": number, "median": statistics.median}
    for code in CODE.findall(answers):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, names)
    return re.sub(r"\{\{(.+?)\}\}", lambda found: str(eval(f"f'{{{found[1]}}}'", names)), CODE.sub("", answers))


def made(name: str) -> dict[Path, str]:
    """All files of a lab that are made, with their content."""
    sheet = linked((HERE / f"{name}.md").read_text(encoding="utf-8"))
    answers = (HERE / f"{name}.answers.md").read_text(encoding="utf-8")
    return {
        HERE / f"{name}.md": sheet,
        HERE / f"{name}.ipynb": notebook(sheet),
        HERE / f"{name}.teacher.md": answered(answers, execute(sheet)),
    }


if __name__ == "__main__":
    for one in labs():
        for path, text in made(one).items():
            path.write_text(text, encoding="utf-8")
