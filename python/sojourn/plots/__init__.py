"""Figures of an experiment's results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from sojourn.plots import distributions, style, timeseries

if TYPE_CHECKING:
    from sojourn.results import Direction, Results
    from sojourn.storage import Staging


class Plots:
    """The figures of some results; each is a matplotlib Figure, saved with ``savefig``."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def cdf(self, direction: Direction = "down") -> Figure:
        """Distribution function of the sojourn time, one line per arm, repeats together."""
        return distributions.cdf(self._results, direction)

    def box(self, direction: Direction = "down") -> Figure:
        """Sojourn time per arm: box from p25 to p75, whiskers at p10 and p90, median, mean."""
        return distributions.box(self._results, direction)

    def timeseries(self) -> Figure:
        """Sojourn time over time, the median of the repeats.

        Raises
        ------
        NotRecordedError
            The experiment has no ``[record] series``.
        """
        return timeseries.sojourn_figure(self._results)

    def goodput(self) -> Figure:
        """Goodput of all flows together over time, the median of the repeats.

        Raises
        ------
        NotRecordedError
            The experiment has no ``[record] series``.
        """
        return timeseries.goodput_figure(self._results)

    def save_all(self, staging: Staging) -> list[Path]:
        """Stages every figure that can be drawn, as PNG, SVG and PDF."""
        written = []
        for direction in self._results.directions:
            suffix = "" if direction == "down" else "_up"
            written += style.save(staging, f"sojourn_cdf{suffix}", self.cdf(direction))
            written += style.save(staging, f"sojourn_box{suffix}", self.box(direction))
        if any(run.queue_series() is not None for run in self._results.runs):
            written += style.save(staging, "sojourn_over_time", self.timeseries())
            written += style.save(staging, "goodput_over_time", self.goodput())
        return written
