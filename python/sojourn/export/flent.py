"""Flent's data files, format version 4 (Flent's documentation, "The data file format").

The Flent test of a run follows from its flows, so that Flent knows the available plots: ``rrul`` if they are those of
Flent's rrul, by direction and code point; otherwise ``tcp_ndown``, ``tcp_nup``, or ``rrul_be_nflows`` for TCP in both
directions. A ping is the mean round-trip time of its replies in each bin, null if there is none.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sojourn import _core, schema
from sojourn.files.storage import Staging, file_name
from sojourn.frame.arrow import numbers
from sojourn.frame.groups import code_point
from sojourn.frame.later import pa
from sojourn.frame.results import Results, Run
from sojourn.frame.statistics import FloatArray

VERSION = 4
_PING = "Ping (ms) ICMP"
_DELAY_S = 5.0
"""Seconds by which Flent's tests are longer than their flows; its distribution plots omit this time at either end."""
_EPOCH = "1970-01-01T00:00:00.000000Z"  # a simulated run has no date, and equal runs must produce equal files

Samples = dict[str, FloatArray]  # values per bin by the name of the data set; NaN if there is none


def stage(results: Results, staging: Staging) -> list[Path]:
    """Stages a data file per run. Raises ExperimentError if no series was recorded, or it is empty."""
    written = []
    for run in results.runs:
        document = data_file(run, results.summary)
        name = file_name(f"{document['metadata']['NAME']}-{_title(run)}.flent.gz")
        content = gzip.compress(json.dumps(document).encode(), mtime=0)
        written.append(staging.add_bytes(name, content))
    return written


def data_file(run: Run, summary: schema.Summary) -> dict[str, Any]:
    """A run as Flent's JSON document. Raises ExperimentError if the run recorded no series, or an empty one."""
    table = run.flow_series()
    if table is None:
        raise _core.ExperimentError(
            'export: flent needs a time series; run the experiment with [record] series = "200 ms" '
            '(--set record.series="200 ms")'
        )
    starts = np.unique(numbers(table, "time_s"))
    if not starts.size:
        raise _core.ExperimentError(
            f"export: flent needs a time series; that of {_title(run)} is empty: "
            "run the experiment with narrower bins in [record] series"
        )
    step_s = float(starts[1] - starts[0]) if starts.size > 1 else run.summary["simulated_s"]
    x_values = [round(float(start) + step_s, 9) for start in starts]
    test, parameters, samples = _test(list(zip(run.summary["flows"], _recorded(table, run), strict=True)), starts.size)
    return {
        "version": VERSION,
        "x_values": x_values,
        "results": {name: _nullable(values) for name, values in samples.items()},
        "raw_values": {
            name: [
                {"t": t, "val": value}
                for t, value in zip(x_values, _nullable(values), strict=True)
                if value is not None
            ]
            for name, values in samples.items()
            if not _is_combined(name)
        },
        "metadata": {
            "NAME": test,
            "TITLE": _title(run),
            "NOTE": f"{summary['experiment']}; Sojourn {summary['sojourn']}, backend {summary['backend']}"
            f"{_note_of_code_points(run, test)}",
            "TIME": _EPOCH,
            "T0": _EPOCH,
            "LENGTH": round(x_values[-1]),
            "TOTAL_LENGTH": x_values[-1] + _DELAY_S,
            "STEP_SIZE": step_s,
            "TEST_PARAMETERS": parameters,
            "HOST": "receiver",
            "HOSTS": ["receiver"],
            "LOCAL_HOST": "sender",
            "IP_VERSION": 4,
            "DATA_FILENAME": None,
            "SOJOURN_VERSION": _core.version,
            "SEED": run.seed,
            "QUEUE": run.summary["queue"],
        },
    }


class _Series(NamedTuple):
    """What was recorded of a flow: a value per bin, NaN where there is none."""

    mbps: FloatArray
    ping_ms: FloatArray
    is_tcp: bool


Flows = Sequence[tuple[schema.Flow, _Series]]


def _recorded(table: pa.Table, run: Run) -> Iterator[_Series]:
    of = numbers(table, "flow")

    def column(name: str) -> FloatArray:
        return numbers(table, name) if name in table.column_names else np.full(of.size, np.nan)

    goodput_bps, rtt_ms, cwnd = map(column, ("goodput_bps", "rtt_ms", "cwnd_segments"))
    for flow in range(len(run.summary["flows"])):
        own = of == flow
        yield _Series(goodput_bps[own] / 1e6, rtt_ms[own], not np.isnan(cwnd[own]).all())


def _test(flows: Flows, bins: int) -> tuple[str, dict[str, str], Samples]:
    """The corresponding test of Flent, its parameters, and its data sets."""
    if (rrul := _rrul(flows)) is not None:
        return "rrul", {}, rrul
    down, up = (
        [series.mbps for flow, series in flows if flow["direction"] == direction and series.is_tcp]
        for direction in ("down", "up")
    )
    ping = next((series.ping_ms for flow, series in flows if flow["kind"] == "ping"), np.full(bins, np.nan))
    parameters: dict[str, str] = {}
    samples: Samples = {}
    for name, streams in (("download", down), ("upload", up)):
        if streams:
            parameters[f"{name}_streams"] = str(len(streams))
            marked = f"TCP {name}{' BE' if down and up else ''}"
            named = {f"{marked}::{number}": stream for number, stream in enumerate(streams, start=1)}
            samples |= _with_mean_and_sum(f"TCP {name}", named)
    if down and up:
        both = {"TCP totals": np.sum([*down, *up], axis=0), _PING: ping, "Ping (ms) avg": ping}
        return "rrul_be_nflows", parameters, samples | both
    return "tcp_nup" if up else "tcp_ndown" if down else "ping", parameters, samples | {_PING: ping}


_RRUL = ("BE", "BK", "CS5", "EF")  # the code points of rrul's TCP flows, in each direction
_PROBES = ["BE", "BE", "BK", "EF"]  # those of its probes: the ICMP ping, then UDP


def _rrul(flows: Flows) -> Samples | None:
    """The data sets of Flent's rrul; None if the flows are others."""
    tcp = {(flow["direction"], code_point(flow)): series.mbps for flow, series in flows if flow["kind"] != "ping"}
    probes = [(code_point(flow), series.ping_ms) for flow, series in flows if flow["kind"] == "ping"]
    expected = [(direction, point) for direction in ("up", "down") for point in _RRUL]
    if set(tcp) != set(expected) or len(flows) != len(expected) + len(probes):
        return None
    if sorted(point for point, _ in probes) != _PROBES:
        return None
    samples: Samples = {}
    for direction, name in (("up", "TCP upload"), ("down", "TCP download")):
        samples |= _with_mean_and_sum(name, {f"{name} {point}": tcp[direction, point] for point in _RRUL})
    samples["TCP totals"] = np.sum([tcp[key] for key in expected], axis=0)
    pings: Samples = {}
    for point, ms in probes:
        pings[_PING if point == "BE" and _PING not in pings else f"Ping (ms) UDP {point}"] = ms
    mean = np.ma.masked_invalid(np.stack(list(pings.values()))).mean(axis=0)
    return {**samples, **pings, "Ping (ms) avg": mean.filled(np.nan)}


def _with_mean_and_sum(name: str, streams: Samples) -> Samples:
    every = list(streams.values())
    return {f"{name} avg": np.mean(every, axis=0), f"{name} sum": np.sum(every, axis=0), **streams}


def _note_of_code_points(run: Run, test: str) -> str:
    """Which code points the TCP flows have, if Flent's names do not tell."""
    points: dict[str, list[str]] = {"down": [], "up": []}
    for flow in run.summary["flows"]:
        if flow["kind"] == "bulk":
            points[flow["direction"]].append(code_point(flow))
    if test == "rrul" or {*points["down"], *points["up"]} <= {"BE"}:
        return ""
    named = (f"{direction} {', '.join(names)}" for direction, names in points.items() if names)
    return f"; code points of the TCP flows: {'; '.join(named)}"


def _is_combined(name: str) -> bool:
    return name.endswith((" avg", " sum", " totals"))


def _nullable(values: FloatArray) -> list[float | None]:
    return [None if np.isnan(value) else round(float(value), 6) for value in values]


def _title(run: Run) -> str:
    return ", ".join([run.label, *(f"{key} {value}" for key, value in run.summary["set"].items()), f"seed {run.seed}"])
