"""The courses of packets in two runs of one file, and the first packet in which they differ.

A course is a flow's packets at a queue in order of arrival: when each arrived, how long it stayed, its size, and
whether it was delivered, marked or dropped. All later differences may follow from the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sojourn.frame.arrow import numbers
from sojourn.frame.results import Results, Run
from sojourn.frame.series import FATES, rows_of_queue

if TYPE_CHECKING:
    import numpy.typing as npt

Course: TypeAlias = "npt.NDArray[np.int64]"
"""A flow's packets at a queue: a row each for arrival, sojourn time, size and fate."""
SAME_NS = 100_000
"""Times that differ by no more are the same: a kernel counts in units of 64 ns, and reading its clock takes time."""
TIED_NS = 1_000
"""Arrivals that are no further apart are of one instant, whose order a list of departures and drops does not tell."""
HANDSHAKE_BYTES = 80
"""More than a packet of a handshake has. A bulk flow connects before it starts; on Linux before the run, too."""
_DROPPED = FATES["marked"] + 1
"""The fates from this one on differ in the reason of a drop, which not every kernel tells."""


@dataclass(frozen=True)
class Packet:
    """A packet of a course."""

    arrived_ns: int
    sojourn_ns: int
    bytes: int
    fate: int
    """Of ``FATES``; one for all drops."""

    @property
    def end(self) -> str:
        """What became of it, in a word."""
        return {FATES["delivered"]: "delivered", FATES["marked"]: "marked"}.get(self.fate, "dropped")

    def __str__(self) -> str:
        return f"{self.bytes} B at {self.arrived_ns / 1e9:.6f} s, {self.end} after {self.sojourn_ns / 1e6:.3f} ms"


def _packet(course: Course, index: int) -> Packet | None:
    """A packet of a course; None behind the last."""
    return Packet(*map(int, course[:, index])) if index < course.shape[1] else None


def _since(course: Course, other: Course) -> Course:
    """A course without the packets of a handshake that precede all of another course."""
    if 0 in (course.shape[1], other.shape[1]):
        return course
    early = (course[0] < other[0, 0] - SAME_NS) & (course[2] < HANDSHAKE_BYTES)
    return course[:, int(np.argmin(early)) :]


def _common(course: Course, other: Course) -> int | None:
    """The packets at the beginning of two courses that are the same; None if all are."""
    most = min(course.shape[1], other.shape[1])
    differs = np.any(np.abs(course[:, :most] - other[:, :most]) > [[SAME_NS], [SAME_NS], [0], [0]], axis=0)
    if differs.any():
        return int(np.argmax(differs))
    return most if course.shape[1] != other.shape[1] else None


@dataclass(frozen=True)
class Parting:
    """The first packet that differs. Of two flows that differ, that of the packet which arrived first."""

    queue: str
    flow: int
    number: int
    """Which of the flow's packets at this queue it is, from 1."""
    first: Packet | None
    """The reference's; None if its course has ended."""
    second: Packet | None
    same: int
    """Packets of the reference that arrived before it, at all queues."""

    @property
    def at_ns(self) -> int:
        """When it arrived, in the run in which that was earlier."""
        return min(packet.arrived_ns for packet in (self.first, self.second) if packet is not None)


def courses(run: Run, queue: str) -> dict[int, Course]:
    """By flow; empty if packets were not recorded."""
    table = run.packets()
    if table is None:
        return {}
    table = table.filter(rows_of_queue(run, table, queue))
    left, sojourn, size, fate, flow = (
        numbers(table, name).astype(np.int64) for name in ("time_ns", "sojourn_ns", "bytes", "fate", "flow")
    )
    arrived = left - sojourn
    columns = np.stack([arrived, sojourn, size, np.minimum(fate, _DROPPED)])
    return {int(one): _in_order(columns[:, flow == one]) for one in np.unique(flow)}


def _in_order(columns: Course) -> Course:
    """In order of arrival; of one instant those that were dropped are last, the others as they left."""
    columns = columns[:, np.argsort(columns[0], kind="stable")]
    arrived, sojourn, _, fate = columns
    instant = np.cumsum(np.diff(arrived, prepend=arrived[:1]) > TIED_NS)
    return columns[:, np.lexsort((arrived + sojourn, fate == _DROPPED, instant))]


def parting(reference: Run, other: Run, queues: Sequence[str]) -> Parting | None:
    """The first packet that differs in two runs; None if all are the same."""
    found: list[Parting] = []
    all_of_reference = []
    for queue in queues:
        first, second = courses(reference, queue), courses(other, queue)
        all_of_reference += [course[0] for course in first.values()]
        for flow in first.keys() | second.keys():
            empty = np.empty((4, 0), np.int64)
            one, its = first.get(flow, empty), second.get(flow, empty)
            one, its = _since(one, its), _since(its, one)
            common = _common(one, its)
            if common is not None:
                found.append(Parting(queue, flow, common + 1, _packet(one, common), _packet(its, common), 0))
    if not found:
        return None
    earliest = min(found, key=lambda one: (one.at_ns, one.queue, one.flow))
    before = sum(int(np.count_nonzero(arrived < earliest.at_ns)) for arrived in all_of_reference)
    return replace(earliest, same=before)


def partings(named: Mapping[str, Results]) -> Iterator[tuple[str, str, int, Parting | None]]:
    """Of each result but the reference: its name, then arm, seed and first difference of every run."""
    (_, reference), *others = named.items()
    for name, results in others:
        for one, its in zip(reference.arms, results.arms, strict=True):
            by_seed = {run.seed: run for run in its.runs}
            for run in one.runs:
                if run.seed in by_seed:
                    yield name, one.name, run.seed, parting(run, by_seed[run.seed], reference.queues)


def sentences(named: Mapping[str, Results]) -> Iterator[str]:
    """The first packet that differs, a line per run."""
    reference = next(iter(named))
    for name, arm, seed, found in partings(named):
        where = f"{arm}, seed {seed}: {name} and {reference}"
        if found is None:
            yield f"{where}: all packets are the same"
            continue
        packets = f"{reference}: {found.first or 'none'}; {name}: {found.second or 'none'}"
        yield (
            f"{where}: the first {found.same} packets are the same; then packet {found.number} of flow {found.flow} "
            f"{found.queue} differs ({packets})"
        )


def as_rows(named: Mapping[str, Results]) -> list[dict[str, object]]:
    """The same for JSON: ``packet`` is null if all are the same."""
    reference = next(iter(named))
    rows: list[dict[str, object]] = []
    for name, arm, seed, found in partings(named):
        row: dict[str, object] = {"arm": arm, "seed": seed, "result": name}
        if found is None:
            row |= {"packet": None}
        else:
            packets = {reference: found.first, name: found.second}
            row |= {"packet": found.number, "flow": found.flow, "queue": found.queue, "same": found.same}
            row |= {of: packet and {**vars(packet), "fate": packet.end} for of, packet in packets.items()}
        rows.append(row)
    return rows
