"""The tables of results for LaTeX: medians with their confidence intervals, for a paper."""

from __future__ import annotations

import re
from pathlib import Path

from sojourn.files.storage import Staging
from sojourn.frame.results import Results
from sojourn.page.tables import Sheet, groups_sheet, inner_sheet, results_sheet, stations_sheet

_ESCAPED = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    "−": "$-$",
    "×": r"$\times$",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
_SPECIAL = re.compile("|".join(map(re.escape, _ESCAPED)))


def stage(results: Results, staging: Staging) -> list[Path]:
    """A tabular per table, for LaTeX's input; it needs the package booktabs."""
    sheets = {
        "queues": results_sheet(results),
        "groups": groups_sheet(results),
        "stations": stations_sheet(results),
        "inner_queues": inner_sheet(results),
    }
    return [staging.add_text(f"{name}.tex", tabular(sheet)) for name, sheet in sheets.items() if sheet is not None]


def tabular(sheet: Sheet) -> str:
    """A sheet as a tabular: words to the left, numbers to the right, an interval below its number."""
    columns = "l" * sheet.words + "r" * (len(sheet.headings) - sheet.words)
    lines = [
        f"% {' '.join(f'{sheet.title}: {sheet.caption}'.split())}",
        f"\\begin{{tabular}}{{{columns}}}",
        "\\toprule",
        _row([escaped(heading) for heading in sheet.headings]),
        "\\midrule",
        *(_row([_cell(cell) for cell in row]) for row in sheet.rows),
        "\\bottomrule",
        "\\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """A text in which LaTeX's special characters are printed as they are."""
    return _SPECIAL.sub(lambda match: _ESCAPED[match[0]], text)


def _row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _cell(text: str) -> str:
    number, *interval = map(escaped, text.split("\n"))
    return f"\\shortstack[r]{{{number}\\\\{{\\scriptsize {interval[0]}}}}}" if interval else number
