"""Results as a table for people."""

from __future__ import annotations

import math
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


def results_table(results: Results, *, width: int = WIDE) -> Table:
    """One row per arm and direction: medians over the repeats, confidence intervals below.

    Below ``WIDE`` columns the mean is left out, so that the rest stays whole.
    """
    summary = results.summary
    swept = list(dict.fromkeys(key for arm in results.arms for key in arm.set))
    directions = results.directions
    repeats = max((len(arm.runs) for arm in results.arms), default=0)

    title = f"{summary['experiment']} ({summary['backend']})"
    if results.partial:
        title += f", stopped early: {len(results.runs)} of {summary['planned_runs']} runs"
    table = Table(
        title=Text(title),
        caption=Text(f"p50, p95, mean: sojourn time; {interval_note(repeats)}"),
        box=box.SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
        padding=(0, 1, 0, 0),
    )
    table.add_column("queue", overflow="fold", min_width=8)
    for key in swept:
        table.add_column(key, justify="right")
    if len(directions) > 1:
        table.add_column("way")
    metrics = [metric for metric in METRICS if width >= WIDE or metric.name != "sojourn_mean_ms"]
    for metric in metrics:
        table.add_column(metric.heading.replace(" ", "\n"), justify="right", no_wrap=True)
    for arm in results.arms:
        for direction in directions:
            if has_direction(arm.runs[0].summary, direction):
                cells = [
                    arm.label,
                    *(str(arm.set.get(key, "")) for key in swept),
                    *([direction] if len(directions) > 1 else []),
                    *(_cell(metric, arm, direction) for metric in metrics),
                ]
                # As text: rich would take brackets in a label for markup.
                table.add_row(*map(Text, cells))
    return table


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
    if math.isnan(interval.median):
        return "–"
    if interval.median >= 10.0:
        digits = min(digits, 1 if interval.median < 100.0 else 0)
    text = f"{interval.median:.{digits}f}"
    return text if interval.n < 2 else f"{text}\n{interval.low:.{digits}f}–{interval.high:.{digits}f}"
