"""Sojourn time, goodput and congestion windows over simulated time."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from sojourn.figure import style
from sojourn.figure.armpanels import ArmPanels, explain
from sojourn.figure.style import COLORS, OfResults, Width
from sojourn.frame import series
from sojourn.frame.arrow import numbers
from sojourn.frame.metrics import metric_called
from sojourn.frame.results import Arm, Direction, Results, Run
from sojourn.frame.statistics import FloatArray, mean_interval

MOST_FLOWS = len(COLORS)
MOST_PANELS = 6
RECOVERY = 3  # from this state on lost segments are repaired


class NotRecordedError(ValueError):
    """The experiment did not record the data of a figure."""


Middle = Literal["median", "mean"]
"""What the line shows: the median of the repeats in a band of their range, or their mean in a band of its 95 %
confidence interval."""


def _figure(
    results: Results,
    read: Callable[[Run], series.Series | None],
    factor: float,
    label: str,
    middle: Middle,
    width: Width | None,
    direction: str,
    *notes: str,
) -> Figure:
    over_repeats = mean_over_repeats if middle == "mean" else median_over_repeats
    band = {"mean": "mean, in the band of its 95 % interval", "median": "median, in the band of all repeats"}[middle]
    with style.applied():
        page = ArmPanels(results.arms, width)
        axes = page.plots[0]
        found = [_aligned(arm, read) for arm in results.arms]
        bands = [over_repeats(values * factor) for _, values in found]
        typical = [float(np.nanmedian(line)) if not np.isnan(line).all() else 0.0 for _, line, _ in bands]
        is_log = style.wants_log(typical)
        # An interval may end below zero, where no value can be.
        floor = 0.0
        if is_log:
            # A tenth of the least typical value, at most four decades below the top.
            top = max(float(np.nanmax(high)) for _, _, high in bands if not np.isnan(high).all())
            floor = max(min(value for value in typical if value > 0.0) / 10, top / 1e4)
        for plot, name, look, (arm,) in page.lines():
            (t_s, values), ends = found[arm], [np.maximum(one, floor) for one in bands[arm]]
            style.draw_line(plot, t_s, ends, look, name, band=len(values) > 1)
            plot.margins(x=0)
        below = ""
        if is_log:
            axes.set_ylim(floor, axes.get_ylim()[1])
            style.log_axis(axes, "y")
            if any((line < floor).any() for _, line, _ in bands):
                below = "at the lower end: that or less"
        else:
            style.from_zero(axes)
        shown = band if any(len(arm.runs) > 1 for arm in results.arms) else ""
        explain(page.drawn, page.plots, "time [s]", label, direction, shown, below, *notes)
        page.legend()
        return page.drawn


def mean_over_repeats(values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(lower end, mean, upper end) of the mean's interval in each bin; NaN if no repeat has a value."""
    intervals = [mean_interval(column) for column in values.T]
    low, line, high = np.array([(one.low, one.middle, one.high) for one in intervals]).T
    return low, line, high


def median_over_repeats(values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(minimum, median, maximum) of each bin; NaN if no repeat has a value."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="All-NaN", category=RuntimeWarning)
        low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
        return low, np.nanmedian(values, axis=0), high


def _aligned(arm: Arm, read: Callable[[Run], series.Series | None]) -> tuple[FloatArray, FloatArray]:
    """(times, a row of values per repeat) of an arm."""
    found = [one for run in arm.runs if (one := read(run)) is not None]
    if not found:
        raise NotRecordedError('no time series was recorded; ask for one with [record] series = "100 ms"')
    return series.aligned(found)


class Timeseries(OfResults):
    """Sojourn time and goodput over time."""

    def timeseries(self, middle: Middle = "median", queue: str = "down", *, width: Width | None = None) -> Figure:
        """Sojourn time over time, repeats combined.

        ``"median"`` draws the median of the repeats in a band of their range, ``"mean"`` their mean in a band of its
        95 % confidence interval.
        """
        results, queue = self._results, self._checked_queue(queue)
        read = partial(series.sojourn, queue=queue)
        return _figure(results, read, 1.0, "sojourn time [ms]", middle, width, style.way(results, queue))

    def goodput(
        self, middle: Middle = "median", direction: Direction = "down", *, width: Width | None = None
    ) -> Figure:
        """Goodput of all flows together over time; ``middle`` as for ``timeseries``."""
        results, read = self._results, partial(series.goodput, direction=direction)
        where = style.where(results, metric_called("goodput_bps"), direction)
        late = "what waited behind a lost segment counts when that arrives"
        return _figure(results, read, 1e-6, "goodput [Mbit/s]", middle, width, where, late)


class Windows(NamedTuple):
    """A flow's congestion state at the ends of bins."""

    name: str
    t_s: FloatArray
    cwnd: FloatArray
    ssthresh: FloatArray
    pacing_mbps: FloatArray
    state: FloatArray


def windows_of(run: Run) -> list[Windows]:
    """The congestion state of every flow that has a window, in the order of the file."""
    table = run.flow_series()
    if table is None:
        raise NotRecordedError('no time series was recorded; ask for one with [record] series = "100 ms"')
    flows = run.summary["flows"]
    columns = {name: numbers(table, name).reshape(-1, len(flows)) for name in _COLUMNS if name in table.column_names}
    unknown = np.full_like(columns["cwnd_segments"], np.nan)
    found = []
    for number, flow in enumerate(flows):
        cwnd = columns["cwnd_segments"][:, number]
        if not np.isnan(cwnd).all():
            t_s = columns["time_s"][:, number]
            width_s = t_s[1] - t_s[0] if len(t_s) > 1 else 0.0
            ssthresh, pacing, state = (columns.get(name, unknown)[:, number] for name in _COLUMNS[2:])
            # A flow's group, with its direction and its number if the group has others.
            alike = [one for one in flows if one["traffic"] == flow["traffic"]]
            way = f" {flow['direction']}" if len({one["direction"] for one in alike}) > 1 else ""
            name = f"{flow['name']}{way}" + (f" {flow['flow'] + 1}" if len(alike) > 1 else "")
            found.append(Windows(name, t_s + width_s, cwnd, ssthresh, pacing / 1e6, state))
    return found


_COLUMNS = ("time_s", "cwnd_segments", "ssthresh_segments", "pacing_bps", "state")


class WindowsOverTime(OfResults):
    """Congestion windows over time."""

    def windows(self, *, width: Width | None = None) -> Figure:
        """Congestion windows and pacing rates over time, the first run of every arm: a line per flow, with repairs."""
        results = self._results
        arms = results.arms[:MOST_PANELS]
        of_arms = [windows_of(arm.runs[0]) for arm in arms]
        paced = [any(not np.isnan(one.pacing_mbps).all() for one in found) for found in of_arms]
        with style.applied():
            heights = [share for paces in paced for share in ([1.7, 1.1] if paces else [1.7])]
            drawn = style.figure(7.2, 0.8 + sum(heights), width=width, rows=len(heights))
            ratios = {"height_ratios": heights}
            panels = iter(drawn.subplots(len(heights), 1, sharex=True, squeeze=False, gridspec_kw=ratios)[:, 0])
            for arm, found, paces in zip(arms, of_arms, paced, strict=True):
                axes = next(panels)
                for one, color in zip(found, COLORS, strict=False):
                    axes.plot(one.t_s, one.cwnd, color=color, label=one.name)
                    axes.plot(one.t_s, one.ssthresh, color=color, linestyle=":", linewidth=0.8)
                    repairs = one.state >= RECOVERY
                    axes.plot(one.t_s[repairs], one.cwnd[repairs], "x", color=color, markersize=4)
                axes.set_ylabel("segments", fontsize=9)
                if len(arms) > 1:
                    style.title(axes, arm.title, float(drawn.get_figwidth()))
                if paces:
                    below = next(panels)
                    for one, color in zip(found, COLORS, strict=False):
                        below.plot(one.t_s, one.pacing_mbps, color=color)
                    below.set_ylabel("Mbit/s", fontsize=9)
            for axes in drawn.axes:
                # A first slow start may end far above all that follows.
                style.from_zero(axes)
                axes.margins(x=0)
            count = max(map(len, of_arms))
            left_out = [f"the first {MOST_FLOWS} of {count} flows"] if count > MOST_FLOWS else []
            left_out += (
                [f"the first {MOST_PANELS} of {len(results.arms)} arms"] if len(results.arms) > MOST_PANELS else []
            )
            words = ["congestion window; dotted: slow start threshold; ×: losses are repaired"]
            words += ["Mbit/s: pacing rate"] if any(paced) else []
            text = style.wrapped("; ".join([*words, *left_out]), float(drawn.get_figwidth()))
            drawn.supxlabel("time [s]\n" + text, fontsize=8)
            style.legend(drawn, drawn.axes[0])
            return drawn
