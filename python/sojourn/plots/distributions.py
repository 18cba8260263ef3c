"""Sojourn times as distribution functions and boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.metrics import has_direction
from sojourn.plots.style import Look, figure, legend_above, looks, name_ticks, style, width_for
from sojourn.series import steady_sojourn
from sojourn.statistics import FloatArray, pooled_curve, quantiles

if TYPE_CHECKING:
    from sojourn.results import Arm, Direction, Results

_WITHIN = 8
"""Arms whose names a legend between the curves has room for."""
_LEVELS = np.linspace(0.0, 1.0, 1001)
_SHOWN = 0.999
"""Up to where a distribution function is drawn: the last thousandth of the packets would take most of the axis."""


@dataclass(frozen=True)
class Box:
    """What a box plot draws of a distribution: box p25 to p75, line p50, whiskers p10 and p90 unless told otherwise."""

    low: float
    p25: float
    p50: float
    p75: float
    high: float
    mean: float | None = None


def sojourn_curve(arm: Arm, direction: Direction) -> tuple[FloatArray, FloatArray]:
    """(sojourn in ms, share of packets at or below it) of all repeats of an arm together.

    From the packets themselves where all repeats recorded them, else from the quantiles of the summaries.
    """
    runs = [run for run in arm.runs if has_direction(run.summary, direction)]
    recorded = [one for run in runs if (one := steady_sojourn(run, direction)) is not None]
    if recorded and len(recorded) == len(runs):
        values = np.concatenate(recorded)
        return (quantiles(values, _LEVELS), _LEVELS) if values.size else (values, values)
    return pooled_curve([run.sojourn_ms(direction) for run in runs])


def sojourn_box(arm: Arm, direction: Direction, whiskers: tuple[float, float]) -> Box | None:
    """The box of an arm's sojourn times in ms, all repeats together; None if no packet left the queue.

    ``whiskers`` are the percentiles at which they end.
    """
    values, levels = sojourn_curve(arm, direction)
    if not values.size:
        return None
    at = np.interp([whiskers[0] / 100, 0.25, 0.50, 0.75, whiskers[1] / 100], levels, values)
    distributions = [run.sojourn_ms(direction) for run in arm.runs if run.sojourn_ms(direction)["n"]]
    mean = np.average([d["mean"] for d in distributions], weights=[d["n"] for d in distributions])
    low, p25, p50, p75, high = map(float, at)
    return Box(low, p25, p50, p75, high, float(mean))


def cdf(results: Results, direction: Direction) -> Figure:
    """Distribution function of the sojourn time, one line per arm."""
    with style():
        drawn = figure()
        axes = drawn.add_subplot()
        for arm, look in zip(results.arms, looks(len(results.arms)), strict=True):
            values, levels = sojourn_curve(arm, direction)
            values, levels = _up_to(_SHOWN, values, levels)
            axes.plot(values, levels, label=arm.name, color=look.color, linestyle=look.dashes)
        axes.set(xlabel="sojourn time [ms]", ylabel="share of packets", ylim=(0, 1))
        axes.set_xlim(left=0)
        if len(results.arms) > _WITHIN:
            legend_above(drawn, axes)
        elif results.arms:
            axes.legend(loc="lower right")
        return drawn


def _up_to(level: float, values: FloatArray, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The curve's part below a level, and where it reaches it."""
    if not values.size:
        return values, levels
    below = levels < level
    return np.append(values[below], np.interp(level, levels, values)), np.append(levels[below], level)


def box(results: Results, direction: Direction, whiskers: tuple[float, float]) -> Figure:
    """A box of the sojourn time per arm."""
    with style():
        arms = results.arms
        drawn = figure(width_in=width_for(len(arms)))
        axes = drawn.add_subplot()
        boxes = [sojourn_box(arm, direction, whiskers) for arm in arms]
        draw_boxes(axes, list(range(len(arms))), boxes, looks(len(arms)), width=0.55)
        name_ticks(axes, [arm.name for arm in arms])
        axes.set(ylabel="sojourn time [ms]")
        low, high = whiskers
        note = f"box: p25 to p75, whiskers: p{low:g} and p{high:g}, diamond: mean"
        axes.set_title(note, loc="left", color="#555555", fontsize=8)
        axes.set_ylim(bottom=0)
        return drawn


def draw_boxes(
    axes: Axes, positions: Sequence[float], boxes: Sequence[Box | None], look: Sequence[Look], *, width: float
) -> None:
    """Draws boxes at positions; what is None leaves its place empty."""
    for position, box, one in zip(positions, boxes, look, strict=True):
        if box is None:
            continue
        stats = {"whislo": box.low, "q1": box.p25, "med": box.p50, "q3": box.p75, "whishi": box.high, "mean": box.mean}
        axes.bxp(
            [stats],
            positions=[position],
            widths=width,
            showfliers=False,
            showmeans=box.mean is not None,
            patch_artist=True,
            manage_ticks=False,
            boxprops={"facecolor": one.color + "55", "edgecolor": one.color},
            medianprops={"color": one.color, "linewidth": 2.0},
            whiskerprops={"color": one.color},
            capprops={"color": one.color},
            meanprops={"marker": "D", "markersize": 3.5, "markerfacecolor": one.color, "markeredgecolor": one.color},
        )
