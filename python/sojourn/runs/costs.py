"""What a run needs: memory and disk space, by its traffic, and processor time, by making it for a moment.

Processor time does not depend on what else the machine does.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sojourn import _core
from sojourn.frame.swept import links_in, number_of, quantity

PACKET_BYTES = 120.0
"""Memory of a queued packet, whatever its size: measured with 3.5 million of them."""
FRAME_BYTES = 1514.0
FLOW_BYTES = 4_900.0
"""Memory of a flow while its run is made: measured with 10 000 and 100 000 bulk flows."""
FLOW_SUMMARY_BYTES = 350.0
"""A flow's part of a run's summary in JSON."""
RECORDED_ROW_BYTES = 64.0
"""Memory of a row of a recorded table while it is written."""
KEPT_ROW_BYTES = {"packets": 36.0, "rtt": 14.0, "medium": 40.0, "series": 50.0}
"""Memory of a row that is only kept: measured with 45 runs."""
ON_DISK = {"packets": 12.5, "rtt": 7.5, "medium": 20.0}
"""Bytes on disk of a row of a recorded table, measured: of packets 9.4 (few bulk flows) to 15.6 (a mix both ways)."""
LINK_SERIES_BYTES, FLOW_SERIES_BYTES = 20.0, 6.0
"""The same of a series, per link and direction, and per flow if its figures change from interval to interval."""
CHANGES_S = 0.1
"""In shorter intervals many of a flow's figures stay as they were, and their rows are shorter on disk."""
CAPTURED_BYTES = 165.0
"""Bytes of a capture per packet, with its share of acknowledgements: measured on bulk flows."""
QLOG_BYTES = 600.0
"""Bytes of qlogs per packet, with its share of acknowledgements and of changes: measured on a bulk flow."""
TABLES_BYTES = 10_000.0
"""Histograms and the ends of tables, on disk."""
TRIALS_BYTES = 10e6
"""Memory that trials take in any process: it is part of ``BASE_MB`` of ``cli.estimate``."""
LEAST_SHARE = 1e-6
"""Least part of a run that a trial is taken to have made, and its first step."""
LONGER = 3.0
"""How much longer the trial of a run takes whose flows have not all begun in its time: it is a large one."""
LOOK_S = 0.005
"""Least processor time between two looks at how far a trial is."""


class Recording(NamedTuple):
    """The recordings of a run, in bytes."""

    disk: float
    memory: float
    """Until they are written."""
    kept: float
    """If they are not written."""


def possible(run_at: Callable[[int], _core.RunSpec], indices: Iterable[int]) -> Iterator[_core.RunSpec]:
    """The runs of a sweep with these indices, without those whose swept values cannot go together."""
    for index in indices:
        with contextlib.suppress(_core.ExperimentError):
            yield run_at(index)


def flows_of(spec: _core.RunSpec) -> int:
    """The number of flows."""
    traffic = json.loads(spec.document)["experiment"]["traffic"]
    return sum(int(one.get("flows", 1)) * (2 if one.get("direction") == "both" else 1) for one in traffic)


def recording(spec: _core.RunSpec) -> Recording:
    """What the run records, estimated from the packets that its traffic sends."""
    experiment = json.loads(spec.document)["experiment"]
    record, packets = experiment["record"], spec.packets
    there = {"packets": spec.queued_packets, "rtt": packets, "medium": packets}
    rows = {name: count for name, count in there.items() if record.get(name)}
    captured = packets * (CAPTURED_BYTES * bool(record.get("pcap")) + QLOG_BYTES * bool(record.get("qlog")))
    disk = sum(count * ON_DISK[name] for name, count in rows.items()) + captured + TABLES_BYTES
    bin_ = quantity(record.get("series"))
    if bin_ is not None and bin_.value:
        bin_s = bin_.value / 1000.0
        links = links_in(experiment)
        flow_bytes = FLOW_SERIES_BYTES * min(1.0, math.sqrt(bin_s / CHANGES_S))
        bins = spec.duration_s / bin_s
        rows["series"] = bins * (flows_of(spec) + len(links))
        disk += bins * (flows_of(spec) * flow_bytes + len(links) * LINK_SERIES_BYTES)
    kept = sum(count * KEPT_ROW_BYTES[name] for name, count in rows.items()) + captured
    return Recording(disk, sum(rows.values()) * RECORDED_ROW_BYTES + captured, kept)


def queued_bytes(spec: _core.RunSpec) -> float:
    """Memory of the packets that wait at the end: datagrams faster than the slowest link, at most the limit."""
    experiment = json.loads(spec.document)["experiment"]
    return sum(_queued_packets(experiment, way, spec.duration_s) for way in ("down", "up")) * PACKET_BYTES


def refuse_too_large(specs: Iterable[_core.RunSpec], workers: int) -> None:
    """Checks that this many of the runs fit into memory together. Raises ExperimentError if they do not."""
    if sys.platform == "win32":
        return  # Its memory is not known.
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


def _queued_packets(experiment: Mapping[str, Any], way: str, duration_s: float) -> float:
    links = links_in(experiment)
    arriving = [
        (number_of(one["rate"]) * one.get("flows", 1) / 8.0, number_of(one["packet"]))
        for one in experiment["traffic"]
        if one["kind"] == "cbr" and one["direction"] == way
    ]
    per_s = sum(rate / size for rate, size in arriving if size)
    if not per_s:
        return 0.0
    mean_bytes = sum(rate for rate, _ in arriving) / per_s
    both = [{**link, **link["up"]} if way == "up" and isinstance(link.get("up"), dict) else link for link in links]
    slowest = min((number_of(link.get("rate")) / 8.0 for link in both), default=0.0)
    # A rate that varies has no number here; half of what arrives may then leave.
    leaving_per_s = slowest / mean_bytes if slowest else per_s / 2.0
    queues = [*experiment["queue"], *(link["queue"] for link in links if isinstance(link.get("queue"), dict))]
    return float(min(max(0.0, per_s - leaving_per_s) * duration_s, max(map(_limit_packets, queues))))


def _limit_packets(queue: Mapping[str, Any]) -> float:
    limits = [quantity(queue.get(key)) for key in ("limit", "memory_limit", "memlimit")]
    packets = [one.value / (FRAME_BYTES if one.unit == "bytes" else 1.0) for one in limits if one is not None]
    return min(packets, default=0.0)


class Trial(NamedTuple):
    """The measurements of the trial runs."""

    costs: dict[str, float]
    """Seconds of a processor per unit of effort, by discipline."""
    cost: float
    """The same of all trials together."""
    summary_kb: float | None
    """Size of a run's summary; None if none was finished in its time."""
    memory: dict[str, float]
    """Bytes by which a discipline's trial made the process grow: none if it fitted into what others had taken."""

    def cpu_s(self, spec: _core.RunSpec) -> float:
        """Estimated seconds of a processor for a run."""
        return spec.effort * self.costs.get(spec.queue, self.cost)


def trial(specs: Iterable[_core.RunSpec], each_s: float) -> Trial:
    """Makes each run for about ``each_s`` of wall time in the simulator. Raises RunError if none can be run."""
    measured: dict[str, tuple[float, float]] = {}
    kilobytes: list[float] = []
    failed: _core.RunError | None = None
    memory: dict[str, float] = {}
    before = highest = _most_memory() + TRIALS_BYTES
    for spec in specs:
        try:
            of_run_s, kilobyte = _cpu_s(spec, each_s)
        except _core.RunError as error:
            failed = error
            continue
        kilobytes += [] if kilobyte is None else [kilobyte]
        if (now := _most_memory()) > highest:
            memory[spec.queue], highest = now - before, now
        cpu_s, effort = measured.get(spec.queue, (0.0, 0.0))
        measured[spec.queue] = cpu_s + of_run_s, effort + spec.effort
    if failed is not None and not measured:
        raise failed
    costs = {queue: max(cpu_s, 1e-6) / effort for queue, (cpu_s, effort) in measured.items()}
    whole = [sum(both) for both in zip(*measured.values(), strict=True)] or [0.0, 1.0]
    mean_kb = sum(kilobytes) / len(kilobytes) if kilobytes else None
    return Trial(costs, max(whole[0], 1e-6) / whole[1], mean_kb, memory)


def _most_memory() -> float:
    """The peak of this process's resident memory, in bytes; 0 on systems other than Linux."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return float(line.split()[1]) * 1024.0
    return 0.0


def is_python(spec: _core.RunSpec) -> bool:
    """Whether the run has a discipline in Python: threads make such runs one after another."""
    return bool(json.loads(spec.document).get("own"))


def _cpu_s(spec: _core.RunSpec, each_s: float) -> tuple[float, float | None]:
    """The processor time of a whole run, from that of its part; the size of its summary if it has ended."""
    needed_s, kilobytes, reached_s = _tried(spec, each_s)
    together, last_s = _begun_together(spec)
    if kilobytes is None and reached_s < last_s:
        # A packet takes more the more flows and queues there are in the processor's caches: all are needed.
        needed_s = _tried(together, LONGER * each_s)[0] * spec.effort / together.effort
    return needed_s, kilobytes


def _begun_together(spec: _core.RunSpec) -> tuple[_core.RunSpec, float]:
    """The run with all flows of a group beginning when its first does, and when the last flow of all begins."""
    document = json.loads(spec.document)
    last_s = 0.0
    for traffic in document["experiment"]["traffic"]:
        first, _, last = traffic["start"].partition("..")
        if last:
            traffic["start"] = first
            last_s = max(last_s, number_of(last) / 1000.0)
    return _core.RunSpec.read(json.dumps(document)), last_s


def _tried(spec: _core.RunSpec, each_s: float) -> tuple[float, float | None, float]:
    """As ``_cpu_s``, of this run as it is, and how far it has come, in simulated seconds."""
    start_s = time.thread_time()
    session = _core.Session(spec)
    span_s = spec.duration_s * LEAST_SHARE
    session.step(span_s)
    looks = [(time.thread_time(), session.now_s)]
    until_s = time.monotonic() + each_s
    while not session.finished and time.monotonic() < until_s:
        looked_s = time.thread_time()
        session.step(span_s)
        if time.thread_time() - looked_s < LOOK_S:
            span_s *= 2.0
        looks.append((time.thread_time(), session.now_s))
    ended_s, reached_s = looks[-1]
    if session.finished:
        summary = session.finish().summary_json
        return time.thread_time() - start_s, len(summary) / 1000, reached_s
    # The second half of the trial: connections are there, and queues.
    half_s = (looks[0][0] + ended_s) / 2.0
    begun = max(look for look in looks[:-1] if look[0] <= half_s)
    shares = [spec.progress(at_s) for at_s in (begun[1], reached_s)]
    return whole_s(start_s, (begun[0], shares[0]), (ended_s, shares[1])), None, reached_s


def whole_s(start_s: float, begun: tuple[float, float], now: tuple[float, float]) -> float:
    """The processor time of a run, given that at two moments, and the part of the run's packets that was sent by then.

    What it needs before the first, as with very many flows, is counted once, and what then for all that is left.
    """
    made = max(now[1] - begun[1], LEAST_SHARE)
    return begun[0] - start_s + (now[0] - begun[0]) * (1.0 - begun[1]) / made
