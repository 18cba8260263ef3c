"""Sojourn time and goodput over simulated time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import numpy as np
from matplotlib.figure import Figure

from sojourn.figure.of_results import OfResults
from sojourn.figure.style import (
    Width,
    figure,
    from_zero,
    legend,
    log_axis,
    looks_of,
    note,
    style,
    wants_log,
    way,
    where,
)
from sojourn.frame import series
from sojourn.frame.metrics import metric_called
from sojourn.frame.results import Arm, Direction, Results, Run
from sojourn.frame.series import Series
from sojourn.frame.statistics import FloatArray, mean_interval


class NotRecordedError(ValueError):
    """The experiment did not record the data of a figure."""


Middle = Literal["median", "mean"]
"""What the line shows: the median of the repeats in a band of their range, or their mean in a band of its 95 %
confidence interval."""


def _figure(
    results: Results,
    read: Callable[[Run], Series | None],
    factor: float,
    label: str,
    middle: Middle,
    width: Width | None,
    direction: str,
    *notes: str,
) -> Figure:
    over_repeats = _mean_over_repeats if middle == "mean" else _median_over_repeats
    band = {"mean": "mean, in the band of its 95 % interval", "median": "median, in the band of all repeats"}[middle]
    with style():
        drawn = figure(width=width)
        axes = drawn.add_subplot()
        found = [_aligned(arm, read) for arm in results.arms]
        bands = [over_repeats(values * factor) for _, values in found]
        typical = [float(np.nanmedian(line)) if not np.isnan(line).all() else 0.0 for _, line, _ in bands]
        is_log = wants_log(typical)
        # An interval may end below zero, where no value can be.
        floor = _floor(typical, bands) if is_log else 0.0
        looks = looks_of([arm.discipline for arm in results.arms])
        for arm, look, (t_s, values), band_of in zip(results.arms, looks, found, bands, strict=True):
            low, line, high = (np.maximum(one, floor) for one in band_of)
            axes.plot(t_s, line, label=arm.title, color=look.color, linestyle=look.dashes)
            if len(values) > 1:
                axes.fill_between(t_s, low, high, color=look.color, alpha=0.15, linewidth=0)
        axes.set(xlabel="time [s]", ylabel=label)
        below = ""
        if is_log:
            axes.set_ylim(floor, axes.get_ylim()[1])
            log_axis(axes, "y")
            if any((line < floor).any() for _, line, _ in bands):
                below = "at the lower end: that or less"
        else:
            from_zero(axes)
        axes.margins(x=0)
        note(axes, direction, band if any(len(arm.runs) > 1 for arm in results.arms) else "", below, *notes)
        legend(drawn, axes)
        return drawn


def _floor(typical: Sequence[float], bands: Sequence[tuple[FloatArray, FloatArray, FloatArray]]) -> float:
    """The lower end of a logarithmic axis: a tenth of the least typical value, at most four decades below the top."""
    top = max(float(np.nanmax(high)) for _, _, high in bands if not np.isnan(high).all())
    return max(min(value for value in typical if value > 0.0) / 10, top / 1e4)


def _mean_over_repeats(values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(lower end, mean, upper end) of the mean's interval in each bin; NaN if no repeat has a value."""
    intervals = [mean_interval(column) for column in values.T]
    low, line, high = np.array([(one.low, one.middle, one.high) for one in intervals]).T
    return low, line, high


def _median_over_repeats(values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(minimum, median, maximum) of each bin; NaN if no repeat has a value."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="All-NaN", category=RuntimeWarning)
        low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
        return low, np.nanmedian(values, axis=0), high


def _aligned(arm: Arm, read: Callable[[Run], Series | None]) -> tuple[FloatArray, FloatArray]:
    """(bins, one row of values per repeat) of an arm."""
    found = [one for run in arm.runs if (one := read(run)) is not None]
    if not found:
        raise NotRecordedError('no time series was recorded; ask for one with [record] series = "100 ms"')
    bins = max((one.t_s for one in found), key=len)
    rows = np.full((len(found), len(bins)), np.nan)
    for row, one in zip(rows, found, strict=True):
        row[: len(one.value)] = one.value
    return bins, rows


class Timeseries(OfResults):
    """Sojourn time and goodput over time."""

    def timeseries(self, middle: Middle = "median", queue: str = "down", *, width: Width | None = None) -> Figure:
        """Sojourn time over time, repeats combined.

        ``"median"`` draws the median of the repeats in a band of their range, ``"mean"`` their mean in a band of its
        95 % confidence interval.
        """
        results = self._results
        queue = self._checked_queue(queue)
        return _figure(
            results,
            partial(series.sojourn, queue=queue),
            1.0,
            "sojourn time [ms]",
            middle,
            width,
            way(results, queue),
        )

    def goodput(
        self, middle: Middle = "median", direction: Direction = "down", *, width: Width | None = None
    ) -> Figure:
        """Goodput of all flows together over time; ``middle`` as for ``timeseries``."""
        results = self._results
        return _figure(
            results,
            partial(series.goodput, direction=direction),
            1e-6,
            "goodput [Mbit/s]",
            middle,
            width,
            where(results, metric_called("goodput_bps"), direction),
            "what waited behind a lost segment counts when that arrives",
        )
