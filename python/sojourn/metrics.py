"""The metrics of a run's summary: those of the registry, of each queue, inner queue, group of flows and station."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sojourn.registry import Declared, declared
from sojourn.schema import DIRECTIONS, Bottleneck, Run, Station

if TYPE_CHECKING:
    from sojourn.results import Direction, Results


@dataclass(frozen=True)
class Metric:
    """A number per run and place: ``down``, ``up``, or with several links ``home/down``."""

    declared: Declared
    value: Callable[[Run, str], float]
    """The number, in the unit of ``name``; NaN if the run has none."""
    group: str = ""
    """Its group of flows; empty if it belongs to the bottleneck or to all flows."""
    owner: str = ""
    """The first part of its name, if that is neither a queue's nor a group's: ``queue.sparse``, ``station.phone``."""

    @property
    def name(self) -> str:
        """Column name in Arrow and pandas, with its unit as suffix."""
        return ".".join(filter(None, [self.owner or self.group, self.declared.name]))

    @property
    def heading(self) -> str:
        """Column heading in a table for people, with the unit used there."""
        return self.declared.heading

    @property
    def shown_per(self) -> float:
        """Divisor from ``name``'s unit to that of ``heading``."""
        return self.declared.per

    @property
    def digits(self) -> int:
        """Decimal places in a table."""
        return self.declared.digits

    @property
    def words(self) -> str:
        """Its description, for an axis or a wide heading."""
        whose = self.owner.partition(".")[2] or self.group
        return f"{whose}: {self.declared.words}" if whose else self.declared.words

    @property
    def axis_label(self) -> str:
        """``goodput [Mbit/s]``."""
        unit = self.declared.unit
        return f"{self.words} [{unit}]" if unit else self.words


def queues(run: Run) -> dict[str, Bottleneck]:
    """The queues of a run by place: ``down`` and ``up`` of its link; with several links ``home/down`` and so on."""
    links = run["links"]
    if len(links) < 2:
        return run["bottleneck"]
    return {f"{name}/{way}": link[way] for name, link in links.items() for way in DIRECTIONS if way in link}


def queue_at(run: Run, place: str) -> Bottleneck:
    """The queue at a place; ``down`` and ``up`` are those of the first link under test, even with several links."""
    return run["bottleneck"][place] if place in run["bottleneck"] else queues(run)[place]


def has_queue(run: Run, place: str) -> bool:
    """True if the run has a queue at a place."""
    return place in run["bottleneck"] or place in queues(run)


def stations(run: Run) -> dict[str, Station]:
    """The stations of a run by name; with several links ``wifi/phone`` and so on."""
    links = run["links"]
    return {
        station if len(links) < 2 else f"{name}/{station}": figures
        for name, link in links.items()
        for station, figures in link.get("stations", {}).items()
    }


def _of_queue(metric: Declared, run: Run, place: str) -> float:
    """A metric of a queue, of all flows in its direction, or of the run."""
    if metric.over == "run":
        return metric.of(run)
    if metric.over == "queue":
        return metric.of(queue_at(run, place))
    if place not in DIRECTIONS:
        return math.nan  # Flows belong to no single one of several links.
    return float(sum(metric.of(flow) for flow in run["flows"] if flow["direction"] == place))


METRICS: tuple[Metric, ...] = tuple(
    Metric(metric, partial(_of_queue, metric)) for metric in declared("run", "direction", "queue")
)
"""The columns of the results table, in order."""


def group_metrics(results: Results) -> list[Metric]:
    """The figures of every group of flows, as metrics called ``movie.goodput_bps``."""
    index = results.groups

    def reader(title: str, metric: Declared) -> Callable[[Run, str], float]:
        return lambda run, _direction: index.value(run, title, metric)

    return [Metric(metric, reader(title, metric), group=title) for title, metric in index.pairs()]


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

    def read(metric: Declared, run: Run, place: str) -> float:
        inner = queue_at(run, place).get("queues", {}).get(name)
        return math.nan if inner is None else metric.of(inner)

    return [Metric(metric, partial(read, metric), owner=f"queue.{name}") for metric in declared("inner_queue")]


def station_metrics(results: Results) -> list[Metric]:
    """The figures of every Wi-Fi station, as metrics called ``station.phone.airtime_share``."""

    def read(name: str, metric: Declared, run: Run, _place: str) -> float:
        found: Any = stations(run).get(name)
        return math.nan if found is None else metric.of(found)

    names = dict.fromkeys(name for run in results.runs for name in stations(run.summary))
    return [
        Metric(metric, partial(read, name, metric), owner=f"station.{name}")
        for name in names
        for metric in declared("station")
    ]


def columns(results: Results) -> list[Metric]:
    """Every number of a run and direction: of the queue, its inner queues, the stations and the groups of flows."""
    inner = [metric for name in inner_queues(results) for metric in inner_metrics(name)]
    return [*METRICS, *inner, *station_metrics(results), *group_metrics(results)]


def samples_note(results: Results, metric: Metric) -> str:
    """The number of values of a quantile that may have few: ``of 12 to 40 pages a run``; otherwise empty."""
    counted_by = (metric.group, metric.declared.counted_by)
    counter = next((one for one in group_metrics(results) if (one.group, one.declared.name) == counted_by), None)
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
