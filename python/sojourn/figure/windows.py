"""The congestion windows and pacing rates of flows over time, with their thresholds and losses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from sojourn.figure.of_results import OfResults
from sojourn.figure.style import COLORS, Width, figure, from_zero, legend, style, title, wrapped
from sojourn.figure.timeseries import NotRecordedError
from sojourn.frame.arrow import numbers
from sojourn.frame.results import Run
from sojourn.frame.statistics import FloatArray
from sojourn.schema import Flow

MOST_FLOWS = len(COLORS)
"""Flows that are drawn, the first of the file with a window."""
MOST_PANELS = 6
"""Arms that are drawn, a panel each."""
RECOVERY = 3
"""From this state on lost segments are repaired."""


class Windows(NamedTuple):
    """A flow's congestion state at the ends of bins."""

    name: str
    t_s: FloatArray
    cwnd: FloatArray
    ssthresh: FloatArray
    pacing_mbps: FloatArray
    state: FloatArray


def windows_of(run: Run) -> list[Windows]:
    """The congestion state of every flow that has a window, in the order of the file.

    Raises
    ------
    NotRecordedError
        The experiment has no ``[record] series``.
    """
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
            found.append(Windows(_name(run, flow), t_s + width_s, cwnd, ssthresh, pacing / 1e6, state))
    return found


_COLUMNS = ("time_s", "cwnd_segments", "ssthresh_segments", "pacing_bps", "state")


def _name(run: Run, flow: Flow) -> str:
    """A flow's group, with its direction and its number if the group has others."""
    alike = [one for one in run.summary["flows"] if one["traffic"] == flow["traffic"]]
    direction = f" {flow['direction']}" if len({one["direction"] for one in alike}) > 1 else ""
    return f"{flow['name']}{direction}" + (f" {flow['flow'] + 1}" if len(alike) > 1 else "")


class WindowsOverTime(OfResults):
    """Congestion windows over time."""

    def windows(self, *, width: Width | None = None) -> Figure:
        """Congestion windows and pacing rates over time, the first run of every arm: a line per flow, with repairs."""
        results = self._results
        arms = results.arms[:MOST_PANELS]
        of_arms = [windows_of(arm.runs[0]) for arm in arms]
        paced = [any(not np.isnan(one.pacing_mbps).all() for one in found) for found in of_arms]
        with style():
            heights = [share for paces in paced for share in ([1.7, 1.1] if paces else [1.7])]
            drawn = figure(7.2, 0.8 + sum(heights), width=width, rows=len(heights))
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
                    title(axes, arm.title, float(drawn.get_figwidth()))
                if paces:
                    below = next(panels)
                    for one, color in zip(found, COLORS, strict=False):
                        below.plot(one.t_s, one.pacing_mbps, color=color)
                    below.set_ylabel("Mbit/s", fontsize=9)
            for axes in drawn.axes:
                # A first slow start may end far above all that follows.
                from_zero(axes)
                axes.margins(x=0)
            count = max(map(len, of_arms))
            left_out = [f"the first {MOST_FLOWS} of {count} flows"] if count > MOST_FLOWS else []
            left_out += (
                [f"the first {MOST_PANELS} of {len(results.arms)} arms"] if len(results.arms) > MOST_PANELS else []
            )
            words = ["congestion window; dotted: slow start threshold; ×: losses are repaired"]
            words += ["Mbit/s: pacing rate"] if any(paced) else []
            text = wrapped("; ".join([*words, *left_out]), float(drawn.get_figwidth()))
            drawn.supxlabel("time [s]\n" + text, fontsize=8)
            legend(drawn, drawn.axes[0])
            return drawn
