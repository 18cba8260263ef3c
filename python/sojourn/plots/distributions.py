"""Sojourn times as distribution functions and boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.metrics import has_direction
from sojourn.plots.style import Look, figure, looks, style
from sojourn.series import steady_sojourn
from sojourn.statistics import FloatArray, pooled_curve

if TYPE_CHECKING:
    from sojourn.results import Arm, Direction, Results

_LEVELS = np.linspace(0.0, 1.0, 1001)


@dataclass(frozen=True)
class Box:
    """What a box plot draws of a distribution: box p25 to p75, whiskers p10 to p90, line p50."""

    p10: float
    p25: float
    p50: float
    p75: float
    p90: float
    mean: float | None = None


def sojourn_curve(arm: Arm, direction: Direction) -> tuple[FloatArray, FloatArray]:
    """(sojourn in ms, share of packets at or below it) of all repeats of an arm together.

    From the packets themselves where all repeats recorded them, else from the quantiles of the summaries.
    """
    runs = [run for run in arm.runs if has_direction(run.summary, direction)]
    recorded = [one for run in runs if (one := steady_sojourn(run, direction)) is not None]
    if recorded and len(recorded) == len(runs):
        values = np.concatenate(recorded)
        return (np.quantile(values, _LEVELS), _LEVELS) if values.size else (values, values)
    return pooled_curve([run.sojourn_ms(direction) for run in runs])


def sojourn_box(arm: Arm, direction: Direction) -> Box | None:
    """The box of an arm's sojourn times in ms, all repeats together; None if no packet left the queue."""
    values, levels = sojourn_curve(arm, direction)
    if not values.size:
        return None
    at = np.interp([0.10, 0.25, 0.50, 0.75, 0.90], levels, values)
    distributions = [run.sojourn_ms(direction) for run in arm.runs if run.sojourn_ms(direction)["n"]]
    mean = np.average([d["mean"] for d in distributions], weights=[d["n"] for d in distributions])
    p10, p25, p50, p75, p90 = map(float, at)
    return Box(p10, p25, p50, p75, p90, float(mean))


def cdf(results: Results, direction: Direction) -> Figure:
    """Distribution function of the sojourn time, one line per arm."""
    with style():
        drawn = figure()
        axes = drawn.add_subplot()
        for arm, look in zip(results.arms, looks(len(results.arms)), strict=True):
            values, levels = sojourn_curve(arm, direction)
            # The last thousandth of the packets would take most of the axis.
            shown = levels <= 0.999
            axes.plot(values[shown], levels[shown], label=arm.name, color=look.color, linestyle=look.dashes)
        axes.set(xlabel="sojourn time [ms]", ylabel="share of packets", ylim=(0, 1))
        axes.set_xlim(left=0)
        if results.arms:
            axes.legend(loc="lower right")
        return drawn


def box(results: Results, direction: Direction) -> Figure:
    """A box of the sojourn time per arm."""
    with style():
        arms = results.arms
        drawn = figure(width_in=max(4.2, min(12.0, 1.4 + 0.65 * len(arms))))
        axes = drawn.add_subplot()
        boxes = [sojourn_box(arm, direction) for arm in arms]
        draw_boxes(axes, list(range(len(arms))), boxes, looks(len(arms)), width=0.55)
        crowded = max((len(arm.name) for arm in arms), default=0) * len(arms) > 48
        axes.set_xticks(
            range(len(arms)),
            [arm.name for arm in arms],
            rotation=35 if crowded else 0,
            ha="right" if crowded else "center",
        )
        axes.set(ylabel="sojourn time [ms]")
        axes.set_title("box: p25 to p75, whiskers: p10 and p90, diamond: mean", loc="left", color="#555555", fontsize=8)
        axes.set_ylim(bottom=0)
        return drawn


def draw_boxes(
    axes: Axes, positions: Sequence[float], boxes: Sequence[Box | None], look: Sequence[Look], *, width: float
) -> None:
    """Draws boxes at positions; what is None leaves its place empty."""
    for position, box, one in zip(positions, boxes, look, strict=True):
        if box is None:
            continue
        stats = {"whislo": box.p10, "q1": box.p25, "med": box.p50, "q3": box.p75, "whishi": box.p90, "mean": box.mean}
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
