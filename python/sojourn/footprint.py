"""The memory that the queues of a run need, for experiments that would not fit into the machine."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from sojourn import _core
from sojourn.swept import quantity

PACKET_BYTES = 120.0
"""Memory of a queued packet, whatever its size: measured with 3.5 million of them."""
FRAME_BYTES = 1514.0


def queued_bytes(spec: _core.RunSpec) -> float:
    """Memory of the packets that wait at the end of a run: datagrams faster than its slowest link, at most the limit.

    Traffic that adapts to the link is not counted.
    """
    experiment = json.loads(spec.document)["experiment"]
    links = experiment["link"] if isinstance(experiment["link"], list) else [experiment["link"]]
    return sum(_queued_packets(experiment, links, way, spec.duration_s) for way in ("down", "up")) * PACKET_BYTES


def refuse_too_large(specs: Iterable[_core.RunSpec], workers: int) -> None:
    """Checks that this many of the runs fit into memory together.

    Raises
    ------
    ExperimentError
        They do not.
    """
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for spec in specs:
        needed = queued_bytes(spec) * workers
        if needed > there:
            together = f", {workers} at a time" if workers > 1 else ""
            raise _core.ExperimentError(
                f"{spec.name}: {spec.label}: the queue would hold packets that need {needed / 1e9:.0f} GB of memory"
                f"{together}; this machine has {there / 1e9:.0f} GB: lower queue.limit, the datagrams' rate, the "
                f"duration or --jobs"
            )


def _queued_packets(
    experiment: Mapping[str, Any], links: list[Mapping[str, Any]], way: str, duration_s: float
) -> float:
    arriving = [
        (_value(one["rate"]) * one.get("flows", 1) / 8.0, _value(one["packet"]))
        for one in experiment["traffic"]
        if one["kind"] == "cbr" and one["direction"] == way
    ]
    per_s = sum(rate / size for rate, size in arriving if size)
    if not per_s:
        return 0.0
    mean_bytes = sum(rate for rate, _ in arriving) / per_s
    slowest = min((_value(_one_way(link, way).get("rate"), 0.0) / 8.0 for link in links), default=0.0)
    # A rate that varies has no number here; half of what arrives may then leave.
    leaving_per_s = slowest / mean_bytes if slowest else per_s / 2.0
    queues = [*experiment["queue"], *(link["queue"] for link in links if isinstance(link.get("queue"), dict))]
    return float(min(max(0.0, per_s - leaving_per_s) * duration_s, max(map(_limit_packets, queues))))


def _one_way(link: Mapping[str, Any], way: str) -> Mapping[str, Any]:
    up = link.get("up")
    return {**link, **up} if way == "up" and isinstance(up, dict) else link


def _limit_packets(queue: Mapping[str, Any]) -> float:
    limits = [quantity(queue.get(key)) for key in ("limit", "memory_limit", "memlimit")]
    packets = [one.value / (FRAME_BYTES if one.unit == "bytes" else 1.0) for one in limits if one is not None]
    return min(packets, default=0.0)


def _value(given: object, unknown: float = 0.0) -> float:
    found = quantity(given)
    return unknown if found is None else found.value
