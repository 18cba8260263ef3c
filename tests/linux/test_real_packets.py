"""Real packets: programs behind a link, the kernel's TCP on Sojourn's own path, and that nothing is left of them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn import _core
from sojourn.linux import datapath, programs

LACKING = datapath.missing()
real = pytest.mark.skipif(LACKING is not None, reason=f"real packets: {LACKING}")
SOJOURN = [sys.executable, "-m", "sojourn"]
PATH = """
experiment = { duration = "2 s" }
link = { rate = "50 Mbit/s", delay = "2 ms" }
queue = [{ aqm = "fq_codel" }, { aqm = "pfifo", label = "fifo", limit = "50 packets" }]
"""
TRAFFIC = """
traffic = [{ kind = "bulk", flows = 2, rtt = "10 ms" }, { kind = "ping", rtt = "10 ms", interval = "100 ms" }]
"""
SERVE = (
    "import os, socket; s = socket.create_server((os.environ['SOJOURN_SERVER'], 9)); "
    "c, _ = s.accept(); c.sendall(bytes(500_000)); c.close()"
)
FETCH = (
    "import os, socket; s = socket.create_connection((os.environ['SOJOURN_SERVER'], 9)); "
    "print(sum(map(len, iter(lambda: s.recv(65536), b''))))"
)


def sojourn(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*SOJOURN, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "path.toml"
    file.write_text(PATH)
    return file


# ---- Without real packets ----


def test_the_simulator_refuses_a_file_without_traffic(path: Path):
    done = sojourn("run", path)
    assert (done.returncode, done.stdout) == (2, "")
    table = "traffic: not given; must be at least one table [[traffic]] with a kind and an rtt"
    assert done.stderr == f"{path}: {table}; without any, programs bring it: sojourn shell FILE -- COMMAND\n"


def test_a_plan_for_programs_has_one_run_of_the_named_arm():
    plan = _core.Plan.for_programs(PATH, "path.toml", [("experiment.repeat", "3")], "fifo")
    assert [job[3] for job in plan.jobs] == ["fifo"]
    assert _core.RunSpec.read(plan[0].document) == plan[0]
    assert json.loads(plan.resolved_json())[0]["queue"][0]["limit"] == "50 packets"


@pytest.mark.parametrize(
    ("overrides", "label", "message"),
    [
        ([], "red", '--queue: got "red"; must be one of "fq_codel", "fifo"'),
        ([("link.rate", "5 ms")], None, '--set link.rate: got "5 ms"; must be a rate'),
        ([("record.pcap", '"sender"')], None, '--set record.pcap: got "sender"; must be true, false or "router"'),
        ([("queue.0.target", "-1 s")], None, "--set queue.0.target: "),
    ],
)
def test_what_programs_cannot_have_is_refused(overrides: list[tuple[str, str]], label: str | None, message: str):
    with pytest.raises(_core.ExperimentError) as refused:
        _core.Plan.for_programs(PATH, "path.toml", overrides, label)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["path.toml", "--rate", "5mbit", "--", "true"], "--rate: cannot be given with path.toml"),
        (["--rate", "5mbit", "--", "mm-delay", "20", "true"], "--rate: cannot be given with mm-delay"),
        (["--up", "2mbit", "--", "true"], "--up: needs --rate"),
        (["path.toml", "--aqm", "codel", "--", "true"], "--aqm: needs --rate; a FILE has [[queue]]"),
        (["path.toml", "--delay", "5ms", "--", "true"], "--delay: needs --rate; a FILE has delay in its [link]"),
        (["nosuch.toml", "--", "true"], "nosuch.toml: cannot be read: No such file or directory"),
    ],
)
def test_a_line_is_described_once(words: list[str], told: str):
    done = sojourn("shell", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


@pytest.mark.parametrize("word", ["path.toml", "true"])
def test_a_shell_needs_a_link_and_a_program(word: str):
    done = sojourn("shell", "--", word)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"shell: got only {word}; must be a link and a program: FILE -- COMMAND")


WIFI = """
experiment = { duration = "4 s", warmup = "1 s" }
link = [{ name = "air", kind = "wifi", standard = "802.11n", from = "ap", to = ["near", "far"], streams = 2,
          station = { near = { rate = "65 Mbit/s" }, far = { rate = "6.5 Mbit/s" } } }]
queue = [{ aqm = "fq_codel" }]
traffic = [
    { kind = "bulk", rtt = "20 ms", from = "ap", to = "near" },
    { kind = "bulk", rtt = "20 ms", from = "ap", to = "far" },
]
"""


def test_transmissions_of_real_packets_are_not_recorded():
    with pytest.raises(_core.ExperimentError, match=r"--set record\.medium: .*must be left out for real packets"):
        _core.path_check(_core.Plan.read_text(WIFI, "wifi.toml", [("record.medium", "true")]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--backend", "sim"], '--backend: got "sim"; must be two or more of sim, linux, datapath, with commas'),
        (
            ["--backend", "sim,sim"],
            '--backend: got "sim,sim"; must be two or more of sim, linux, datapath, with commas',
        ),
        (["--backend", "sim,datapath", "--kernel", "6.1"], '--kernel: got "6.1"; needs --backend linux'),
    ],
)
def test_agree_needs_backends_that_differ(path: Path, options: list[str], message: str):
    done = sojourn("agree", path, *options)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message + "\n")


# ---- With real packets ----


@real
def test_the_status_of_the_program_is_that_of_the_shell(path: Path):
    for words, status in [("exit 7", 7), ("kill -TERM $$", 128 + signal.SIGTERM)]:
        done = sojourn("shell", path, "--", "sh", "-c", words)
        assert (done.returncode, done.stdout) == (status, "")
    # The program decides how long the run is, so a file need not say.
    path.write_text(PATH.replace('experiment = { duration = "2 s" }', ""))
    assert sojourn("shell", path, "--", "sh", "-c", "exit 3").returncode == 3
    missing = sojourn("shell", path, "--", "no-such-program")
    assert missing.returncode == 127
    assert "no-such-program: No such file or directory" in missing.stderr


@real
def test_a_download_is_measured(path: Path, tmp_path: Path):
    out = tmp_path / "out"
    served = f'{sys.executable} -c "{SERVE}"'
    words = ["--server", served, "--out", out, "--figures", "none", "--", sys.executable, "-c", FETCH]
    done = sojourn("shell", path, *words)
    assert (done.returncode, done.stdout) == (0, "500000\n")
    (run,) = json.loads((out / "summary.json").read_text())["runs"]
    # The other direction has only acknowledged.
    (down,) = run["groups"]
    assert (down["name"], down["kind"], down["direction"]) == ("tcp 9", "tcp", "down")
    assert run["jain_goodput"] == 1.0
    (flow,) = [flow for flow in run["flows"] if flow["direction"] == "down"]
    assert flow["received_bytes"] == 500_000
    queue = run["bottleneck"]["down"]
    # 346 full segments, and the connection's own packets.
    assert queue["delivered_packets"] >= 346
    assert queue["delivered_packets"] + queue["dropped_aqm"] + queue["dropped_overflow"] <= 400 + flow["retransmits"]
    assert run["lateness_ms"]["n"] >= queue["delivered_packets"]
    assert 0.0 < run["path_cpu_s"] < run["wall_s"]


@real
def test_the_panel_is_a_line_a_second(path: Path, tmp_path: Path):
    served = f'{sys.executable} -c "{SERVE}"'
    words = ["--set", 'link.rate="2 Mbit/s"', "--panel", "--server", served, "--", sys.executable, "-c", FETCH]
    done = sojourn("shell", path, *words)
    assert (done.returncode, done.stdout) == (0, "500000\n"), done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("down: ")]
    # 500 kB at 2 Mbit/s take 2 s, and the first lines come after one and two.
    assert len(lines) in (2, 3), done.stderr
    found = re.fullmatch(r"down: (\d+\.\d\d) Mbit/s, \d+ packets, \d+\.\d ms, \d+ dropped", lines[1])
    assert found is not None
    assert abs(float(found[1]) - 2.0) < 0.1


@real
def test_standard_output_is_the_programs_alone(path: Path):
    server = f"echo served; exec {sys.executable} -m http.server 8000"
    done = sojourn("shell", path, "--server", server, "--", "echo", "answered")
    assert done.stdout == "answered\n"
    assert "served" in done.stderr


@real
def test_a_server_that_fails_ends_the_shell_before_the_program(path: Path):
    done = sojourn("shell", path, "--server", "exit 3", "--", "echo", "begun")
    assert (done.returncode, done.stdout) == (1, "")
    assert '--server: got "exit 3"; it ended with status 3 before the program could begin' in done.stderr


@real
def test_a_terminal_has_the_panel_as_its_title(path: Path):
    said = b""
    words = [*SOJOURN, "shell", str(path), "--panel", "--no-outside", "--", "sleep", "1.5"]
    here, there = os.openpty()
    with (
        os.fdopen(here, "rb", buffering=0) as terminal,
        subprocess.Popen(words, stderr=there, stdout=subprocess.DEVNULL) as shell,
    ):
        os.close(there)
        while b"\033[23;2t" not in said:
            said += terminal.read(4096)
        shell.wait()
    title = re.search(rb"\033\[22;2t\033\]2;down: 0.00 Mbit/s, 0 packets, 0.0 ms, 0 dropped\007", said)
    assert title is not None, said


@real
def test_round_trips_of_programs_are_recorded(path: Path, tmp_path: Path):
    out = tmp_path / "out"
    served = f'{sys.executable} -c "{SERVE}"'
    words = ["--set", "record.rtt=true", "--server", served, "--out", out, "--figures", "none"]
    assert sojourn("shell", path, *words, "--", sys.executable, "-c", FETCH).returncode == 0
    run = sj.load(out).runs[0]
    rows, flows = run.rtts(), run.summary["flows"]
    assert rows.num_rows == sum(flow["rtt_ms"]["n"] for flow in flows) > 0
    # Propagation alone takes 4 ms.
    assert min(rows["rtt_ns"].to_pylist()) >= 4_000_000


@real
def test_a_log_of_mahimahi_leaves_the_programs_status_alone(tmp_path: Path):
    (tmp_path / "trace").write_text("1\n")
    link = ["shell", "--", "mm-link", tmp_path / "trace", tmp_path / "trace"]
    done = sojourn(*link, f"--uplink-log={tmp_path / 'up.log'}", "--", "sh", "-c", "exit 37")
    assert done.returncode == 37
    assert (tmp_path / "up.log").read_text() == ""
    done = sojourn(*link, f"--uplink-log={tmp_path / 'no' / 'up.log'}", "--", "touch", tmp_path / "started")
    assert done.returncode == 2
    assert "up.log: No such file or directory" in done.stderr
    assert not (tmp_path / "started").exists()


@real
def test_a_signal_to_the_shell_reaches_the_program(path: Path, tmp_path: Path):
    ready = tmp_path / "ready"
    words = f"trap 'exit 5' TERM; : > {ready}; while :; do sleep 0.05; done"
    with subprocess.Popen([*SOJOURN, "shell", str(path), "--", "sh", "-c", words], stderr=subprocess.DEVNULL) as shell:
        while not ready.exists():
            time.sleep(0.02)
        shell.terminate()
        assert shell.wait() == 5


@real
def test_the_kernels_tcp_passes_the_path(path: Path):
    path.write_text(PATH + TRAFFIC)
    done = sojourn("run", path, "--backend", "datapath", "--json")
    summary = json.loads(done.stdout)
    assert (summary["backend"], len(summary["runs"])) == ("datapath", 2)
    for run in summary["runs"]:
        queue = run["bottleneck"]["down"]
        assert queue["delivered_packets"] > 1000
        assert {flow["kind"]: flow["received_bytes"] > 0 for flow in run["flows"]} == {"bulk": True, "ping": True}
        # Propagation alone takes 10 ms.
        assert all(flow["rtt_ms"]["p5"] >= 10.0 for flow in run["flows"])
        assert run["kernel"] == os.uname().release
    fifo = summary["runs"][1]["bottleneck"]["down"]
    assert fifo["dropped_overflow"] > 0
    assert fifo["dropped_aqm"] == 0


TRIES = 3
"""A busy machine delays what is on the air: one of so many runs has to agree."""


@real
def test_a_cell_of_wifi_carries_real_packets(path: Path):
    path.write_text(WIFI)

    def run(backend: str) -> dict[str, Any]:
        (found,) = json.loads(sojourn("run", path, "--backend", backend, "--json").stdout)["runs"]
        return dict(found)

    simulated = run("sim")
    is_a_cell(simulated)
    for left in reversed(range(TRIES)):
        try:
            found = run("datapath")
            is_a_cell(found)
            agree(found, simulated)
        except AssertionError:
            if not left:
                raise
        else:
            break


def is_a_cell(run: dict[str, Any]) -> None:
    stations = run["links"]["air"]["stations"]
    # Airtime is shared, and not goodput: the modes differ by ten.
    assert stations["near"]["airtime_share"] == pytest.approx(stations["far"]["airtime_share"], rel=0.2)
    assert stations["near"]["goodput_bps"] > 5 * stations["far"]["goodput_bps"]
    assert stations["near"]["aggregate_frames"] > 2


def agree(real_run: dict[str, Any], simulated: dict[str, Any]) -> None:
    for name in ("near", "far"):
        ours, theirs = (run["links"]["air"]["stations"][name] for run in (real_run, simulated))
        assert ours["goodput_bps"] == pytest.approx(theirs["goodput_bps"], rel=0.2)
        # Of a few seconds, some windows long: 26 to 42 ms and 38 to 68 were seen for the far station.
        assert theirs["latency_ms"]["p50"] / 3 < ours["latency_ms"]["p50"] < theirs["latency_ms"]["p50"] * 4
    queues = [run["links"]["air"]["down"] for run in (real_run, simulated)]
    assert queues[0]["utilization"] == pytest.approx(queues[1]["utilization"], abs=0.1)
    assert queues[0]["delivered_packets"] == pytest.approx(queues[1]["delivered_packets"], rel=0.2)
    rtts = [run["flows"][0]["rtt_ms"]["p50"] for run in (real_run, simulated)]
    assert rtts[0] == pytest.approx(rtts[1], rel=0.3)


OWN = """
import sojourn as sj

@sj.aqm("sixth")
class Sixth:
    "Drops every sixth arrival, and from an instant on none: then it raises an exception, if that is wanted."

    update_interval = 0.5

    def __init__(self, until="1 min", fails=False):
        self.seen, self.until, self.fails, self.updates = 0, until, fails, 0

    def enqueue(self, packet, queue, now):
        self.seen += 1
        assert packet.bytes <= 1514 and packet.flow[4] in (1, 6)
        if now > self.until:
            if self.fails:
                raise RuntimeError(f"at packet {self.seen}")
            return "pass"
        return "drop" if self.seen % 6 == 0 else "pass"

    def update(self, queue, now):
        self.updates += 1

    def state(self):
        return {"probability": self.updates / 1000}
"""


@real
def test_a_discipline_in_python_decides_about_real_packets(path: Path, tmp_path: Path):
    (tmp_path / "own.py").write_text(OWN)
    path.write_text(
        PATH.replace('"fq_codel"', '"sixth", until = "1 s", label = "sixth"') + TRAFFIC.split(", {")[0] + "]\n"
    )
    load = ["--load", tmp_path / "own.py", "run", path, "--backend", "datapath"]
    done = sojourn(*load, "--json", "--set", 'record.series="100 ms"', "--out", tmp_path / "out")
    sixth, fifo = (run["bottleneck"]["down"] for run in json.loads(done.stdout)["runs"])
    # Every sixth of a second's packets: with such losses there are few.
    assert 20 <= sixth["dropped_aqm"] <= 400
    assert sixth["dropped_aqm"] / sixth["delivered_packets"] < 1 / 5
    assert fifo["dropped_aqm"] == 0
    # The updates of 2 s, as the series has them at its end.
    shown = sj.load(tmp_path / "out").runs[0].queue_series()["probability"].to_pylist()
    assert shown[-1] == pytest.approx(0.003, abs=0.001)
    assert shown == sorted(shown)


@real
@pytest.mark.parametrize("command", ["run", "shell"])
def test_an_exception_of_a_discipline_ends_a_run_of_real_packets(path: Path, tmp_path: Path, command: str):
    (tmp_path / "own.py").write_text(OWN)
    alone = PATH.split(", { aqm")[0].replace("2 s", "20 s") + "]\n"
    alone = alone.replace('"fq_codel"', '"sixth", until = "100 ms", fails = true')
    path.write_text(alone + ("" if command == "shell" else TRAFFIC))
    # A program fetches 500 kB; it is ended, too.
    rest = (
        ["--backend", "datapath"]
        if command == "run"
        else ["--server", f'{sys.executable} -c "{SERVE}"', "--", sys.executable, "-c", FETCH]
    )
    began = time.monotonic()
    done = sojourn("--load", tmp_path / "own.py", command, path, *rest)
    assert done.returncode == 1
    assert re.search(r"RuntimeError: at packet \d+ \(.*own\.py:18\)", done.stderr), done.stderr
    assert time.monotonic() - began < 15.0


@real
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may remove the device")
def test_a_removed_device_is_told(path: Path, tmp_path: Path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    words = [*SOJOURN, "shell", str(path), "--", "sh", "-c", "ip link del sojourn0; sleep 100"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("sojourn-agent: the device of the path was removed")
    assert _agents(tmp_path) == []
    assert list(tmp_path.glob("sojourn-*")) == []


@real
def test_a_full_disk_is_told(path: Path, tmp_path: Path):
    path.write_text(PATH + TRAFFIC)
    full = tmp_path / "full"
    full.mkdir()
    agent = programs.require_agent().stat().st_size // 1024
    script = f"mount -t tmpfs -o size={agent + 24}k none {full} && TMPDIR={full} exec {' '.join(SOJOURN)} run {path}"
    apart = ["unshare", "-rm", "sh", "-c", f"{script} --backend datapath"]
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode != 0:
        pytest.skip("no mount namespaces")
    done = subprocess.run(apart, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "No space left on device" in done.stderr.splitlines()[-1]
    assert _agents(full) == []


@real
def test_the_next_start_removes_the_files_of_a_killed_run(path: Path, tmp_path: Path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([*SOJOURN, "shell", str(path), "--", "sleep", "100"], env=environment) as shell:
        while not list(tmp_path.glob("sojourn-*/.sojourn-*/sojourn-agent")):
            time.sleep(0.02)
        shell.kill()
    assert list(tmp_path.glob("sojourn-*/.sojourn-*"))
    assert subprocess.run([*SOJOURN, "shell", str(path), "--", "true"], env=environment).returncode == 0
    assert list(tmp_path.glob("sojourn-*")) == []


@real
def test_real_packets_stand_beside_the_simulator(path: Path):
    path.write_text(PATH + TRAFFIC)
    done = sojourn("agree", path, "--backend", "sim,datapath", "--json", "--set", 'queue=[{aqm="fq_codel"}]')
    assert done.returncode in (0, 1), done.stderr
    document = json.loads(done.stdout)
    assert (document["backends"], document["kernels"]) == (["sim", "datapath"], {"datapath": os.uname().release})
    (median,) = (row for row in document["agreement"] if row["metric"] == "goodput_bps")
    # Whether they agree depends on what else this machine does.
    assert min(median["sim"], median["datapath"]) > 10e6


def _agents(folder: Path) -> list[str]:
    """The command lines of processes that were started from below a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(folder) in words:
            found.append(words)
    return found


@real
@pytest.mark.parametrize("after_s", [0.0, 0.3, 0.6, 1.0])
def test_nothing_is_left_of_a_shell_that_is_killed(path: Path, tmp_path: Path, after_s: float):
    sleeper = tmp_path / "sleeper"
    sleeper.write_text("#!/bin/sh\nsleep 1000 & sleep 1000\n")
    sleeper.chmod(0o755)
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    shell = subprocess.Popen([*SOJOURN, "shell", str(path), "--", str(sleeper)], env=environment)
    time.sleep(after_s)
    shell.kill()
    shell.wait()
    until = time.monotonic() + 20
    while _agents(tmp_path) and time.monotonic() < until:
        time.sleep(0.02)
    assert _agents(tmp_path) == []
    assert not Path("/sys/class/net/sojourn0").exists()
