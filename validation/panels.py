"""Figures of the comparison: a panel per scenario, ours as lines over Linux's points."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from comparison import Departures
from matplotlib.axes import Axes

from sojourn.figure.style import applied, figure, multiples
from sojourn.figure.timeseries import median_over_repeats
from sojourn.frame.statistics import quantiles

COLUMNS = 5
OURS, LINUX = "#0072B2", "#D55E00"
BIN_S = 0.1
LEVELS = np.linspace(0.0, 1.0, 401)


@dataclass(frozen=True)
class Recorded:
    """One scenario: Linux's entry of ``figures.json``, and our packets, a recording per seed."""

    name: str
    measured: dict[str, Any]
    runs: tuple[Departures, ...]


def cdf(scenarios: Sequence[Recorded], path: Path) -> None:
    """Distribution of the sojourn time: Linux's quantiles; ours as median and range over the seeds."""
    _page(scenarios, path, _draw_cdf, "sojourn time [ms]", "share of packets")


def start(scenarios: Sequence[Recorded], path: Path) -> None:
    """Queue delay in the first 20 s, means of 100 ms: Linux's; ours as median and range over the seeds."""
    _page(scenarios, path, _draw_start, "time [s]", "mean sojourn time [ms]")


def _page(
    scenarios: Sequence[Recorded], path: Path, draw: Callable[[Axes, Recorded], None], xlabel: str, ylabel: str
) -> None:
    rows = math.ceil(len(scenarios) / COLUMNS)
    with applied():
        drawn = figure(2.4 * COLUMNS, 1.75 * rows + 0.4)
        grid = multiples(drawn, len(scenarios), COLUMNS, sharex=False, sharey=False)
        for axes, scenario in zip(grid, scenarios, strict=True):
            draw(axes, scenario)
            axes.set_title(scenario.name, fontsize=8)
            axes.tick_params(labelsize=7)
            axes.set_xlim(left=0)
            axes.set_ylim(bottom=0)
        drawn.supxlabel(xlabel, fontsize=9)
        drawn.supylabel(ylabel, fontsize=9)
        handles, labels = grid[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside upper center", ncols=3)
        drawn.savefig(path, dpi=90, metadata={"Software": None})


def _draw_cdf(axes: Axes, scenario: Recorded) -> None:
    window_s = scenario.measured["window_s"]
    curves = [quantiles(run.within(*window_s), LEVELS) for run in scenario.runs]
    low, middle, high = median_over_repeats(np.array(curves))
    axes.fill_betweenx(LEVELS, low, high, color=OURS, alpha=0.25, linewidth=0, label="sojourn, range of the seeds")
    axes.plot(middle, LEVELS, color=OURS, label="sojourn, median")
    theirs = {key: value for key, value in scenario.measured["sojourn_ms"].items() if key.startswith("p")}
    levels = [float(key[1:]) / 100 for key in theirs]
    axes.plot(list(theirs.values()), levels, "o", color=LINUX, markersize=3, label="Linux, one run")
    # The last hundredth of the packets would take most of the axis.
    axes.set_xlim(right=1.15 * max(float(middle[int(0.99 * (LEVELS.size - 1))]), theirs["p99"]))


def _draw_start(axes: Axes, scenario: Recorded) -> None:
    theirs = np.array(scenario.measured["series_100ms_ms"], dtype=float)
    t_s = (np.arange(theirs.size) + 0.5) * BIN_S
    low, middle, high = median_over_repeats(np.array([run.means_ms(theirs.size, BIN_S) for run in scenario.runs]))
    axes.fill_between(t_s, low, high, color=OURS, alpha=0.25, linewidth=0, label="sojourn, range of the seeds")
    axes.plot(t_s, middle, color=OURS, linewidth=1.0, label="sojourn, median")
    axes.plot(t_s, theirs, color=LINUX, linewidth=0.8, label="Linux, one run")
    axes.set_xlim(right=theirs.size * BIN_S)
