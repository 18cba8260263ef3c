"""Sojourn times as distribution functions and boxes, and against goodput: the trade-off of a queue.

In the latter the delay axis runs backwards, so that better is up and to the right (RFC 7928 §2.7; Winstein and
Balakrishnan 2013).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sojourn.figure import style
from sojourn.figure.armpanels import MOST_IN_A_PANEL, ArmPanels, explain
from sojourn.figure.covered import COVERED, uncover
from sojourn.figure.names import name_arms
from sojourn.figure.style import COLORS, Look, OfResults, Width
from sojourn.frame.metrics import has_queue, metric_called
from sojourn.frame.results import Arm, Results
from sojourn.frame.series import histogram, steady_sojourn
from sojourn.frame.statistics import FloatArray, pooled_curve, quantiles

_LEVELS = np.linspace(0.0, 1.0, 1001)
_FLOOR = 0.02  # on a logarithmic axis, the share of packets from which a distribution function is drawn at least
_SHOWN = 0.999
"""The share up to which a distribution function is drawn: the last thousandth would take most of the axis."""

_LEAST = 1e-6
_LEAST_SPAN = 0.01  # the goodput axis spans at least this share of its upper end
_CIRCLE = np.linspace(0.0, 2.0 * np.pi, 181)


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
    """(sojourn in ms, share of packets at or below it) of an arm: of its packets, else histograms, else quantiles."""
    runs = [run for run in arm.runs if has_queue(run.summary, queue)]
    recorded = [each for run in runs if (each := steady_sojourn(run, queue)) is not None]
    if recorded and len(recorded) == len(runs):
        values = np.concatenate(recorded)
        return (quantiles(values, _LEVELS), _LEVELS) if values.size else (values, values)
    counted = [one for run in runs if (one := histogram(run, queue)) is not None]
    if counted and len(counted) == len(runs):
        return steps(counted)
    return pooled_curve([run.sojourn_ms(queue) for run in runs])


def tail_curve(arm: Arm, queue: str) -> tuple[FloatArray, FloatArray]:
    """(sojourn in ms, share of packets above it) of all repeats of an arm combined, from the runs' histograms."""
    runs = [run for run in arm.runs if has_queue(run.summary, queue)]
    counted = [one for run in runs if (one := histogram(run, queue)) is not None]
    values, levels = steps(counted) if len(counted) == len(runs) else sojourn_curve(arm, queue)
    return values, 1.0 - levels


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
    """The box of an arm's sojourn times in ms, repeats combined, with percentiles as ``whiskers``; None without any."""
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

    def _lines(self, curves: Sequence[tuple[FloatArray, FloatArray]], width: Width | None) -> ArmPanels:
        """A line per arm over the sojourn time."""
        page = ArmPanels(self._results.arms, width)
        for axes, name, look, (arm,) in page.lines():
            axes.plot(*curves[arm], label=name, color=look.color, linestyle=look.dashes)
        return page

    def cdf(self, queue: str = "down", *, width: Width | None = None) -> Figure:
        """Distribution function of the sojourn time, one line per arm, repeats combined."""
        results = self._results
        queue = self._checked_queue(queue)
        curves = [_up_to(_SHOWN, *sojourn_curve(arm, queue)) for arm in results.arms]
        with style.applied():
            page = self._lines(curves, width)
            axes = page.plots[0]
            axes.set_ylim(0, 1)
            tops = [values[-1] for values, _ in curves if values.size]
            middles = [np.interp(0.5, levels, values) for values, levels in curves if values.size]
            is_log = style.wants_log([*tops, *middles])
            if is_log:
                starts = [_first(_FLOOR, values, levels) for values, levels in curves if values.size]
                axes.set_xlim(_floor(starts, tops), max(tops) * 1.05)
                style.log_axis(axes, "x")
            else:
                axes.set_xlim(left=0)
            explain(page.drawn, page.plots, "sojourn time [ms]", "share of packets", style.way(results, queue))
            if width is not None or len(results.arms) > MOST_IN_A_PANEL or is_log:
                page.legend()
            elif results.arms:
                axes.legend(loc="lower right")
            return page.drawn

    def tail(self, queue: str = "down", *, width: Width | None = None) -> Figure:
        """Share of packets that wait longer than a time, one line per arm: p99 is at 0.01, p99.9 at 0.001."""
        results, queue = self._results, self._checked_queue(queue)
        curves = [tail_curve(arm, queue) for arm in results.arms]
        with style.applied():
            above = [(values, np.maximum(shares, _LEAST)) for values, shares in curves]
            page = self._lines(above, width)
            axes = page.plots[0]
            least = min((float(shares[shares > _LEAST].min(initial=1.0)) for _, shares in curves), default=1.0)
            axes.set_ylim(10.0 ** np.floor(np.log10(least)), 1.0)
            style.log_axis(axes, "y")
            tops = [float(values[-1]) for values, _ in curves if values.size]
            if style.wants_log(tops):
                axes.set_xlim(min(top for top in tops if top > 0.0) / 20, max(tops) * 1.05)
                style.log_axis(axes, "x")
            else:
                axes.set_xlim(left=0)
            share = "share of packets that wait longer"
            explain(page.drawn, page.plots, "sojourn time [ms]", share, style.way(results, queue))
            page.legend()
            return page.drawn

    def box(
        self, queue: str = "down", *, whiskers: tuple[float, float] = (10, 90), width: Width | None = None
    ) -> Figure:
        """Sojourn time per arm: box from p25 to p75, median, mean; ``whiskers`` are percentiles, as (5, 95)."""
        results = self._results
        queue = self._checked_queue(queue)
        with style.applied():
            arms = results.arms
            drawn = style.figure(width_in=style.width_for(len(arms)), width=width)
            axes = drawn.add_subplot()
            boxes = [sojourn_box(arm, queue, whiskers) for arm in arms]
            draw_boxes(axes, list(range(len(arms))), boxes, self._looks, width=0.55)
            name_arms([axes], [arm.title for arm in arms], drawn.get_figwidth() - 0.7)
            axes.set(ylabel="sojourn time [ms]")
            low, high = whiskers
            meant = f"box: p25–p75, whiskers: p{low:g}, p{high:g}, diamond: mean"
            style.note(axes, "\n".join(filter(None, [style.way(results, queue), meant])))
            known = [box for box in boxes if box is not None]
            if style.wants_log([value for box in known for value in (box.p50, box.p75)]):
                highs = [max(box.high, box.mean or 0.0) for box in known]
                lows = [
                    next((value for value in (box.low, box.p25, box.p50, box.p75) if value > 0.0), 0.0) for box in known
                ]
                axes.set_ylim(_floor(lows, highs), max(highs) * 1.15)
                style.log_axis(axes, "y")
            else:
                style.from_zero(axes)
            return drawn


def points(arm: Arm, queue: str, statistic: str) -> FloatArray:
    """(delay in ms, goodput in Mbit/s) of every repeat: a ``statistic`` of its sojourn times, its flows that way."""
    goodput = metric_called("goodput_bps")
    rows = [
        (float(sojourn[statistic]), goodput.value(run.summary, queue.rpartition("/")[2]) / goodput.declared.per)  # type: ignore[literal-required]
        for run in arm.runs
        if has_queue(run.summary, queue) and (sojourn := run.sojourn_ms(queue))["n"]
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, 2)


def one_sigma_ellipse(sample: FloatArray) -> FloatArray:
    """The contour of the normal distribution fitted to points, one standard deviation (n - 1) from its mean."""
    lengths, axes = np.linalg.eigh(np.cov(sample, rowvar=False))
    # Rounding can make a zero variance slightly negative.
    radii = np.sqrt(np.maximum(lengths, 0.0))
    circle = np.stack([np.cos(_CIRCLE), np.sin(_CIRCLE)], axis=1)
    contour: FloatArray = sample.mean(axis=0) + (circle * radii) @ axes.T
    return contour


def draw_ellipse(
    axes: Axes, sample: FloatArray, color: str, *, mark: str = "o", label: str = "", is_log: bool
) -> Line2D:
    """A dot per run, a mark at the medians, and from three runs on their 1-sigma ellipse; of logarithms of delays.

    Returns the mark.
    """
    axes.plot(*sample.T, ".", color=color, markersize=3, alpha=0.6)
    (medians,) = axes.plot(*np.median(sample, axis=0), mark, color=color, markersize=6, label=label)
    if len(sample) > 2:
        scaled = np.column_stack([np.log(sample[:, 0]), sample[:, 1]]) if is_log else sample
        x, y = one_sigma_ellipse(scaled).T
        axes.fill(np.exp(x) if is_log else x, y, facecolor=color + "33", edgecolor=color, linewidth=1.2)
    return medians


def _figure(
    results: Results,
    queue: str,
    statistic: str,
    draw: Callable[[Axes, Arm, FloatArray, Look, bool], Line2D],
    width: Width | None,
) -> Figure:
    samples = [(arm, points(arm, queue, statistic)) for arm in results.arms]
    delays = np.concatenate([sample[:, 0] for _, sample in samples]) if samples else np.empty(0)
    is_log = bool((delays > 0.0).all()) and style.wants_log(delays)
    with style.applied():
        drawn = style.figure(width=width)
        axes = drawn.add_subplot()
        looks = style.looks_of([arm.discipline for arm in results.arms])
        marks = [
            (arm.title, draw(axes, arm, sample, look, is_log))
            for (arm, sample), look in zip(samples, looks, strict=True)
            if len(sample)
        ]
        if is_log:
            style.log_axis(axes, "x")
        if not is_log and not delays.any():
            axes.set_xlim(0.0, 1.0)
        axes.invert_xaxis()
        widen(axes)
        of = f" of {style.of_network(results, queue)}" if results.has_several_links else ""
        named = {"p50": "median"}.get(statistic, statistic.replace("_", "."))
        axes.set_xlabel(f"{named} sojourn time [ms], less to the right")
        style.name_y(axes, f"goodput{of} [Mbit/s]")
        flows = queue.rpartition("/")[2]
        # Clouds of marks are seen beside each other.
        covered = COVERED if uncover(axes, [one for one in marks if np.size(one[1].get_xdata()) == 1]) else ""
        style.note(
            axes, style.way(results, queue), covered, style.own_times(results, metric_called("goodput_bps"), flows)
        )
        style.legend(drawn, axes)
        return drawn


def widen(axes: Axes) -> None:
    """Keeps tiny differences from filling the goodput axis, and it from going below zero."""
    low, high = axes.get_ylim()
    if low < 0.0:
        axes.set_ylim(0.0, 1.0 if -low == high else high)
        return
    lacking = _LEAST_SPAN * high - (high - low)
    if lacking > 0.0:
        axes.set_ylim(low - lacking / 2, high + lacking / 2)


class Tradeoff(OfResults):
    """Goodput against delay."""

    def ellipse(self, queue: str = "down", *, delay: str = "mean", width: Width | None = None) -> Figure:
        """Goodput against sojourn time, one 1-sigma ellipse over the repeats per arm (RFC 7928 §2.7).

        The delay axis runs backwards: better is up and to the right. ``delay`` is the statistic of a run's sojourn
        times, ``"mean"`` or a quantile like ``"p95"``. Fewer than three repeats give dots without an ellipse.
        """
        few = len(self._results.arms) <= len(COLORS)

        def draw(axes: Axes, arm: Arm, sample: FloatArray, look: Look, is_log: bool) -> Line2D:
            mark = "o" if few else look.marker
            return draw_ellipse(axes, sample, look.color, mark=mark, label=arm.title, is_log=is_log)

        return _figure(self._results, self._checked_queue(queue), delay, draw, width)

    def scatter(self, queue: str = "down", *, delay: str = "p95", width: Width | None = None) -> Figure:
        """Goodput against a percentile of the sojourn time, a mark per run; axes as in ``ellipse``."""

        def draw(axes: Axes, arm: Arm, sample: FloatArray, look: Look, _is_log: bool) -> Line2D:
            (marks,) = axes.plot(*sample.T, linestyle="none", marker=look.marker, markersize=5, label=arm.title)
            marks.set(markerfacecolor=look.color + "77", markeredgecolor=look.color)
            return marks

        return _figure(self._results, self._checked_queue(queue), delay, draw, width)
