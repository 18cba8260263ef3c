"""TCP over the kernel's Wi-Fi queues: what is read from the radio's log."""

from __future__ import annotations

import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "validation"))

import wifi_tcp
from wifi_log import ANSWER, ARRIVAL, DONE, DONE_UP, FRAME, HEARD, MS, TRY, Record, of_log

DATA, ACK = 1500, 52


def record(at_ms: float, kind: int, station: int, size: int, number: int = 0, value: int = 0) -> Record:
    """A record of a segment of the only flow, or of a transmission."""
    return Record(round(at_ms * MS), kind, station, 0, 0, size, 10000, number, value, 0, 0)


def on_air(at_ms: float, station: int, up: bool, air_us: int, senders: int = 1, frames: int = 1) -> Record:
    """Somebody begins to send."""
    return Record(round(at_ms * MS), TRY, station, 2, 0, frames, 3, senders, air_us * 1000, int(up), 0)


def aggregate(at_ms: float, station: int, numbers: list[int]) -> list[Record]:
    """Segments that arrive, are on the air 2 ms later until 4 ms later, and are acknowledged together."""
    return [
        *(record(at_ms, ARRIVAL, station, 14 + DATA, number) for number in numbers),
        *(record(at_ms + 2, FRAME, station, 34 + DATA, number) for number in numbers),
        on_air(at_ms + 2, station, False, 2000, frames=len(numbers)),
        record(at_ms + 4, DONE, station, len(numbers), value=2000),
        record(at_ms + 4, ANSWER, station, 14 + ACK),
        on_air(at_ms + 4, station, True, 400),
        record(at_ms + 5, HEARD, station, 14 + ACK),
        record(at_ms + 5, DONE_UP, station, 1, value=400),
    ]


def test_a_log_gives_the_figures_of_each_station():
    log = [
        *aggregate(0, 1, [1, 2]),  # in the warm-up
        *aggregate(1000, 1, [3, 4, 5]),
        *aggregate(1010, 2, [3, 4]),
        *aggregate(1020, 1, [6]),
    ]
    first, second = of_log(log, warmup_s=1, long_s=2)
    assert first.goodput_mbps == pytest.approx(4 * DATA * 8 / 1e6)
    assert (first.segments_per_ack, first.frames, first.p50_ms) == (2, 2, 4)
    assert first.airtime == pytest.approx(2 / 3)
    assert (second.segments_per_ack, second.frames) == (2, 2)
    assert (first.collided, second.collided) == (0, 0)


def test_a_logs_times_are_those_of_the_run():
    """The first record is 100 ms after the run's begin, so that the warm-up ends 0.9 s later, and the run 1.9 s."""
    log = [*aggregate(0, 1, [1]), *aggregate(899, 1, [2, 3]), *aggregate(1880, 1, [4, 5]), *aggregate(1897, 1, [6])]
    (only,) = of_log(log, warmup_s=1, long_s=2, began_s=0.1)
    assert only.goodput_mbps == pytest.approx(4 * DATA * 8 / 1e6)


@pytest.mark.parametrize(("up", "first_ms"), [(False, 30), (True, 40)])
def test_a_connection_opens_before_its_start(up: bool, first_ms: int):
    case = wifi_tcp.Case("reno", wifi_tcp.THREE, up)
    assert wifi_tcp.opens(case, 3) == min(wifi_tcp.starts(case, 3)) - first_ms * 10**6


def test_what_collides_has_no_share_of_the_airtime():
    log = [
        *aggregate(0, 1, [1]),
        on_air(1000, 1, False, 3000, senders=2, frames=20),
        on_air(1000, 2, True, 400, senders=2),
        *aggregate(1010, 1, [2, 3]),
        *aggregate(1020, 2, [2, 3]),
    ]
    first, second = of_log(log, warmup_s=1, long_s=2)
    assert (first.airtime, second.airtime) == (0.5, 0.5)
    assert (first.frames, first.collided, second.collided) == (2, 1 / 3, 1 / 3)


def test_an_acknowledgement_of_the_access_points_side_is_no_data():
    down = [record(1000, ARRIVAL, 1, 14 + ACK, 9), record(1001, FRAME, 1, 34 + ACK, 9), record(1002, DONE, 1, 1)]
    log = [*aggregate(0, 1, [1]), *down, *aggregate(1010, 1, [2]), *aggregate(1020, 1, [3])]
    (only,) = of_log(log, warmup_s=1, long_s=2)
    assert only.frames == 1
    assert only.goodput_mbps == pytest.approx(2 * DATA * 8 / 1e6)


def test_stations_may_send_the_data():
    def both(at_ms: float, numbers: list[int]) -> list[Record]:
        """Segments of a station that are on the air until 5 ms later, and the acknowledgement."""
        return [
            *(record(at_ms, ANSWER, 1, 14 + DATA, number) for number in numbers),
            on_air(at_ms + 2, 1, True, 3000, frames=len(numbers)),
            *(record(at_ms + 5, HEARD, 1, 14 + DATA, number) for number in numbers),
            record(at_ms + 5, DONE_UP, 1, len(numbers), value=3000),
            record(at_ms + 6, ARRIVAL, 1, 14 + ACK, 7),
            record(at_ms + 7, FRAME, 1, 34 + ACK, 7),
            record(at_ms + 8, DONE, 1, 1, value=400),
        ]

    (only,) = of_log([*both(0, [1]), *both(1000, [2, 3, 4])], up=True, warmup_s=1, long_s=2)
    assert (only.segments_per_ack, only.frames, only.p50_ms) == (3, 3, 5)


@pytest.mark.parametrize("up", [False, True])
def test_both_sides_have_the_same_connections(up: bool):
    case = wifi_tcp.Case("reno", wifi_tcp.THREE, up)
    text = wifi_tcp.document(case, 3, "6.12")
    assert all(f'start = "{start} ns"' in text for start in wifi_tcp.starts(case, 3))
    assert all(f'"start_ns": {start}' in wifi_tcp.job(case, 3) for start in wifi_tcp.starts(case, 3))
    figures = wifi_tcp.simulators_figures(case, 3, "6.12")
    assert len(figures) == 3
    assert figures[2].goodput_mbps < figures[0].goodput_mbps
    assert all(of.segments_per_ack > 1 for of in figures)
    assert all(0 < of.collided < 0.5 for of in figures)


def test_a_difference_of_medians_has_an_interval():
    ours, theirs = [9.0, 11.0, 10.0] * 30, [10.0, 12.0, 11.0] * 30
    assert wifi_tcp.difference(ours, theirs) == "−9.1 (−9.1 to −9.1)"
    assert wifi_tcp.difference([1.0, 3.0], [2.0]) == "+0.0 (−50.0 to +50.0)"
