"""Figures of an experiment's results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from sojourn.figure.air import Air
from sojourn.figure.bars import MOST_LINES, Bars, Sweep
from sojourn.figure.distributions import Distributions, Tradeoff
from sojourn.figure.filenames import DEFAULT_FORMATS, MOST_ARMS, OVER
from sojourn.figure.style import save_all
from sojourn.figure.timeseries import Timeseries, WindowsOverTime, windows_of
from sojourn.files.storage import Staging, file_name
from sojourn.frame.metrics import drawn_queues, overview_metrics
from sojourn.frame.swept import words
from sojourn.schema import DIRECTIONS


@dataclass(frozen=True)
class Drawing:
    """A figure of results: its file's name without a suffix, its caption, and the function that draws it."""

    name: str
    caption: str
    draw: Callable[..., Figure]
    """Takes ``width``, as its method."""


class Plots(Air, Bars, Distributions, Sweep, Timeseries, Tradeoff, WindowsOverTime):
    r"""The figures of results; each is a matplotlib Figure, saved with ``savefig``.

    ``width="column"`` or ``"page"`` makes a figure as wide as one or both columns of a paper (3.5 and 7.16 inches): in
    LaTeX, ``\includegraphics{cdf.pdf}`` without scaling keeps its letters at 8 and 9 points. An axis is logarithmic if
    arms differ by more than a factor of eight (``style.LOG_FROM``), so that small values remain visible.

    ``queue`` is one of ``Results.queues``: ``"down"`` or ``"up"``; with several links ``"home/down"`` and so on,
    where ``"down"`` and ``"up"`` are those of the first link under test. ``link`` is the name of one that is Wi-Fi, by
    default the first.

    A name that the results do not have raises ValueError, a figure of what was not recorded ``NotRecordedError``, which
    is one too: series need ``[record] series``, what is on the air ``[record] medium``.
    """

    def __repr__(self) -> str:
        own = vars(Plots)
        names = ", ".join(name for name in dir(self) if not name.startswith("_") and name not in own)
        return f"<Plots: {names}>"

    def drawings(self) -> Iterator[Drawing]:
        """The figures drawn by default: the overviews and, with few arms, those per arm."""
        yield from self.overviews()
        if len(self._results.arms) <= MOST_ARMS:
            yield from self.per_arm()

    def overviews(self) -> Iterator[Drawing]:
        """The overviews: metrics over every swept key or, without a sweep, beside each other."""
        results = self._results
        swept: dict[str, set[str]] = {}
        for key, value in ((key, value) for arm in results.arms for key, value in arm.set.items()):
            swept.setdefault(key, set()).add(str(value))
        called = words(list(swept))
        for key in swept:
            others = len(results.arms) / len(swept[key])
            if len(swept[key]) < 2 or others > MOST_LINES:
                continue
            for metric, queue in overview_metrics(results):
                suffix, way = _way(queue)
                yield Drawing(
                    file_name(f"{OVER}{called[key]}_{metric.name}{suffix}"),
                    f"{metric.words[:1].upper() + metric.words[1:]} over {called[key]}{way}",
                    partial(self.over, key, metric.name, queue),
                )
        if not swept and results.arms:
            yield Drawing("overview", "Delay, goodput and application quality", self.overview)

    def per_arm(self) -> Iterator[Drawing]:
        """The figures with a line, box or mark per arm."""
        results = self._results
        repeats = max((len(arm.runs) for arm in results.arms), default=0)
        recorded = any(run.queue_series() is not None for run in results.runs)
        band = "; the median of the repeats in a band of their range" if repeats > 1 else ""
        sigma = "; ellipses are one standard deviation over the repeats" if repeats > 2 else ""
        for link in self._wifi_links()[:1]:
            caption = "Airtime of Wi-Fi stations, collisions and silence"
            yield Drawing("airtime", caption, partial(self.airtime, link))
            yield from self._of_cell(link)
        for queue in drawn_queues(results):
            end, way = _way(queue)
            figures: list[tuple[str, str, Callable[..., Figure]]] = [
                ("sojourn_cdf", "Distribution of the sojourn time{}", self.cdf),
                ("sojourn_box", "Sojourn time by queue{}", self.box),
                (
                    "goodput_delay_ellipse",
                    f"Goodput against mean sojourn time{{}}: better is up and to the right{sigma}",
                    self.ellipse,
                ),
                (
                    "goodput_delay_scatter",
                    "Goodput against the 95th percentile of the sojourn time{}, a mark per run",
                    self.scatter,
                ),
            ]
            if recorded:
                figures.append(("sojourn_over_time", f"Mean sojourn time over time{{}}{band}", self.timeseries))
            for name, caption, draw in figures:
                yield Drawing(f"{name}{end}", caption.format(way), partial(draw, queue=queue))
        if recorded and any(windows_of(run) for run in results.runs[:1]):
            caption = "Congestion windows over time, the first run of every queue"
            yield Drawing("windows_over_time", caption, self.windows)
        for direction in results.directions:
            end, way = _way(direction)
            yield Drawing(f"goodput_bars{end}", f"Goodput by queue{way}", partial(self.bars, queue=direction))
            if recorded:
                caption = f"Goodput of all flows over time{way}{band}"
                yield Drawing(f"goodput_over_time{end}", caption, partial(self.goodput, direction=direction))

    def _of_cell(self, link: str) -> Iterator[Drawing]:
        """The figures of the stations of a Wi-Fi link; from what was on the air, if that was recorded."""
        runs = self._results.runs
        stations = [station for run in runs for station in run.summary["links"][link]["stations"].values()]
        recorded = any(run.medium() is not None for run in runs)
        for direction in DIRECTIONS:
            if all(station[direction]["aggregate_frames"] is None for station in stations):
                continue
            end, way = _way(direction)
            latency = partial(self.station_latency, link, direction)
            yield Drawing(f"station_latency{end}", f"Latency of the stations over Wi-Fi{way}", latency)
            if recorded:
                frames = partial(self.aggregates, link, direction)
                yield Drawing(f"aggregates{end}", f"Frames per transmission, by station{way}", frames)
        if recorded:
            caption = "Who waits, sends and collides: 200 ms of the first run of every queue"
            yield Drawing("timeline", caption, partial(self.timeline, link))

    def save_all(
        self, staging: Staging, formats: Sequence[str] = DEFAULT_FORMATS, width: str | None = None
    ) -> list[Path]:
        """Stages every figure of ``drawings`` in each format; nothing if there are none."""
        if not formats:
            return []
        return save_all(staging, [(one.name, partial(one.draw, width=width)) for one in self.drawings()], formats)


def _way(queue: str) -> tuple[str, str]:
    """The end of a file's name, and of its caption, for a direction or a queue of a network."""
    if "/" in queue:
        return file_name(f"_{queue}"), f", queue {queue}"
    return ("", "") if queue == "down" else ("_up", ", upward direction")
