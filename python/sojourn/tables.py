"""Results as a table for people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from sojourn.metrics import METRICS, Metric, has_direction
from sojourn.statistics import Interval, interval_note, median_interval

if TYPE_CHECKING:
    from sojourn.results import Arm, Direction, Results

WIDE = 90
"""Columns of a terminal that takes the whole table."""


@dataclass(frozen=True)
class Sheet:
    """A table before it is drawn: text only, a line break between a number and its interval."""

    title: str
    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int
    """How many columns, from the left, are words; the others are numbers."""


def results_sheet(results: Results, metrics: Sequence[Metric] = METRICS) -> Sheet:
    """One row per arm and direction: medians over the repeats, confidence intervals below."""
    summary = results.summary
    swept = swept_keys(results)
    directions = results.directions
    title = f"{summary['experiment']} ({summary['backend']})"
    if results.partial:
        title += f", stopped early: {len(results.runs)} of {summary['planned_runs']} runs"
    rows = [
        (
            arm.label,
            *(str(arm.set.get(key, "")) for key in swept),
            *([direction] if len(directions) > 1 else []),
            *(_cell(metric, arm, direction) for metric in metrics),
        )
        for arm in results.arms
        for direction in directions
        if has_direction(arm.runs[0].summary, direction)
    ]
    words = ("queue", *swept, *(["way"] if len(directions) > 1 else []))
    return Sheet(
        title,
        f"p50, p95, mean: sojourn time; {interval_note(repeats_of(results))}",
        (*words, *(metric.heading for metric in metrics)),
        tuple(rows),
        len(words),
    )


def results_table(results: Results, *, width: int = WIDE) -> Table:
    """``results_sheet`` for a terminal.

    Below ``WIDE`` columns the mean is left out, so that the rest stays whole.
    """
    metrics = [metric for metric in METRICS if width >= WIDE or metric.name != "sojourn_mean_ms"]
    return as_table(results_sheet(results, metrics))


def as_table(sheet: Sheet) -> Table:
    """A sheet for a terminal."""
    table = Table(
        title=Text(sheet.title),
        caption=Text(sheet.caption),
        box=box.SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
        padding=(0, 1, 0, 0),
    )
    table.add_column(sheet.headings[0], overflow="fold", min_width=8)
    for heading in sheet.headings[1 : sheet.words]:
        table.add_column(heading, justify="left" if heading == "way" else "right")
    for heading in sheet.headings[sheet.words :]:
        table.add_column(heading.replace(" ", "\n"), justify="right", no_wrap=True)
    for row in sheet.rows:
        # As text: rich would take brackets in a label for markup.
        table.add_row(*map(Text, row))
    return table


def swept_keys(results: Results) -> list[str]:
    """The keys that the experiment sweeps."""
    return list(dict.fromkeys(key for arm in results.arms for key in arm.set))


def repeats_of(results: Results) -> int:
    """The most repeats that an arm has."""
    return max((len(arm.runs) for arm in results.arms), default=0)


def plain(renderable: RenderableType, width: int = 160) -> str:
    """A rich renderable as text without colour."""
    console = Console(width=width, no_color=True, force_terminal=False)
    with console.capture() as capture:
        console.print(renderable)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _cell(metric: Metric, arm: Arm, direction: Direction) -> str:
    values = [metric.value(run.summary, direction) / metric.shown_per for run in arm.runs]
    return interval_text(median_interval(values), metric.digits)


def interval_text(interval: Interval, digits: int) -> str:
    """``5.12`` for one value, with its interval ``4.90–5.31`` on a second line for several; ``–`` for none.

    ``digits`` are those after the point; large numbers get fewer, about three that mean something.
    """
    if math.isnan(interval.middle):
        return "–"
    if interval.middle >= 10.0:
        digits = min(digits, 1 if interval.middle < 100.0 else 0)
    text = f"{interval.middle:.{digits}f}"
    return text if interval.n < 2 else f"{text}\n{interval.low:.{digits}f}–{interval.high:.{digits}f}"
