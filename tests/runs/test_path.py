"""``sj.Path``: a bottleneck around packets of one's own."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any

import pytest

import sojourn as sj
from conftest import ROOT, blocks

PAGE = ROOT / "docs" / "python.md"


def drain(path: sj.Path) -> list[sj.Delivery]:
    """Everything that arrives."""
    found = []
    while (now := path.next_event()) is not None:
        while (packet := path.poll(now)) is not None:
            found.append(packet)
    return found


def test_the_pages_example_runs() -> None:
    ((_, text),) = [block for block in blocks("python", PAGE.read_text(encoding="utf-8")) if block[0]]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(text, "path_example.py", "exec"), {})
    assert "marked" in printed.getvalue()


def test_a_packet_takes_its_rate_and_its_way() -> None:
    path = sj.Path("8 Mbit/s", "20 ms")
    payload = object()
    numbers = [path.send(0.0, payload, 1000, ecn="ect1", dscp=46), path.send(0.0, None, 1000), path.send(0.0, 2, 1000)]
    numbers.append(path.send(0.0, "back", 1000, way="up"))
    assert numbers == [0, 1, 2, 3] and path.packets == 4
    first, second, back, third = drain(path)
    assert (first.payload, first.way, first.ecn, first.dscp, first.bytes) == (payload, "down", "ect1", 46, 1000)
    # The link lets 1600 bytes go ahead of its rate; the third waits for the 400 that are missing.
    assert [packet.at_s for packet in (first, second, back, third)] == [0.01, 0.01, 0.01, 0.0104]
    assert (third.sojourn_s, back.way, back.payload) == (0.0004, "up", "back")


def test_what_happens_to_packets_is_told() -> None:
    path = sj.Path("1 Mbit/s", "10 ms", aqm="pfifo", keys={"limit": "2 packets"}, impair={"loss": 1.0})
    for number in range(10):
        path.send(0.0, number, 1000)
    assert drain(path) == []
    events = path.verdicts()
    counts = path.counts()
    assert counts["sent"] == 10 == counts["dropped"] + counts["lost"]
    dropped = [event for event in events if event["verdict"] == "dropped"]
    assert len(dropped) == counts["dropped"] > 0 and {event["reason"] for event in dropped} == {"overflow"}
    assert {event["verdict"] for event in events} == {"arrived", "dropped", "left", "lost"}
    assert path.verdicts() == [] and path.counts("up")["sent"] == 0


def test_the_link_may_change() -> None:
    path = sj.Path("8 Mbit/s", "20 ms", up="1 Mbit/s", up_aqm="fq_codel", up_keys={"target": "10 ms"})
    path.set_rate("80 Mbit/s")
    path.set_rate("2 Mbit/s", way="up")
    path.set_delay("2 ms")
    path.send(1.0, None, 100)
    assert [packet.at_s for packet in drain(path)] == [1.001]


@pytest.mark.parametrize("key", ["up_aqm", "up_keys"])
def test_what_is_of_the_queue_up_needs_a_link_up(key: str) -> None:
    given: dict[str, object] = {"up_aqm": "codel", "up_keys": {"target": "10 ms"}}
    with pytest.raises(sj.ExperimentError, match=f"Path: {key}: needs up"):
        sj.Path("8 Mbit/s", "20 ms", **{key: given[key]})  # type: ignore[arg-type]


def test_the_same_calls_have_the_same_result() -> None:
    def arrivals(seed: int) -> list[tuple[int, float]]:
        impair = {"loss": 0.1, "jitter": "3 ms", "duplicate": 0.1, "corrupt": 0.1}
        path = sj.Path("10 Mbit/s", "40 ms", aqm="pie", impair=impair, up_impair={"loss": 0.5}, seed=seed)
        for number in range(200):
            path.send(number / 1000, number, 1500)
        return [(packet.payload, packet.at_s) for packet in drain(path)]

    assert arrivals(1) == arrivals(1) != arrivals(2)


@pytest.mark.parametrize(
    ("make", "message"),
    [(lambda: sj.Path("fast", "40 ms"), 'rate: got "fast"'), (lambda: sj.Path("1 Mbit/s", "40"), 'rtt: got "40"'),
     (lambda: sj.Path("1 Mbit/s", "1 ms", aqm="codell"), 'aqm: got "codell"; must be one of'),
     (lambda: sj.Path("1 Mbit/s", "1 ms", aqm="codel", keys={"target": "soon"}), "target"),
     (lambda: sj.Path("1 Mbit/s", "1 ms", impair={"lossy": 1}), "impair: got \"lossy\"; must be one of loss"),
     (lambda: sj.Path("1 Mbit/s", "1 ms", impair={"loss": 2}), "loss"),
     (lambda: sj.Path("1 Mbit/s", "1 ms").send(0, None, 100, way="left"), 'way: got "left"'),
     (lambda: sj.Path("1 Mbit/s", "1 ms").send(0, None, 100, ecn="ect"), 'ecn: got "ect"; must be "not-ect"'),
     (lambda: sj.Path("1 Mbit/s", "1 ms").poll(-1), "now: got -1"),
     (lambda: sj.Path("1 Mbit/s", "1 ms").poll(float("nan")), "now: got NaN"),
     (lambda: sj.Path("1 Mbit/s", "1 ms").set_rate("1 Mbit/s", way="up"), "no link")],
)  # fmt: skip
def test_a_mistake_is_told(make, message: str) -> None:
    with pytest.raises(sj.ExperimentError, match=message):
        make()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"up": "x"}, 'up: got "x"; must be a rate'),
        ({"up": "1 Mbit/s", "up_aqm": "codell"}, 'up_aqm: got "codell"; must be one of pfifo'),
        ({"up": "1 Mbit/s", "up_aqm": "codel", "up_keys": {"target": "x"}}, 'up_keys: target: got "x"; must be a time'),
        ({"up": "1 Mbit/s", "up_keys": {"target": "5 ms"}}, "up_keys: target: pfifo has no such key"),
        ({"aqm": "codel", "keys": {"target": "x"}}, 'keys: target: got "x"; must be a time'),
        ({"impair": {"loss": 2}}, "impair: loss: got 2; must be a number from 0 to 1"),
        ({"up_impair": {"loss": 2}}, "up_impair: loss: got 2; must be a number from 0 to 1"),
        ({"up_impair": {"loss": "x"}}, "up_impair: loss: got x; must be a number from 0 to 1"),
        ({"up_impair": {"lossy": 1}}, 'up_impair: got "lossy"; must be one of loss'),
        ({"up_impair": {"jitter": "x"}}, 'up_impair: jitter: got "x"; must be a time'),
        ({"seed": -1}, "seed: got -1; must be from 0 to 18446744073709551615"),
        ({"seed": 2**64}, "seed: got 18446744073709551616; must be from 0 to"),
    ],
)
def test_a_mistake_is_told_by_the_name_of_the_argument(given: dict[str, Any], says: str) -> None:
    with pytest.raises(sj.ExperimentError, match=rf"^Path: {re.escape(says)}"):
        sj.Path("1 Mbit/s", "1 ms", **given)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"bytes": 0}, "bytes: got 0; must be from 1 to 4294967295"),
        ({"bytes": -1}, "bytes: got -1; must be from 1 to"),
        ({"bytes": 2**32}, "bytes: got 4294967296; must be from 1 to"),
        ({"flow": -1}, "flow: got -1; must be from 0 to 4294967295"),
        ({"dscp": 300}, "dscp: got 300; must be from 0 to 63"),
        ({"dscp": -1}, "dscp: got -1; must be from 0 to 63"),
    ],
)
def test_a_packet_that_cannot_be_is_refused(given: dict[str, Any], says: str) -> None:
    path = sj.Path("1 Mbit/s", "1 ms")
    with pytest.raises(sj.ExperimentError, match=f"^Path: {says}"):
        path.send(**{"now": 0.0, "payload": None, "bytes": 100} | given)
    assert path.counts()["sent"] == 0
    assert path.send(0.0, None, 1, dscp=63, flow=2**32 - 1) == 0


def test_time_does_not_go_back() -> None:
    path = sj.Path("1 Mbit/s", "1 ms")
    path.send(2.0, None, 100)
    with pytest.raises(sj.ExperimentError, match="not before 2"):
        path.send(1.0, None, 100)
    assert path.counts()["sent"] == 1
