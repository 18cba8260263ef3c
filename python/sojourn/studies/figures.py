"""Draws a study's figures from its grids, as its recipe describes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from sojourn import series
from sojourn.plots.distributions import Box, draw_boxes
from sojourn.plots.style import figure, looks, save, style
from sojourn.plots.tradeoff import one_sigma_ellipse
from sojourn.statistics import FloatArray
from sojourn.storage import Staging
from sojourn.studies.exhibits import FigureSpec
from sojourn.studies.grid import AxisValue, Grid
from sojourn.studies.recipe import Study

_LEGEND_COLUMNS = 4
"""As many names as a figure is wide."""
_LETTERS_PER_IN = 13
"""Of a title."""
_UNITS = {"ms": "ms", "s": "s", "mbps": "Mbit/s", "kbps": "kbit/s", "bytes": "B"}


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
    shown = grid.where(lambda cell: grid.is_at(cell, spec.where) and (cell.scheme in spec.schemes or not spec.schemes))
    panels: list[AxisValue | None] = [*shown.values(spec.panels)] if spec.panels else [None]
    with style():
        width_in = max(5.2, 2.6 * len(panels) + 0.8)
        title = wrap(spec.title, int(_LETTERS_PER_IN * width_in))
        drawn = figure(width_in=width_in, height_in=3.0 + 0.15 * (len(title) - 1))
        drawn.suptitle("\n".join(title), fontsize=9, x=0.01, ha="left")
        all_axes = drawn.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, panel in zip(all_axes, panels, strict=True):
            at = {} if panel is None else {spec.panels: panel}
            if panel is not None:
                axes.set_title(_at(spec.panels, panel))
            _DRAWN[spec.kind](axes, spec, shown, at)
        if spec.kind != "packets":
            measure = grid.measures[spec.metric]
            all_axes[0].set_ylabel(f"{measure.label} [{measure.unit}]" if measure.unit != "1" else measure.label)
        if spec.from_zero and spec.kind in ("box", "series"):
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
        values = [value for value in values if not np.isnan(value)]
        box = [float(np.percentile(values, level)) for level in levels] if values else [np.nan]
    else:
        box = [grid.value(scheme, spec.metric, f"p{level}", point) for level in levels]
    return None if any(np.isnan(box)) else Box(*box)


def _draw_series(axes: Axes, spec: FigureSpec, grid: Grid, at: Mapping[str, AxisValue]) -> None:
    measure = grid.measures[spec.metric]
    for scheme, look in zip(grid.schemes, looks(len(grid.schemes)), strict=True):
        for cell in grid.at(scheme, at):
            found = measure.series(cell.runs[0], {**grid.constants, **cell.point})
            if found is not None:
                found = series.binned(found, spec.bin_s) if spec.bin_s > 0.0 else found
                axes.plot(found.t_s, found.value, color=look.color, linewidth=0.7, alpha=0.85)
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


def _draw_packets(axes: Axes, spec: FigureSpec, grid: Grid, at: Mapping[str, AxisValue]) -> None:
    """Arrivals above, departures below, and from one to the other a line that slants by the packet's wait.

    A packet is as wide as its time on the wire and as high as the rate, so that its area is its size.
    """
    part = grid.measures[spec.metric].part
    for scheme, look in zip(grid.schemes, looks(len(grid.schemes)), strict=True):
        for cell in grid.at(scheme, at):
            found = series.passages(cell.runs[0], part.directions[0])
            if found is None:
                continue
            arriving, leaving = _top_mbps(found.arrival_s, found.bits), _top_mbps(found.departure_s, found.bits)
            gap = 0.25 * max(arriving, leaving)
            wide: dict[str, Any] = {
                "align": "edge",
                "color": look.color + "77",
                "edgecolor": look.color,
                "linewidth": 0.6,
            }
            axes.bar(found.arrival_s, arriving, found.bits / arriving / 1e6, bottom=gap, **wide)
            axes.bar(found.departure_s, -leaving, found.bits / leaving / 1e6, bottom=-gap, **wide)
            ends = np.stack([found.arrival_s, found.departure_s])
            axes.plot(ends, [gap, -gap], color=look.color, linewidth=0.7)
            ticks = {gap: 0.0, gap + arriving: arriving, -gap: 0.0, -gap - leaving: leaving}
            axes.set_yticks(list(ticks), [f"{rate:.3g}" for rate in ticks.values()])
    axes.set_xlim(part.from_s, part.to_s if np.isfinite(part.to_s) else None)
    axes.set_xlabel("time [s]")
    axes.set_ylabel("leaving, arriving [Mbit/s]")


def _top_mbps(t_s: FloatArray, bits: FloatArray) -> float:
    """The highest rate from one packet to the next."""
    order = np.argsort(t_s, kind="stable")
    gaps = np.diff(t_s[order])
    apart = gaps > 0.0
    return float((bits[order][:-1][apart] / gaps[apart]).max() / 1e6) if apart.any() else 1.0


_DRAWN = {"box": _draw_boxes, "series": _draw_series, "ellipse": _draw_ellipses, "packets": _draw_packets}
"""How each kind is drawn."""


def _words(axis: str) -> str:
    """``target_ms`` as ``target [ms]``."""
    name, _, unit = axis.rpartition("_")
    return f"{name.replace('_', ' ')} [{_UNITS[unit]}]" if name and unit in _UNITS else axis.replace("_", " ")


def _at(axis: str, value: AxisValue) -> str:
    """``target 5 ms``, ``4 flows``."""
    if isinstance(value, bool):
        return f"{axis.replace('_', ' ')}: {_tick(value)}"
    name, _, unit = axis.rpartition("_")
    if name and unit in _UNITS:
        return f"{name.replace('_', ' ')} {_tick(value)} {_UNITS[unit]}"
    return f"{_tick(value)} {axis.replace('_', ' ')}"


def _tick(value: AxisValue) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
