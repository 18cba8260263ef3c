"""The tables of a paper, with published numbers above measured ones, as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from sojourn.studies.evaluate import instances
from sojourn.studies.figures.words import words
from sojourn.studies.grid import AxisValue, Grid, Point, same
from sojourn.studies.published import Mark, entries
from sojourn.studies.recipe import SCHEME, Study, TableSpec, Value
from sojourn.studies.texts import escaped, plain, table
from sojourn.studies.verdict import plain_statistic

OUTSIDE = "✗"
"""Marks a measured number that its claim does not accept."""
_EMPTY = "–"


@dataclass(frozen=True)
class Entry:
    """A number of a table: published and measured."""

    at: Mapping[str, AxisValue]
    """The place of the row and column; ``scheme`` is one of its axes."""
    value: Value
    published: Mark | None
    measured: float

    @property
    def is_outside(self) -> bool:
        """True if its claim does not accept the measured value; False if they cannot be compared."""
        mark = self.published
        return mark is not None and mark.judged and not mark.claim.accepts(mark.measured)


def entries_of(spec: TableSpec, study: Study, grids: Mapping[str, Grid]) -> list[Entry]:
    """The numbers of a table, row by row."""
    whole = grids[spec.experiment]
    grid = whole.where(lambda cell: whole.is_at(cell, spec.where))
    found = []
    for value in spec.values:
        measured = _measured(whole, grid, study, value)
        published = [
            mark for mark in entries(study, grids, spec.experiment, value.metric) if _belongs(mark, spec, value)
        ]
        for place in _places(spec, grid):
            mark = next((one for one in published if _is_of(one.scheme, one.point, place, grid)), None)
            here = [number for scheme, point, number in measured if _is_of(scheme, point, place, grid)]
            number = mark.measured if mark is not None and mark.judged else here[0] if len(here) == 1 else math.nan
            found.append(Entry(place, value, mark, number))
    return found


def markdown(spec: TableSpec, study: Study, grids: Mapping[str, Grid]) -> str:
    """A table in the paper's rows and columns; each row twice, published and measured."""
    of_table = entries_of(spec, study, grids)
    columns = _columns(of_table, spec, study)
    has_published = any(entry.published for entry in of_table)
    lines = [
        [*map(words, spec.rows), *([""] if has_published else []), *(heading for heading, _, _ in columns)],
    ]
    for row in dict.fromkeys(_key(entry.at, spec.rows) for entry in of_table):
        own = {
            (entry.value, entry.at.get(spec.across)): entry for entry in of_table if _key(entry.at, spec.rows) == row
        }
        cells = [own.get((value, at)) for _, value, at in columns]
        names = [study.labels.get(str(part), plain(part)) for part in row]
        if has_published:
            lines.append([*names, "published", *(_EMPTY if one is None else _published_text(one) for one in cells)])
            names = [""] * len(names)
        head = ["measured"] if has_published else []
        lines.append([*names, *head, *(_EMPTY if one is None else _number(one) for one in cells)])
    title = escaped(": ".join(filter(None, [spec.location, spec.title])))
    text = [f"**{title}**\n", *table(lines[0], lines[1:])]
    if any(entry.is_outside for entry in of_table):
        text.append(f"\n{OUTSIDE}: outside of what the claim accepts.")
    return "\n".join(text) + "\n"


def as_csv(spec: TableSpec, study: Study, grids: Mapping[str, Grid]) -> str:
    """A line for every number."""
    axes = [*spec.rows, *filter(None, [spec.across])]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*axes, "column", "published_low", "published_high", "bound", "measured", "accepted", "claim"])
    for entry in entries_of(spec, study, grids):
        mark = entry.published
        number = "" if math.isnan(entry.measured) else f"{entry.measured:.6g}"
        writer.writerow(
            [
                *(plain(entry.at[axis]) for axis in axes),
                entry.value.heading,
                *(("", "", "") if mark is None else (mark.low, mark.high, mark.bound or "")),
                number,
                str(not entry.is_outside).lower() if mark is not None and mark.judged else "",
                mark.claim.id if mark else "",
            ]
        )  # fmt: skip
    return text.getvalue()


def _places(spec: TableSpec, grid: Grid) -> list[dict[str, AxisValue]]:
    """The places of a table's numbers: the combinations of its rows and columns that were run."""
    axes = [*spec.rows, *filter(None, [spec.across])]
    values = [[*grid.schemes] if axis == SCHEME else _values(grid, axis) for axis in axes]
    every = [dict(zip(axes, place, strict=True)) for place in product(*values)]
    return [place for place in every if any(_is_of(cell.scheme, cell.point, place, grid) for cell in grid.cells)]


def _values(grid: Grid, axis: str) -> list[AxisValue]:
    """The values on an axis; on an alias, in its own unit."""
    alias = grid.aliases.get(axis)
    values = grid.values(axis)
    return values if alias is None else [float(value) * alias.factor for value in values]


def _is_of(scheme: str, point: Point, place: Mapping[str, AxisValue], grid: Grid) -> bool:
    """True if a scheme's cell belongs to a table's place."""
    axes = dict(grid.place(axis, value) for axis, value in place.items() if axis != SCHEME)
    if place.get(SCHEME, scheme) != scheme:
        return False
    return all(axis not in point or same(point[axis], value) for axis, value in axes.items())


def _measured(grid: Grid, part: Grid, study: Study, value: Value) -> list[tuple[str, Point, float]]:
    """A value of every scheme and place in a part of the grid; a derived value may use places outside of it."""
    formula = f"each.{value.metric}" + ("" if value.metric in study.derived else f".{value.statistic}")
    found = instances(formula, grid, derived=study.derived, within=part)
    return [(one.scheme or "", one.point, float(one.value)) for one in found]


def _belongs(mark: Mark, spec: TableSpec, value: Value) -> bool:
    """True if a published number belongs to a table: it has its statistic, and is in no other table of the paper."""
    own, its = (set(re.findall(r"Table \d+", text)) for text in (spec.location, mark.claim.location))
    return plain_statistic(mark.claim) == value.statistic and (not own or not its or bool(own & its))


def _columns(of_table: Sequence[Entry], spec: TableSpec, study: Study) -> list[tuple[str, Value, AxisValue | None]]:
    """Heading, value and place of every column."""
    across = list(dict.fromkeys(entry.at.get(spec.across) for entry in of_table))
    columns = []
    for value in spec.values:
        for at in across:
            heading = value.heading if at is None else study.labels.get(str(at), plain(at))
            if at is not None and len(spec.values) > 1:
                heading = f"{value.heading}, {heading}"
            columns.append((heading, value, at))
    return columns


def _key(at: Mapping[str, AxisValue], axes: Sequence[str]) -> tuple[AxisValue, ...]:
    return tuple(at[axis] for axis in axes)


def _published_text(entry: Entry) -> str:
    mark = entry.published
    if mark is None:
        return _EMPTY
    low, high = (f"{end:.6g}" for end in (mark.low, mark.high))
    return f"{mark.bound or ''} {low if low == high else f'{low} to {high}'}".strip()


def _number(entry: Entry) -> str:
    if math.isnan(entry.measured):
        number = _EMPTY
    else:
        number = f"{entry.measured:.0f}" if abs(entry.measured) >= 1000 else f"{entry.measured:.3g}"
    return number + (f" {OUTSIDE}" if entry.is_outside else "")
