"""A short experiment on the real kernel, in the emulated machine."""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from conftest import Cli
from linux.conftest import EXPERIMENT, needs_emulation
from sojourn import Run, _core
from sojourn.linux import Linux, machine
from sojourn.linux.kernel import locate
from sojourn.runs.execution import as_run

pytestmark = needs_emulation


def make_run(text: str) -> _core.Run:
    plan = _core.Plan.read_text(text, "short", [])
    backend = Linux(kernel="emulated")
    backend.check(plan)
    return backend.run(plan[0], _core.Monitor())


@pytest.fixture(scope="module")
def run() -> _core.Run:
    """One run of the experiment."""
    return make_run(EXPERIMENT)


@pytest.fixture(scope="module")
def packets(run: _core.Run) -> pa.Table:
    """Its packets, a row each."""
    rows = as_run(run).packets()
    assert rows is not None
    return rows


def steady(core: _core.Run) -> dict:
    """The summary but for the wall time."""
    summary = json.loads(core.summary_json)
    del summary["wall_s"]
    return summary


@pytest.fixture
def restless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """QEMU's main thread wakes every 30 µs, as on a busy host it may at any time."""
    library = tmp_path / "restless.so"
    compiler = [shutil.which("cc") or pytest.skip("no C compiler"), "-shared", "-fPIC", "-O2"]
    subprocess.run([*compiler, "-o", library, Path(__file__).with_name("restless.c"), "-ldl"], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(library))


def test_a_run_disturbed_by_the_host_gives_the_same_bytes(run: _core.Run, packets: pa.Table, restless: None):
    disturbed = make_run(EXPERIMENT)
    assert json.dumps(steady(run)) == json.dumps(steady(disturbed))
    assert packets == as_run(disturbed).packets()


def test_codel_holds_the_queue_and_tcp_fills_the_link(run: _core.Run):
    summary = steady(run)
    assert "invalid" not in summary
    down = summary["bottleneck"]["down"]
    # CoDel's target is 5 ms; two flows keep a queue of that order, and the shaper busy.
    assert 1.0 < down["sojourn_ms"]["p50"] < 15.0
    assert 0.9 < down["utilization"] <= 1.01
    # 1448 of 1514 bytes are payload: at most 9.56 Mbit/s.
    goodput = sum(flow["goodput_bps"] for flow in summary["flows"] if flow["kind"] == "bulk")
    assert 8.5e6 < goodput < 9.6e6
    assert down["dropped_aqm"] > 0
    assert down["dropped_overflow"] + down["marked"] == 0


def test_an_echo_takes_the_base_rtt_and_the_queue(run: _core.Run):
    (ping,) = (flow for flow in steady(run)["flows"] if flow["kind"] == "ping")
    assert ping["rtt_ms"]["n"] >= 25
    assert 40.0 < ping["rtt_ms"]["p5"] < ping["rtt_ms"]["p95"] < 80.0


def test_every_packet_has_a_row_and_the_books_balance(run: _core.Run, packets: pa.Table):
    summary = steady(run)
    down = summary["bottleneck"]["down"]
    fates = packets["fate"].to_pylist()
    assert sum(fate <= 1 for fate in fates) == down["delivered_packets"]
    # A drop just before the end may be in the kernel's counters only.
    assert abs(sum(fate >= 2 for fate in fates) - down["dropped_aqm"]) <= 1
    by_flow = dict.fromkeys(range(3), 0)
    for flow, size, fate in zip(packets["flow"].to_pylist(), packets["bytes"].to_pylist(), fates, strict=True):
        by_flow[flow] += size if fate <= 1 else 0
    for number, flow in enumerate(summary["flows"]):
        if flow["kind"] == "bulk":
            assert by_flow[number] >= flow["received_bytes"]


def test_the_series_adds_up_to_the_run(run: _core.Run):
    series = as_run(run).queue_series()
    assert series is not None
    assert series.num_rows == 8
    assert sum(series["packets"].to_pylist()) == steady(run)["bottleneck"]["down"]["delivered_packets"]


CLOCKED_BY_ACKNOWLEDGEMENTS = """\
experiment = { duration = "2 s", warmup = "1 s" }
queue = [{ aqm = "pfifo", limit = "1000 packets" }]
record = { packets = true }
link = { rate = "50 Mbit/s" }
traffic = [{ kind = "bulk", flows = 2, rtt = "20 ms" }]
"""


def test_what_watches_the_packets_does_not_hold_them_up():
    core = make_run(CLOCKED_BY_ACKNOWLEDGEMENTS)
    assert steady(core)["bottleneck"]["down"]["utilization"] > 0.99
    packets = as_run(core).packets()
    assert packets is not None
    left, waited = packets["time_ns"].to_pylist(), packets["sojourn_ns"].to_pylist()
    arrived = sorted(left - waited for left, waited in zip(left, waited, strict=True) if left > 1e9)
    # A receiver acknowledges every second segment, of 0.24 ms each, if it is read from in time.
    assert max(after - before for before, after in pairwise(arrived)) < 1.5e6


STOPS = """\
experiment = { duration = "4 s" }
link = { rate = "12 Mbit/s", buffer = "5000 packets" }
queue = [{ aqm = "pfifo" }]
traffic = [
    { kind = "cbr", rate = "24 Mbit/s", rtt = "20 ms", stop = "1 s" },
    { kind = "bulk", rtt = "20 ms", start = "2.5 s", stop = "3.5 s" },
]
"""


def test_goodput_ends_with_a_flows_stop():
    """Twice the rate for 1 s: as much is queued then as has arrived. The link has 1472 bytes of payload in 1514."""
    datagrams, bulk = steady(make_run(STOPS))["flows"]
    assert datagrams["goodput_bps"] == pytest.approx(12e6 * 1472 / 1514, rel=0.01)
    assert datagrams["received_bytes"] * 8 == pytest.approx(24e6, rel=0.01)
    assert 0.9 * 11.48e6 < bulk["goodput_bps"] < 11.48e6 < bulk["received_bytes"] * 8


UP_AND_DOWN = """\
experiment = { duration = "4 s", warmup = "1 s" }
queue = [{ aqm = "pfifo", limit = "50 packets" }]
record = { packets = true }
link = { rate = [["0 s", "10 Mbit/s"], ["2 s", "5 Mbit/s"]], up = { rate = "2 Mbit/s" }, delay = "5 ms" }
traffic = [
    { kind = "bulk", flows = 1, rtt = "20 ms", direction = "up", ecn = true, tcp = "reno" },
    { kind = "cbr", flows = 1, rate = "4 Mbit/s", packet = "972 B", rtt = "20 ms" },
    { kind = "files", flows = 1, size = "20 kB", think = "50 ms", rtt = "20 ms" },
    { kind = "voip", flows = 1, rtt = "20 ms", dscp = "EF" },
]
"""


def test_both_ways_a_change_of_rate_datagrams_and_files():
    summary = steady(make_run(UP_AND_DOWN))
    assert "invalid" not in summary
    bulk, cbr, files, call = summary["flows"]
    # The way up: 1448 of 1514 bytes of 2 Mbit/s, and over 3 s 0.2 Mbit/s of what slow start's losses held back before
    # (50 packets); less the other way's acknowledgements.
    assert 1.6e6 < bulk["goodput_bps"] < 2.12e6
    # 4 Mbit/s of 972 bytes are 514.4 datagrams a second; until 2 s the link carries them all.
    assert cbr["sent_bytes"] == pytest.approx(4e6 / 8 * 4, rel=0.001)
    assert cbr["one_way_ms"]["p5"] == pytest.approx(5.8, abs=1.0)
    assert files["completion_ms"]["n"] >= 2
    # A file of 20 kB takes a handshake and two rounds, 60 ms without queues; 50 packets on the way up add 300 ms each.
    assert files["completion_ms"]["p5"] > 40.0
    # A call of three seconds through 50 packets at 5 to 10 Mbit/s: at most 120 ms late, and hardly a loss.
    assert call["dscp"] == 46
    assert 3.0 < call["mos"] <= 4.5
    up = summary["bottleneck"]["up"]
    assert up["dropped_overflow"] > 0
    assert bulk["dropped_packets"] > 0


MANY_FLOWS = """\
experiment = { duration = "3 s" }
queue = [{ aqm = "codel", ecn = true, limit = "20 packets" }]
link = { rate = "10 Mbit/s" }
traffic = [{ kind = "bulk", flows = 40, rtt = "100 ms", tcp = "reno", ecn = true, ecn_fallback = false }]
"""


FLOWS_AND_A_FLOOD = """\
experiment = { duration = "10 s" }
queue = [{ aqm = "codel", ecn = true, limit = "20 packets" }]
link = { rate = "10 Mbit/s" }
traffic = [
    { kind = "bulk", flows = 10, rtt = "100 ms", start = "1 s", tcp = "reno", ecn = true, ecn_fallback = false },
    { kind = "cbr", rate = "30 Mbit/s", packet = "1000 B", rtt = "100 ms", stop = "3 s" },
]
"""


def test_a_lost_syn_gives_ecn_up_unless_it_is_not_to():
    """Two of three SYNs are lost in the flood. Afterwards those that gave ECN up are never marked."""
    falling_back, insisting = (
        [flow["marked_packets"] > 0 for flow in steady(make_run(text))["flows"] if flow["kind"] == "bulk"]
        for text in (FLOWS_AND_A_FLOOD.replace("false", "true"), FLOWS_AND_A_FLOOD)
    )
    assert any(falling_back)
    assert not all(falling_back)
    assert all(insisting)


def test_many_flows_leave_the_memory_of_tcp_alone_and_keep_ecn():
    summary = steady(make_run(MANY_FLOWS))
    assert "invalid" not in summary
    # 40 SYNs at once into room for 20 packets: those sent again ask for ECN too, or the run would have failed.
    assert summary["bottleneck"]["down"]["dropped_overflow"] >= 20


def test_a_run_under_memory_pressure_is_not_to_be_trusted():
    plan = _core.Plan.read_text(MANY_FLOWS, "many", [])
    job = json.loads(_core.linux_job(plan[0], "sj"))
    settings = [values for step in job["setup"] for values in step["action"].get("Sysctl", [])]
    (unsent,) = {tuple(setting) for setting in settings if setting[0] == "net/ipv4/tcp_notsent_lowat"}
    told = json.dumps(job).replace(json.dumps(list(unsent)), json.dumps([unsent[0], "4294967295"]))
    # TCP gets what a kernel would give it of this machine, not half of the memory.
    told = told.replace('["net/core/rmem_max", ', '["net/ipv4/tcp_mem", "12288 16384 24576"], ["net/core/rmem_max", ')
    recording = machine.run(told, 1, locate("emulated"), job["modules"], _core.Monitor())
    (fault,) = steady(_core.linux_run(plan[0], recording, 0.0))["invalid"]
    assert "memory pressure" in fault


EVERY_KIND = """\
experiment = { duration = "10 s", warmup = "1 s" }
queue = [{ aqm = "fq_codel", variant = "linux" }]
link = { rate = "10 Mbit/s", up = { rate = "5 Mbit/s" } }
traffic = [
    { kind = "game", rtt = "20 ms" },
    { kind = "onoff", rate = "1 Mbit/s", rtt = "20 ms" },
    { kind = "onoff", transport = "tcp", rate = "500 kbit/s", rtt = "20 ms" },
    { kind = "onoff", transport = "tcp", times = "fixed", on = "2 s", off = "3 s", rtt = "20 ms", tcp = "reno" },
    { kind = "files", size = { distribution = "pareto", mean = "30 kB", shape = 1.5 }, arrivals = 2, rtt = "20 ms" },
    { kind = "web", objects = 10, size = "10 kB", rtt = "20 ms" },
    { kind = "web", connections = 5, rtt = "20 ms" },
    { kind = "video", segment = "1 s", rtt = "20 ms", direction = "up" },
]
"""


def test_every_kind_of_traffic_does_on_linux_what_it_does_in_the_simulator():
    plan = _core.Plan.read_text(EVERY_KIND, "kinds", [])
    simulated = steady(plan[0].run(_core.Monitor()))
    summary = steady(make_run(EVERY_KIND))
    assert "invalid" not in summary
    assert summary["flows"][0].keys() == simulated["flows"][0].keys()
    for here, there in zip(summary["flows"], simulated["flows"], strict=True):
        assert here.keys() == there.keys(), here["kind"]
        assert here["received_bytes"] > 0
    down, up, udp, paced, bulk, files, pages, cloud, video = zip(summary["flows"], simulated["flows"], strict=True)
    # What does not wait for the network is sent to the byte: drawn from the same streams.
    for here, there in (down, up, udp, paced, cloud):
        assert here["sent_bytes"] == there["sent_bytes"], here["kind"]
    # Files that begin before the end may have been sent in part.
    assert files[0]["completion_ms"]["n"] == pytest.approx(files[1]["completion_ms"]["n"], abs=1)
    assert cloud[0]["completion_ms"]["n"] == pytest.approx(cloud[1]["completion_ms"]["n"], abs=2)
    assert cloud[0]["completion_ms"]["mean"] == pytest.approx(cloud[1]["completion_ms"]["mean"], rel=0.2)
    assert pages[0]["page_load_ms"]["mean"] == pytest.approx(pages[1]["page_load_ms"]["mean"], rel=0.2)
    assert video[0]["video"]["segments"] == pytest.approx(video[1]["video"]["segments"], abs=3)
    assert video[0]["video"]["stalls"] == 0
    # On for 2 of 5 s, twice, at most at the link's rate.
    assert bulk[0]["goodput_bps"] == pytest.approx(bulk[1]["goodput_bps"], rel=0.1)


RECORDED = EXPERIMENT.replace("[record]", "[record]\nrtt = true\none_way = true\npcap = true")


@pytest.fixture(scope="module")
def recorded() -> Run:
    """One run of which all is recorded."""
    return as_run(make_run(RECORDED))


def test_round_trips_are_rows(recorded: Run):
    rtts = recorded.read_table("rtts").to_pandas()
    for flow in (0, 1):
        own = rtts[rtts.flow == flow]
        assert own.rtt_ns.between(40e6, 150e6).all()
        # Ten times a second from the flow's first data on.
        assert 37 <= len(own) <= 39
    echoes = rtts[rtts.flow == 2]
    steady = echoes[echoes.time_ns >= 1_000_000_000]
    assert len(steady) == recorded.summary["flows"][2]["rtt_ms"]["n"]
    series = recorded.read_table("flow_series").to_pandas()
    assert series.rtt_ms.between(40.0, 150.0).all()


def test_segments_of_tcp_have_one_way_delays(recorded: Run):
    packets = recorded.packets().to_pandas()
    for number, flow in enumerate(recorded.summary["flows"][:2]):
        data = packets[(packets.flow == number) & (packets.fate <= 1) & (packets.bytes > 66)]
        steady = data[data.time_ns >= 1_000_000_000]
        assert flow["one_way_ms"]["n"] == len(steady) > 100
        # In whole microseconds.
        assert flow["one_way_ms"]["mean"] == pytest.approx(steady.sojourn_ns.mean() / 1e6, abs=0.001)
        assert flow["jitter_ms"]["n"] == len(steady) - 1


def test_a_capture_has_every_packet_that_left(recorded: Run, tmp_path: Path):
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("no tshark to read the capture with")
    capture = tmp_path / "run.pcapng"
    content = recorded.capture()
    assert content is not None
    capture.write_bytes(content)
    names = ["frame.interface_name", "frame.time_epoch", "frame.len", "tcp.dstport", "tcp.stream", "_ws.malformed"]
    options = [option for name in names for option in ("-e", name)]
    told = subprocess.run([tshark, "-n", "-r", capture, "-T", "fields", *options], stdout=subprocess.PIPE, text=True,
                          timeout=120, check=True)  # fmt: skip
    rows = [line.split("\t") for line in told.stdout.splitlines()]
    assert not any(row[5] for row in rows)
    down = [row for row in rows if row[0] == "down"]
    packets = recorded.packets().to_pandas()
    left = packets[packets.fate <= 1]
    assert [int(row[2]) for row in down] == list(left.bytes)
    # Seen some instructions after it was dequeued.
    late_us = [float(row[1]) * 1e6 - time_ns / 1e3 for row, time_ns in zip(down, left.time_ns, strict=True)]
    assert min(late_us) > 0.0
    assert max(late_us) < 100.0
    assert {row[3] for row in down if row[3]} == {"10000", "10001"}
    # What comes back: acknowledgements of both connections, and replies.
    up = [row for row in rows if row[0] == "up"]
    assert {row[4] for row in up} == {"0", "1", ""}
    assert len(up) > len(down) / 3


def test_what_linux_gives_otherwise_is_said_once(sojourn: Cli, short: Path):
    result = sojourn("run", short, "--backend", "linux", "--kernel", "emulated", "--set", "record.rtt=true")
    assert result.returncode == 0, result.stderr
    notes = [line for line in result.stderr.splitlines() if line.startswith("note: record.rtt")]
    assert notes == [
        "note: record.rtt: for TCP, Linux records the smoothed round-trip time ten times a second, not every sample"
    ]
