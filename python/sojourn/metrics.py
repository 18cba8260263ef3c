"""The metrics of a run's summary: name, unit, and how to obtain each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.groups import Merit
from sojourn.schema import DIRECTIONS, Bottleneck, InnerQueue, Run

if TYPE_CHECKING:
    from sojourn.results import Direction, Results


@dataclass(frozen=True)
class Metric:
    """A number per run and place: ``down``, ``up``, or with several links ``home/down``."""

    name: str
    """Column name in Arrow and pandas, with its unit as suffix."""
    heading: str
    """Column heading in a table for people, with the unit used there."""
    value: Callable[[Run, str], float]
    """The number, in the unit of ``name``; NaN if the run has none."""
    shown_per: float = 1.0
    """Divisor from ``name``'s unit to that of ``heading``."""
    digits: int = 2
    """Decimal places in a table."""
    words: str = ""
    """Its description, for an axis or a wide heading."""
    group: str = ""
    """Its group of flows; empty if it belongs to the bottleneck or to all flows."""
    scale: tuple[float, float] | None = None
    """The ends of its scale, if that does not begin at zero."""
    counted_by: str = ""
    """The metric with the number of values, for a quantile that may have few."""

    @property
    def axis_label(self) -> str:
        """``goodput [Mbit/s]``."""
        unit = self.heading.rpartition(" ")[2] if " " in self.heading else ""
        return f"{self.words} [{unit}]" if unit else self.words


def queues(run: Run) -> dict[str, Bottleneck]:
    """The queues of a run by place: ``down`` and ``up`` of its link; with several links ``home/down`` and so on."""
    links = run.get("links", {})
    if len(links) < 2:
        return run["bottleneck"]
    return {f"{name}/{way}": link[way] for name, link in links.items() for way in DIRECTIONS if way in link}


def queue_at(run: Run, place: str) -> Bottleneck:
    """The queue at a place; ``down`` and ``up`` are those of the first link under test, even with several links."""
    return run["bottleneck"][place] if place in run["bottleneck"] else queues(run)[place]


def has_queue(run: Run, place: str) -> bool:
    """True if the run has a queue at a place."""
    return place in run["bottleneck"] or place in queues(run)


def goodput_bps(run: Run, direction: str) -> float:
    """Goodput of all flows in this direction, in bit/s of payload; NaN at one of several links."""
    if direction not in ("down", "up"):
        return math.nan
    return float(sum(flow["goodput_bps"] for flow in run["flows"] if flow["direction"] == direction))


def _sojourn(key: str) -> Callable[[Run, str], float]:
    def value(run: Run, direction: str) -> float:
        sojourn = queue_at(run, direction)["sojourn_ms"]
        return float(sojourn[key]) if sojourn["n"] else math.nan  # type: ignore[literal-required]

    return value


def _bottleneck(count: Callable[[Bottleneck], float]) -> Callable[[Run, str], float]:
    return lambda run, direction: float(count(queue_at(run, direction)))


def _jain(run: Run, _direction: str) -> float:
    jain = run["jain_goodput"]
    return math.nan if jain is None else float(jain)


METRICS: tuple[Metric, ...] = (
    Metric("sojourn_p50_ms", "p50 ms", _sojourn("p50"), words="median sojourn time"),
    Metric("sojourn_p95_ms", "p95 ms", _sojourn("p95"), words="p95 of the sojourn time"),
    Metric("sojourn_mean_ms", "mean ms", _sojourn("mean"), words="mean sojourn time"),
    Metric("goodput_bps", "goodput Mbit/s", goodput_bps, shown_per=1e6, words="goodput"),
    Metric(
        "utilization", "util. %", _bottleneck(lambda b: b["utilization"]), shown_per=0.01, digits=1, words="utilization"
    ),
    Metric(
        "dropped_packets",
        "drops",
        _bottleneck(lambda b: b["dropped_aqm"] + b["dropped_overflow"]),
        digits=0,
        words="dropped packets",
    ),
    Metric("marked_packets", "marks", _bottleneck(lambda b: b["marked"]), digits=0, words="marked packets"),
    Metric("jain_goodput", "Jain", _jain, words="Jain's index over goodput"),
)
"""The columns of the results table, in order."""


def group_metrics(results: Results) -> list[Metric]:
    """The figures of every group of flows, as metrics called ``movie.goodput_bps``."""
    index = results.groups

    def reader(title: str, merit: Merit) -> Callable[[Run, str], float]:
        return lambda run, _direction: index.value(run, title, merit)

    return [
        Metric(
            f"{title}.{merit.name}",
            merit.heading,
            reader(title, merit),
            merit.shown_per,
            merit.digits,
            f"{title}: {merit.words}",
            title,
            merit.scale,
            f"{title}.{merit.counted_by}" if merit.counted_by else "",
        )
        for title, merit in index.pairs()
    ]


def inner_queues(results: Results) -> list[str]:
    """The inner queues of disciplines in some run, each once: ``l`` and ``c`` of dualpi2, CAKE's tins and so on."""
    named = (
        name
        for run in results.runs
        for way in queues(run.summary).values()
        for name, inner in way.get("queues", {}).items()
        if inner["delivered_packets"] + inner["dropped_packets"] > 0
    )
    return list(dict.fromkeys(named))


def inner_metrics(name: str) -> list[Metric]:
    """The figures of an inner queue, as metrics called ``queue.sparse.sojourn_p95_ms``."""

    def reader(value: Callable[[InnerQueue], float]) -> Callable[[Run, str], float]:
        def read(run: Run, direction: str) -> float:
            inner = queue_at(run, direction).get("queues", {}).get(name)
            return math.nan if inner is None else value(inner)

        return read

    def sojourn(key: str) -> Callable[[InnerQueue], float]:
        return lambda inner: float(inner["sojourn_ms"][key]) if inner["sojourn_ms"]["n"] else math.nan  # type: ignore[literal-required]

    known: list[tuple[str, str, Callable[[InnerQueue], float], int, str]] = [
        ("sojourn_p50_ms", "p50 ms", sojourn("p50"), 2, "median sojourn time"),
        ("sojourn_p95_ms", "p95 ms", sojourn("p95"), 2, "p95 of the sojourn time"),
        ("delivered_packets", "packets", lambda inner: inner["delivered_packets"], 0, "delivered packets"),
        ("dropped_packets", "drops", lambda inner: inner["dropped_packets"], 0, "dropped packets"),
        ("marked_packets", "marks", lambda inner: inner["marked"], 0, "marked packets"),
    ]
    return [
        Metric(f"queue.{name}.{stem}", heading, reader(value), digits=digits, words=f"{name}: {words}")
        for stem, heading, value, digits, words in known
    ]


def columns(results: Results) -> list[Metric]:
    """Every number of a run and direction: of the queue, its inner queues and the groups of flows."""
    inner = [metric for name in inner_queues(results) for metric in inner_metrics(name)]
    return [*METRICS, *inner, *group_metrics(results)]


def samples_note(results: Results, metric: Metric) -> str:
    """The number of values of a quantile that may have few: ``of 12 to 40 pages a run``; otherwise empty."""
    counter = next((one for one in group_metrics(results) if one.name == metric.counted_by), None)
    counts = [] if counter is None else [counter.value(run.summary, "down") for run in results.runs]
    known = [count for count in counts if not math.isnan(count)]
    if counter is None or not known:
        return ""
    low, high = f"{min(known):.0f}", f"{max(known):.0f}"
    return f"of {low if low == high else f'{low} to {high}'} {counter.heading} a run"


def overview_metrics(results: Results) -> list[tuple[Metric, Direction]]:
    """The metrics of an overview: delay and goodput each way, application quality, the delay of other datagrams."""
    of_queue = [metric for metric in METRICS if metric.name in ("sojourn_p95_ms", "goodput_bps")]
    known: list[tuple[Metric, Direction]] = [
        (metric, direction) for direction in results.directions for metric in of_queue
    ]
    felt = ("mos", "page_load_p50_ms", "completion_p50_ms", "video_rate_bps")
    of_groups = group_metrics(results)
    scored = {metric.group for metric in of_groups if metric.name.endswith(".mos")}
    known += [
        (metric, "down")
        for metric in of_groups
        if (merit := metric.name.rpartition(".")[2]) in felt
        or (merit == "one_way_p95_ms" and metric.group not in scored)
    ]
    return known


def metric_called(name: str, results: Results | None = None) -> Metric:
    """The metric of this name. For a group of ``results`` it is ``movie.rtt_p50_ms``, or ``mos`` if only one has it.

    Raises
    ------
    ValueError
        There is none, or several groups have it; the message lists the accepted names.
    """
    known = list(METRICS) if results is None else columns(results)
    found = [metric for metric in known if metric.name == name] or [
        metric for metric in known if metric.group and metric.name == f"{metric.group}.{name}"
    ]
    if len(found) != 1:
        names = ", ".join(metric.name for metric in found or known)
        raise ValueError(f'metric: got "{name}"; must be one of {names}')
    return found[0]
