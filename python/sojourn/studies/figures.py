"""Draws a study's figures from its grids, as its recipe describes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from sojourn.plots.distributions import Box, draw_boxes
from sojourn.plots.style import figure, looks, save, style
from sojourn.plots.tradeoff import one_sigma_ellipse
from sojourn.storage import Staging
from sojourn.studies.grid import AxisValue, Grid, same
from sojourn.studies.recipe import FigureSpec, Study

_LEGEND_COLUMNS = 4
"""As many names as a figure is wide."""
_UNITS = {"ms": "ms", "s": "s", "mbps": "Mbit/s", "kbps": "kbit/s"}


def stage_figures(staging: Staging, study: Study, grids: Mapping[str, Grid]) -> list[Path]:
    """Stages every figure whose experiment was run, as PNG, SVG and PDF."""
    return [
        path
        for spec in study.figures
        if spec.experiment in grids
        for path in save(staging, spec.name, draw(spec, study, grids[spec.experiment]))
    ]


def draw(spec: FigureSpec, study: Study, grid: Grid) -> Figure:
    """One figure: a panel per value of its panel axis, all on the same scale."""
    shown = grid.where(lambda cell: all(same(cell.point[axis], value) for axis, value in spec.where.items()))
    panels: list[AxisValue | None] = [*shown.values(spec.panels)] if spec.panels else [None]
    with style():
        drawn = figure(width_in=max(5.2, 2.6 * len(panels) + 0.8), height_in=3.0)
        drawn.suptitle(spec.title, fontsize=9, x=0.01, ha="left")
        all_axes = drawn.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, panel in zip(all_axes, panels, strict=True):
            at = {} if panel is None else {spec.panels: panel}
            if panel is not None:
                axes.set_title(_at(spec.panels, panel))
            _DRAWN[spec.kind](axes, spec, shown, at)
        measure = grid.measures[spec.metric]
        all_axes[0].set_ylabel(f"{measure.label} [{measure.unit}]")
        if spec.from_zero and spec.kind != "ellipse":
            all_axes[0].set_ylim(bottom=0)
        colors = looks(len(shown.schemes))
        handles = [
            Patch(facecolor=look.color + "55", edgecolor=look.color, label=study.labels.get(scheme, scheme))
            for scheme, look in zip(shown.schemes, colors, strict=True)
        ]
        drawn.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), _LEGEND_COLUMNS))
        return drawn


def _draw_boxes(axes: Axes, spec: FigureSpec, grid: Grid, at: Mapping[str, AxisValue]) -> None:
    ticks: list[AxisValue | None] = [*grid.values(spec.x)] if spec.x else [None]
    schemes = grid.schemes
    width = 0.8 / len(schemes)
    for index, (scheme, look) in enumerate(zip(schemes, looks(len(schemes)), strict=True)):
        boxes = [_box(grid, scheme, spec, at if tick is None else {**at, spec.x: tick}) for tick in ticks]
        offset = (index - (len(schemes) - 1) / 2) * width
        positions = [place + offset for place in range(len(ticks))]
        draw_boxes(axes, positions, boxes, [look] * len(ticks), width=0.8 * width)
    axes.set_xticks(range(len(ticks)), ["" if tick is None else _tick(tick) for tick in ticks])
    axes.set_xlabel(_words(spec.x))


def _box(grid: Grid, scheme: str, spec: FigureSpec, point: Mapping[str, AxisValue]) -> Box | None:
    low, high = spec.whiskers
    levels = (low, 25, 50, 75, high)
    if spec.of_runs:
        measure = grid.measures[spec.metric]
        values = [
            measure.statistic(run, "value", {**grid.constants, **cell.point})
            for cell in grid.at(scheme, point)
            for run in cell.runs
        ]
        box = [float(np.percentile(values, level)) for level in levels] if values else [np.nan]
    else:
        box = [grid.value(scheme, spec.metric, f"p{level}", point) for level in levels]
    return None if any(np.isnan(box)) else Box(*box)


def _draw_series(axes: Axes, spec: FigureSpec, grid: Grid, at: Mapping[str, AxisValue]) -> None:
    measure = grid.measures[spec.metric]
    for scheme, look in zip(grid.schemes, looks(len(grid.schemes)), strict=True):
        for cell in grid.at(scheme, at):
            series = measure.series(cell.runs[0], {**grid.constants, **cell.point})
            if series is not None:
                axes.plot(series.t_s, series.value, color=look.color, linewidth=0.7, alpha=0.85)
    axes.set_xlabel("time [s]")


def _draw_ellipses(axes: Axes, spec: FigureSpec, grid: Grid, at: Mapping[str, AxisValue]) -> None:
    """Per scheme a dot per run, the medians as a circle, from three runs on their 1-sigma ellipse."""
    across, upward = grid.measures[spec.x], grid.measures[spec.metric]
    for scheme, look in zip(grid.schemes, looks(len(grid.schemes)), strict=True):
        sample = np.array(
            [
                [measure.statistic(run, "mean", {**grid.constants, **cell.point}) for measure in (across, upward)]
                for cell in grid.at(scheme, at)
                for run in cell.runs
            ]
        ).reshape(-1, 2)
        axes.plot(*sample.T, ".", color=look.color, markersize=3, alpha=0.6)
        if len(sample) > 2:
            contour = one_sigma_ellipse(np.column_stack([np.log(sample[:, 0]), sample[:, 1]]))
            axes.fill(np.exp(contour[:, 0]), contour[:, 1], facecolor=look.color + "33", edgecolor=look.color)
        axes.plot(*np.median(sample, axis=0), "o", color=look.color, markersize=6)
    axes.set_xscale("log")
    axes.invert_xaxis()
    axes.set_xlabel(f"{across.label} [{across.unit}], less to the right")


_DRAWN = {"box": _draw_boxes, "series": _draw_series, "ellipse": _draw_ellipses}
"""How each kind is drawn."""


def _words(axis: str) -> str:
    """``target_ms`` as ``target [ms]``."""
    name, _, unit = axis.rpartition("_")
    return f"{name.replace('_', ' ')} [{_UNITS[unit]}]" if name and unit in _UNITS else axis.replace("_", " ")


def _at(axis: str, value: AxisValue) -> str:
    """``target 5 ms``, ``4 flows``."""
    name, _, unit = axis.rpartition("_")
    if name and unit in _UNITS:
        return f"{name.replace('_', ' ')} {_tick(value)} {_UNITS[unit]}"
    return f"{_tick(value)} {axis.replace('_', ' ')}"


def _tick(value: AxisValue) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
