"""``sojourn shell --between``: the link between two interfaces of a machine, here a namespace between two others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from linux import testbed

MISSING = testbed.missing()
needs_root = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")
SOJOURN = [sys.executable, "-m", "sojourn"]
LINK = """
link = { rate = "20 Mbit/s", delay = "10 ms", up = { rate = "5 Mbit/s" } }
queue = [{ aqm = "fq_codel" }]
"""
BYTES = 1_000_000
SERVE = f"""
import socket
server = socket.create_server(("10.99.0.1", 9))
print("listens", flush=True)
connection, _ = server.accept()
connection.sendall(bytes({BYTES}))
connection.close()
"""
FETCH = """
import socket, time
began = time.monotonic()
connection = socket.create_connection(("10.99.0.1", 9))
received = sum(map(len, iter(lambda: connection.recv(65536), b"")))
print(received, time.monotonic() - began)
"""


class Row:
    """Three namespaces: a server, the machine in the middle with ``eth1`` and ``eth2``, a client."""

    def __init__(self) -> None:
        self.names = {host: f"row{os.getpid()}{host}" for host in ("server", "middle", "client")}
        for name in self.names.values():
            subprocess.run(["ip", "netns", "add", name], check=True)
            subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        for host, number in (("server", 1), ("client", 2)):
            peer = ["peer", "name", f"eth{number}", "netns", self.names["middle"]]
            self._ip(host, "link", "add", "eth0", "type", "veth", *peer)
            self._ip(host, "address", "add", f"10.99.0.{number}/24", "dev", "eth0")
            self._ip(host, "link", "set", "eth0", "up")
            self._ip("middle", "link", "set", f"eth{number}", "up")

    def _ip(self, host: str, *words: str) -> None:
        subprocess.run(["ip", "-n", self.names[host], *words], check=True)

    def start(self, host: str, *command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["ip", "netns", "exec", self.names[host], *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def done(self, host: str, *command: str) -> tuple[int, str, str]:
        with self.start(host, *command) as process:
            out, errors = process.communicate(timeout=60)
        return process.returncode, out, errors

    def between(self, file: Path, *words: str) -> subprocess.Popen[str]:
        """The command in the middle, once it reads the interfaces."""
        process = self.start("middle", *SOJOURN, "shell", str(file), "--between", "eth1,eth2", *words)
        until = time.monotonic() + 30
        while not self.is_promiscuous("eth2"):
            assert time.monotonic() < until and process.poll() is None, process.communicate()
            time.sleep(0.02)
        return process

    def is_promiscuous(self, wire: str) -> bool:
        return "promiscuity 1" in self.done("middle", "ip", "-d", "link", "show", wire)[1]

    def remove(self) -> None:
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], check=False)


@pytest.fixture(scope="module")
def row() -> Iterator[Row]:
    made = Row()
    try:
        yield made
    finally:
        made.remove()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "line.toml"
    path.write_text(LINK)
    return path


@needs_root
def test_a_download_passes_the_link_with_its_addresses_asked_for(row: Row, file: Path, tmp_path: Path):
    out = tmp_path / "out"
    program = ["--out", str(out), "--figures", "none", "--", "sleep", "1000"]
    with row.between(file, *program) as process, row.start("server", sys.executable, "-c", SERVE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "listens\n"
        # Nobody knows the other's address: questions for it pass beside the queue.
        status, said, errors = row.done("client", sys.executable, "-c", FETCH)
        assert status == 0, errors
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    received, took_s = said.split()
    assert int(received) == BYTES
    # 1448 of 1514 bytes are payload; three round trips of 20 ms before.
    assert float(took_s) > BYTES * 8 / (20e6 * 1448 / 1514)
    (run,) = json.loads((out / "summary.json").read_text())["runs"]
    (flow,) = [flow for flow in run["flows"] if flow["direction"] == "down"]
    assert (flow["name"], flow["received_bytes"]) == ("tcp 9", BYTES)
    assert flow["rtt_ms"]["min"] >= 20.0
    queue = run["bottleneck"]["down"]
    # Large frames were cut: a packet of the queue is one of the line.
    assert queue["delivered_packets"] >= BYTES / 1448
    assert queue["delivered_bytes"] / queue["delivered_packets"] < 1515
    assert not row.is_promiscuous("eth1")


@needs_root
@pytest.mark.parametrize(
    ("between", "message"),
    [
        ("eth1", 'got "eth1"; must be two interfaces, as eth1,eth2'),
        ("eth1,eth1", 'got "eth1,eth1"; must be two interfaces, as eth1,eth2'),
        ("eth1,eth9", 'got "eth1,eth9"; there is no interface eth9; must be two of eth1, eth2, lo'),
    ],
)
def test_interfaces_that_cannot_be_used_are_refused(row: Row, file: Path, between: str, message: str):
    done = row.done("middle", *SOJOURN, "shell", str(file), "--between", between, "--", "true")
    assert done == (2, "", f"--between: {message}\n")


@needs_root
def test_interfaces_that_are_no_wire_are_refused(row: Row, file: Path):
    words = [*SOJOURN, "shell", str(file), "--between"]
    done = row.done("middle", *words, "eth1,lo", "--", "true")
    assert done == (2, "", '--between: got "eth1,lo"; lo does not carry frames of Ethernet\n')
    row._ip("middle", "link", "set", "eth1", "mtu", "9000")
    try:
        done = row.done("middle", *words, "eth1,eth2", "--", "true")
    finally:
        row._ip("middle", "link", "set", "eth1", "mtu", "1500")
    mtus = "their MTUs are 9000 and 1500; must be the same: ip link set eth1 mtu 1500"
    assert done == (2, "", f'--between: got "eth1,eth2"; {mtus}\n')
    # Without a program a page would be of something else.
    done = row.done("middle", *SOJOURN, "serve", str(file), "--between", "eth1,eth2")
    assert done == (2, "", "--between: needs a COMMAND, which says how long: … -- sleep 60\n")


@needs_root
def test_an_interface_carries_one_link(row: Row, file: Path):
    with row.between(file, "--", "sleep", "1000") as process:
        status, out, errors = row.done("middle", *SOJOURN, "shell", str(file), "--between", "eth2,eth1", "--", "true")
        process.kill()
    assert (status, out) == (1, "")
    assert errors.startswith("sojourn-agent: opening interface eth2: it carries another link already"), errors


@needs_root
def test_an_interface_that_is_down_is_told(row: Row, file: Path):
    words = [*SOJOURN, "shell", str(file), "--between", "eth1,eth2", "--"]
    row._ip("middle", "link", "set", "eth2", "down")
    try:
        done = row.done("middle", *words, "true")
    finally:
        row._ip("middle", "link", "set", "eth2", "up")
    assert done == (2, "", '--between: got "eth1,eth2"; eth2 is down: ip link set eth2 up\n')
    # Also while it is in use.
    status, out, errors = row.done("middle", *words, "sh", "-c", "ip link set eth2 down; sleep 100")
    row._ip("middle", "link", "set", "eth2", "up")
    assert (status, out) == (1, "")
    assert errors.startswith("sojourn-agent: interface eth2 is down or was removed"), errors


@needs_root
def test_nothing_is_left_of_one_that_is_killed(row: Row, file: Path):
    with row.between(file, "--", "sleep", "1000") as process:
        process.kill()

    def processes() -> str:
        return subprocess.run(["ip", "netns", "pids", row.names["middle"]], capture_output=True, text=True).stdout

    until = time.monotonic() + 20
    while (row.is_promiscuous("eth1") or processes()) and time.monotonic() < until:
        time.sleep(0.02)
    assert not row.is_promiscuous("eth1")
    assert processes() == ""
