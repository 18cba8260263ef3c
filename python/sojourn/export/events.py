"""Recorded packets of a queue as events files, for ``sojourn replay``.

A file per run and queue: a row per arrival and departure, with flows, ECN fields and marks, in the order
of time. Packets that the algorithm refused on arrival have no row.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sojourn._core import ExperimentError
from sojourn.files.storage import Staging, file_name
from sojourn.frame.arrow import numbers
from sojourn.frame.results import Results, Run
from sojourn.frame.series import FATES
from sojourn.frame.swept import as_in_file

_MARKED = FATES["marked"]
_HEADERS_ONLY = 100  # bytes on the link up to which a packet is taken for one without data, which is not ECN-capable
_BY_SOCKET = ("fq", "fq_codel", "fq_nocodel", "fq_pie", "hhf", "cake")
"""Disciplines of Linux that take a packet's hash from its socket (skb->hash), not from its header."""
_RESET = 54  # bytes of a TCP header without options, with Ethernet's
_NOT_ECT, _ECT1, _ECT0 = 0, 1, 2
_OF_DATAGRAMS = {"not-ect": _NOT_ECT, "ect1": _ECT1, "ect0": _ECT0}
"""The values of the key ``ecn`` of traffic without a connection."""
_KEYS_OF_OTHERS = ("aqm", "label")
_TEXTS = ("label", "run", "seed")
Integers = npt.NDArray[np.int64]


def stage(results: Results, staging: Staging) -> list[Path]:
    """Stages the events files. Raises ExperimentError if no packets were recorded."""
    cells = cells_of(results)
    written = []
    for run, link, way, table in tables(results):
        # Empty if the results lack experiment.json.
        queue: dict[str, Any] = next((one for cell in cells for one in cell["queue"] if one["label"] == run.label), {})
        by_socket = queue.get("aqm", run.label) in _BY_SOCKET
        rows = _rows(table, _capability(run, cells), by_socket=by_socket)
        keys = " ".join(f'{key}="{as_in_file(queue[key])}"' for key in queue if key not in _KEYS_OF_OTHERS)
        heading = f"# {queue.get('aqm', run.label)} {keys}", "# E id t_us bytes flow ecn, D id t_us ce"
        text = "\n".join([*heading, *rows, ""])
        name = file_name(f"{run.label}-seed{run.seed}-link{link}-{way}.txt.gz")
        written.append(staging.add_bytes(name, gzip.compress(text.encode(), mtime=0)))
    return written


def tables(results: Results) -> Iterator[tuple[Run, int, str, dict[str, Integers]]]:
    """Each queue of each run: the link's number, the direction, and the columns of its recorded packets."""
    has_any = False
    for run in results.runs:
        packets = run.packets()
        if packets is None:
            continue
        table = {name: numbers(packets, name).astype(np.int64) for name in packets.column_names if name not in _TEXTS}
        for link, direction in sorted(set(zip(table["link"].tolist(), table["direction"].tolist(), strict=True))):
            here = (table["link"] == link) & (table["direction"] == direction)
            has_any = True
            yield run, link, "up" if direction else "down", {name: column[here] for name, column in table.items()}
    if not has_any:
        raise ExperimentError("export: no packets were recorded; needs record.packets = true")


def cells_of(results: Results) -> list[dict[str, Any]]:
    """The experiment of the runs, if it is known. Raises ExperimentError if there are several, or it is damaged."""
    try:
        cells: list[dict[str, Any]] = json.loads(results.resolved_json or "[]")
    except (ValueError, RecursionError):
        raise ExperimentError("export: experiment.json of the results is damaged: not JSON") from None
    if len(cells) > 1:
        raise ExperimentError("export: a sweep has several experiments; run one of them with --set")
    return cells


def _capability(run: Run, cells: list[dict[str, Any]]) -> Integers:
    """The ECN field of each flow's data."""
    fields = []
    for flow in run.summary["flows"]:
        traffic = cells[0]["traffic"][flow["traffic"]] if cells else {}
        if traffic.get("kind") == "cbr":
            fields.append(_OF_DATAGRAMS[traffic.get("ecn", "not-ect")])
        elif traffic.get("tcp") == "prague":
            fields.append(_ECT1)
        else:
            fields.append(_ECT0 if traffic.get("ecn") or traffic.get("tcp") == "dctcp" else _NOT_ECT)
    return np.array(fields, dtype=np.int64)


def _rows(table: dict[str, Integers], capability: Integers, *, by_socket: bool) -> Iterator[str]:
    """The events in the order of time. Those of one instant get their most probable order, since it was not recorded.

    A packet that arrived earlier leaves before another arrives, and one that does not wait leaves before the next
    arrives. Arrivals of one instant are in the order in which their fates were decided. Those dropped for lack of room
    come last and in reverse order: room is made at the tail of a queue, so the packet dropped first arrived last.
    ``by_socket``: the discipline takes the hash of a packet's socket; a reset, which has none, is in another queue.
    """
    left, fate = table["time_ns"], table["fate"]
    entered = left - table["sojourn_ns"]
    is_delivered = fate <= _MARKED
    # Packets dropped by the algorithm on arrival never entered. Those without room were at the tail of a queue.
    has_no_room = fate == FATES["dropped for lack of room"]
    is_queued = is_delivered | (table["sojourn_ns"] > 0) | has_no_room
    flows = capability.size
    is_reset = by_socket & (table["bytes"] == _RESET)
    flow = table["flow"] + flows * np.where(is_reset, 2, table["returning"])
    has_data = (table["returning"] == 0) & (table["bytes"] > _HEADERS_ONLY)
    ecn = np.where(has_data & (table["flow"] < flows), capability[np.minimum(table["flow"], flows - 1)], _NOT_ECT)
    # A packet that the algorithm dropped instead of marking was not ECN-capable: a retransmission.
    ecn[fate == FATES["dropped by the algorithm"]] = _NOT_ECT
    order = np.lexsort((np.where(has_no_room, -left, 0), has_no_room, entered))
    order = order[is_queued[order]]
    number = np.empty(left.size, dtype=np.int64)
    number[order] = np.arange(order.size)
    departures = np.flatnonzero(is_delivered)
    times = np.concatenate([entered[order], left[departures]])
    kinds = np.concatenate([np.zeros(order.size, np.int64), np.ones(departures.size, np.int64)])
    waited = np.concatenate([np.zeros(order.size, np.int64), table["sojourn_ns"][departures] > 0])
    packets = np.concatenate([order, departures])
    # Packets that waited leave in the order of the table.
    arrival = np.where(waited, -1, number[packets])
    for event in np.lexsort((kinds, arrival, times)):
        packet, (whole, part) = packets[event], divmod(int(times[event]), 1000)
        t_us = f"{whole}.{part:03}" if part else str(whole)
        if kinds[event]:
            yield f"D {number[packet]} {t_us} {int(fate[packet] == FATES['marked'])}"
        else:
            yield f"E {number[packet]} {t_us} {table['bytes'][packet]} {flow[packet]} {ecn[packet]}"
