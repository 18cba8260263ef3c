"""``--on lab.toml``: a testbed's hosts over ssh. Here they are network namespaces, each with an sshd of its own.

A kernel may have no netem: the file has a round-trip time of half a microsecond, which is left to the links.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from linux import testbed
from sojourn import _core
from sojourn.linux import Lab

MISSING = testbed.missing()
needs_hosts = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")

FILE = """
experiment = { duration = "1500 ms", warmup = "300 ms" }
link = { rate = "10 Mbit/s", buffer = "200 packets", up = { rate = "5 Mbit/s" } }
queue = [{ aqm = "pfifo" }]
traffic = [
    { kind = "bulk", rtt = "500 ns", window = "60 kB", stop = "1200 ms" },
    { kind = "cbr", rate = "500 kbit/s", rtt = "500 ns" },
    { kind = "bulk", rtt = "500 ns", window = "30 kB", direction = "up", start = "500 ms" },
    { kind = "ping", interval = "50 ms", rtt = "500 ns" },
    { kind = "ping", interval = "50 ms", rtt = "500 ns", protocol = "udp" },
]
record = { series = "300 ms" }
"""
LONG = ("--set", "experiment.duration=60 s")
WRONG_INPUT = 2

SENDER = '[[host]]\nname = "a"\nssh = "a"\nrole = "sender"\nout = "eth1"\n'
ROUTER = '[[host]]\nname = "b"\nssh = "b"\nrole = "router"\nin = "eth1"\nout = "eth2"\n'
RECEIVER = '[[host]]\nname = "c"\nssh = "c"\nrole = "receiver"\nin = "eth1"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SENDER + ROUTER, "host: got 0 with the role receiver; must be at least one receiver"),
        (SENDER + RECEIVER, "host: got 0 with the role router; must be one router"),
        (SENDER + ROUTER + ROUTER.replace('"b"', '"d"') + RECEIVER,
         "host: got 2 with the role router; must be one router"),
        (SENDER * 2 + ROUTER + RECEIVER, 'host.1: name: got "a" twice; must differ'),
        (SENDER.replace("sender", "switch"), 'host.0: role: got "switch"; must be one of router, receiver, sender'),
        (SENDER.replace("out", "in"), "host.0: in: unknown key of a sender; accepted: out"),
        (ROUTER.replace("\nout", "\n#"), 'host.0: out: missing; must be an interface of a router, like "eth1"'),
        (SENDER + 'in = "eth0"\n', "host.0: in: unknown key of a sender; accepted: out"),
        (SENDER.replace("eth1", "a b"), 'host.0: out: got "a b"; must be an interface, like "eth1"'),
        (SENDER.replace('ssh = "a"', 'ssh = "-oProxyCommand=x"'), 'host.0: ssh: got "-oProxyCommand=x"; must be a text '
         'that does not begin with "-"'),
        (SENDER + 'port = 22\n', "host.0: port: unknown key; accepted: name, ssh, role, in, out"),
        ("host = 3\n", "host: got 3; must be a list"),
        ("[[host\n", r"not TOML: .*"),
    ],
)  # fmt: skip
def test_an_error_of_the_file_says_where_and_what_is_accepted(tmp_path: Path, text: str, message: str):
    file = tmp_path / "lab.toml"
    file.write_text(text)
    with pytest.raises(_core.ExperimentError) as raised:
        Lab.read(file)
    told = str(raised.value).removeprefix(f"{file}: ")
    if "one of" in message:
        message, told = message.split("one of")[0], told.split("one of")[0]
    assert told == message or re.fullmatch(message, told)


def test_a_job_is_divided_among_hosts(tmp_path: Path):
    plan = _core.Plan.read_text(FILE, "short.toml", [])
    job = _core.linux_job(plan[0], "sj")
    (tmp_path / "lab.toml").write_text(SENDER + ROUTER + RECEIVER)
    parts = [json.loads(part) for part in _core.linux_parts(job, "sj", Lab.read(tmp_path / "lab.toml").machines)]
    whole = json.loads(job)
    assert sorted(name for part in parts for name in part["namespaces"]) == sorted(whole["namespaces"])
    assert [len(part["flows"]) for part in parts] == [5, 0, 5]
    assert [len(part["bottlenecks"]) for part in parts] == [0, 2, 0]
    attached = [step["action"]["Attach"] for part in parts for step in part["setup"] if "Attach" in step["action"]]
    # Both ends of each link between two hosts know each other.
    ends = {json.dumps(one["end"]) for one in attached}
    assert ends == {json.dumps(one["other"]) for one in attached}
    assert {one["wire"] for one in attached} == {"eth1", "eth2"}


def test_traffic_with_a_program_at_both_ends_is_refused():
    file = FILE.replace('kind = "ping", interval = "50 ms"', 'kind = "files", size = "1 MB"', 1)
    plan = _core.Plan.read_text(file, "short.toml", [])
    with pytest.raises(_core.ExperimentError, match=r"traffic.3.kind: .* must be bulk, onoff, cbr"):
        _core.linux_modules(plan, True)


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[testbed.Testbed]:
    made = testbed.build(tmp_path_factory.mktemp("testbed"))
    (made.folder / "short.toml").write_text(FILE)
    try:
        yield made
    finally:
        testbed.remove(made)


def run(bed: testbed.Testbed, *more: str) -> tuple[int, str, str]:
    return bed.done("run", "short.toml", "--backend", "linux", "--on", "lab.toml", *more)


def settled(bed: testbed.Testbed, before: dict[str, Any]) -> None:
    """Waits until the hosts are as before: the kernel takes its time to remove a namespace."""
    until = time.monotonic() + 15
    while bed.state(*before["hosts"]) != before and time.monotonic() < until:
        time.sleep(0.1)
    assert bed.state(*before["hosts"]) == before


@needs_hosts
def test_a_file_runs_as_on_one_machine_and_leaves_the_hosts_as_they_were(bed: testbed.Testbed):
    before = bed.state()
    status, out, errors = run(bed, "--json")
    settled(bed, before)
    assert out, errors
    results = json.loads(out)
    (summary,) = results["runs"]
    # A machine that shares its processors is late; nothing else may be wrong.
    reasons = summary.get("invalid", [])
    assert all("woke up" in reason or "saturated" in reason for reason in reasons), reasons
    assert status == (1 if reasons else 0), errors
    bulk, cbr, back, ping, by_udp = summary["flows"]
    assert min(flow["received_bytes"] for flow in (bulk, cbr, back)) > 50_000
    assert summary["bottleneck"]["down"]["delivered_packets"] > 500
    assert cbr["received_bytes"] <= cbr["sent_bytes"]
    assert 0 < cbr["one_way_ms"]["p50"] < 500
    assert ping["rtt_ms"]["n"] > 5
    assert by_udp["rtt_ms"]["n"] > 5
    if not reasons:
        # 60 kB and the acknowledgements of 30 kB at 10 Mbit/s are some 50 ms. Nothing is lost.
        assert 20 < summary["bottleneck"]["down"]["sojourn_ms"]["p50"] < 70
        assert summary["bottleneck"]["down"]["dropped_overflow"] == 0
        assert 6e6 < bulk["received_bytes"] * 8 / 1.2 < 10e6


@needs_hosts
def test_doctor_tells_what_each_host_lacks(bed: testbed.Testbed):
    (bed.folder / "other.toml").write_text(bed.file.read_text().replace('ssh = "router"', 'ssh = "nowhere.invalid"'))
    status, out, errors = bed.done("doctor", "--on", "other.toml")
    assert (status, errors) == (1, "")
    lines = out.splitlines()
    assert [line.split(":")[0] for line in lines if not line.startswith(" ")] == [
        "sender (sender)",
        "router (router)",
        "receiver (receiver)",
    ]
    missing = [line.split(None, 1)[1] for line in lines if line.startswith("  missing ")]
    (router,) = [line for line in missing if "netem" not in line]
    assert router.endswith("ssh -o BatchMode=yes nowhere.invalid id -u must print 0: see ssh-copy-id(1)")
    assert len([line for line in lines if line.startswith("  eth1 ")]) == 2


@needs_hosts
def test_a_second_bottleneck_is_found_before_a_run(bed: testbed.Testbed):
    namespace = bed.namespace("router")
    shaped = ["qdisc", "add", "dev", "eth2", "root", "tbf", "rate", "5mbit", "burst", "10kb", "latency", "20ms"]
    subprocess.run(["tc", "-n", namespace, *shaped], check=True)
    try:
        before = bed.state()
        status, out, errors = run(bed)
        settled(bed, before)
    finally:
        subprocess.run(["tc", "-n", namespace, "qdisc", "del", "dev", "eth2", "root"], check=True)
    assert (status, out) == (WRONG_INPUT, "")
    # A busy host may send less than the 5 Mbit/s that pass.
    assert re.fullmatch(
        r"lab.toml: router eth2 to receiver eth1 carries [1-7](\.\d+)? Mbit/s; must be 11 Mbit/s or more, so that the "
        r"file's queue of 10 Mbit/s is the only bottleneck\n",
        errors,
    ), errors


@needs_hosts
def test_other_traffic_on_a_link_is_found_before_a_run(bed: testbed.Testbed):
    sending = (
        "import socket, time\nown = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\nown.bind(('eth1', 0x88b5))\n"
        "while True:\n own.send(bytes(12) + b'\\x88\\xb5' + bytes(1000))\n time.sleep(0.01)\n"
    )
    command = ["ip", "netns", "exec", bed.namespace("sender"), sys.executable, "-c", sending]
    with subprocess.Popen(command) as other:
        try:
            status, out, errors = run(bed)
        finally:
            other.kill()
    assert (status, out) == (WRONG_INPUT, "")
    assert re.fullmatch(
        r"lab.toml: sender: eth1: other traffic passes, \d(\.\d+)? Mbit/s; must be below 0.1 Mbit/s\n", errors
    ), errors


@needs_hosts
def test_a_clock_that_runs_at_another_rate_is_found_before_a_run(bed: testbed.Testbed):
    """The receiver's sshd starts the agent behind a program that changes its answers: its clock gains two percent."""
    (bed.folder / "wrong.py").write_text(
        "import json, os, subprocess, sys\n"
        "own = subprocess.Popen(['sh', '-c', os.environ['SSH_ORIGINAL_COMMAND']], stdout=subprocess.PIPE)\n"
        "for line in own.stdout:\n"
        "    said = json.loads(line)\n"
        "    if 'clock' in said:\n"
        "        said['clock'] += said['clock'] // 50\n"
        "    print(json.dumps(said), flush=True)\n"
    )
    before = bed.state()
    bed.stop("receiver")
    bed.serve("receiver", f"-o 'ForceCommand={sys.executable} {bed.folder}/wrong.py'")
    try:
        status, out, errors = run(bed)
    finally:
        bed.stop("receiver")
        bed.serve("receiver")
    settled(bed, before)
    assert (status, out) == (WRONG_INPUT, "")
    assert re.fullmatch(
        r"lab.toml: receiver: its clock has moved by \d+\.\d ms in \d+\.\d s beside ours; must be 200 µs in a "
        r"second at most\n",
        errors,
    ), errors


@needs_hosts
def test_a_host_that_answers_late_does_not_lose_the_others(bed: testbed.Testbed):
    """An agent ends ten seconds after the last sign of life, and waits for those that are copied later."""
    late = bed.folder / "late"
    bed.stop("router")
    bed.serve("router", f"-o 'ForceCommand=rm {late} 2>/dev/null && sleep 12; exec sh -c \"$SSH_ORIGINAL_COMMAND\"'")
    late.touch()
    try:
        status, _, errors = run(bed)
    finally:
        bed.stop("router")
        bed.serve("router")
    # A busy machine may make the run invalid, which is status 1.
    assert (status in (0, 1), late.exists()) == (True, False), errors


def begun(bed: testbed.Testbed, *more: str) -> subprocess.Popen[str]:
    """A run of some time, once its packets pass."""

    def sent() -> int:
        return int(bed.inside("sender", "cat", "/sys/class/net/eth1/statistics/tx_bytes"))

    before = sent()
    process = bed.sojourn("run", "short.toml", "--backend", "linux", "--on", "lab.toml", *(more or LONG))
    until = time.monotonic() + 30
    # More than the probes before the run.
    while sent() < before + 700_000:
        assert time.monotonic() < until and process.poll() is None, process.communicate()
        time.sleep(0.05)
    return process


@needs_hosts
def test_an_offload_that_something_switches_on_during_a_run_makes_it_invalid(bed: testbed.Testbed):
    # Those that were on before are off during a run.
    before = bed.offload("router", "eth1", testbed.GET_TSO)
    process = begun(bed, "--set", "traffic.0.stop=1500 ms", "--set", "experiment.duration=2 s")
    during = bed.offload("router", "eth1", testbed.GET_TSO)
    bed.offload("router", "eth1", testbed.SET_GRO, 1)
    _, errors = process.communicate(timeout=30)
    after = bed.offload("router", "eth1", testbed.GET_TSO)
    bed.offload("router", "eth1", testbed.SET_GRO, 0)
    assert (before, during, after) == (1, 0, 1)
    assert process.returncode == 1
    assert re.search(r"router: \d+ packets larger than 1514 B arrived at a queue: segmentation offload was on", errors)


@needs_hosts
def test_an_interrupted_run_leaves_the_hosts_as_they_were(bed: testbed.Testbed):
    before = bed.state()
    process = begun(bed)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=30)
    settled(bed, before)
    assert (process.returncode, out) == (130, ""), errors
    assert errors.splitlines()[-1] == "sojourn: interrupted; 0 of 1 runs finished"


@needs_hosts
def test_agents_that_lose_their_connection_clean_up_by_themselves(bed: testbed.Testbed):
    before = bed.state()
    process = begun(bed)
    # With every ssh that it started.
    for told in subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split():
        os.kill(int(told), signal.SIGKILL)
    process.kill()
    process.communicate()
    settled(bed, before)


@needs_hosts
def test_a_host_that_dies_ends_the_run_and_the_others_are_as_they_were(bed: testbed.Testbed):
    before = bed.state("sender", "router")
    process = begun(bed)
    bed.stop("receiver")
    out, errors = process.communicate(timeout=40)
    settled(bed, before)
    bed.serve("receiver")
    assert (process.returncode, out) == (1, "")
    assert re.fullmatch(
        r"sojourn: short: pfifo, seed 1: receiver: .+ \(ssh receiver\); 0 of 1 runs finished", errors.splitlines()[-1]
    )
