"""The congestion windows of flows over time, with their thresholds and losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from sojourn.figure.style import COLORS, Width, figure, legend, style, title, wrapped
from sojourn.figure.timeseries import NotRecordedError
from sojourn.frame.statistics import FloatArray

if TYPE_CHECKING:
    from sojourn.frame.results import Results, Run

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
    columns = {name: table[name].to_numpy().reshape(-1, len(flows)) for name in _COLUMNS if name in table.column_names}
    unknown = np.full_like(columns["cwnd_segments"], np.nan)
    found = []
    for number, flow in enumerate(flows):
        cwnd = columns["cwnd_segments"][:, number]
        if not np.isnan(cwnd).all():
            numbered = f"{flow['name']} {flow['flow'] + 1}" if _has_several(run, flow["traffic"]) else flow["name"]
            ssthresh, state = (columns.get(name, unknown)[:, number] for name in ("ssthresh_segments", "state"))
            found.append(Windows(numbered, columns["time_s"][:, number], cwnd, ssthresh, state))
    return found


_COLUMNS = ("time_s", "cwnd_segments", "ssthresh_segments", "state")


def _has_several(run: Run, traffic: int) -> bool:
    return sum(flow["traffic"] == traffic for flow in run.summary["flows"]) > 1


def windows(results: Results, width: Width | None = None) -> Figure:
    """The first run of every arm, a panel each: a line per flow, its threshold dotted, bins with repairs marked."""
    arms = results.arms[:MOST_PANELS]
    with style():
        drawn = figure(7.2, 0.8 + 1.7 * len(arms), width=width)
        panels = np.atleast_1d(drawn.subplots(len(arms), 1, sharex=True))
        count = 0
        for axes, arm in zip(panels, arms, strict=True):
            found = windows_of(arm.runs[0])
            count = max(count, len(found))
            for one, color in zip(found, COLORS, strict=False):
                axes.plot(one.t_s, one.cwnd, color=color, label=one.name)
                axes.plot(one.t_s, one.ssthresh, color=color, linestyle=":", linewidth=0.8)
                repairs = one.state >= RECOVERY
                axes.plot(one.t_s[repairs], one.cwnd[repairs], "x", color=color, markersize=4)
            # A first slow start may end far above all that follows.
            axes.set_ylim(bottom=0.0)
            axes.margins(x=0)
            if len(arms) > 1:
                title(axes, arm.title, float(drawn.get_figwidth()))
        left_out = [f"the first {MOST_FLOWS} of {count} flows"] if count > MOST_FLOWS else []
        left_out += [f"the first {MOST_PANELS} of {len(results.arms)} arms"] if len(results.arms) > MOST_PANELS else []
        words = ["congestion window; dotted: slow start threshold; ×: losses are repaired", *left_out]
        drawn.supxlabel("time [s]\n" + wrapped("; ".join(words), float(drawn.get_figwidth())), fontsize=8)
        drawn.supylabel("segments", fontsize=9)
        legend(drawn, panels[0])
        return drawn
