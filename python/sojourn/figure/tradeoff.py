"""Goodput against delay: the trade-off of a queue.

The delay axis runs backwards, so that better is up and to the right (RFC 7928 §2.7; Winstein and Balakrishnan 2013).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.figure.of_results import OfResults
from sojourn.figure.style import (
    COLORS,
    Look,
    Width,
    figure,
    legend,
    log_axis,
    looks_of,
    note,
    of_network,
    own_times,
    style,
    wants_log,
    way,
)
from sojourn.frame.metrics import has_queue, metric_called
from sojourn.frame.results import Arm, Results
from sojourn.frame.statistics import FloatArray

_LEAST_SPAN = 0.01
"""The goodput axis spans at least this share of its upper end."""
_CIRCLE = np.linspace(0.0, 2.0 * np.pi, 181)


def points(arm: Arm, queue: str, statistic: str) -> FloatArray:
    """(delay in ms, goodput in Mbit/s) of every repeat of an arm, shape (repeats, 2), of the flows in its direction.

    The delay is ``statistic`` of the run's sojourn times: ``"mean"`` or a quantile of the summary, ``"p95"``.
    """
    goodput = metric_called("goodput_bps")
    rows = [
        (float(sojourn[statistic]), goodput.value(run.summary, queue.rpartition("/")[2]) / goodput.declared.per)  # type: ignore[literal-required]
        for run in arm.runs
        if has_queue(run.summary, queue) and (sojourn := run.sojourn_ms(queue))["n"]
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, 2)


def one_sigma_ellipse(sample: FloatArray) -> FloatArray:
    """The contour of the normal distribution fitted to points, one standard deviation from its mean.

    Shape (n, 2) in and out. Along each axis the contour reaches as far as the standard deviation of that coordinate
    (with n - 1 in the denominator).
    """
    lengths, axes = np.linalg.eigh(np.cov(sample, rowvar=False))
    # Rounding can make a zero variance slightly negative.
    radii = np.sqrt(np.maximum(lengths, 0.0))
    circle = np.stack([np.cos(_CIRCLE), np.sin(_CIRCLE)], axis=1)
    contour: FloatArray = sample.mean(axis=0) + (circle * radii) @ axes.T
    return contour


def draw_ellipse(axes: Axes, sample: FloatArray, color: str, *, mark: str = "o", label: str = "", is_log: bool) -> None:
    """A dot per run, a mark at the medians, and from three runs on their 1-sigma ellipse; of logarithms of delays."""
    axes.plot(*sample.T, ".", color=color, markersize=3, alpha=0.6)
    axes.plot(*np.median(sample, axis=0), mark, color=color, markersize=6, label=label)
    if len(sample) > 2:
        scaled = np.column_stack([np.log(sample[:, 0]), sample[:, 1]]) if is_log else sample
        x, y = one_sigma_ellipse(scaled).T
        axes.fill(np.exp(x) if is_log else x, y, facecolor=color + "33", edgecolor=color, linewidth=1.2)


def _figure(
    results: Results,
    queue: str,
    statistic: str,
    draw: Callable[[Axes, Arm, FloatArray, Look, bool], None],
    width: Width | None,
) -> Figure:
    samples = [(arm, points(arm, queue, statistic)) for arm in results.arms]
    delays = np.concatenate([sample[:, 0] for _, sample in samples]) if samples else np.empty(0)
    is_log = bool((delays > 0.0).all()) and wants_log(delays)
    with style():
        drawn = figure(width=width)
        axes = drawn.add_subplot()
        for (arm, sample), look in zip(samples, looks_of([arm.discipline for arm in results.arms]), strict=True):
            if len(sample):
                draw(axes, arm, sample, look, is_log)
        if is_log:
            log_axis(axes, "x")
        if not is_log and not delays.any():
            axes.set_xlim(0.0, 1.0)
        axes.invert_xaxis()
        widen(axes)
        of = f" of {of_network(results, queue)}" if results.has_several_links else ""
        axes.set(xlabel=f"{_words(statistic)} sojourn time [ms], less to the right", ylabel=f"goodput{of} [Mbit/s]")
        flows = queue.rpartition("/")[2]
        note(axes, way(results, queue), own_times(results, metric_called("goodput_bps"), flows))
        legend(drawn, axes)
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


def _words(statistic: str) -> str:
    return {"mean": "mean", "p50": "median"}.get(statistic, statistic.replace("_", "."))


class Tradeoff(OfResults):
    """Goodput against delay."""

    def ellipse(self, queue: str = "down", *, delay: str = "mean", width: Width | None = None) -> Figure:
        """Goodput against sojourn time, one 1-sigma ellipse over the repeats per arm (RFC 7928 §2.7).

        The delay axis runs backwards: better is up and to the right. ``delay`` is the statistic of a run's sojourn
        times, ``"mean"`` or a quantile like ``"p95"``. Fewer than three repeats give dots without an ellipse.
        """
        results = self._results
        queue = self._checked_queue(queue)
        few = len(results.arms) <= len(COLORS)

        def draw(axes: Axes, arm: Arm, sample: FloatArray, look: Look, is_log: bool) -> None:
            mark = "o" if few else look.marker
            draw_ellipse(axes, sample, look.color, mark=mark, label=arm.title, is_log=is_log)

        return _figure(results, queue, delay, draw, width)

    def scatter(self, queue: str = "down", *, delay: str = "p95", width: Width | None = None) -> Figure:
        """Goodput against a percentile of the sojourn time, a mark per run; axes as in ``ellipse``."""
        results = self._results
        queue = self._checked_queue(queue)

        def draw(axes: Axes, arm: Arm, sample: FloatArray, look: Look, _is_log: bool) -> None:
            axes.plot(
                *sample.T,
                linestyle="none",
                marker=look.marker,
                markersize=5,
                markerfacecolor=look.color + "77",
                markeredgecolor=look.color,
                label=arm.title,
            )

        return _figure(results, queue, delay, draw, width)
