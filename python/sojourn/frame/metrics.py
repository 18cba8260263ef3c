"""The metrics of a run's summary: those of the registry, of each queue, inner queue, group of flows and station."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from sojourn._core import ExperimentError
from sojourn.files.typed import near
from sojourn.frame.registry import Declared, declared
from sojourn.schema import DIRECTIONS, Bottleneck, InnerQueue, Run, Station

if TYPE_CHECKING:
    from sojourn.frame.results import Results


@dataclass(frozen=True)
class Metric:
    """A number per run and queue: ``down``, ``up``, or with several links ``home/down``."""

    declared: Declared
    values: Callable[[str, Sequence[Run]], list[float]]
    """The numbers of runs at a queue, in the unit of ``name``; NaN where a run has none."""
    group: str = ""
    """Its group of flows; empty if it belongs to the bottleneck or to all flows."""
    owner: str = ""
    """The first part of its name, if that is neither a queue's nor a group's: ``queue.sparse``, ``station.phone``."""

    def value(self, run: Run, queue: str) -> float:
        """The number of a run."""
        return self.values(queue, [run])[0]

    @property
    def is_of_run(self) -> bool:
        """It is of a group, a station or the whole run: the same in each of the run's rows."""
        return self.place("down") == ("", "")

    def place(self, queue: str) -> tuple[str, str]:
        """The link and the direction that it is of at a queue, empty if of none: fairness is of all links' flows."""
        link, _, direction = queue.rpartition("/")
        if self.name == "jain_goodput":
            return "", direction
        return ("", "") if self.group or self.declared.over in ("run", "station") else (link, direction)

    @cached_property
    def name(self) -> str:
        """Column name in Arrow and pandas, with its unit as suffix."""
        return ".".join(filter(None, [self.owner or self.group, self.declared.name]))

    @property
    def words(self) -> str:
        """Its description, for an axis or a wide heading."""
        whose = self.owner.partition(".")[2] or self.group
        return f"{whose}: {self.declared.words}" if whose else self.declared.words

    @property
    def heading(self) -> str:
        """The heading of a column: ``p95 ms``, of a group ``movie p95 ms``."""
        return " ".join(filter(None, [self.owner.partition(".")[2] or self.group, self.declared.heading]))

    @property
    def axis_label(self) -> str:
        """``goodput [Mbit/s]``."""
        unit = self.declared.unit
        return f"{self.words} [{unit}]" if unit else self.words


def queues(run: Run) -> dict[str, Bottleneck]:
    """The queues of a run by name: ``down`` and ``up`` of its link; with several links ``home/down`` and so on."""
    links = run["links"]
    if len(links) < 2:
        return run["bottleneck"]
    return {f"{name}/{way}": link[way] for name, link in links.items() for way in DIRECTIONS if way in link}


def queue_at(run: Run, queue: str) -> Bottleneck:
    """The queue of that name; ``down`` and ``up`` are those of the first link under test, even with several links."""
    return queues_at(queue, [run])[0]


def queues_at(queue: str, runs: Sequence[Run]) -> list[Bottleneck]:
    """The queue of that name in each run."""
    link, _, way = queue.rpartition("/")
    of_links: list[Any] = [run["links"][link] for run in runs] if link else [run["bottleneck"] for run in runs]
    return [one[way] for one in of_links]


def has_queue(run: Run, queue: str) -> bool:
    """True if the run has a queue of that name."""
    link, _, way = queue.rpartition("/")
    return way in (run["links"].get(link, ()) if link else run["bottleneck"])


def stations(run: Run) -> dict[str, Station]:
    """The stations of a run by name; with several links ``wifi/phone`` and so on."""
    links = run["links"]
    return {
        station if len(links) < 2 else f"{name}/{station}": figures
        for name, link in links.items()
        for station, figures in link.get("stations", {}).items()
    }


def _of_queue(metric: Declared, queue: str, runs: Sequence[Run]) -> list[float]:
    """A metric of a queue, of all flows in its direction, or of the run. Fairness is that of one direction's flows."""
    if metric.name == "jain_goodput":
        way = queue.rpartition("/")[2]
        return [_fairness(run, way) for run in runs]
    if metric.over == "run":
        return metric.of_each(runs)
    if metric.over == "queue":
        return metric.of_each(queues_at(queue, runs))
    if queue not in DIRECTIONS:
        return [math.nan] * len(runs)  # Flows belong to no single one of several links.
    this_way = [[flow for flow in run["flows"] if flow["direction"] == queue] for run in runs]
    numbers = iter(metric.of_each(list(chain.from_iterable(this_way))))
    # Not sum(), which rounds as it adds up to Python 3.11 and no longer from 3.12 on.
    return [math.fsum(islice(numbers, len(flows))) for flows in this_way]


def _fairness(run: Run, way: str) -> float:
    """Jain's index over the goodput of the TCP flows in a direction; that of the run if no TCP flow has another one."""
    over_tcp = {(group["traffic"], group["direction"]) for group in run["groups"] if "lost_packets" not in group}
    if {direction for _, direction in over_tcp} <= {way}:
        found = run["jain_goodput"]
        return math.nan if found is None else found
    rates = [
        flow["goodput_bps"] for flow in run["flows"] if flow["direction"] == way and (flow["traffic"], way) in over_tcp
    ]
    squares = len(rates) * math.fsum(rate * rate for rate in rates)
    return math.fsum(rates) ** 2 / squares if squares > 0 else math.nan


METRICS: tuple[Metric, ...] = tuple(
    Metric(metric, partial(_of_queue, metric)) for metric in declared("run", "direction", "queue")
)
"""The metrics of queues, of all flows in their direction and of the run, in the order of the results table."""


def of_queues(results: Results) -> list[Metric]:
    """``METRICS`` without details, and without ``lost_packets`` if no link loses packets on the wire."""
    return [metric for metric in _of_every_queue(results) if not metric.declared.detail]


def _of_every_queue(results: Results) -> list[Metric]:
    impaired = any("lost_packets" in queue for run in results.runs for queue in queues(run.summary).values())
    return [metric for metric in METRICS if impaired or metric.name != "lost_packets"]


def group_metrics(results: Results) -> list[Metric]:
    """The figures of every group of flows, as metrics called ``movie.goodput_bps``."""
    index = results.groups

    def read(title: str, metric: Declared, _queue: str, runs: Sequence[Run]) -> list[float]:
        return index.values(title, metric, runs)

    return [Metric(metric, partial(read, title, metric), group=title) for title, metric in index.pairs()]


def inner_queues(results: Results) -> list[str]:
    """The inner queues of disciplines in some run, each once: ``l`` and ``c`` of dualpi2, CAKE's tins and so on."""
    named = (
        name
        for run in results.runs
        for way in queues(run.summary).values()
        for name, inner in way.get("queues", {}).items()
        if had_packets(inner)
    )
    return list(dict.fromkeys(named))


def had_packets(inner: InnerQueue) -> bool:
    """Whether a packet came to an inner queue."""
    return inner["delivered_packets"] + inner["dropped_packets"] > 0


def inner_metrics(name: str) -> list[Metric]:
    """The figures of an inner queue, as metrics called ``queue.sparse.sojourn_p95_ms``."""

    def read(metric: Declared, queue: str, runs: Sequence[Run]) -> list[float]:
        return metric.of_each([one.get("queues", {}).get(name) for one in queues_at(queue, runs)])

    return [Metric(metric, partial(read, metric), owner=f"queue.{name}") for metric in declared("inner_queue")]


def station_metrics(results: Results) -> list[Metric]:
    """The figures of every Wi-Fi station, as metrics called ``station.phone.airtime_share``."""

    def read(name: str, metric: Declared, _queue: str, runs: Sequence[Run]) -> list[float]:
        return metric.of_each([stations(run).get(name) for run in runs])

    names = dict.fromkeys(name for run in results.runs for name in stations(run.summary))
    return [
        Metric(metric, partial(read, name, metric), owner=f"station.{name}")
        for name in names
        for metric in declared("station")
    ]


def columns(results: Results) -> list[Metric]:
    """Every number of a run and direction: of the queue, its inner queues, the stations and the groups of flows."""
    inner = [metric for name in inner_queues(results) for metric in inner_metrics(name)]
    return [*_of_every_queue(results), *inner, *station_metrics(results), *group_metrics(results)]


def samples_note(results: Results, metric: Metric) -> str:
    """The number of values of a quantile that may have few: ``of 12 to 40 pages a run``; otherwise empty."""
    counted_by = (metric.group, metric.declared.counted_by)
    counter = next((one for one in group_metrics(results) if (one.group, one.declared.name) == counted_by), None)
    counts = [] if counter is None else counter.values("down", [run.summary for run in results.runs])
    known = [count for count in counts if not math.isnan(count)]
    if counter is None or not known:
        return ""
    low, high = f"{min(known):.0f}", f"{max(known):.0f}"
    return f"of {low if low == high else f'{low} to {high}'} {counter.declared.heading} a run"


MOST_QUEUES = 4  # most queues of a network in an overview, and with figures of their own
MOST_ROUTES = 6  # most groups of flows whose delay over their route is in an overview of a network


def drawn_queues(results: Results) -> tuple[str, ...]:
    """The queues with figures: ``down`` and ``up``; with several links the ``MOST_QUEUES`` with the longest delays."""
    if not results.has_several_links:
        return results.directions
    delay = metric_called("sojourn_p95_ms")
    return _largest(dict.fromkeys(results.queues, delay), results, MOST_QUEUES)


def _largest(of: Mapping[str, Metric], results: Results, most: int) -> tuple[str, ...]:
    """The queues, or groups, in which some run has the largest values of their metric, in their order."""

    def top(name: str) -> float:
        runs = [run.summary for run in results.runs]
        queue = "down" if of[name].group else name
        values = of[name].values(queue, [run for run in runs if of[name].group or has_queue(run, queue)])
        return max((value for value in values if value > 0), default=0.0)

    kept = sorted(of, key=top, reverse=True)[:most]
    return tuple(name for name in of if name in kept)


def overview_metrics(results: Results) -> list[tuple[Metric, str]]:
    """The metrics of an overview, each with its queue: delay and goodput each way, application quality."""
    delay, goodput = metric_called("sojourn_p95_ms"), metric_called("goodput_bps")
    of_groups = group_metrics(results)
    # Application quality; of bulk transfers Quality of Outcome only if there are no others.
    of_use = {metric.group for metric in of_groups if metric.declared.name in (*_FELT, "one_way_p95_ms")}
    kinds = {metric.group: (*_FELT, *(["qoo"] if metric.group in of_use or not of_use else [])) for metric in of_groups}
    felt = [metric for metric in of_groups if metric.declared.name in kinds[metric.group]]
    if results.has_several_links:
        ways = {flow["direction"] for run in results.runs for flow in run.summary["flows"] if flow["kind"] != "ping"}
        known = [(delay, queue) for queue in drawn_queues(results)]
        known += [(goodput, way) for way in DIRECTIONS if way in ways]
        return known + [(metric, "down") for metric in [*_of_routes(results, of_groups), *felt]]
    known = [(metric, direction) for direction in results.directions for metric in (delay, goodput)]
    scored = {metric.group for metric in felt if metric.declared.name == "mos"}
    return known + [
        (metric, "down")
        for metric in of_groups
        if metric in felt or (metric.declared.name == "one_way_p95_ms" and metric.group not in scored)
    ]


_FELT = ("mos", "page_load_p50_ms", "completion_p50_ms", "video_rate_bps")


def _of_routes(results: Results, of_groups: Sequence[Metric]) -> list[Metric]:
    """The delay of each group over its route, one-way if that was measured, of those with the longest."""
    found: dict[str, Metric] = {}
    for name in ("one_way_p95_ms", "rtt_p95_ms"):
        for metric in of_groups:
            if metric.declared.name == name:
                found.setdefault(metric.group, metric)
    kept = _largest(found, results, MOST_ROUTES)
    return [found[group] for group in results.groups.titles if group in kept]


def left_out(results: Results) -> str:
    """The queues and groups of a network that an overview leaves out, in words; empty if it has all."""
    if not results.has_several_links:
        return ""
    queues_, groups = len(results.queues), len(results.groups.titles)
    parts = [f"{MOST_QUEUES} of {queues_} queues"] if queues_ > MOST_QUEUES else []
    parts += [f"{MOST_ROUTES} of {groups} groups of flows"] if groups > MOST_ROUTES else []
    return f"{' and '.join(parts)}: those with the longest delays" if parts else ""


def metric_called(name: str, results: Results | None = None) -> Metric:
    """The metric of this name. For a group of ``results`` it is ``movie.rtt_p50_ms``, or ``mos`` if only one has it.

    Raises ExperimentError if there is none, or several groups have it; the message lists the accepted names.
    """
    known = list(METRICS) if results is None else columns(results)
    found = [metric for metric in known if metric.name == name] or [
        metric for metric in known if metric.group and metric.name == f"{metric.group}.{name}"
    ]
    if len(found) != 1:
        names = ", ".join(metric.name for metric in found or known)
        hint = "" if found else near(name, (metric.name for metric in known))
        raise ExperimentError(f'metric: got "{name}"; must be one of {names}{hint}')
    return found[0]
