"""Sojourn times as distribution functions and boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.figure.names import name_arms
from sojourn.figure.of_results import OfResults
from sojourn.figure.style import (
    Look,
    Width,
    figure,
    from_zero,
    legend,
    log_axis,
    note,
    style,
    wants_log,
    way,
    width_for,
)
from sojourn.frame.metrics import has_queue
from sojourn.frame.results import Arm
from sojourn.frame.series import histogram, steady_sojourn
from sojourn.frame.statistics import FloatArray, pooled_curve, quantiles

_WITHIN = 8
"""Most arms for which a legend fits between the curves."""
_LEVELS = np.linspace(0.0, 1.0, 1001)
_FLOOR = 0.02
"""On a logarithmic axis, the share of packets from which a distribution function is drawn at least."""
_SHOWN = 0.999
"""The share up to which a distribution function is drawn: the last thousandth would take most of the axis."""


@dataclass(frozen=True)
class Box:
    """The elements of a box plot: box p25 to p75, line p50, whiskers p10 and p90 by default."""

    low: float
    p25: float
    p50: float
    p75: float
    high: float
    mean: float | None = None


def sojourn_curve(arm: Arm, queue: str) -> tuple[FloatArray, FloatArray]:
    """(sojourn in ms, share of packets at or below it) of all repeats of an arm combined.

    From the packets if all repeats recorded them, otherwise from the runs' histograms, whose buckets are about 1 %
    wide; for results without histograms, from the quantiles of the summaries.
    """
    runs = [run for run in arm.runs if has_queue(run.summary, queue)]
    recorded = [each for run in runs if (each := steady_sojourn(run, queue)) is not None]
    if recorded and len(recorded) == len(runs):
        values = np.concatenate(recorded)
        return (quantiles(values, _LEVELS), _LEVELS) if values.size else (values, values)
    counted = [one for run in runs if (one := histogram(run, queue)) is not None]
    if counted and len(counted) == len(runs):
        return steps(counted)
    return pooled_curve([run.sojourn_ms(queue) for run in runs])


def steps(counted: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    """Histograms as one distribution function, with a vertical step at the edge of every bucket."""
    edges, index = np.unique(np.concatenate([edges for edges, _ in counted]), return_inverse=True)
    packets = np.concatenate([np.diff(upto, prepend=0.0) for _, upto in counted])
    upto = np.cumsum(np.bincount(index, packets, minlength=edges.size))
    if not upto.size or upto[-1] == 0.0:
        return np.empty(0), np.empty(0)
    shares = upto / upto[-1]
    return np.repeat(edges, 2), np.stack([np.append(0.0, shares[:-1]), shares], axis=1).ravel()


def sojourn_box(arm: Arm, queue: str, whiskers: tuple[float, float]) -> Box | None:
    """The box of an arm's sojourn times in ms, repeats combined; None if no packet left the queue.

    ``whiskers`` are the percentiles of their ends.
    """
    values, levels = sojourn_curve(arm, queue)
    if not values.size:
        return None
    at = np.interp([whiskers[0] / 100, 0.25, 0.50, 0.75, whiskers[1] / 100], levels, values)
    distributions = [run.sojourn_ms(queue) for run in arm.runs if run.sojourn_ms(queue)["n"]]
    mean = np.average([d["mean"] for d in distributions], weights=[d["n"] for d in distributions])
    low, p25, p50, p75, high = map(float, at)
    return Box(low, p25, p50, p75, high, float(mean))


def _floor(lows: Sequence[float], highs: Sequence[float]) -> float:
    """The beginning of a logarithmic axis: the least positive value, at most four decades below the top."""
    top = max(highs)
    return max(min((low for low in lows if low > 0.0), default=0.0), top / 1e4) / 1.1


def _first(level: float, values: FloatArray, levels: FloatArray) -> float:
    """The value at a level or, if that is zero, the first positive one above it; zero if there is none."""
    at = float(np.interp(level, levels, values))
    above = values[(levels >= level) & (values > 0.0)]
    return at if at > 0.0 or not above.size else float(above[0])


def _up_to(level: float, values: FloatArray, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The curve's part below a level, and the value at which it reaches the level."""
    if not values.size:
        return values, levels
    below = levels < level
    return np.append(values[below], np.interp(level, levels, values)), np.append(levels[below], level)


def draw_boxes(
    axes: Axes, positions: Sequence[float], boxes: Sequence[Box | None], look: Sequence[Look], *, width: float
) -> None:
    """Draws boxes at positions; None leaves its position empty."""
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


class Distributions(OfResults):
    """The distributions of the sojourn time."""

    def cdf(self, queue: str = "down", *, width: Width | None = None) -> Figure:
        """Distribution function of the sojourn time, one line per arm, repeats combined."""
        results = self._results
        queue = self._checked_queue(queue)
        curves = [_up_to(_SHOWN, *sojourn_curve(arm, queue)) for arm in results.arms]
        with style():
            drawn = figure(width=width)
            axes = drawn.add_subplot()
            for arm, look, (values, levels) in zip(results.arms, self._looks, curves, strict=True):
                axes.plot(values, levels, label=arm.title, color=look.color, linestyle=look.dashes)
            axes.set(xlabel="sojourn time [ms]", ylabel="share of packets", ylim=(0, 1))
            tops = [values[-1] for values, _ in curves if values.size]
            is_log = wants_log([*tops, *(np.interp(0.5, levels, values) for values, levels in curves if values.size)])
            if is_log:
                starts = [_first(_FLOOR, values, levels) for values, levels in curves if values.size]
                axes.set_xlim(_floor(starts, tops), max(tops) * 1.05)
                log_axis(axes, "x")
            else:
                axes.set_xlim(left=0)
            note(axes, way(results, queue))
            if width is not None or len(results.arms) > _WITHIN or is_log:
                legend(drawn, axes)
            elif results.arms:
                axes.legend(loc="lower right")
            return drawn

    def box(
        self,
        queue: str = "down",
        *,
        whiskers: tuple[float, float] = (10, 90),
        width: Width | None = None,
    ) -> Figure:
        """Sojourn time per arm: box from p25 to p75, median, mean; ``whiskers`` are percentiles, as (5, 95)."""
        results = self._results
        queue = self._checked_queue(queue)
        with style():
            arms = results.arms
            drawn = figure(width_in=width_for(len(arms)), width=width)
            axes = drawn.add_subplot()
            boxes = [sojourn_box(arm, queue, whiskers) for arm in arms]
            draw_boxes(axes, list(range(len(arms))), boxes, self._looks, width=0.55)
            name_arms([axes], [arm.title for arm in arms], drawn.get_figwidth() - 0.7)
            axes.set(ylabel="sojourn time [ms]")
            low, high = whiskers
            meant = f"box: p25–p75, whiskers: p{low:g}, p{high:g}, diamond: mean"
            note(axes, "\n".join(filter(None, [way(results, queue), meant])))
            known = [box for box in boxes if box is not None]
            if wants_log([value for box in known for value in (box.p50, box.p75)]):
                highs = [max(box.high, box.mean or 0.0) for box in known]
                lows = [
                    next((value for value in (box.low, box.p25, box.p50, box.p75) if value > 0.0), 0.0) for box in known
                ]
                axes.set_ylim(_floor(lows, highs), max(highs) * 1.15)
                log_axis(axes, "y")
            else:
                from_zero(axes)
            return drawn
