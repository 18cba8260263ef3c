"""A metric against another: a dot per run with its ellipse, or a mean over a distribution."""

from __future__ import annotations

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from sojourn.figure import tradeoff
from sojourn.figure.style import plain_number
from sojourn.studies.figures.panel import Panel
from sojourn.studies.figures.words import with_unit
from sojourn.studies.measures import quantile_level


def draw_ellipse(panel: Panel) -> None:
    """Per scheme a dot per run, the medians as a circle, from three runs on their 1-sigma ellipse."""
    axes, spec = panel.axes, panel.spec
    for scheme, look in panel.looks.items():
        cells = panel.cells(scheme)
        sample = np.column_stack([panel.of_runs(metric, "mean", cells) for metric in (spec.x, panel.metric)])
        tradeoff.draw_ellipse(axes, sample, look.color, is_log=True)
    _logarithmic(panel)
    axes.invert_xaxis()
    axes.set_xlabel(f"{with_unit(panel.grid.measures[spec.x])}, less to the right")


def draw_spread(panel: Panel) -> None:
    """Per scheme, a metric's mean against the distribution of another, whose box and whiskers are horizontal."""
    axes, spec = panel.axes, panel.spec
    low, high = spec.whiskers
    for scheme, look in panel.looks.items():
        for cell in panel.cells(scheme):
            heights = panel.of_runs(panel.metric, "mean", [cell])
            y = float(np.nanmean(heights))
            ends = [float(np.nanmean(panel.of_runs(spec.x, f"p{level}", [cell]))) for level in (low, 25, 50, 75, high)]
            axes.plot([ends[0], ends[-1]], [y, y], "|-", color=look.color, linewidth=1.0, markersize=6)
            axes.plot(ends[1:4:2], [y, y], color=look.color, linewidth=4.5, alpha=0.55, solid_capstyle="butt")
            axes.plot([ends[2]] * 2, [min(heights), max(heights)], color=look.color, linewidth=1.0)
            axes.plot([ends[2]], [y], "o", color=look.color, markersize=4)
            for mark in panel.marks:
                is_drawn = mark.metric == spec.x and quantile_level(mark.statistic) is not None
                if is_drawn and mark.scheme == scheme and mark.is_at(cell.point):
                    panel.drawn.point(axes, mark, (mark.low, y), (mark.high, y), look.color)
    if spec.log:
        _logarithmic(panel)
    elif spec.from_zero:
        axes.set_xlim(left=0)
    axes.set_xlabel(with_unit(panel.grid.measures[spec.x]))


def _logarithmic(panel: Panel) -> None:
    """A logarithmic horizontal axis with plain numbers."""
    axis = panel.axes.xaxis
    panel.axes.set_xscale("log")
    low, high = panel.axes.get_xlim()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 100 else (1.0,)))
    axis.set_major_formatter(FuncFormatter(plain_number))
    axis.set_minor_formatter(NullFormatter())
