"""The log of validation's radio (wifi_radio/sojourn_wifi.c), and what it tells of each station."""

from __future__ import annotations

import math
import statistics
import struct
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

RECORD = struct.Struct("=QBBBBHHIIII")
ARRIVAL, PICK, FRAME, EMPTY, RETURN, DONE, ANSWER, HEARD, DONE_UP, SUBFRAME, TRY = range(1, 12)
MS, S = 10**6, 10**9
LONGEST_ACK, ON_AIR, ETHERNET = 100, 34, 14
"""Bytes of an acknowledgement with blocks of SACK, rounded up; those before a packet of IP on the air, on Ethernet."""


class Record(NamedTuple):
    """A record of the radio's log, as in sojourn_wifi.c."""

    ns: int
    kind: int
    station: int
    tid: int
    ds: int
    bytes: int
    port: int
    number: int
    value: int
    hash: int
    truesize: int


class Figures(NamedTuple):
    """What a station got after the warm-up."""

    goodput_mbps: float
    """Of IP packets."""
    segments_per_ack: float
    """Segments with data that it received, by acknowledgements that it sent."""
    frames: float
    """Of an aggregate with data, the mean."""
    p50_ms: float
    p95_ms: float
    """From a packet's arrival at its queue to the end of its transmission."""
    airtime: float
    """Its share of the time on the air with an answer, both ways."""
    collided: float
    """Of what was sent to it and from it, the share that collided."""


class Transmission(NamedTuple):
    """Frames that arrived together."""

    ns: int
    """When."""
    station: int
    up: bool
    packets: list[tuple[int, float]]
    """Bytes of IP, and ms from the packet's arrival at its queue to its end on the air."""


def transmissions(records: Sequence[Record]) -> Iterator[Transmission]:
    """All transmissions in the radio's log."""
    # Of a segment that is sent again the last one counts.
    entered: dict[tuple[int, int, int, int], int] = {}
    on_air: dict[tuple[int, bool], deque[tuple[int, tuple[int, int, int, int]]]] = defaultdict(deque)
    for record in records:
        up = record.kind in (ANSWER, HEARD, DONE_UP)
        segment = (record.station, up, record.port, record.number)
        if record.kind in (ARRIVAL, ANSWER):
            entered[segment] = record.ns
        elif record.kind in (FRAME, HEARD):
            size = record.bytes - (ETHERNET if up else ON_AIR)
            on_air[record.station, up].append((size, segment))
        elif record.kind in (DONE, DONE_UP):
            frames = (on_air[record.station, up].popleft() for _ in range(record.bytes))
            packets = [(size, (record.ns - entered[segment]) / MS) for size, segment in frames]
            yield Transmission(record.ns, record.station, up, packets)


class Try(NamedTuple):
    """What a sender put on the air at once."""

    ns: int
    """When it began."""
    station: int
    """To or from which one, from 1 on."""
    up: bool
    air_ns: int
    """With the answer."""
    frames: int
    collided: bool


def tries(records: Sequence[Record]) -> Iterator[Try]:
    """All in the radio's log."""
    for one in records:
        if one.kind == TRY:
            yield Try(one.ns, one.station, bool(one.hash), one.value, one.bytes, one.number > 1)


class OnAir(NamedTuple):
    """A station's use of the medium."""

    frames: float
    """Of an aggregate in the direction of the data, the mean; without those that collided."""
    airtime: float
    collided: float


def of_tries(found: Iterator[Try], up: bool, begin: int, end: int) -> list[OnAir]:
    """By station, between these times."""
    airtime: Counter[int] = Counter()
    sent: Counter[int] = Counter()
    collided: Counter[int] = Counter()
    frames: dict[int, list[int]] = defaultdict(list)
    for one in found:
        if not begin <= one.ns < end:
            continue
        sent[one.station] += 1
        collided[one.station] += one.collided
        if not one.collided:
            airtime[one.station] += one.air_ns
            if one.up == up:
                frames[one.station].append(one.frames)
    return [
        OnAir(statistics.fmean(frames[station]), airtime[station] / airtime.total(), collided[station] / sent[station])
        for station in sorted(frames)
    ]


def of_log(
    records: Sequence[Record],
    up: bool = False,
    *,
    warmup_s: float,
    long_s: float,
    began_s: float = 0,
) -> list[Figures]:
    """The figures of each station from the radio's log.

    ``up``: stations send. ``began_s``: the run's time at the first record.
    """
    begin, end = (records[0].ns + round((s - began_s) * S) for s in (warmup_s, long_s))
    received: dict[int, list[tuple[int, float]]] = defaultdict(list)
    acknowledgements: Counter[int] = Counter()
    for one in transmissions(records):
        if not begin <= one.ns < end:
            continue
        data = [(size, delay) for size, delay in one.packets if size > LONGEST_ACK]
        if one.up == up:
            received[one.station] += data
        else:
            acknowledgements[one.station] += len(one.packets) - len(data)
    on_air = of_tries(tries(records), up, begin, end)
    return [
        Figures(
            sum(size for size, _ in data) * 8 / (long_s - warmup_s) / 1e6,
            len(data) / (acknowledgements[station] or math.nan),
            on_air[station - 1].frames,
            *percentiles([delay for _, delay in data]),
            on_air[station - 1].airtime,
            on_air[station - 1].collided,
        )
        for station, data in sorted(received.items())
    ]


def percentiles(delays: Sequence[float]) -> tuple[float, float]:
    """The median, and the 95th percentile."""
    return statistics.median(delays), statistics.quantiles(delays, n=20)[-1]
