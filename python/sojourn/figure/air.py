"""Wi-Fi's medium and stations: shares of its time, sizes of aggregates, latencies per station, who sends when."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from sojourn.figure import style
from sojourn.figure.filenames import WIDTHS_IN
from sojourn.figure.names import name_arms
from sojourn.figure.style import COLORS, OfResults, Width
from sojourn.figure.timeseries import NotRecordedError
from sojourn.frame.results import Arm, Direction, Results, Run
from sojourn.frame.series import ACCESS_POINT, Transmissions, transmissions
from sojourn.frame.statistics import pooled_curve
from sojourn.schema import Link, Station

MOST_NAMED = 8  # stations with a colour of their own; the others are drawn together
COLLISIONS, SILENCE = "#888888", "#FFFFFF"
MOST_STATIONS = len(COLORS)
MOST_PANELS = 6
SHOWN_S = 0.2
_WAITING = "#DDDDDD"
# No station has a pattern, whatever its colour.
_UNANSWERED: dict[str, Any] = {"facecolor": "white", "edgecolor": "#333333", "hatch": "xxxxx"}
_PANEL_IN, _LEAST_PANEL_IN = 2.9, 1.7
_SHOWN = 0.999  # the share up to which a distribution of latencies is drawn


def _share(link: Link, names: Sequence[str]) -> float:
    return sum(link["stations"][name]["airtime_share"] for name in names if name in link["stations"])


def _draw_row(axes: Axes, row: int, sent: Transmissions, first_s: float, colors: dict[str, str]) -> None:
    """A node's transmissions: pale while it waits, in the station's colour while it sends."""

    def bars(which: Transmissions, height: float, **look: object) -> None:
        ends = zip(which.start_s, which.end_s, strict=True)
        spans = [((start - first_s) * 1e3, (end - start) * 1e3) for start, end in ends]
        axes.broken_barh(spans, (row - height / 2, height), linewidth=0, **look)  # type: ignore[arg-type]

    bars(sent.waits(), 0.3, facecolors=_WAITING)
    for name, color in colors.items():
        bars(sent.where("answered").of_station(name), 0.76, facecolors=color)
    bars(sent.where("unanswered"), 0.76, **_UNANSWERED)
    bars(sent.where("collision"), 0.76, facecolors=COLLISIONS, hatch="////", edgecolor="white")


def _left_out(results: Results, link: str) -> str:
    """A line on the queues and stations that are not drawn; empty if all are."""
    arms, names = len(results.arms), len(stations(results.runs[0], link))
    parts = [f"the first {MOST_PANELS} of {arms} queues"] if arms > MOST_PANELS else []
    parts += [f"the first {MOST_STATIONS} of {names} stations"] if names > MOST_STATIONS else []
    return f"\n{' and '.join(parts)}; summary.csv has all" if parts else ""


def stations(run: Run, link: str) -> Mapping[str, Station]:
    """The stations of a link, by name."""
    return run.summary["links"][link]["stations"]


def _recorded(arm: Arm, run: int, link: str) -> Transmissions:
    found = transmissions(arm.runs[run], link)
    if found is None:
        raise NotRecordedError("what is on the air was not recorded; put medium = true into [record]")
    return found


class Air(OfResults):
    """The stations of a Wi-Fi medium."""

    def airtime(self, link: str | None = None, *, width: Width | None = None) -> Figure:
        """What a Wi-Fi medium, by default the first, was used for: bars of its stations, of collisions, of silence."""
        results = self._results
        link = self._wifi_link(link)
        arms = results.arms
        # A sweep may change which stations there are.
        names = list(dict.fromkeys(name for arm in arms for name in arm.runs[0].summary["links"][link]["stations"]))
        named, others = names[:MOST_NAMED], names[MOST_NAMED:]
        with style.applied():
            drawn = style.figure(width_in=style.width_for(len(arms)), width=width)
            axes = drawn.add_subplot()
            below = [0.0] * len(arms)
            summaries: list[list[Any]] = [[run.summary for run in arm.runs] for arm in arms]

            def stack(label: str, color: str, share: Callable[[Link], float], hatch: str = "") -> None:
                heights = [sum(share(one["links"][link]) for one in of) / len(of) for of in summaries]
                axes.bar(
                    range(len(arms)), heights, 0.6, below, label=label, color=color, edgecolor="#333333", linewidth=0.5,
                    hatch=hatch,
                )  # fmt: skip
                below[:] = [low + height for low, height in zip(below, heights, strict=True)]

            for name, color in zip(named, COLORS, strict=False):
                stack(name, color + "AA", lambda one, name=name: _share(one, [name]))  # type: ignore[misc]
            if others:
                stack(f"{len(others)} more stations", COLORS[-1] + "AA", lambda one: _share(one, others))
            stack("collisions", COLLISIONS, lambda one: one["medium"]["collision_share"], "//")
            stack("nobody sends", SILENCE, lambda one: one["medium"]["idle_share"])
            axes.set_ylim(0.0, 1.0)
            axes.grid(axis="x", visible=False)
            name_arms([axes], [arm.title for arm in arms], drawn.get_figwidth() - 0.7)
            style.name_y(axes, "share of the time")
            repeated = any(len(arm.runs) > 1 for arm in arms)
            style.note(axes, "mean of the repeats" if repeated else "")
            style.legend(drawn, axes)
            return drawn

    def station_latency(
        self, link: str | None = None, direction: Direction = "down", *, width: Width | None = None
    ) -> Figure:
        """Distribution of the latency over a Wi-Fi link, queueing and contention included: a line per station.

        A panel per arm, up to six; between the quantiles of the summary a line is straight.
        """
        drawn, link, panels = self._panels(link, width)
        with style.applied():
            known = []
            for arm, axes, colors in panels:
                for name, color in colors.items():
                    of_runs = [stations(run, link)[name][direction]["latency_ms"] for run in arm.runs]
                    values, shares = pooled_curve(of_runs)
                    seen = shares <= _SHOWN
                    axes.plot(values[seen], shares[seen], color=color, label=name)
                    known += [float(np.interp(0.5, shares, values))] if values.size else []
                axes.set_ylim(0.0, 1.0)
            for _, axes, _ in panels:
                if style.wants_log(known):
                    style.log_axis(axes, "x")
                else:
                    axes.set_xlim(left=0.0)
            drawn.axes[0].set_ylabel("share of packets")
            return self._named(drawn, f"latency over the link, {direction} [ms]", link)

    def aggregates(
        self, link: str | None = None, direction: Direction = "down", *, width: Width | None = None
    ) -> Figure:
        """Distribution of the frames per transmission on Wi-Fi: a line per station, a panel per arm, up to six."""
        drawn, link, panels = self._panels(link, width)
        with style.applied():
            for arm, axes, colors in panels:
                sent = [_recorded(arm, index, link) for index in range(len(arm.runs))]
                for name, color in colors.items():
                    frames = np.concatenate([one.frames_of(name, direction) for one in sent])
                    if frames.size:
                        sizes, counts = np.unique(frames, return_counts=True)
                        shares = np.concatenate([[0.0], np.cumsum(counts) / frames.size])
                        axes.step(np.concatenate([[sizes[0]], sizes]), shares, where="post", color=color, label=name)
                axes.set_ylim(0.0, 1.02)
                axes.set_xlim(left=0.0)
            drawn.axes[0].set_ylabel("share of transmissions")
            return self._named(drawn, f"frames per transmission, {direction}", link)

    def _panels(
        self, link: str | None, width: Width | None
    ) -> tuple[Figure, str, list[tuple[Arm, Axes, dict[str, str]]]]:
        """The name of a link, and a row of panels with common axes: of each its arm and the stations' colours."""
        link = self._wifi_link(link)
        arms = self._results.arms[:MOST_PANELS]
        colors = dict(zip(stations(arms[0].runs[0], link), COLORS, strict=False))
        with style.applied():
            most = len(arms) if width is None else int(WIDTHS_IN[width] / _LEAST_PANEL_IN)
            rows = math.ceil(len(arms) / most)
            columns = math.ceil(len(arms) / rows)
            drawn = style.figure(max(4.2, 0.7 + _PANEL_IN * len(arms)), 2.3 * rows + 0.9, width=width, rows=rows)
            panels = style.multiples(drawn, len(arms), columns, sharey=True)
            for arm, axes in zip(arms, panels, strict=True):
                style.title(axes, arm.title, float(drawn.get_figwidth()) / columns)
                axes.xaxis.set_tick_params(labelbottom=True)
        return drawn, link, [(arm, axes, colors) for arm, axes in zip(arms, panels, strict=True)]

    def _named(self, drawn: Figure, label: str, link: str) -> Figure:
        """A row of panels with the label of their common axis and a legend."""
        drawn.supxlabel(label + _left_out(self._results, link), fontsize=9)
        style.legend(drawn, drawn.axes[0])
        return drawn

    def timeline(
        self,
        link: str | None = None,
        *,
        from_s: float | None = None,
        for_s: float = SHOWN_S,
        width: Width | None = None,
    ) -> Figure:
        """Who waits, sends and collides: the first run of up to six arms, by default 200 ms in its middle."""
        results = self._results
        link = self._wifi_link(link)
        arms = results.arms[:MOST_PANELS]
        colors = dict(zip(stations(arms[0].runs[0], link), COLORS, strict=False))
        rows = [ACCESS_POINT, *colors]
        with style.applied():
            drawn = style.figure(7.2, 0.7 + len(arms) * (0.45 + 0.24 * len(rows)), width=width, rows=len(arms))
            panels = np.atleast_1d(drawn.subplots(len(arms), 1, sharex=True))
            first = from_s if from_s is not None else arms[0].runs[0].summary["simulated_s"] / 2 - for_s / 2
            for arm, axes in zip(arms, panels, strict=True):
                sent = _recorded(arm, 0, link).within(first, first + for_s)
                for row, name in enumerate(rows):
                    _draw_row(axes, row, sent.of_sender(name), first, colors)
                axes.set_yticks(range(len(rows)), rows)
                axes.set_ylim(len(rows) - 0.5, -0.5)
                axes.set_xlim(0.0, for_s * 1e3)
                axes.grid(axis="y", visible=False)
                if len(arms) > 1:
                    style.title(axes, arm.title, float(drawn.get_figwidth()))
            panels[-1].set_xlabel(f"time after {first:g} s [ms]{_left_out(results, link)}")
            marks = [Patch(facecolor=color, label=f"to or from {name}") for name, color in colors.items()]
            marks += [
                Patch(facecolor=_WAITING, label="waits"),
                Patch(facecolor=COLLISIONS, label="collides", hatch="////", edgecolor="white"),
                Patch(label="is not understood", **_UNANSWERED),
            ]
            drawn.legend(handles=marks, loc="outside upper center", ncols=min(4, len(marks)))
            return drawn
