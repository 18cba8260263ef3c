"""Figures of an experiment's results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from sojourn.plots import bars, distributions, style, timeseries, tradeoff
from sojourn.plots.timeseries import Middle

if TYPE_CHECKING:
    from sojourn.results import Direction, Results
    from sojourn.storage import Staging


@dataclass(frozen=True)
class Drawing:
    """A figure that results give: its file's name without a suffix, what it shows, and how it is drawn."""

    name: str
    caption: str
    draw: Callable[[], Figure]


class Plots:
    """The figures of some results; each is a matplotlib Figure, saved with ``savefig``."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def cdf(self, direction: Direction = "down") -> Figure:
        """Distribution function of the sojourn time, one line per arm, repeats together."""
        return distributions.cdf(self._results, direction)

    def box(self, direction: Direction = "down", *, whiskers: tuple[float, float] = (10, 90)) -> Figure:
        """Sojourn time per arm: box from p25 to p75, median, mean; ``whiskers`` are percentiles, as (5, 95)."""
        return distributions.box(self._results, direction, whiskers)

    def ellipse(self, direction: Direction = "down", *, delay: str = "mean") -> Figure:
        """Goodput against sojourn time, one 1-sigma ellipse over the repeats per arm (RFC 7928 §2.7).

        The delay axis runs backwards: better is up and to the right. ``delay`` is the statistic of a run's sojourn
        times, ``"mean"`` or a quantile like ``"p95"``. Fewer than three repeats give dots without an ellipse.
        """
        return tradeoff.ellipse(self._results, direction, delay)

    def scatter(self, direction: Direction = "down", *, delay: str = "p95") -> Figure:
        """Goodput against a percentile of the sojourn time, a mark per run; axes as in ``ellipse``."""
        return tradeoff.scatter(self._results, direction, delay)

    def bars(self, metric: str = "goodput_bps", direction: Direction = "down") -> Figure:
        """A column of the results table as bars: medians over the repeats with their 95 % confidence intervals.

        Raises
        ------
        ValueError
            There is no such metric.
        """
        return bars.bars(self._results, metric, direction)

    def timeseries(self, middle: Middle = "median") -> Figure:
        """Sojourn time over time, all repeats together.

        ``"median"`` draws the median of the repeats in a band of their range, ``"mean"`` their mean in a band of its
        95 % confidence interval.

        Raises
        ------
        NotRecordedError
            The experiment has no ``[record] series``.
        """
        return timeseries.sojourn_figure(self._results, middle)

    def goodput(self, middle: Middle = "median") -> Figure:
        """Goodput of all flows together over time; ``middle`` as for ``timeseries``.

        Raises
        ------
        NotRecordedError
            The experiment has no ``[record] series``.
        """
        return timeseries.goodput_figure(self._results, middle)

    def drawings(self) -> Iterator[Drawing]:
        """Every figure that these results give."""
        repeats = max((len(arm.runs) for arm in self._results.arms), default=0)
        for direction in self._results.directions:
            suffix, way = ("", "") if direction == "down" else ("_up", ", upward direction")
            yield Drawing(
                f"sojourn_cdf{suffix}", f"Distribution of the sojourn time{way}", partial(self.cdf, direction)
            )
            yield Drawing(f"sojourn_box{suffix}", f"Sojourn time by queue{way}", partial(self.box, direction))
            yield Drawing(
                f"goodput_delay_ellipse{suffix}",
                f"Goodput against mean sojourn time{way}: better is up and to the right"
                + ("; ellipses are one standard deviation over the repeats" if repeats > 2 else ""),
                partial(self.ellipse, direction),
            )
            yield Drawing(
                f"goodput_delay_scatter{suffix}",
                f"Goodput against the 95th percentile of the sojourn time{way}, a mark per run",
                partial(self.scatter, direction),
            )
            yield Drawing(f"goodput_bars{suffix}", f"Goodput by queue{way}", partial(self.bars, direction=direction))
        if any(run.queue_series() is not None for run in self._results.runs):
            band = "; the median of the repeats in a band of their range" if repeats > 1 else ""
            yield Drawing("sojourn_over_time", f"Mean sojourn time over time{band}", self.timeseries)
            yield Drawing("goodput_over_time", f"Goodput of all flows over time{band}", self.goodput)

    def save_all(self, staging: Staging) -> list[Path]:
        """Stages every figure that can be drawn, as PNG, SVG and PDF."""
        return [path for one in self.drawings() for path in style.save(staging, one.name, one.draw())]
