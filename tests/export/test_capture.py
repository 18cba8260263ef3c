"""`[record] pcap = true`: a capture of the bottleneck that tshark reads without a complaint."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Literal

import pytest

import sojourn as sj
from conftest import Cli

TSHARK = shutil.which("tshark")

EXPERIMENT = """\
[experiment]
name = "captured"
duration = "3 s"

[link]
rate = "10 Mbit/s"
buffer = "30 packets"

[[queue]]
aqm = "codel"
ecn = true

[[traffic]]
kind = "bulk"
flows = 1
rtt = "40 ms"
start = "200 ms"
ecn = true

[[traffic]]
kind = "bulk"
flows = 1
rtt = "20 ms"
start = "200 ms"
mss = "536 B"

[[traffic]]
kind = "ping"
rtt = "30 ms"
interval = "100 ms"

[[traffic]]
kind = "cbr"
rate = "100 kbit/s"
packet = "200 B"
rtt = "40 ms"

[record]
packets = true
pcap = true
"""


EXCHANGE_BYTES = 8
"""Come before bulk data, and are not counted."""


@pytest.fixture(scope="module")
def results() -> sj.Results:
    return sj.run_text(EXPERIMENT)


@pytest.fixture(scope="module")
def capture(results: sj.Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(results.runs[0], tmp_path_factory.mktemp("capture"))


def written(run: sj.Run, folder: Path) -> Path:
    """The capture of a run as a file."""
    path = folder / "run.pcapng"
    content = run.capture()
    assert content is not None
    path.write_bytes(content)
    return path


def fields(capture: Path, show: str, *names: str) -> list[list[str]]:
    """tshark's values of some fields, for every packet that a display filter shows."""
    if TSHARK is None:
        pytest.skip("no tshark to read the capture with")
    options = [option for name in names for option in ("-e", name)]
    checks = ["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"]
    result = subprocess.run(
        [TSHARK, "-n", "-r", capture, *checks, "-Y", show, "-T", "fields", *options],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return [line.split("\t") for line in result.stdout.splitlines()]


def test_every_packet_that_left_the_queue_is_in_it_at_its_time(results: sj.Results, capture: Path):
    rows = fields(capture, "frame.interface_name == down", "frame.time_epoch", "frame.len", "ip.dsfield.ecn")
    packets = results.runs[0].packets().to_pandas()
    left = packets[packets.fate <= 1]
    assert len(rows) == len(left) == results.runs[0].summary["bottleneck"]["down"]["delivered_packets"]
    assert [round(float(row[0]) * 1e6) for row in rows] == [round(time / 1e3) for time in left.time_ns]
    assert [int(row[1]) for row in rows] == list(left.bytes)
    marked = results.runs[0].summary["bottleneck"]["down"]["marked"]
    assert sum(row[2] == "3" for row in rows) == marked > 0


def test_nothing_in_it_is_malformed(capture: Path):
    assert fields(capture, "_ws.malformed || ip.checksum.status == 0", "frame.number") == []
    assert len(fields(capture, "ip.checksum.status == 1", "frame.number")) == len(fields(capture, "ip", "frame.number"))


def test_a_handshake_says_what_the_connections_can_do(capture: Path):
    names = ("tcp.options.mss_val", "tcp.options.wscale.shift", "tcp.flags.ece", "tcp.flags.cwr", "tcp.checksum.status")
    asked = fields(capture, "tcp.flags.syn == 1 && tcp.flags.ack == 0", *names)
    assert [row[:2] + row[4:] for row in asked] == [["1460", "10", "1"], ["548", "10", "1"]]
    truth = {"1": True, "0": False, "True": True, "False": False}
    assert [[truth[flag] for flag in row[2:4]] for row in asked] == [[True, True], [False, False]]
    assert (
        len(fields(capture, "tcp.flags.syn == 1 && tcp.flags.ack == 1 && tcp.options.sack_perm", "frame.number")) == 2
    )


def test_sequence_numbers_and_acknowledgements_follow_each_other(tmp_path: Path):
    """At the receiver, as what it acknowledged last is still under way to the router when the run ends."""
    run = sj.run_text(EXPERIMENT.replace("pcap = true", 'pcap = "receiver"')).runs[0]
    capture = written(run, tmp_path)
    for stream, flow in enumerate(run.summary["flows"][:2]):
        data = fields(capture, f"tcp.stream == {stream} && tcp.len > 0", "tcp.seq", "tcp.len")
        acks = fields(capture, f"tcp.stream == {stream} && frame.interface_name == up && tcp.flags.syn == 0", "tcp.ack")
        received = max(int(ack) for (ack,) in acks) - 1
        assert received == flow["received_bytes"] + EXCHANGE_BYTES
        assert max(int(seq) + int(length) for seq, length in data) - 1 >= received
        assert min(int(seq) for seq, _ in data) == 1


def test_a_lost_segment_shows_as_sack_and_retransmission(results: sj.Results, capture: Path):
    flow = results.runs[0].summary["flows"][1]
    assert flow["retransmits"] > 0
    names = ("tcp.ack", "tcp.options.sack_le", "tcp.options.sack_re")
    sacks = fields(capture, "tcp.stream == 1 && tcp.options.sack", *names)
    for _, left, right in sacks:
        assert all(int(low) < int(high) for low, high in zip(left.split(","), right.split(","), strict=True))
    assert any(int(left.split(",")[0]) > int(ack) for ack, left, _ in sacks)
    # What was dropped comes by only when it is sent again, behind what was sent after it.
    numbers = [int(seq) for (seq,) in fields(capture, "tcp.stream == 1 && tcp.len > 0", "tcp.seq")]
    assert numbers != sorted(numbers)


def test_the_mark_is_echoed_and_answered(capture: Path):
    assert fields(capture, "tcp.stream == 0 && tcp.flags.ece == 1 && tcp.flags.syn == 0", "frame.number")
    assert fields(capture, "tcp.stream == 0 && tcp.flags.cwr == 1 && tcp.flags.syn == 0", "frame.number")


def test_timestamps_give_the_rtt_back(capture: Path):
    """TSecr of an acknowledgement is the TSval of data that had left the queue before it, by a millisecond clock."""
    rows = fields(capture, "tcp.stream == 0", "frame.interface_name", "tcp.options.timestamp.tsval",
                  "tcp.options.timestamp.tsecr")  # fmt: skip
    seen: set[str] = set()
    for interface, sent, echoed in rows:
        if interface == "down":
            seen.add(sent)
        else:
            assert echoed in seen


def test_pings_and_datagrams_are_whole(capture: Path):
    requests = fields(capture, "icmp.type == 8", "icmp.seq", "frame.len", "icmp.checksum.status")
    replies = fields(capture, "icmp.type == 0", "icmp.seq", "frame.len", "icmp.checksum.status")
    assert [row[0] for row in requests[: len(replies)]] == [row[0] for row in replies]
    # 56 bytes of payload, ICMP 8, IP 20, Ethernet 14.
    assert {row[1] for row in requests} == {"98"}
    assert {row[0] for row in fields(capture, "udp", "udp.length")} == {"208"}


def test_captures_are_written_beside_the_summary_and_load_again(sojourn: Cli, results: sj.Results, tmp_path: Path):
    (tmp_path / "e.toml").write_text(EXPERIMENT.replace('"3 s"', '"3 s"\nrepeat = 2'), encoding="utf-8")
    result = sojourn("run", "e.toml", "--out", "out", "--figures", "none", "--json")
    assert result.returncode == 0, result.stderr
    assert sorted(path.name for path in (tmp_path / "out").glob("*.pcapng")) == [
        "capture_0_codel_seed_1.pcapng", "capture_1_codel_seed_2.pcapng",
    ]  # fmt: skip
    loaded = sj.load(tmp_path / "out")
    assert loaded.runs[0].capture() == results.runs[0].capture()
    assert loaded.runs[1].capture() != loaded.runs[0].capture()
    assert len(json.loads(result.stdout)["runs"]) == 2


def test_without_being_asked_for_there_is_none():
    assert sj.run_text(EXPERIMENT.replace("pcap = true", "pcap = false")).runs[0].capture() is None


POINT = """\
[experiment]
duration = "4 s"
[link]
rate = "10 Mbit/s"
buffer = "50 packets"
{up}
[[queue]]
aqm = "pfifo"
[[traffic]]
kind = "bulk"
direction = "{direction}"
rtt = "40 ms"
[record]
pcap = {point}
"""


def ack_rtts(tmp_path: Path, point: str, up: str = "", direction: str = "down") -> tuple[list[float], sj.Run]:
    """What tshark takes for the round-trip times, in ms, from lowest to highest, and the run."""
    run = sj.run_text(POINT.format(point=point, up=up, direction=direction)).runs[0]
    rows = fields(written(run, tmp_path), "tcp.analysis.ack_rtt && tcp.len == 0", "tcp.analysis.ack_rtt")
    return sorted(float(value) * 1000 for (value,) in rows), run


def queued(run: sj.Run, direction: Literal["down", "up"]) -> float:
    """The median sojourn time in ms. The queue is 60 ms long."""
    median = run.summary["bottleneck"][direction]["sojourn_ms"]["p50"]
    assert median is not None
    return median


@pytest.mark.parametrize("point", ["true", '"router"'])
def test_at_the_router_an_acknowledgement_comes_a_base_rtt_after_its_segment(tmp_path: Path, point: str):
    rtts, _ = ack_rtts(tmp_path, point)
    # 3300 segments, one acknowledgement for two; the first of the two waits for the second.
    assert len(rtts) > 1200
    assert rtts[0] == pytest.approx(40, abs=0.1)
    assert rtts[len(rtts) // 2] == pytest.approx(40, abs=1.5)


def test_at_the_sender_it_carries_the_queue_as_well(tmp_path: Path):
    rtts, run = ack_rtts(tmp_path, '"sender"')
    assert len(rtts) > 1200
    assert rtts[0] >= 40
    # Fifty packets of 1.2 ms; what follows a lost segment is acknowledged with it.
    assert rtts[len(rtts) * 9 // 10] == pytest.approx(100, abs=10)
    assert rtts[len(rtts) // 2] == pytest.approx(40 + queued(run, "down"), abs=6)


def test_at_the_receiver_it_takes_no_time(tmp_path: Path):
    run = sj.run_text(POINT.format(point='"receiver"', up="", direction="down")).runs[0]
    rows = fields(written(run, tmp_path), "tcp", "frame.number", "frame.time_epoch", "tcp.analysis.acks_frame")
    at = {number: float(time) for number, time, _ in rows}
    waits = sorted(at[number] - at[acked] for number, _, acked in rows if acked)
    assert len(waits) > 1200
    # The second segment of two has its acknowledgement at once.
    assert waits[len(waits) // 2] == 0


def test_with_a_queue_each_way_an_upload_is_seen_alike(tmp_path: Path):
    up = 'up = { rate = "10 Mbit/s" }'
    at_router, _ = ack_rtts(tmp_path, '"router"', up, "up")
    at_sender, run = ack_rtts(tmp_path, '"sender"', up, "up")
    assert at_router[0] == pytest.approx(40, abs=0.1)
    assert at_sender[len(at_sender) // 2] == pytest.approx(40 + queued(run, "up"), abs=6)
