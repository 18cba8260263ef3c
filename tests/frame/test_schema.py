"""schema.py describes the results that the simulator writes, and the registry of metrics has their numbers."""

from __future__ import annotations

import typing
from typing import Any

import pytest

import sojourn as sj
from conftest import ROOT
from sojourn import schema
from sojourn.frame.metrics import columns, metric_called
from sojourn.frame.registry import Over, declared, unit_of
from sojourn.runs.precision import Precision
from sojourn.studies.measures import Measure

COMMON = """
experiment = { name = "all", duration = "4 s", warmup = "1 s" }
record = { one_way = true, qoo = true }
queue = [{ aqm = "dualpi2" }, { aqm = "fq_codel" }, { aqm = "cake", bandwidth = "8 Mbit/s" }]
"""
WIRED = """
link = { rate = "20 Mbit/s", loss = 0.01, duplicate = 0.01 }
traffic = [
  { kind = "bulk", flows = 2, rtt = "20 ms" },
  { kind = "files", flows = 1, size = "20 kB", rtt = "20 ms" },
  { kind = "web", rtt = "20 ms" },
  { kind = "voip", count = 2, rtt = "20 ms" },
  { kind = "video", rtt = "20 ms" },
  { kind = "call", rtt = "20 ms", direction = "down" },
  { kind = "ping", rtt = "20 ms", interval = "100 ms" },
]
"""
LINUX_ONLY = {"kernel", "invalid", "lateness_ms", "notes", "path_cpu_s"}
"""Of runs on Linux, and of real packets."""
OF_THE_COMMAND = {"partial", "planned_runs", "until"}


@pytest.fixture(scope="module")
def summaries() -> list[Any]:
    texts = (COMMON + WIRED, (ROOT / "examples" / "wifi.toml").read_text())
    return [sj.run_text(text, set={"experiment.repeat": 1}).summary for text in texts]


def _compare(value: Any, kind: Any, where: str, seen: dict[type, set[str]]) -> None:
    """Compares a value with its type: every key is declared, and no required one is missing."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.NotRequired:
        _compare(value, parts[0], where, seen)
    elif typing.is_typeddict(kind):
        declared = typing.get_type_hints(kind, include_extras=True)
        required = {key for key, one in declared.items() if typing.get_origin(one) is not typing.NotRequired}
        assert required <= value.keys() <= declared.keys(), f"{where}: {sorted(required ^ value.keys())}"
        seen.setdefault(kind, set()).update(value)
        for key, one in value.items():
            _compare(one, declared[key], f"{where}.{key}", seen)
    elif origin is dict:
        for key, one in value.items():
            _compare(one, parts[1], f"{where}.{key}", seen)
    elif origin is list:
        for one in value:
            _compare(one, parts[0], f"{where}[]", seen)


@pytest.fixture(scope="module")
def seen(summaries: list[Any]) -> dict[type, set[str]]:
    """The keys that were found, per type."""
    found: dict[type, set[str]] = {}
    for summary in summaries:
        _compare(summary, schema.Summary, "summary", found)
    return found


def test_every_key_is_declared_and_none_that_does_not_occur(seen: dict[type, set[str]]):
    for kind, keys in seen.items():
        declared = set(typing.get_type_hints(kind)) - LINUX_ONLY - OF_THE_COMMAND
        assert keys == declared, f"{kind.__name__}: {sorted(declared ^ keys)}"
    types = {one for one in vars(schema).values() if typing.is_typeddict(one)} - {schema.Until, schema.Lateness}
    assert types <= seen.keys()


ELEMENTS: dict[Over, type] = {
    "run": schema.Run,
    "direction": schema.Flow,
    "queue": schema.Bottleneck,
    "inner_queue": schema.InnerQueue,
    "group": schema.Group,
    "station": schema.Station,
}
NO_METRICS = {
    "run": {"seed", "simulated_s", "wall_s", "events", "path_cpu_s", "lateness_ms"},
    "direction": {"traffic", "flow", "dscp", "bottleneck_packets", "marked_packets", "video"}
    | {"jitter_ms", "pdv_ms", "mos", "lost_packets", "power_bps_per_s"}
    | {"rtt_ms", "one_way_ms", "completion_ms", "page_load_ms", "frame_ms"},
    "queue": {"duplicated_packets", "loss_events"},
    "inner_queue": set(),
    "group": {"traffic", "flows"},
    "station": {"goodput_bps", "aggregate_frames", "latency_ms"},
}
"""Numbers that are no columns of tables and files: what a run is, and of a flow what has no sum over flows."""


def _numbers(kind: Any) -> dict[str, Any]:
    """The keys with a number, a distribution or a table of numbers."""
    maybe = {float | None: float, schema.Statistic: float}
    of = {key: maybe.get(one, one) for key, one in typing.get_type_hints(kind).items()}
    return {key: one for key, one in of.items() if one in (int, float) or typing.is_typeddict(one)}


@pytest.mark.parametrize("over", ELEMENTS)
def test_every_number_is_a_metric_or_is_said_to_be_none(over: Over):
    """A new field of a result must be declared in crates/measure/src/metrics.rs, or be listed above."""
    places = {place for metric in declared(over) for place in metric.at}
    for place in places:
        kind: Any = ELEMENTS[over]
        for key in place.split("."):
            kind = _numbers(kind)[key]
        assert not typing.is_typeddict(kind), place
    assert {place.partition(".")[0] for place in places} == _numbers(ELEMENTS[over]).keys() - NO_METRICS[over]


@pytest.mark.parametrize(
    ("key", "unit", "shown", "per"),
    [
        ("goodput_bps", "bit/s", "Mbit/s", 1e6),
        ("sojourn_p50_ms", "ms", "ms", 1.0),
        ("delivered_bytes", "B", "kB", 1e3),
        ("power_bps_per_s", "bit/s²", "", 1.0),
        ("jain_drop_share", "1", "", 1.0),
        ("airtime_share", "1", "%", 0.01),
        ("timeouts", "", "", 1.0),
    ],
)
def test_the_ending_of_a_name_says_its_unit(key: str, unit: str, shown: str, per: float):
    found = unit_of(key)
    assert (found.unit, found.shown, found.per) == (unit, shown, per)
    for metric in declared(*ELEMENTS):
        assert (metric.unit, metric.per) == (unit_of(metric.name).shown, unit_of(metric.name).per), metric.name


def test_a_metric_that_is_declared_is_in_frames_files_figures_studies_and_precisions():
    """The p99.9 of the sojourn time has no other place than its line in crates/measure/src/metrics.rs."""
    results = sj.run_text(COMMON.replace(", qoo = true", "") + WIRED)
    name, whole = "sojourn_p99_9_ms", results.runs[0].summary["bottleneck"]["down"]["sojourn_ms"]["p99_9"]
    assert metric_called(name).value(results.runs[0].summary, "down") == whole
    assert name in {metric.name for metric in columns(results)}
    assert results.rows()[0][name] == whole
    assert results.plot.bars(name).axes[0].get_ylabel().replace("\n", " ") == "p99.9 of the sojourn time [ms]"
    assert Precision.parse(f"{name}=5%").metric.name == name
    assert Measure(source=name).statistic(results.runs[0], "value", {}) == whole
