"""A table before it is drawn, and its renderers: for a terminal, as Markdown, HTML, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape

from rich import box
from rich.console import Console, RenderableType
from rich.markup import escape as unmarked
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from sojourn.frame import arrow

PLAIN_WIDTH = 160
"""The columns of a table in a file."""
_TO_THE_LEFT = ("way", "traffic", "inner queue", "station")
_IN_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "–": "--", "−": "$-$", "×": r"$\times$", **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}  # fmt: skip


@dataclass(frozen=True)
class Sheet:
    """A table: text only, with a line break between a number and its interval."""

    title: str
    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 0
    """The number of text columns, from the left; the others are numbers, to the right."""
    shares: tuple[int | None, ...] = ()
    """Of a table of words: how the width is shared out. A column with 0 is not broken, one with None is as needed."""

    def without(self, headings: Collection[str], caption: str) -> Sheet:
        """The sheet without some columns, with another caption."""
        kept = [column for column, heading in enumerate(self.headings) if heading not in headings]
        rows = tuple(tuple(row[column] for column in kept) for row in self.rows)
        return replace(self, caption=caption, headings=tuple(self.headings[column] for column in kept), rows=rows)


def as_table(sheet: Sheet, *, narrow: bool = False) -> Table:
    """A sheet for a terminal; if ``narrow``, breaks the headings of swept keys at their dots, and their values."""
    # As text, and headings without markup, here and below: rich would interpret brackets.
    table = Table(
        title=Text(sheet.title),
        caption=Text(sheet.caption),
        box=box.SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
        padding=(0, 1, 0, 0),
    )
    for heading, share in zip(sheet.headings, sheet.shares, strict=False):
        table.add_column(
            unmarked(heading), overflow="ellipsis" if share == 0 else "fold", ratio=share or None, no_wrap=share == 0
        )
    for index, heading in enumerate(() if sheet.shares else sheet.headings):
        if index >= sheet.words:
            table.add_column(unmarked(heading.replace(" ", "\n")), justify="right", no_wrap=True)
        elif index:
            broken = heading.replace(".", ".\n") if narrow else heading
            table.add_column(unmarked(broken), justify="left" if heading in _TO_THE_LEFT else "right", overflow="fold")
        else:
            # A label breaks between its words.
            words = [word for row in sheet.rows for word in row[0].split()]
            table.add_column(unmarked(heading), overflow="fold", min_width=min(max(map(len, words), default=8), 24))
    for row in sheet.rows:
        table.add_row(*map(Text, row))
    return table


def listing(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    right: Collection[int] = (),
    head: bool = True,
) -> Table:
    """A plain list for a terminal; the columns ``right`` are to the right."""
    table = Table(
        title=None if title is None else Text(title),
        title_justify="left",
        box=box.SIMPLE if head else None,
        show_header=head,
    )
    for index, heading in enumerate(headings):
        table.add_column(unmarked(heading), justify="right" if index in right else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def narrowed(sheet: Sheet, width: int, expendable: Sequence[str]) -> Table:
    """A sheet for a terminal, without as many of the expendable columns, in this order, as there is no room for."""
    gone: list[str] = []
    kept = sheet
    for heading in expendable:
        if natural_width(kept) <= width:
            break
        if heading in kept.headings:
            gone.append(heading)
            kept = kept.without([heading], f"{sheet.caption}; without {', '.join(gone)}, for lack of width")
    return as_table(kept, narrow=natural_width(kept) > width)


def fitting(sheet: Sheet | None, width: int = PLAIN_WIDTH, rows: int | None = None) -> Table | None:
    """A sheet for a terminal; if it is too wide, columns are omitted from the right. None beyond ``rows`` rows."""
    if sheet is None or (rows is not None and len(sheet.rows) > rows):
        return None
    return narrowed(sheet, width, sheet.headings[: sheet.words : -1])


def shortened(sheet: Sheet, rows: int, where: str) -> Sheet:
    """The first rows of a sheet, with a note ``where`` the others are."""
    if len(sheet.rows) <= rows:
        return sheet
    note = f"the first {rows} of {len(sheet.rows)} rows; {where}"
    return replace(sheet, rows=sheet.rows[:rows], caption=f"{note}\n{sheet.caption}")


def natural_width(sheet: Sheet) -> int:
    """The width of a sheet, in characters, without breaking a word or a number."""
    console = Console(width=10_000, emoji=False)
    return Measurement.get(console, console.options, as_table(replace(sheet, title="", caption=""))).maximum


def plain(renderable: RenderableType, width: int = PLAIN_WIDTH) -> str:
    """A rich renderable as text without colour."""
    # In a notebook rich would display what is captured, too.
    console = Console(width=width, no_color=True, force_terminal=False, force_jupyter=False, emoji=False)
    with console.capture() as capture:
        console.print(renderable)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def sheet_html(sheet: Sheet) -> str:
    """A sheet as an HTML table, for a notebook."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in sheet.headings)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell).replace(chr(10), '<br><small>')}</td>" for cell in row) + "</tr>"
        for row in sheet.rows
    )
    return (
        f"<table><caption>{escape(sheet.title)}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f"<p>{escape(sheet.caption)}</p>"
    )


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table in Markdown, a line per row."""
    lines = (headings, ["---"] * len(headings), *rows)
    return [f"| {' | '.join(escaped(cell).replace('|', chr(92) + '|') for cell in cells)} |" for cells in lines]


def escaped(text: str) -> str:
    """Text that Markdown shows unchanged: without tags, links or line breaks."""
    words = " ".join(text.split())
    return words.replace("&", "&amp;").replace("<", "&lt;").replace("](", "\\](")


def csv_of(headings: Iterable[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as CSV, by the rules of ``sojourn.frame.arrow``; a text may be a number."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_csv_cell(cell) for cell in row] for row in [headings, *rows])
    return text.getvalue()


def _csv_cell(cell: object) -> object:
    if arrow.is_missing(cell):
        return ""
    if not isinstance(cell, str):
        return cell
    try:
        float(cell)
    except ValueError:
        return arrow.plain(cell)
    return cell


def tabular(sheet: Sheet) -> str:
    """A sheet as a tabular of LaTeX: words to the left, numbers to the right, an interval below its number."""
    rows = [[_cell_in_latex(cell) for cell in row] for row in (sheet.headings, *sheet.rows)]
    # After a line's end LaTeX takes a star or a bracket, even on the next line, as an option of it.
    head, *lines = ("{}" * row[0].startswith(("[", "*")) + " & ".join(row) + r" \\" for row in rows)
    return "\n".join(
        [
            f"% {' '.join(f'{sheet.title}: {sheet.caption}'.split())}",
            rf"\begin{{tabular}}{{{'l' * sheet.words + 'r' * (len(sheet.headings) - sheet.words)}}}",
            *(r"\toprule", head, r"\midrule", *lines, r"\bottomrule", r"\end{tabular}", ""),
        ]
    )


def in_latex(text: str) -> str:
    """A text in which LaTeX's special characters are printed as they are."""
    return re.sub("|".join(map(re.escape, _IN_LATEX)), lambda match: _IN_LATEX[match[0]], text)


def _cell_in_latex(text: str) -> str:
    number, *interval = map(in_latex, text.split("\n"))
    return f"\\shortstack[r]{{{number}\\\\{{\\scriptsize {interval[0]}}}}}" if interval else number
