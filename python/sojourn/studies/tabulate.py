"""The tables of a paper, with published numbers above measured ones, as Markdown and as CSV."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from sojourn.frame.statistics import three_digits
from sojourn.page.sheet import csv_of, escaped
from sojourn.page.sheet import markdown as table
from sojourn.studies.evaluate import instances
from sojourn.studies.figures.words import words
from sojourn.studies.grid import AxisValue, Grid, Point, same
from sojourn.studies.published import PublishedValue, entries
from sojourn.studies.recipe import SCHEME, Study, TableSpec, Value
from sojourn.studies.texts import plain
from sojourn.studies.verdict import plain_statistic

OUTSIDE = "✗"
"""Marks a measured number that its claim does not accept."""
_EMPTY = "–"


@dataclass(frozen=True)
class TableCell:
    """A number of a table: published and measured."""

    at: Mapping[str, AxisValue]
    """The place of the row and column; ``scheme`` is one of its axes."""
    value: Value
    published: PublishedValue | None
    measured: float

    @property
    def is_outside(self) -> bool:
        """True if its claim does not accept the measured value; False if they cannot be compared."""
        published = self.published
        return published is not None and published.judged and not published.claim.accepts(published.measured)


def entries_of(spec: TableSpec, study: Study, grids: Mapping[str, Grid]) -> list[TableCell]:
    """The numbers of a table, row by row."""
    whole = grids[spec.experiment]
    grid = whole.where(lambda cell: whole.is_at(cell, spec.where))
    found = []
    for value in spec.values:
        # A derived value may use places outside of the part.
        formula = f"each.{value.metric}" + ("" if value.metric in study.derived else f".{value.statistic}")
        outcomes = instances(formula, whole, derived=study.derived, within=grid)
        measured = [(one.scheme or "", one.point, float(one.value)) for one in outcomes]
        published = entries(study, grids, spec.experiment, value.metric)
        own = [one for one in published if _belongs(one, spec, value)]
        for place in _places(spec, grid):
            said = next((one for one in own if _is_of(one.scheme, one.point, place, grid)), None)
            here = [number for scheme, point, number in measured if _is_of(scheme, point, place, grid)]
            number = said.measured if said is not None and said.judged else here[0] if len(here) == 1 else math.nan
            found.append(TableCell(place, value, said, number))
    return found


def markdown(spec: TableSpec, study: Study, grids: Mapping[str, Grid]) -> str:
    """A table in the paper's rows and columns; each row twice, published and measured."""
    of_table = entries_of(spec, study, grids)
    columns = _columns(of_table, spec, study)
    has_published = any(cell.published for cell in of_table)
    lines = [[*map(words, spec.rows), *([""] if has_published else []), *(heading for heading, _, _ in columns)]]
    rows: dict[tuple[AxisValue, ...], dict[tuple[Value, AxisValue | None], TableCell]] = {}
    for cell in of_table:
        key = tuple(cell.at[axis] for axis in spec.rows)
        rows.setdefault(key, {})[cell.value, cell.at.get(spec.across)] = cell
    for row, own in rows.items():
        cells = [own.get((value, at)) for _, value, at in columns]
        names = [study.labels.get(str(part), plain(part)) for part in row]
        if has_published:
            lines.append([*names, "published", *map(_published_text, cells)])
            names = [""] * len(names)
        head = ["measured"] if has_published else []
        lines.append([*names, *head, *map(_number, cells)])
    title = escaped(": ".join(filter(None, [spec.location, spec.title])))
    text = [f"**{title}**\n", *table(lines[0], lines[1:])]
    if any(cell.is_outside for cell in of_table):
        text.append(f"\n{OUTSIDE}: outside of what the claim accepts.")
    return "\n".join(text) + "\n"


def as_csv(spec: TableSpec, study: Study, grids: Mapping[str, Grid]) -> str:
    """A line for every number."""
    axes = [*spec.rows, *filter(None, [spec.across])]
    headings = [*axes, "column", "published_low", "published_high", "bound", "measured", "accepted", "claim"]
    rows: list[Sequence[object]] = []
    for cell in entries_of(spec, study, grids):
        published = cell.published
        number = "" if math.isnan(cell.measured) else f"{cell.measured:.6g}"
        rows.append(
            [
                *(plain(cell.at[axis]) for axis in axes),
                cell.value.heading,
                *(("", "", "") if published is None else (published.low, published.high, published.bound or "")),
                number,
                str(not cell.is_outside).lower() if published is not None and published.judged else "",
                published.claim.id if published else "",
            ]
        )
    return csv_of(headings, rows)


def _places(spec: TableSpec, grid: Grid) -> list[dict[str, AxisValue]]:
    """The places of a table's numbers: the combinations of its rows and columns that were run."""
    values: dict[str, list[AxisValue]] = {}
    for axis in [*spec.rows, *filter(None, [spec.across])]:
        alias = grid.aliases.get(axis)
        values[axis] = [*grid.schemes] if axis == SCHEME else grid.values(axis)
        if alias is not None:
            values[axis] = [float(value) * alias.factor for value in values[axis]]
    every = [dict(zip(values, place, strict=True)) for place in product(*values.values())]
    return [place for place in every if any(_is_of(cell.label, cell.set, place, grid) for cell in grid.cells)]


def _is_of(scheme: str, point: Point, place: Mapping[str, AxisValue], grid: Grid) -> bool:
    """True if a scheme's cell belongs to a table's place."""
    axes = dict(grid.place(axis, value) for axis, value in place.items() if axis != SCHEME)
    if place.get(SCHEME, scheme) != scheme:
        return False
    return all(axis not in point or same(point[axis], value) for axis, value in axes.items())


def _belongs(published: PublishedValue, spec: TableSpec, value: Value) -> bool:
    """True if a published number belongs to a table: it has its statistic, and is in no other table of the paper."""
    own, its = (set(re.findall(r"Table \d+", text)) for text in (spec.location, published.claim.location))
    return plain_statistic(published.claim) == value.statistic and (not own or not its or bool(own & its))


def _columns(of_table: Sequence[TableCell], spec: TableSpec, study: Study) -> list[tuple[str, Value, AxisValue | None]]:
    """Heading, value and place of every column."""
    across = list(dict.fromkeys(cell.at.get(spec.across) for cell in of_table))
    columns = []
    for value in spec.values:
        for at in across:
            heading = value.heading if at is None else study.labels.get(str(at), plain(at))
            if at is not None and len(spec.values) > 1:
                heading = f"{value.heading}, {heading}"
            columns.append((heading, value, at))
    return columns


def _published_text(cell: TableCell | None) -> str:
    published = cell.published if cell is not None else None
    if published is None:
        return _EMPTY
    low, high = (f"{end:.6g}" for end in (published.low, published.high))
    return f"{published.bound or ''} {low if low == high else f'{low} to {high}'}".strip()


def _number(cell: TableCell | None) -> str:
    number = _EMPTY if cell is None else three_digits(cell.measured)
    return number + (f" {OUTSIDE}" if cell is not None and cell.is_outside else "")
