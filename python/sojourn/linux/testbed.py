"""Runs on a testbed's hosts, in real time and one at a time: each host carries out its part of the job.

Before a plan is run the hosts and the links between them are checked; an error is a line that names the host. Clocks
are compared over ssh: the offset of each agent's monotonic clock is known up to half the round-trip time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from sojourn import _core
from sojourn.linux import host
from sojourn.linux.lab import Connection, Host, Lab, connected, gathered, lacks
from sojourn.linux.programs import LinuxError

PROBE_MS = 150
"""How long a probe of a link sends."""
ABOVE = 1.25
"""The rate of a probe, and what of it must arrive: above and still above the highest rate of the files' queues."""
CARRIED = 1.1
QUIET_MS = 150
"""How long the links are listened to before anything is sent."""
FOREIGN = 0.01
"""The share of the highest rate that may pass them in this time."""
ASKED, MOST_ASKED = 8, 40
"""Questions of a clock, and as long as it is not known well enough."""
ATTEMPTS = 3
"""Probes of a link that seems too slow: a busy host may be."""
OFFSET_S = 0.005
"""The largest uncertainty of a clock's offset, up to which the hosts begin together."""
DRIFT = 200e-6
"""The largest drift of a clock beside ours: twice that of an oscillator in a computer."""
AHEAD_S = 0.1
"""From the last message before a run to its begin."""
MEETING = ("10.8.0.1", "10.8.0.2")
"""The addresses of a probe."""


class Offset(msgspec.Struct, frozen=True, order=True):
    """What a host's monotonic clock shows beyond ours, and when it was compared. The least is the surest."""

    uncertain_ns: int
    ns: int
    at_ns: int

    @classmethod
    def ask(cls, connection: Connection, monitor: _core.Monitor) -> Offset:
        """Asks a host for the time: the quickest answer counts."""

        def once() -> Offset:
            before = time.monotonic_ns()
            there = connection.ask("clock", "clock", monitor)
            after = time.monotonic_ns()
            return cls((after - before) // 2, there - (before + after) // 2, after)

        answers = [once() for _ in range(ASKED)]
        while min(answers).uncertain_ns > OFFSET_S * 1e9 and len(answers) < MOST_ASKED:
            answers.append(once())
        return min(answers)

    def drifts(self, later: Offset) -> str | None:
        """How the clock has drifted until a later comparison, if more than a clock does."""
        span = later.at_ns - self.at_ns
        moved = later.ns - self.ns
        if abs(moved) <= self.uncertain_ns + later.uncertain_ns + DRIFT * span:
            return None
        return f"its clock has moved by {moved / 1e6:.1f} ms in {span / 1e9:.1f} s beside ours"


def check(lab: Lab, plan: _core.Plan) -> None:
    """Checks a testbed before the runs of a plan.

    Raises ExperimentError if a host or a link is not fit; the message names it.
    """
    monitor = _core.Monitor()
    # One of each cell and queue: seeds differ in nothing that matters here.
    specs = {(cell, queue): number for number, (cell, queue, _, _) in enumerate(plan.jobs)}
    jobs = [_core.linux_job(plan[number], "sj") for number in specs.values()]
    parts = [[json.loads(part) for part in _core.linux_parts(job, "sj", lab.machines)] for job in jobs]
    rate, frame = (max(of[0][key] for of in parts) for key in ("bps", "frame"))
    with connected(lab, monitor) as connections:
        try:
            for one, own in zip(connections, zip(*parts, strict=True), strict=True):
                for lack in lacks(one.host, one.ask({"look": _needs(own)}, "seen", monitor), frame):
                    raise lab.refused(one.host, f"{lack['what']}: {lack['remedy']}")
            first = [Offset.ask(one, monitor) for one in connections]
            _prepare(connections, monitor)
            _listen(lab, connections, rate, monitor)
            for sending, receiving in _links(connections):
                _probe(lab, sending, receiving, (rate, frame), monitor)
            for one, before in zip(connections, first, strict=True):
                _compare(lab, one.host, before, Offset.ask(one, monitor))
        except LinuxError as error:
            raise _core.ExperimentError(f"{lab.path}: {error}") from None


def _needs(parts: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """The disciplines and the congestion controls that a host's parts of jobs need of its kernel."""
    added = [step["action"].get("Add") for part in parts for step in part["setup"]]
    flows = [flow["tcp"] for part in parts for flow in part["flows"]]
    return {
        "disciplines": sorted({one["kind"] for one in added if one and one["part"] == "Discipline"}),
        "controls": sorted({tcp["congestion_control"] for tcp in flows if tcp}),
    }


def _prepare(connections: list[Connection], monitor: _core.Monitor) -> None:
    """Puts the interfaces up, without offloads."""
    for one in connections:
        one.tell("prepare")
    gathered(connections, "prepared", monitor)


def _listen(lab: Lab, connections: list[Connection], rate: int, monitor: _core.Monitor) -> None:
    """Checks that nothing else passes the interfaces."""
    for one in connections:
        one.tell({"quiet": {"ms": QUIET_MS}})
    for one, counts in zip(connections, gathered(connections, "passing", monitor), strict=True):
        for wire, passing in zip(one.host.wires, counts, strict=True):
            bps = passing * 8000 // QUIET_MS
            if bps > FOREIGN * rate:
                raise lab.refused(
                    one.host, f"{wire}: other traffic passes, {_mbps(bps)}; must be below {_mbps(FOREIGN * rate)}"
                )


def _links(connections: list[Connection]) -> Iterator[tuple[tuple[Connection, str], tuple[Connection, str]]]:
    """The links between hosts in both directions: who sends and who receives, with their interfaces."""
    (router,) = (one for one in connections if one.host.role == "router")
    for one in connections:
        if one is router:
            continue
        inwards = one.host.role == "sender"
        own, of_router = (one.host.out, router.host.in_) if inwards else (one.host.in_, router.host.out)
        assert own is not None and of_router is not None
        ends = ((one, own), (router, of_router))
        yield from (ends, ends[::-1])


def _probe(
    lab: Lab,
    sending: tuple[Connection, str],
    receiving: tuple[Connection, str],
    largest: tuple[int, int],
    monitor: _core.Monitor,
) -> None:
    """Checks that a link carries more than the highest rate of the queues, so that these are the only bottleneck."""
    rate, frame = largest
    ends = [
        {
            "namespace": f"sj-probe{number}",
            "device": "probe",
            "address": MEETING[number],
            "mac": [2, 0, 0, 8, 0, number + 1],
            "mtu": frame - 14,
        }
        for number in (0, 1)
    ]
    at = [
        {"end": own, "other": other, "wire": wire}
        for own, other, wire in ((ends[0], ends[1], sending[1]), (ends[1], ends[0], receiving[1]))
    ]
    names = f"{sending[0].host.name} {sending[1]}", f"{receiving[0].host.name} {receiving[1]}"
    for _ in range(ATTEMPTS):
        receiving[0].ask({"listen": {"at": at[1], "ms": PROBE_MS + 800}}, "listening", monitor)
        sent = sending[0].ask({"send": {"at": at[0], "bps": int(ABOVE * rate), "ms": PROBE_MS}}, "probed", monitor)
        arrived = receiving[0].hear("probed", monitor)
        if arrived["datagrams"] == 0:
            raise _core.ExperimentError(
                f"{lab.path}: nothing that {names[0]} sends arrives at {names[1]}: is that its link?"
            )
        # What a host sends too slowly is no bottleneck of the link.
        enough = arrived["bytes"] >= sent["bytes"] * CARRIED / ABOVE
        if enough and arrived["span_ns"] <= sent["span_ns"] * 1.2 + 20e6:
            return
    carried = arrived["bytes"] * 8e9 / max(arrived["span_ns"], sent["span_ns"])
    raise _core.ExperimentError(
        f"{lab.path}: {names[0]} to {names[1]} carries {_mbps(carried)}; must be {_mbps(CARRIED * rate)} or more, "
        f"so that the file's queue of {_mbps(rate)} is the only bottleneck"
    )


def _compare(lab: Lab, of: Host, before: Offset, after: Offset) -> None:
    """Checks that a clock is known well enough, and runs like ours."""
    if after.uncertain_ns > OFFSET_S * 1e9:
        raise lab.refused(
            of,
            f"its clock is known up to {after.uncertain_ns / 1e6:.1f} ms; must be {OFFSET_S * 1e3:.0f} ms",
        )
    drift = before.drifts(after)
    if drift is not None:
        raise lab.refused(of, f"{drift}; must be {DRIFT * 1e6:.0f} µs in a second at most")


def _mbps(bps: float) -> str:
    return f"{bps / 1e6:.3g} Mbit/s"


def release(lab: Lab) -> str:
    """The release of the router's kernel; errors as for ``run``."""
    monitor = _core.Monitor()
    with connected(lab, monitor, [one for one in lab.hosts if one.role == "router"]) as (router,):
        return str(router.ask({"look": {"disciplines": [], "controls": []}}, "seen", monitor)["kernel"])


def run(lab: Lab, job_json: str, prefix: str, monitor: _core.Monitor) -> bytes:
    """Runs a job on a testbed; returns its recording. In every case the hosts are as before afterwards.

    Raises ExperimentError if a host cannot be reached, LinuxError if the run failed, and Cancelled if the monitor was
    cancelled.
    """
    parts = _core.linux_parts(job_json, prefix, lab.machines)
    with host.alone(monitor, host.own_lock()), connected(lab, monitor) as connections:
        _prepare(connections, monitor)
        for one, part in zip(connections, parts, strict=True):
            one.tell({"run": json.loads(part)})
        earliest = gathered(connections, "ready", monitor)
        offsets = [Offset.ask(one, monitor) for one in connections]
        # The host that is ready last decides; in our time.
        zero = max(there - offset.ns for there, offset in zip(earliest, offsets, strict=True))
        zero = max(zero, time.monotonic_ns()) + int(AHEAD_S * 1e9)
        for one, offset in zip(connections, offsets, strict=True):
            one.tell({"begin": zero + offset.ns})
        recordings = gathered(connections, "recording", monitor)
        for one, offset in zip(connections, offsets, strict=True):
            drift = offset.drifts(Offset.ask(one, monitor))
            if drift is not None:
                raise LinuxError(f"{one.host.name}: {drift}: the run's times are wrong")
        return _core.linux_joined(job_json, prefix, lab.machines, recordings)
