"""A run as an animation: queue, delay and goodput over time, while it goes on."""

from __future__ import annotations

import math
from collections.abc import Generator
from itertools import repeat
from typing import Any

from matplotlib.animation import FuncAnimation
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from sojourn.figure import style

MOST_FLOWS = len(style.COLORS)
MOST_FRAMES = 2000  # each is a picture within the page


class Animation(FuncAnimation):
    """An animation that a notebook shows with buttons."""

    def _repr_html_(self) -> str:
        return str(self.to_jshtml())


class _Lines:
    """Lines over time, one for each of several names."""

    def __init__(self, axes: Axes, head: str, names: list[str]) -> None:
        self.axes = axes
        self.times: list[float] = []
        self.values: list[list[float]] = [[] for _ in names]
        looks = zip(names, style.looks(len(names)), strict=True)
        self.lines: list[Line2D] = [axes.plot([], [], color=look.color, label=name)[0] for name, look in looks]
        axes.set_ylabel(head)
        if 1 < len(names) <= 6:
            axes.legend(loc="upper left", ncols=len(names))

    def add(self, at: float, values: list[float], begin: float, end: float) -> None:
        self.times.append(at)
        for line, known, value in zip(self.lines, self.values, values, strict=True):
            known.append(value)
            line.set_data(self.times, known)
        shown = [value for known in self.values for value in known if not math.isnan(value)]
        self.axes.set_xlim(begin, end)
        self.axes.set_ylim(0, 1.1 * max(shown, default=0.0) or 1.0)


def animation(session: Any, every_s: float, window_s: float | None, fps: float, width: style.Width) -> Animation:
    """The rest of the run of a ``Session``, which it drives to its end; see ``Session.animate``."""
    left = math.ceil((session.end_s - session.now_s) / every_s)
    first = session.observe()
    begin = session.now_s
    with style.applied():
        page = style.figure(width_in=7.2, height_in=6.0, width=width)
        axes = page.subplots(3, 1, sharex=True)
        queues = list(first.queues)
        panels = [
            _Lines(axes[0], "queue [packets]", queues),
            _Lines(axes[1], "sojourn time [ms]", queues),
            _Lines(axes[2], "goodput [Mbit/s]", [f"flow {n}" for n in range(min(len(first.flows), MOST_FLOWS))]),
        ]
        axes[2].set_xlabel("time [s]")

    def draw(seen: Any) -> list[Any]:
        if seen is not None:
            now = seen.now_s
            end = session.end_s if window_s is None else max(now, begin + window_s)
            values = (
                [float(queue.backlog_packets) for queue in seen.queues.values()],
                [queue.sojourn_mean_ms for queue in seen.queues.values()],
                [flow.goodput_bps / 1e6 for flow in seen.flows[:MOST_FLOWS]],
            )
            for panel, value in zip(panels, values, strict=True):
                panel.add(now, value, begin if window_s is None else end - window_s, end)
        return [line for panel in panels for line in panel.lines]

    def steps() -> Generator[Any, None, None]:
        for _ in repeat(None, left):
            session.step(every_s)
            yield session.observe()

    return Animation(
        page, draw, frames=steps, init_func=lambda: draw(None), interval=1000 / fps, save_count=left, repeat=False
    )
