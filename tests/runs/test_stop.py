"""The stop of flows with data without end: their connections are aborted (RFC 9293 §3.10.5)."""

from __future__ import annotations

import pytest

import sojourn as sj

FILE = """
experiment = {{ duration = "6 s" }}
link = {{ rate = "10 Mbit/s" }}
queue = [{{ aqm = "pfifo", limit = "20 packets" }}]
traffic = [{{ kind = "{}", rtt = "100 ms", flows = 2, {}, start = "10 ms" }}]
record = {{ packets = true }}
"""
SYN, RESET, ANSWER = 74, 66, 54
"""Bytes of a SYN, of a reset with the timestamps of a connection, and of one without options."""


def arrivals(text: str) -> list[tuple[float, int]]:
    """When packets arrived at the queue, in seconds, and their bytes."""
    packets = sj.run_text(text).runs[0].packets().to_pandas()
    return [
        ((time - sojourn) / 1e9, size)
        for time, sojourn, size in zip(packets.time_ns, packets.sojourn_ns, packets.bytes, strict=True)
    ]


@pytest.mark.parametrize("control", ["cubic", "prague", "bbr"])
def test_after_the_stop_a_sender_sends_resets_only(control: str):
    found = arrivals(FILE.format("bulk", f'tcp = "{control}", stop = "3 s"'))
    before = [size for at, size in found if at < 3]
    after = [(at, size) for at, size in found if at >= 3]
    assert max(before) == 1514
    assert [size for _, size in after].count(RESET) == 2, "one for each flow, at the stop"
    assert {size for _, size in after} == {RESET, ANSWER}
    # What was on its way is acknowledged within a round trip and the time in the queue.
    assert after[-1][0] < 3.2


def test_an_on_time_ends_with_a_reset_and_the_next_is_another_connection():
    found = arrivals(
        FILE.format("onoff", 'transport = "tcp", times = "fixed", jitter = "0 s", on = "1 s", off = "1 s"')
    )
    for begin in (1.2, 3.2, 5.2):
        assert [size for at, size in found if begin <= at < begin + 0.8] == []
    assert [size for at, size in found if 2 < at < 3].count(SYN) == 2
