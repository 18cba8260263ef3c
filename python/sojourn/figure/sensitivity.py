"""Indices of Sobol' as bars: what a metric depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sojourn.figure import panels
from sojourn.figure.names import name_places
from sojourn.figure.panels import Panel
from sojourn.figure.style import COLORS, Width, legend, style
from sojourn.frame.cells import LABEL, CellTable
from sojourn.frame.columns import Measure
from sojourn.frame.statistics import CONFIDENCE, FloatArray


@dataclass(frozen=True)
class Indices:
    """The indices of a queue, a value per key; NaN if the metric is the same everywhere."""

    label: str
    keys: tuple[str, ...]
    first: FloatArray
    """First order: the share of the variance that the key causes alone."""
    first_reach: FloatArray
    """Half of the width of its 95 % confidence interval, by bootstrap."""
    total: FloatArray
    """Total: the share that would vanish if the key were fixed, so with all interactions."""
    total_reach: FloatArray


def sensitivity(grid: CellTable, shown: Measure, found: Sequence[Indices], width: Width | None) -> Figure:
    """The first-order and total index of each key of a design, a panel per queue."""
    several = len(grid.axes[LABEL].texts) > 1
    named = [Panel(one.label if several else "", np.empty(0, dtype=np.int64)) for one in found]
    names = [grid.axes[key].words for key in found[0].keys]
    with style():
        drawn, plots, panel_in = panels.layout(named, (max(2.6, 0.9 + 0.7 * len(names)), 2.4), width)
        for plot, one in zip(plots, found, strict=True):
            at = np.arange(len(names), dtype=np.float64)
            for shift, values, reach, color, text in (
                (-0.2, one.first, one.first_reach, COLORS[0], "alone (first order)"),
                (0.2, one.total, one.total_reach, COLORS[5], "with interactions (total)"),
            ):
                plot.bar(at + shift, values, 0.36, yerr=reach, color=color, label=text, capsize=2, ecolor="#444444",
                         error_kw={"elinewidth": 0.8})  # fmt: skip
            plot.axhline(0.0, color="#444444", linewidth=0.6)
            plot.grid(False, axis="x")
            if np.isnan(one.first).all():
                plot.text(0.5, 0.5, "the same everywhere", transform=plot.transAxes, ha="center", color="#555555")
            name_places(plot, "x", names, panel_in - 0.6)
        panels.name_panels(plots, named, panel_in)
        panels.name_axes(drawn, "", "share of the variance")
        legend(drawn, plots[0])
        panels.headline(drawn, f"{shown.words}: indices of Sobol' with {CONFIDENCE:.0%} confidence intervals")
        return drawn
