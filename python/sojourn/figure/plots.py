"""Figures of an experiment's results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from sojourn.figure import air, airtime, bars, distributions, filenames, sweep, timeseries, tradeoff, windows
from sojourn.figure.filenames import DEFAULT_FORMATS, MOST_ARMS, OVER
from sojourn.figure.gains import Panel, gains
from sojourn.figure.style import Width, save_all
from sojourn.figure.timeseries import Middle
from sojourn.files.storage import file_name
from sojourn.frame.metrics import drawn_queues, has_queue, overview_metrics
from sojourn.frame.swept import words
from sojourn.schema import DIRECTIONS

if TYPE_CHECKING:
    from sojourn.files.storage import Staging
    from sojourn.frame.results import Direction, Results


@dataclass(frozen=True)
class Drawing:
    """A figure of results: its file's name without a suffix, its caption, and the function that draws it."""

    name: str
    caption: str
    draw: Callable[[], Figure]


class Plots:
    r"""The figures of results; each is a matplotlib Figure, saved with ``savefig``.

    ``width="column"`` or ``"page"`` makes a figure as wide as one or both columns of a paper (3.5 and 7.16 inches): in
    LaTeX, ``\includegraphics{cdf.pdf}`` without scaling keeps its letters at 8 and 9 points. An axis is logarithmic if
    arms differ by more than a factor of eight (``style.LOG_FROM``), so that small values remain visible.

    ``queue`` is one of ``Results.queues``: ``"down"`` or ``"up"``; with several links ``"home/down"`` and so on,
    where ``"down"`` and ``"up"`` are those of the first link under test.
    """

    def __init__(self, results: Results) -> None:
        self._results = results

    def __repr__(self) -> str:
        names = ", ".join(name for name in vars(type(self)) if not name.startswith("_"))
        return f"<Plots: {names}>"

    def cdf(self, queue: str = "down", *, width: Width | None = None) -> Figure:
        """Distribution function of the sojourn time, one line per arm, repeats combined."""
        return distributions.cdf(self._results, self._known(queue), width)

    def box(
        self,
        queue: str = "down",
        *,
        whiskers: tuple[float, float] = (10, 90),
        width: Width | None = None,
    ) -> Figure:
        """Sojourn time per arm: box from p25 to p75, median, mean; ``whiskers`` are percentiles, as (5, 95)."""
        return distributions.box(self._results, self._known(queue), whiskers, width)

    def ellipse(self, queue: str = "down", *, delay: str = "mean", width: Width | None = None) -> Figure:
        """Goodput against sojourn time, one 1-sigma ellipse over the repeats per arm (RFC 7928 §2.7).

        The delay axis runs backwards: better is up and to the right. ``delay`` is the statistic of a run's sojourn
        times, ``"mean"`` or a quantile like ``"p95"``. Fewer than three repeats give dots without an ellipse.
        """
        return tradeoff.ellipse(self._results, self._known(queue), delay, width)

    def scatter(self, queue: str = "down", *, delay: str = "p95", width: Width | None = None) -> Figure:
        """Goodput against a percentile of the sojourn time, a mark per run; axes as in ``ellipse``."""
        return tradeoff.scatter(self._results, self._known(queue), delay, width)

    def bars(self, metric: str = "goodput_bps", queue: str = "down", *, width: Width | None = None) -> Figure:
        """A metric as bars: medians over the repeats with their 95 % confidence intervals.

        ``metric`` is a column of the results table, or one of a group of flows: ``"movie.rtt_p95_ms"``, or ``"mos"`` if
        only one group has it.

        Raises
        ------
        ValueError
            There is no such metric.
        """
        return bars.bars(self._results, metric, queue, width)

    def airtime(self, link: str | None = None, *, width: Width | None = None) -> Figure:
        """What a Wi-Fi medium was used for: stacked bars of its stations, of collisions and of silence.

        ``link`` is its name; by default the first link that is Wi-Fi.

        Raises
        ------
        ValueError
            There is no such link.
        """
        return airtime.airtime(self._results, self._cell(link), width)

    def station_latency(
        self, link: str | None = None, direction: Direction = "down", *, width: Width | None = None
    ) -> Figure:
        """Distribution of the latency over a Wi-Fi link, queueing and contention included: a line per station.

        A panel per arm, up to six; between the quantiles of the summary a line is straight. ``link`` is as for
        ``airtime``.

        Raises
        ------
        ValueError
            There is no such link.
        """
        return air.latency(self._results, self._cell(link), direction, width)

    def aggregates(
        self, link: str | None = None, direction: Direction = "down", *, width: Width | None = None
    ) -> Figure:
        """Distribution of the frames per transmission on a Wi-Fi link: a line per station, a panel per arm, up to six.

        Raises
        ------
        ValueError
            There is no such link.
        NotRecordedError
            The experiment has no ``[record] medium``.
        """
        return air.aggregates(self._results, self._cell(link), direction, width)

    def timeline(
        self,
        link: str | None = None,
        *,
        from_s: float | None = None,
        for_s: float = air.SHOWN_S,
        width: Width | None = None,
    ) -> Figure:
        """Who waits, sends and collides on a Wi-Fi link: the first run of every arm, up to six, a row per node.

        By default the 200 ms in the middle of the run.

        Raises
        ------
        ValueError
            There is no such link.
        NotRecordedError
            The experiment has no ``[record] medium``.
        """
        return air.timeline(self._results, self._cell(link), from_s, for_s, width)

    def _known(self, queue: str) -> str:
        if not any(has_queue(run.summary, queue) for run in self._results.runs):
            raise ValueError(f'queue: got "{queue}"; must be one of {", ".join(self._results.queues)}')
        return queue

    def _cell(self, link: str | None) -> str:
        known = airtime.cells(self._results)
        name = link if link is not None else next(iter(known), "")
        if name not in known:
            raise ValueError(f'link: got "{name}"; must be one that is Wi-Fi: {", ".join(known) or "there is none"}')
        return name

    def over(
        self,
        key: str,
        metric: str = "sojourn_p95_ms",
        queue: str = "down",
        *,
        width: Width | None = None,
    ) -> Figure:
        """A metric (as for ``bars``) over a swept key, ``"link.rate"``: a line per queue and cell of the other keys.

        Raises
        ------
        ValueError
            The experiment does not sweep the key, or there is no such metric.
        """
        return sweep.over(self._results, key, metric, queue, width)

    def overview(self, metrics: Sequence[str] | None = None, *, width: Width | None = None) -> Figure:
        """Several metrics (as for ``bars``) beside each other, a panel each.

        By default the p95 of the sojourn time and the goodput in each direction, and the application quality: opinion
        scores of calls, load times of pages, completion times of files, rates of video.

        Raises
        ------
        ValueError
            There is no such metric.
        """
        return sweep.overview(self._results, metrics, width)

    def gains(self, headline: str, arms: Sequence[tuple[str, str]], panels: Sequence[Panel]) -> Figure:
        """Arms (label, discipline) beside each other, a panel per measure: its words, decimal places and values."""
        return gains(headline, arms, panels)

    def timeseries(self, middle: Middle = "median", queue: str = "down", *, width: Width | None = None) -> Figure:
        """Sojourn time over time, repeats combined.

        ``"median"`` draws the median of the repeats in a band of their range, ``"mean"`` their mean in a band of its
        95 % confidence interval.

        Raises
        ------
        NotRecordedError
            The experiment has no ``[record] series``.
        """
        return timeseries.sojourn_figure(self._results, middle, self._known(queue), width)

    def goodput(
        self, middle: Middle = "median", direction: Direction = "down", *, width: Width | None = None
    ) -> Figure:
        """Goodput of all flows together over time; ``middle`` as for ``timeseries``.

        Raises
        ------
        NotRecordedError
            The experiment has no ``[record] series``.
        """
        return timeseries.goodput_figure(self._results, middle, direction, width)

    def windows(self, *, width: Width | None = None) -> Figure:
        """Congestion windows and pacing rates over time, the first run of every arm: a line per flow, with repairs.

        Raises
        ------
        NotRecordedError
            The experiment has no ``[record] series``.
        """
        return windows.windows(self._results, width)

    def drawings(self) -> Iterator[Drawing]:
        """The figures drawn by default: the overviews and, with few arms, those per arm."""
        yield from self.overviews()
        if len(self._results.arms) <= MOST_ARMS:
            yield from self.per_arm()

    def overviews(self) -> Iterator[Drawing]:
        """The overviews: metrics over every swept key or, without a sweep, beside each other."""
        results = self._results
        swept = swept_values(results)
        called = words(list(swept))
        for key in swept:
            others = len(results.arms) / len(swept[key])
            if len(swept[key]) < 2 or others > sweep.MOST_LINES:
                continue
            for metric, queue in overview_metrics(results):
                suffix, way = _way(queue)
                yield Drawing(
                    file_name(f"{OVER}{called[key]}_{metric.name}{suffix}"),
                    f"{_capital(metric.words)} over {called[key]}{way}",
                    partial(self.over, key, metric.name, queue),
                )
        if not swept and results.arms:
            yield Drawing(filenames.OVERVIEW, "Delay, goodput and application quality", self.overview)

    def per_arm(self) -> Iterator[Drawing]:
        """The figures with a line, box or mark per arm."""
        repeats = max((len(arm.runs) for arm in self._results.arms), default=0)
        recorded = any(run.queue_series() is not None for run in self._results.runs)
        band = "; the median of the repeats in a band of their range" if repeats > 1 else ""
        for link in airtime.cells(self._results)[:1]:
            yield Drawing(
                filenames.AIRTIME, "Airtime of Wi-Fi stations, collisions and silence", partial(self.airtime, link)
            )
            yield from self._of_cell(link)
        for queue in drawn_queues(self._results):
            suffix, way = _way(queue)
            yield Drawing(
                f"{filenames.CDF}{suffix}", f"Distribution of the sojourn time{way}", partial(self.cdf, queue)
            )
            yield Drawing(f"{filenames.BOX}{suffix}", f"Sojourn time by queue{way}", partial(self.box, queue))
            yield Drawing(
                f"{filenames.ELLIPSE}{suffix}",
                f"Goodput against mean sojourn time{way}: better is up and to the right"
                + ("; ellipses are one standard deviation over the repeats" if repeats > 2 else ""),
                partial(self.ellipse, queue),
            )
            yield Drawing(
                f"{filenames.SCATTER}{suffix}",
                f"Goodput against the 95th percentile of the sojourn time{way}, a mark per run",
                partial(self.scatter, queue),
            )
            if recorded:
                yield Drawing(
                    f"{filenames.SOJOURN_SERIES}{suffix}",
                    f"Mean sojourn time over time{way}{band}",
                    partial(self.timeseries, queue=queue),
                )
        if recorded and any(windows.windows_of(run) for run in self._results.runs[:1]):
            caption = "Congestion windows over time, the first run of every queue"
            yield Drawing(filenames.WINDOWS, caption, self.windows)
        for direction in self._results.directions:
            suffix, way = _way(direction)
            yield Drawing(f"{filenames.BARS}{suffix}", f"Goodput by queue{way}", partial(self.bars, queue=direction))
            if recorded:
                yield Drawing(
                    f"{filenames.GOODPUT_SERIES}{suffix}",
                    f"Goodput of all flows over time{way}{band}",
                    partial(self.goodput, direction=direction),
                )

    def _of_cell(self, link: str) -> Iterator[Drawing]:
        """The figures of the stations of a Wi-Fi link; from what was on the air, if that was recorded."""
        runs = self._results.runs
        stations = [station for run in runs for station in run.summary["links"][link]["stations"].values()]
        recorded = any(run.medium() is not None for run in runs)
        for direction in DIRECTIONS:
            if all(station[direction]["aggregate_frames"] is None for station in stations):
                continue
            suffix, way = _way(direction)
            latency = partial(self.station_latency, link, direction)
            yield Drawing(f"{filenames.STATION_LATENCY}{suffix}", f"Latency of the stations over Wi-Fi{way}", latency)
            if recorded:
                aggregates = partial(self.aggregates, link, direction)
                yield Drawing(
                    f"{filenames.AGGREGATES}{suffix}", f"Frames per transmission, by station{way}", aggregates
                )
        if recorded:
            caption = "Who waits, sends and collides: 200 ms of the first run of every queue"
            yield Drawing(filenames.TIMELINE, caption, partial(self.timeline, link))

    def save_all(self, staging: Staging, formats: Sequence[str] = DEFAULT_FORMATS) -> list[Path]:
        """Stages every figure of ``drawings`` in each format; nothing if there are none."""
        if not formats:
            return []
        return save_all(staging, [(one.name, one.draw) for one in self.drawings()], formats)


def swept_values(results: Results) -> dict[str, list[str]]:
    """The swept keys and their values, in the order of the file."""
    swept: dict[str, dict[str, None]] = {}
    for arm in results.arms:
        for key, value in arm.set.items():
            swept.setdefault(key, {})[str(value)] = None
    return {key: list(values) for key, values in swept.items()}


def _way(queue: str) -> tuple[str, str]:
    """The end of a file's name, and of its caption, for a direction or a queue of a network."""
    if "/" in queue:
        return file_name(f"_{queue}"), f", queue {queue}"
    return ("", "") if queue == "down" else ("_up", ", upward direction")


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
