"""What programs say of themselves behind a link is what our table says of them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sojourn.linux import datapath, programs

LACKING = datapath.missing() or next(
    (f"{name} is missing" for name in ("iperf3", "curl") if programs.find(name) is None), None
)
pytestmark = pytest.mark.skipif(LACKING is not None, reason=f"real packets: {LACKING}")
SOJOURN = [sys.executable, "-m", "sojourn", "shell"]
LINE = ["--rate", "20mbit", "--up", "10mbit", "--delay", "10ms", "--aqm", "fq_codel", "--figures", "none"]
WEB = f"{sys.executable} -m http.server --protocol HTTP/1.1 8000 > log 2>&1"
SHARE = 0.02
"""How far they may be apart."""
SEGMENTS, SEGMENT, EVERY_S = 3, 2_000_000, 2.0
VIDEO = f"""
import http.client, os, sys, time
began = time.monotonic()
server = http.client.HTTPConnection(os.environ["SOJOURN_SERVER"], 8000)
fetched, first = 0, None
for number in range({SEGMENTS}):
    time.sleep(max(0.0, began + number * {EVERY_S} - time.monotonic()))
    server.request("GET", "/segment")
    answer = server.getresponse()
    first = first or time.monotonic()
    fetched += len(answer.read())
print(fetched, time.monotonic() - first)
"""

TRAFFIC = """
experiment = { duration = "2 s" }
record = { pcap = true }
link = { rate = "20 Mbit/s", delay = "2 ms" }
queue = [{ aqm = "fq_codel" }]
traffic = [{ kind = "bulk", rtt = "10 ms" }]
"""


def run(out: Path, *words: str, server: str) -> tuple[str, dict[str, Any]]:
    """What a program prints, and the run behind which it was."""
    command = [*SOJOURN, *LINE, "--server", server, "--out", str(out), "--", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=out.parent)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads((out / "summary.json").read_text())["runs"]
    return done.stdout, found


def goodput(found: dict[str, Any], direction: str) -> float:
    """The goodput in our table of what most bytes have."""
    flows = [flow for flow in found["flows"] if flow["direction"] == direction]
    return float(max(flows, key=lambda flow: flow["received_bytes"])["goodput_bps"])


TRIES = 3
"""A busy machine delays a program, and so what it reads of its clock: one of so many runs has to agree."""


def agree(measured: Callable[[], list[tuple[float, float]]]) -> None:
    """Compares pairs of ours and theirs, of one run after the other until one agrees."""
    for _ in range(TRIES):
        pairs = measured()
        if all(ours == pytest.approx(theirs, rel=SHARE) for ours, theirs in pairs):
            return
    pytest.fail(f"beyond {SHARE:.0%} in each of {TRIES} runs: {pairs}")


@pytest.mark.parametrize(("way", "options"), [("down", ["-R"]), ("up", [])])
def test_iperf3(tmp_path: Path, way: str, options: list[str]):
    words = ["sh", "-c", f"iperf3 -J -t 5 {' '.join(options)} -c $SOJOURN_SERVER"]

    def measured() -> list[tuple[float, float]]:
        said, found = run(tmp_path / "out", *words, server="iperf3 -s -1")
        return [(goodput(found, way), json.loads(said)["end"]["sum_received"]["bits_per_second"])]

    agree(measured)


def test_curl_of_ten_megabytes(tmp_path: Path):
    (tmp_path / "file").write_bytes(bytes(10_000_000))
    # From the first byte on, as our flow of data begins with it.
    told = "%{speed_download} %{time_total} %{time_starttransfer} %{size_download}"
    words = ["sh", "-c", f"curl -s -o /dev/null -w '{told}' http://$SOJOURN_SERVER:8000/file"]

    def measured() -> list[tuple[float, float]]:
        said, found = run(tmp_path / "out", *words, server=WEB)
        speed, total, first, size = map(float, said.split())
        assert size == 10_000_000
        return [(goodput(found, "down"), own) for own in (8 * speed, 8 * size / (total - first))]

    agree(measured)


def test_segments_of_a_video(tmp_path: Path):
    (tmp_path / "segment").write_bytes(bytes(SEGMENT))

    def measured() -> list[tuple[float, float]]:
        said, found = run(tmp_path / "out", sys.executable, "-c", VIDEO, server=WEB)
        fetched, seconds = map(float, said.split())
        assert fetched == SEGMENTS * SEGMENT
        return [(goodput(found, "down"), 8 * fetched / seconds)]

    agree(measured)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark")
def test_a_capture_has_the_packets_of_the_run(tmp_path: Path):
    (tmp_path / "file").write_bytes(bytes(1_000_000))
    get = ["sh", "-c", "curl -s -o /dev/null http://$SOJOURN_SERVER:8000/file"]
    command = [
        *SOJOURN,
        *LINE,
        "--server",
        WEB,
        "--set",
        "record.pcap=true",
        "--out",
        str(tmp_path / "out"),
        "--",
        *get,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (capture,) = (tmp_path / "out").glob("capture_*.pcapng")
    (found,) = json.loads((tmp_path / "out" / "summary.json").read_text())["runs"]
    for way in ("down", "up"):
        rows = packets(capture, f'frame.interface_name == "{way}"')
        assert len(rows) == found["bottleneck"][way]["delivered_packets"]
    data = packets(capture, "tcp.srcport == 8000", "tcp.len")
    assert sum(int(row[1]) for row in data) > 1_000_000
    assert packets(capture, "_ws.malformed || tcp.analysis.ack_lost_segment") == []
    times = [float(row[0]) for row in packets(capture, "frame")]
    assert times == sorted(times)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark")
def test_a_capture_of_the_traffic_of_a_file_has_both_directions(tmp_path: Path):
    (tmp_path / "file.toml").write_text(TRAFFIC, encoding="utf-8")
    command = [*SOJOURN[:-1], "run", "file.toml", "--backend", "datapath", "--out", "out", "--figures", "none"]
    # Packets that are late make a run invalid; on a busy machine they are.
    for _ in range(3):
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr
    (capture,) = (tmp_path / "out").glob("capture_*.pcapng")
    (found,) = json.loads((tmp_path / "out" / "summary.json").read_text())["runs"]
    down = packets(capture, 'frame.interface_name == "down"')
    assert len(down) == found["bottleneck"]["down"]["delivered_packets"] > 0
    # Without a queue upwards they are captured as they arrive: an acknowledgement takes the base RTT.
    acks = packets(capture, 'frame.interface_name == "up" && tcp.analysis.ack_rtt', "tcp.analysis.ack_rtt")
    times = sorted(float(row[1]) for row in acks)
    assert times[0] >= 0.010
    assert times[len(times) // 2] < 0.013


def packets(capture: Path, filter: str, *fields: str) -> list[list[str]]:
    """The time and fields of the packets that a filter of tshark's selects."""
    words = ["tshark", "-r", str(capture), "-Y", filter, "-T", "fields"]
    for field in ("frame.time_epoch", *fields):
        words += ["-e", field]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in said.splitlines()]
