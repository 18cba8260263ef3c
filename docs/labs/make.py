"""Makes the notebooks, the teacher's sheets and the links of the labs: ``python docs/labs/make.py``.

A lab is a student's sheet, ``NAME.md``, and ``NAME.answers.md``. In a sheet a ``toml NAME.toml`` fence is an experiment
file, and a ``python`` fence is a cell of the notebook; behind both are links that open the experiment, and each of its
runs, in the browser. Answers are text with ``{{expression}}``, which is evaluated after all cells of the sheet, with
``number`` and ``median``; code in ``<!-- python … -->`` runs before. So every number in a teacher's sheet is of the
runs that the students make.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import statistics
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sheets import FENCE, HERE, cells, files, labs, link

import sojourn as sj
from sojourn.frame.swept import as_toml

CODE = re.compile(r"^<!-- python\n(.*?)-->\n", re.MULTILINE | re.DOTALL)


def runs(code: str, names: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The runs that a cell keeps: the variable, the file, what is set. ``names`` has the values of cells before."""
    for step in ast.parse(code).body:
        if not isinstance(step, ast.Assign) or not isinstance(step.targets[0], ast.Name):
            continue
        name, value = step.targets[0].id, step.value
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "sj.run":
            given = next((word.value for word in value.keywords if word.arg == "set"), None)
            yield name, ast.literal_eval(value.args[0]), {} if given is None else _value(given, names)
        elif not any(isinstance(part, ast.Call) for part in ast.walk(value)):
            names[name] = _value(value, names)


def linked(sheet: str) -> str:
    """The sheet with a link behind each experiment and each run of it."""
    known = files(sheet)
    names: dict[str, Any] = {}

    def one(found: re.Match[str]) -> str:
        fence = f"```{found[1]}\n{found[3]}```\n"
        if found[2] is not None:
            return f"{fence}[In the browser]({link(found[3])})\n"
        made = [(name, known[file], given) for name, file, given in runs(found[3], names)]
        if not any(given for _, _, given in made):
            return fence
        links = (f"[`{name}`]({link(changed(text, given))})" for name, text, given in made)
        return f"{fence}In the browser: {', '.join(links)}\n"

    return FENCE.sub(one, sheet)


def changed(text: str, given: dict[str, Any]) -> str:
    """An experiment file with values set, as ``sj.run(set=…)`` sets them."""
    if not given:
        return text
    document = tomllib.loads(text)
    for path, value in given.items():
        at: Any = document
        *parents, last = path.split(".")
        for part in parents:
            at = _element(at, part) if isinstance(at, list) else at.setdefault(part, {})
        at[last] = value
    return "\n".join(_table(name, value) for name, value in document.items())


def _element(tables: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return tables[int(name)] if name.isdigit() else next(one for one in tables if one.get("name") == name)


def _table(name: str, value: Any) -> str:
    several = value if isinstance(value, list) else [value]
    head = f"[[{name}]]" if isinstance(value, list) else f"[{name}]"
    # A table on one line, without its braces, is a line of a table.
    return "\n".join(
        "".join(f"{line}\n" for line in (head, *(as_toml({key: one})[2:-2] for key, one in table.items())))
        for table in several
    )


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    """What an expression of values and names means."""
    return eval(compile(ast.Expression(node), "sheet", "eval"), {"__builtins__": {}}, names)


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
