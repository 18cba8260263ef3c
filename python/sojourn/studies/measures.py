"""The metrics of a study: a distribution, a series or a number of a run, and their statistics."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from sojourn import schema
from sojourn.files.typed import Strict, must_be
from sojourn.frame import series
from sojourn.frame.metrics import has_queue, queue_at, stations
from sojourn.frame.registry import Declared, declared
from sojourn.frame.results import Direction, Run
from sojourn.frame.series import Series
from sojourn.frame.statistics import FloatArray, quantile_curve, quantiles

NAMED_QUANTILES = {"median": 0.5, "min": 0.0, "max": 1.0}
STATISTICS = ("value", "mean", *NAMED_QUANTILES, "std", "total", "count")
"""All statistics except the percentiles."""
_SAME_LEVEL = 1e-6


QUEUE_COLUMNS = frozenset(
    {"packets", "sojourn_mean_ms", "sojourn_max_ms", "backlog_packets", "backlog_bytes", "dropped", "marked"}
    # The state of disciplines.
    | {"active_flows", "active_queues", "avg", "bulk_flows", "burst_allowance_ms", "count"}
    | {"drop_prob", "dropping", "ejected", "max_p"}
    | {"p_drop", "p_max", "p_prime", "probability", "probability_l", "qdelay_ms", "sparse_flows"}
)
"""The columns of the queue's series that a metric may use."""
_OF_FLOWS = ("rtt_ms", "one_way_ms", "jitter_ms", "completion_ms", "page_load_ms", "frame_ms")
SHARES = frozenset(
    {"drop_rate", "goodput_share", "jain_goodput", "jain_drop_share", "loss_synchronization", "utilization"}
    | {"airtime_share"}
)
"""The sources that are from zero to one."""
DROP_REASONS = frozenset({"aqm", "deterministic", "overflow", "unknown"})
_OF_RUNS = declared("run", "direction", "queue")


Place = Mapping[str, float | bool | str]


class Sample(ABC):
    """What was measured in a run."""

    @abstractmethod
    def statistics(self, names: Sequence[str]) -> list[float]:
        """Statistics of ``STATISTICS``, and percentiles; NaN for one that the sample does not have."""

    def statistic(self, name: str) -> float:
        """One of them."""
        (value,) = self.statistics((name,))
        return value


@dataclass(frozen=True)
class Quantiles(Sample):
    """A distribution given by its quantiles and its mean."""

    levels: FloatArray
    values: FloatArray
    mean: float
    between: bool = True
    """True if there are enough quantiles to interpolate between them."""

    def statistics(self, names: Sequence[str]) -> list[float]:
        """The mean and quantiles, which are interpolated together."""
        wanted = [quantile_level(name) for name in names]
        levels = np.array([level for level in wanted if level is not None])
        if self.values.size:
            values = np.interp(levels, self.levels, self.values)
            if not self.between:
                known = np.abs(self.levels[:, None] - levels) <= _SAME_LEVEL
                values = np.where(known.any(axis=0), values, math.nan)
        else:
            values = np.full(levels.size, math.nan)
        found = iter(values.tolist())
        return [
            self.mean if name in ("mean", "value") else math.nan if level is None else next(found)
            for name, level in zip(names, wanted, strict=True)
        ]


@dataclass(frozen=True)
class Values(Sample):
    """A distribution given by all its values."""

    values: FloatArray

    def statistics(self, names: Sequence[str]) -> list[float]:
        """The mean, quantiles and ``std``; the values are sorted once."""
        if not self.values.size:
            return [math.nan] * len(names)
        levels = {name: level for name in names if (level := quantile_level(name)) is not None}
        found = dict(zip(levels, quantiles(self.values, np.array(list(levels.values()))).tolist(), strict=True))
        found["mean"] = found["value"] = float(self.values.mean())
        if "std" in names:
            found["std"] = float(self.values.std())
        return [found.get(name, math.nan) for name in names]


@dataclass(frozen=True)
class Single(Sample):
    """One number per run, which is its value, mean, median and total."""

    value: float

    def statistics(self, names: Sequence[str]) -> list[float]:
        """The number, for each statistic that a single number has."""
        own = ("value", "mean", "median", "total", "count")
        return [self.value if name in own else math.nan for name in names]


@cache
def quantile_level(statistic: str) -> float | None:
    """0.9 for ``p90``, 0.5 for ``median``; None if the statistic is not a quantile."""
    if statistic in NAMED_QUANTILES:
        return NAMED_QUANTILES[statistic]
    percent = statistic.removeprefix("p").replace("_", ".")
    return float(percent) / 100.0 if statistic[:1] == "p" and percent.replace(".", "", 1).isdigit() else None


def is_statistic(name: str) -> bool:
    """True if a metric can have this statistic."""
    return name in STATISTICS or quantile_level(name) is not None


class Part(Strict, frozen=True, kw_only=True, dict=True):
    """The part of a run that a metric measures; by default all data sent down the link."""

    traffic: int | None = None
    """Only the flows of this ``[[traffic]]`` entry, from 0."""
    direction: Literal["down", "up", "both"] = "down"
    """The queue, and the flows in that direction; with ``both``, rates and counts are those of the two together."""
    from_s: int | float = 0.0
    to_s: int | float | None = None
    column: str | None = None
    reason: str | None = None
    """For drops: the reason, as in ``drop_delay_ms`` of a summary."""
    link: str = ""
    """The link of the queue; empty for the bottleneck."""
    queue: str = ""
    station: str = ""
    """The Wi-Fi station, as ``metrics.stations`` calls it."""

    @property
    def end_s(self) -> float:
        """The end of the part of a series."""
        return math.inf if self.to_s is None else self.to_s

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The directions that are summed."""
        return ("down", "up") if self.direction == "both" else (self.direction,)

    @property
    def link_queues(self) -> tuple[str, ...]:
        """The queues that are summed, as ``Results.queues``."""
        return tuple(f"{self.link}/{way}" if self.link else way for way in self.directions)

    @property
    def link_queue(self) -> str:
        """The queue, if it is a single one."""
        return self.link_queues[0]

    @cached_property
    def metrics(self) -> dict[str, Declared]:
        """The metrics of the registry that the part has, by name."""
        found = declared("station") if self.station else declared("inner_queue") if self.queue else _OF_RUNS
        return {metric.name: metric for metric in found}

    def can_add(self, source: str) -> bool:
        """True if the source is of flows, or a rate or count of queues."""
        metric = self.metrics.get(source)
        return source not in _OF_ONE_QUEUE if metric is None else metric.unit not in ("ms", "%")

    def elements(self, run: Run, metric: Declared) -> list[Any]:
        """The elements of a summary that have a metric."""
        summary = run.summary
        match metric.over:
            case "run":
                return [summary]
            case "direction":
                return self.flows(run)
            case "station":
                return [station for name, station in stations(summary).items() if name == self.station]
            case _:
                queues: list[Any] = [queue_at(summary, queue) for queue in self.link_queues]
                inner = [queue["queues"][self.queue] for queue in queues if self.queue in queue.get("queues", {})]
                return queues if metric.over == "queue" else inner

    def flows(self, run: Run) -> list[schema.Flow]:
        """The flows that the metric measures."""
        return [
            flow
            for flow in run.summary["flows"]
            if flow["direction"] in self.directions and self.traffic in (None, flow["traffic"])
        ]

    def of(self, found: Series | None) -> Series | None:
        """The part of a series between the two times."""
        if found is None:
            return None
        inside = (found.t_s >= self.from_s) & (found.t_s < self.end_s)
        return Series(found.t_s[inside], found.value[inside])


class Measure(Part, frozen=True):
    """A metric of a study, as its recipe declares it: its source, and its conversion to the paper's terms."""

    source: Annotated[str, Meta(extra_json_schema={"enum": _ALL_SOURCES})] = msgspec.field(name="from")
    """One of ``SOURCES``, or a metric of the registry that the part has."""
    unit: str = "1"
    label: str | None = None
    factor: int | float | str = 1.0
    """From the source's unit and convention to the paper's: a number, or a fraction that shows where it comes from."""
    plus: str | tuple[str, ...] | dict[str, int | float] = ()
    """Axes or constants to add, with their multiples: a base RTT makes a queueing delay a round-trip time."""
    at_least: int | float | None = None
    """Measure the values that reach this level instead of the values themselves."""
    tell: Literal["share", "first", "last", "until"] | None = None
    """Their share; or in s the time of the first or last one, or the end of the time that they last from the first."""
    pooled: bool = False
    """A statistic is over the values of all repeats together, not the mean of their statistics."""

    def __post_init__(self) -> None:
        must_be(self.source, self.metrics if self.queue or self.station else [*SOURCES, *self.metrics], "from")
        if self.queue and self.station:
            raise ValueError("station: unknown key; a metric is of a queue or of a station")
        if self.direction == "both" and not self.can_add(self.source):
            raise ValueError(f'direction: got "both"; must be one of down, up for {self.source}, which cannot be added')
        for key, accepted, sources in (
            ("column", QUEUE_COLUMNS, ("queue_series",)),
            ("reason", DROP_REASONS, ("drops_for_reason", "drop_reason_delay_ms")),
        ):
            given = getattr(self, key)
            if given is not None:
                must_be(given, accepted, key)
            if (given is not None) != (self.source in sources):
                problem = "missing" if given is None else "unknown key"
                raise ValueError(f"{key}: {problem}; it belongs to a metric from {', '.join(sources)}")
        if self.pooled and (self.source not in VALUES or self.at_least is not None):
            raise ValueError(f"pooled: must be of values from one of {', '.join(sorted(VALUES))}")
        if self.at_least is not None and self.source not in SERIES:
            raise ValueError(f"at_least: must be from one of {', '.join(SERIES)}")
        if self.tell is not None and self.at_least is None:
            raise ValueError("at_least: missing; tell needs it")
        _ = self.scale

    @cached_property
    def scale(self) -> float:
        """The factor as a number."""
        numerator, _, denominator = str(self.factor).partition("/")
        try:
            return float(numerator) / float(denominator or 1)
        except (ValueError, ZeroDivisionError):
            raise ValueError(f'factor: got "{self.factor}"; must be a number or "1500/1448"') from None

    @cached_property
    def added(self) -> Mapping[str, float]:
        """The axes and constants to add, with their multiples."""
        names = (self.plus,) if isinstance(self.plus, str) else self.plus
        return names if isinstance(names, dict) else dict.fromkeys(names, 1.0)

    def is_of_part_of(self, other: Part) -> bool:
        """True if it measures the same part of a run as another one."""
        return all(getattr(self, key) == getattr(other, key) for key in Part.__struct_fields__)

    def sample(self, run: Run) -> Sample:
        """The measurements of a run, in the source's unit."""
        if self.at_least is None:
            read = SOURCES.get(self.source)
            return _number(run, self, self.source) if read is None else read(run, self)
        found = self.of(SERIES[self.source](run, self))
        if found is None or not found.value.size:
            return Single(math.nan)
        reach = found.value * self.scale >= self.at_least
        tell = self.tell or "share"
        if tell == "share":
            return Single(float(reach.mean()))
        if not reach.any():
            return Single(math.nan)
        first = int(reach.argmax())
        below = ~reach[first:]
        at = {
            "first": first,
            "last": reach.size - 1 - int(reach[::-1].argmax()),
            "until": first + (int(below.argmax()) if below.any() else below.size - 1),
        }
        return Single(float(found.t_s[at[tell]]))

    def applies_to(self, run: Run, place: Place) -> bool:
        """True if a run has the queue to measure, and its place has the values to add."""
        return all(has_queue(run.summary, queue) for queue in self.link_queues) and self._is_known_at(place)

    def statistic(self, run: Run, name: str, place: Place) -> float:
        """A statistic in ``unit``, for a run at a place of the grid; NaN if the run does not have it."""
        (value,) = self.statistics(run, (name,), place)
        return value

    def statistics(self, run: Run, names: Sequence[str], place: Place) -> tuple[float, ...]:
        """Several statistics of a run, as ``statistic``."""
        values = self.sample(run).statistics(names)
        if self.at_least is not None:
            return tuple(values)
        offset = self.offset(place)
        # What is added moves locations, not widths.
        moves = (name in ("mean", "value") or quantile_level(name) is not None for name in names)
        return tuple(value * self.scale + offset * is_moved for value, is_moved in zip(values, moves, strict=True))

    def quantiles(self, run: Run, levels: FloatArray, place: Place) -> FloatArray:
        """Many quantiles of a run in ``unit``; of sojourn times from its histogram, as a summary has only a dozen."""
        found = series.histogram(run, self.link_queue) if self.source == "sojourn_ms" else None
        if found is not None and found[1].size:
            edges, upto = found
            values = edges[np.searchsorted(upto, levels * upto[-1]).clip(max=edges.size - 1)]
        else:
            sample = self.sample(run)
            values = np.array([sample.statistic(f"p{100 * level:.6g}".replace(".", "_")) for level in levels])
        return np.asarray(values * self.scale + self.offset(place), dtype=np.float64)

    def of_repeats(self, runs: Sequence[Run], name: str, place: Place) -> tuple[float, ...]:
        """A statistic of each repeat, or of all combined if they are pooled; empty where a value to add is missing."""
        if not self._is_known_at(place):
            return ()
        if not self.pooled:
            return tuple(self.statistic(run, name, place) for run in runs)
        return (Values(np.concatenate([self.values(run, place) for run in runs])).statistic(name),)

    def values(self, run: Run, place: Place) -> FloatArray:
        """All values of a run in ``unit``. Raises ValueError if the source has only statistics, no values."""
        sample = self.sample(run)
        if not isinstance(sample, Values):
            raise ValueError(f"pooled: {self.source} has no values one by one")
        return sample.values * self.scale + self.offset(place)

    def series(self, run: Run, place: Place) -> Series | None:
        """The metric over time in ``unit``; None if the source has no series or none was recorded."""
        read = SERIES.get(self.source)
        found = self.of(read(run, self)) if read is not None else None
        return None if found is None else Series(found.t_s, found.value * self.scale + self.offset(place))

    def _is_known_at(self, place: Place) -> bool:
        return all(name in place for name in self.added)

    def offset(self, place: Place) -> float:
        """The sum of the values to add at a place."""
        return sum(times * float(place[name]) for name, times in self.added.items())


def _sojourn_ms(run: Run, part: Part) -> Sample:
    distribution = run.sojourn_ms(part.link_queue)
    if not distribution["n"]:
        return Quantiles(np.empty(0), np.empty(0), math.nan)
    values, levels = quantile_curve(distribution)
    return Quantiles(levels, values, distribution["mean"])


def _of_flows(run: Run, part: Part, key: str) -> Sample:
    """A distribution of flows, in which every flow has the same weight, however often it was measured."""
    flows: list[Any] = part.flows(run)
    return _of_spreads([flow[key] for flow in flows if key in flow])


def _of_spreads(spreads: Sequence[schema.Spread]) -> Sample:
    known = [[dict(spread)[key] for key in _SPREAD] for spread in spreads if spread["n"]]
    if not known:
        return Quantiles(np.empty(0), np.empty(0), math.nan)
    mean, *quantiles = np.array(known, dtype=float).mean(axis=0)
    return Quantiles(np.array([0.05, 0.25, 0.5, 0.75, 0.95, 1.0]), np.array(quantiles), float(mean), between=False)


_SPREAD = ("mean", "p5", "p25", "p50", "p75", "p95", "max")


def _each(read: Callable[[Run, Part], FloatArray | Sequence[float] | None]) -> Callable[[Run, Part], Sample]:
    """The values that a function reads, one by one."""

    def sample(run: Run, part: Part) -> Sample:
        found = read(run, part)
        return Values(np.empty(0) if found is None else np.asarray(found, dtype=np.float64))

    return sample


def _known(run: Run, part: Part, name: str) -> FloatArray:
    """The values of one of ``SERIES``; none if it was not recorded."""
    found = part.of(SERIES[name](run, part))
    return np.empty(0) if found is None else found.value[~np.isnan(found.value)]


def _qoo(run: Run, part: Part) -> list[float]:
    return [
        group["qoo"]
        for group in run.summary["groups"]
        if "qoo" in group and group["direction"] in part.directions and part.traffic in (None, group["traffic"])
    ]


def _goodput_share(run: Run, part: Part) -> Sample:
    """The part's share of the goodput of all flows in its direction."""
    of_all = sum(flow["goodput_bps"] for flow in Part(direction=part.direction).flows(run))
    own = sum(flow["goodput_bps"] for flow in part.flows(run))
    return Single(own / of_all if of_all else math.nan)


def _of_part(read: Callable[..., Series | None]) -> Callable[[Run, Part], Series | None]:
    """A series of the part's flows."""
    return lambda run, part: read(run, part.directions[0], traffic=part.traffic)


def _dropped_for(run: Run, part: Part) -> list[schema.Spread]:
    """The delays of the drops for the part's reason; none if there were none."""
    found = queue_at(run.summary, part.link_queue)["drop_delay_ms"].get(part.reason or "")
    return [] if found is None else [found]


def _drop_rate(run: Run, part: Part) -> Sample:
    queue = queue_at(run.summary, part.link_queue)
    dropped = queue["dropped_aqm"] + queue["dropped_overflow"]
    arrived = dropped + queue["delivered_packets"]
    return Single(dropped / arrived if arrived else math.nan)


def _number(run: Run, part: Part, name: str) -> Sample:
    """A metric of the registry, summed over the part."""
    metric = part.metrics.get(name)
    elements = [] if metric is None else part.elements(run, metric)
    if metric is None or not (elements or metric.over == "direction"):
        return Single(math.nan)
    return Single(float(sum(metric.of(one) for one in elements)))


SERIES: dict[str, Callable[[Run, Part], Series | None]] = {
    "sojourn_ms": lambda run, part: series.sojourn(run, part.link_queue),
    "goodput_series_bps": _of_part(series.goodput),
    "received_series_bytes": _of_part(series.received),
    "rtt_series_ms": _of_part(series.rtt),
    "recorded_rtt_ms": _of_part(series.round_trips),
    "queue_series": lambda run, part: series.queue_column(run, part.column or "", part.link_queue),
    "first_flow_sojourn_ms": lambda run, _part: series.flow_sojourn(run, 0),
    "drop_delay_ms": lambda run, part: series.delay_at_drops(run, part.link_queue),
}
"""The sources that can be drawn over time."""

SOURCES: dict[str, Callable[[Run, Part], Sample]] = {
    "sojourn_ms": _sojourn_ms,
    **{key: partial(_of_flows, key=key) for key in _OF_FLOWS},
    **{name: _each(partial(_known, name=name)) for name in SERIES if name != "sojourn_ms"},
    "mos": _each(lambda run, part: [flow["mos"] for flow in part.flows(run) if "mos" in flow]),
    "qoo": _each(_qoo),
    "download_ms": _each(lambda run, part: series.downloads(run, part.directions[0], traffic=part.traffic)),
    "packet_sojourn_ms": _each(lambda run, part: series.steady_sojourn(run, part.link_queue, traffic=part.traffic)),
    # Jitter: the mean absolute difference between one packet's delay and the next one's.
    "first_flow_jitter_ms": _each(lambda run, part: np.abs(np.diff(_known(run, part, "first_flow_sojourn_ms")))),
    "goodput_share": _goodput_share,
    "drop_rate": _drop_rate,
    "drops_for_reason": lambda run, part: Single(float(sum(one["n"] for one in _dropped_for(run, part)))),
    "drop_reason_delay_ms": lambda run, part: _of_spreads(_dropped_for(run, part)),
}
"""The sources of metrics besides the numbers of the registry, by their names in recipes."""

_OF_ONE_QUEUE = frozenset(
    {"sojourn_ms", "queue_series", "drop_rate", "drops_for_reason", "drop_reason_delay_ms", "packet_sojourn_ms"}
    | {"drop_delay_ms", "first_flow_sojourn_ms", "first_flow_jitter_ms"}
)
VALUES = frozenset(
    {"download_ms", "goodput_series_bps", "rtt_series_ms", "recorded_rtt_ms", "queue_series", "packet_sojourn_ms"}
    | {"drop_delay_ms", "first_flow_sojourn_ms", "first_flow_jitter_ms"}
)
"""The sources with individual values, which can be pooled over repeats."""
_ALL_SOURCES = sorted(
    {*SOURCES, *(one.name for one in declared("run", "direction", "queue", "inner_queue", "station"))}
)
