"""The exchange before bulk data: the packets of a flow's first round trips, and what is counted."""

from __future__ import annotations

import pytest

import sojourn as sj

FILE = """
experiment = {{ duration = "3 s" }}
link = {{ rate = "10 Mbit/s", buffer = "100 packets" }}
queue = [{{ aqm = "pfifo" }}]
traffic = [{{ kind = "bulk", rtt = "100 ms", {} }}]
record = {{ packets = true }}
"""


def run(flow: str) -> sj.Run:
    return sj.run_text(FILE.format(flow)).runs[0]


def arrivals(run: sj.Run, count: int) -> list[tuple[int, int]]:
    """When the flow's first packets arrived at the queue, in ms, and their bytes."""
    packets = run.packets().to_pandas()
    packets["at_ms"] = ((packets.time_ns - packets.sojourn_ns) / 1e6).round()
    first = packets.sort_values(["at_ms", "time_ns"]).head(count)
    return list(zip(first.at_ms.astype(int), first.bytes, strict=True))


SYN, ACK, EIGHT, DATA = 74, 66, 74, 1514


@pytest.mark.parametrize(
    ("flow", "expected"),
    [
        # It was connected before the run, or would have begun to be.
        ('start = "0 s"', [(0, EIGHT), (100, DATA), (100, DATA)]),
        ('start = "199 ms"', [(199, EIGHT), (299, DATA)]),
        ('start = "200 ms"', [(0, SYN), (100, ACK), (200, EIGHT), (300, DATA)]),
        ('start = "1 s"', [(800, SYN), (900, ACK), (1000, EIGHT), (1100, DATA)]),
        ('start = "1 s", initial_window = 1', [(1000, SYN), (1100, ACK), (1100, DATA)]),
    ],
)
def test_a_bulk_flow_connects_ahead_and_exchanges_eight_bytes(flow: str, expected: list[tuple[int, int]]):
    assert arrivals(run(flow), len(expected)) == expected


@pytest.mark.parametrize("stop_ms", [1001, 1050, 1099])
def test_a_flow_that_stops_before_the_answer_sends_no_data(stop_ms: int):
    found = run(f'start = "1 s", stop = "{stop_ms} ms"')
    assert found.summary["flows"][0]["received_bytes"] == 0
    assert DATA not in [size for _, size in arrivals(found, 10)]
