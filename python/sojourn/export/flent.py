"""Flent's data files, format version 4 (Flent's documentation, "The data file format").

The Flent test of a run follows from its flows, so that Flent knows the available plots: ``rrul`` if they are those of
Flent's rrul, by direction and code point; otherwise ``tcp_ndown``, ``tcp_nup``, or ``rrul_be_nflows`` for TCP in both
directions. A ping is the mean round-trip time of its replies in each bin, null if there is none.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from sojourn import _core, schema
from sojourn.files.storage import Staging, file_name
from sojourn.frame.arrow import numbers
from sojourn.frame.groups import code_point
from sojourn.frame.results import Direction, Results, Run
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
    columns = {
        name: numbers(table, name)
        for name in ("flow", "goodput_bps", "cwnd_segments", "rtt_ms")
        if name in table.column_names
    }
    test, parameters, samples = _test(run, columns)
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


def _test(run: Run, columns: Mapping[str, Any]) -> tuple[str, dict[str, str], Samples]:
    """The corresponding test of Flent, its parameters, and its data sets."""
    flows = list(enumerate(run.summary["flows"]))

    def goodputs(direction: Direction) -> list[FloatArray]:
        """The goodput of each TCP flow in this direction, in Mbit/s."""
        own = [index for index, flow in flows if flow["direction"] == direction]
        tcp = [index for index in own if not np.isnan(_of_flow(columns, index, "cwnd_segments")).all()]
        return [_of_flow(columns, index, "goodput_bps") / 1e6 for index in tcp]

    if (rrul := _rrul(run, columns)) is not None:
        return "rrul", {}, rrul
    down, up = goodputs("down"), goodputs("up")
    pings = [_of_flow(columns, index, "rtt_ms") for index, flow in flows if flow["kind"] == "ping"]
    bins = len(_of_flow(columns, 0, "goodput_bps"))
    ping = {_PING: pings[0] if pings else np.full(bins, np.nan)}
    marking = " BE" if down and up else ""
    parameters: dict[str, str] = {}
    samples: Samples = {}
    for way, streams in (("download", down), ("upload", up)):
        if streams:
            parameters[f"{way}_streams"] = str(len(streams))
            samples |= _streams(f"TCP {way}", marking, streams)
    if down and up:
        total = {"TCP totals": cast("FloatArray", np.sum([*down, *up], axis=0))}
        return "rrul_be_nflows", parameters, {**samples, **total, **ping, "Ping (ms) avg": ping[_PING]}
    return "tcp_nup" if up else "tcp_ndown" if down else "ping", parameters, {**samples, **ping}


_RRUL = ("BE", "BK", "CS5", "EF")  # the code points of rrul's TCP flows, in each direction
_PROBES = ("BE", "BE", "BK", "EF")  # those of its probes: the ICMP ping, then UDP


def _rrul(run: Run, columns: Mapping[str, Any]) -> Samples | None:
    """The data sets of Flent's rrul; None if the flows are others."""
    tcp: dict[tuple[str, str], int] = {}
    probes: list[tuple[str, int]] = []
    for index, flow in enumerate(run.summary["flows"]):
        if flow["kind"] == "ping":
            probes.append((code_point(flow), index))
        else:
            tcp[flow["direction"], code_point(flow)] = index
    expected = {(direction, point) for direction in ("down", "up") for point in _RRUL}
    if set(tcp) != expected or len(run.summary["flows"]) != len(expected) + len(probes):
        return None
    if tuple(sorted(point for point, _ in probes)) != _PROBES:
        return None
    samples: Samples = {}
    for direction, name in (("up", "TCP upload"), ("down", "TCP download")):
        streams = {f"{name} {point}": _of_flow(columns, tcp[direction, point], "goodput_bps") / 1e6 for point in _RRUL}
        samples |= {**_combined(name, list(streams.values())), **streams}
    every = [values for name, values in samples.items() if not _is_combined(name)]
    icmp = min(index for point, index in probes if point == "BE")
    pings = {
        _PING if index == icmp else f"Ping (ms) UDP {point}": _of_flow(columns, index, "rtt_ms")
        for point, index in probes
    }
    mean = _mean_of_known(list(pings.values()))
    return {**samples, "TCP totals": cast("FloatArray", np.sum(every, axis=0)), **pings, "Ping (ms) avg": mean}


def _mean_of_known(series: list[FloatArray]) -> FloatArray:
    """The mean of the values in each bin; NaN if there is none."""
    stacked = np.stack(series)
    known = (~np.isnan(stacked)).sum(axis=0)
    total = np.nansum(stacked, axis=0)
    mean: FloatArray = np.divide(total, known, out=np.full(len(total), np.nan), where=known > 0)
    return mean


def _note_of_code_points(run: Run, test: str) -> str:
    """Which code points the TCP flows have, if Flent's names do not tell."""
    points = {
        direction: [
            code_point(flow)
            for flow in run.summary["flows"]
            if (flow["direction"], flow["kind"]) == (direction, "bulk")
        ]
        for direction in ("down", "up")
    }
    if test == "rrul" or set().union(*map(set, points.values())) <= {"BE"}:
        return ""
    return "; code points of the TCP flows: " + "; ".join(
        f"{direction} {', '.join(names)}" for direction, names in points.items() if names
    )


def _combined(name: str, streams: list[FloatArray]) -> Samples:
    return {
        f"{name} avg": cast("FloatArray", np.mean(streams, axis=0)),
        f"{name} sum": cast("FloatArray", np.sum(streams, axis=0)),
    }


def _streams(name: str, marking: str, streams: list[FloatArray]) -> Samples:
    return {
        **_combined(name, streams),
        **{f"{name}{marking}::{number}": stream for number, stream in enumerate(streams, start=1)},
    }


def _is_combined(name: str) -> bool:
    return name.endswith((" avg", " sum", " totals"))


def _of_flow(columns: Mapping[str, Any], flow: int, name: str) -> FloatArray:
    """A flow's values in the order of the bins; NaN if there is no such column."""
    own = columns["flow"] == flow
    if name not in columns:
        return np.full(int(own.sum()), np.nan)
    return cast("FloatArray", columns[name][own])


def _nullable(values: FloatArray) -> list[float | None]:
    return [None if np.isnan(value) else round(float(value), 6) for value in values]


def _title(run: Run) -> str:
    return ", ".join([run.label, *(f"{key} {value}" for key, value in run.summary["set"].items()), f"seed {run.seed}"])
