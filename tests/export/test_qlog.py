"""`[record] qlog = true`: what a TCP sender does, as JSON text sequences that a reader of qlog understands."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from conftest import ROOT, Cli

READER = ROOT / "target/qlog/debug/sojourn-qlog-reader"
"""Of the package validation/qlog."""
MSS = 1448
EXPERIMENT = """\
experiment = { name = "logged", duration = "3 s" }
link = { rate = "10 Mbit/s", buffer = "30 packets" }
queue = [{ aqm = "pfifo" }]
traffic = [
  { kind = "bulk", tcp = "cubic", rtt = "40 ms" },
  { kind = "bulk", tcp = "bbr3", rtt = "20 ms", start = "0.5 s" },
  { kind = "ping", rtt = "30 ms" },
]
record = { packets = true, series = "500 ms", qlog = true }
"""


@pytest.fixture(scope="module")
def run() -> sj.Run:
    return sj.run_text(EXPERIMENT).runs[0]


def records(run: sj.Run, flow: int) -> list[dict[str, Any]]:
    """The records of a flow's qlog: each between a record separator and a line feed (RFC 7464, section 2.2)."""
    content = run.qlog(flow)
    assert content is not None
    first, *rest = content.split(b"\x1e")
    assert first == b""
    assert all(record.endswith(b"\n") for record in rest)
    return [json.loads(record) for record in rest]


def named(run: sj.Run, flow: int, name: str) -> list[dict[str, Any]]:
    return [event for event in records(run, flow)[1:] if event["name"] == f"quic:{name}"]


def test_the_records_have_what_the_schema_requires_and_are_in_order_of_time(run: sj.Run) -> None:
    head, *events = records(run, 0)
    assert head["file_schema"] == "urn:ietf:params:qlog:file:sequential"
    assert head["serialization_format"] == "application/qlog+json-seq"
    assert head["trace"]["event_schemas"] == ["urn:ietf:params:qlog:events:quic-12"]
    assert all({"time", "name", "data"} <= event.keys() for event in events)
    times = [event["time"] for event in events]
    assert times == sorted(times)
    assert 0 < times[-1] <= 3000
    for event in named(run, 0, "packet_sent") + named(run, 0, "packet_received") + named(run, 0, "packet_lost"):
        assert event["data"]["header"].keys() == {"packet_type", "packet_number"}
    sent = [event["data"]["header"]["packet_number"] for event in named(run, 0, "packet_sent")]
    assert sent == list(range(len(sent)))


@pytest.mark.parametrize("flow", [0, 1])
def test_it_has_every_packet_that_left_the_queue_or_was_dropped_there(run: sj.Run, flow: int) -> None:
    packets = run.packets()
    assert packets is not None
    rows = packets.to_pandas()
    seen = len(rows[(rows.flow == flow) & (rows.returning == 0)])
    assert seen <= len(named(run, flow, "packet_sent")) <= seen + 30  # the buffer


@pytest.mark.parametrize("flow", [0, 1])
def test_a_lost_packet_is_one_that_was_sent_with_the_same_data(run: sj.Run, flow: int) -> None:
    seq = {one["data"]["header"]["packet_number"]: one["data"]["tcp"]["seq"] for one in named(run, flow, "packet_sent")}
    lost = [event["data"] for event in named(run, flow, "packet_lost")]
    assert lost
    assert all(seq[one["header"]["packet_number"]] == one["tcp"]["seq"] for one in lost)
    # Every loss is repaired by a retransmission; a tail loss probe may be one without a loss.
    assert abs(len(lost) - run.summary["flows"][flow]["retransmits"]) <= 2


@pytest.mark.parametrize("flow", [0, 1])
def test_the_window_is_that_of_the_series(run: sj.Run, flow: int) -> None:
    series = run.flow_series()
    assert series is not None
    rows = series.to_pandas()
    windows = [
        (event["time"], event["data"]["congestion_window"] / MSS)
        for event in named(run, flow, "recovery_metrics_updated")
        if "congestion_window" in event["data"]
    ]
    for row in rows[(rows.flow == flow) & (rows.cwnd_segments > 0)].itertuples():
        known = [window for time, window in windows if time <= 1e3 * (row.time_s + 0.5)]
        if known:
            assert known[-1] == row.cwnd_segments


def test_phases_are_those_of_the_congestion_control(run: sj.Run) -> None:
    cubic, bbr = ([one["data"] for one in named(run, flow, "congestion_state_updated")] for flow in (0, 1))
    assert cubic[0] == {"new": "slow_start"}
    assert {"new": "recovery", "old": "congestion_avoidance"} in cubic
    assert [one["new"] for one in bbr[:3]] == ["startup", "drain", "probe_bw_down"]
    gains = [
        one["data"]["pacing_gain"] for one in named(run, 1, "recovery_metrics_updated") if "pacing_gain" in one["data"]
    ]
    assert gains[:3] == [pytest.approx(2.77, abs=0.01), 0.5, pytest.approx(0.9, abs=0.01)]


def test_recording_it_changes_no_result(run: sj.Run) -> None:
    without = sj.run_text(EXPERIMENT.replace("qlog = true", "qlog = false")).runs[0]
    assert without.qlog() is None
    assert {**without.summary, "wall_s": 0} == {**run.summary, "wall_s": 0}


def test_a_file_per_tcp_flow_is_in_the_folder_and_is_read_from_it(sojourn: Cli, run: sj.Run, tmp_path: Path) -> None:
    file = tmp_path / "logged.toml"
    file.write_text(EXPERIMENT)
    done = sojourn("run", file, "--out", tmp_path / "out", "--figures", "none")
    assert done.returncode == 0, done.stderr
    names = sorted(path.name for path in (tmp_path / "out").glob("*.sqlog"))
    assert names == ["qlog_0_pfifo_seed_1_flow_0.sqlog", "qlog_0_pfifo_seed_1_flow_1.sqlog"]
    loaded = sj.load(tmp_path / "out").runs[0]
    assert [loaded.qlog(flow) for flow in range(3)] == [run.qlog(flow) for flow in range(3)]


def test_on_linux_it_is_refused_in_one_line(sojourn: Cli, tmp_path: Path) -> None:
    file = tmp_path / "logged.toml"
    file.write_text(EXPERIMENT.replace('{ kind = "ping", rtt = "30 ms" },', ""))
    done = sojourn("run", file, "--backend", "linux", "--dry-run")
    assert done.returncode == 2
    assert "record.qlog: got true; must be false" in done.stderr


@pytest.mark.skipif(not READER.exists(), reason="the reader is built by make test")
@pytest.mark.parametrize("flow", [0, 1])
def test_a_reader_of_another_project_knows_every_event(run: sj.Run, flow: int, tmp_path: Path) -> None:
    content = run.qlog(flow)
    assert content is not None
    path = tmp_path / "flow.sqlog"
    path.write_bytes(content)
    found = json.loads(subprocess.run([READER, path], capture_output=True, check=True).stdout)
    assert found["unknown"] == 0
    assert found["known"] == Counter(event["name"] for event in records(run, flow)[1:])
    windows = [window for _, window, _ in found["metrics"] if window is not None]
    updated = (one["data"].get("congestion_window") for one in named(run, flow, "recovery_metrics_updated"))
    assert windows == [window for window in updated if window is not None]
