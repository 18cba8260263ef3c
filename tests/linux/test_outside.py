"""A program behind a link reaches the outside, by pasta."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from sojourn.linux import datapath, programs

LACKING = datapath.missing() or (None if programs.find("pasta") else "pasta is missing")
real = pytest.mark.skipif(LACKING is not None, reason=f"the outside: {LACKING}")
SOJOURN = [sys.executable, "-m", "sojourn", "shell", "--rate", "20mbit", "--delay", "10ms"]
BYTES = 4_000_000
FETCH = """
import os, socket, sys
s = socket.create_connection((os.environ["SOJOURN_HOST"], int(sys.argv[1])))
print(sum(map(len, iter(lambda: s.recv(65536), b""))))
"""
ASK = """
import os, socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(10)
s.sendto(b"who?", (os.environ["SOJOURN_HOST"], int(sys.argv[1])))
print(s.recv(100).decode())
"""


@contextmanager
def server(count: int, address: str = "127.0.0.1") -> Iterator[int]:
    """A server of the machine's own, which sends so many bytes to whoever connects."""

    def answer() -> None:
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                with client:
                    client.sendall(bytes(count))

    with socket.create_server((address, 0)) as listening:
        threading.Thread(target=answer, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


def test_without_pasta_a_line_says_so():
    environment = {**os.environ, "PATH": "/nowhere"}
    done = subprocess.run([*SOJOURN, "--outside", "--", "/bin/true"], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    if datapath.missing() is None:
        assert done.stderr == "sojourn: --outside: pasta is missing; apt-get install passt\n"
        done = subprocess.run([*SOJOURN, "--", "/bin/true"], env=environment, capture_output=True, text=True)
        assert "note: the program reaches nothing outside: pasta is missing; apt-get install passt" in done.stderr


def test_between_interfaces_there_is_no_outside_of_its_own():
    done = subprocess.run(
        [*SOJOURN, "--between", "a,b", "--outside", "--", "true"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("--outside: cannot be given with --between")


@real
def test_a_download_from_outside_has_a_congestion_control(tmp_path: Path):
    with server(BYTES) as port:
        words = ["--aqm", "codel", "--out", tmp_path / "out", "--figures", "none", "--", sys.executable, "-c", FETCH]
        done = subprocess.run([*SOJOURN, *map(str, words), str(port)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{BYTES}\n"), done.stderr
    (run,) = json.loads((tmp_path / "out" / "summary.json").read_text())["runs"]
    (down,) = [group for group in run["groups"] if group["direction"] == "down"]
    assert down["name"] == f"tcp {port}"
    queue = run["bottleneck"]["down"]
    # A sender without one fills the window that it is offered: thousands of drops, a standing queue of hundreds of
    # packets, each of 0.6 ms. A busy machine delays acknowledgements: the queue is longer than CoDel's target.
    assert 0 < queue["dropped_aqm"] < 100
    assert queue["sojourn_ms"]["p50"] < 60.0
    (flow,) = [flow for flow in run["flows"] if flow["direction"] == "down"]
    assert flow["received_bytes"] == BYTES
    assert flow["goodput_bps"] > 15e6


@real
def test_datagrams_reach_the_outside():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind(("127.0.0.1", 0))
        port = own.getsockname()[1]

        def answer() -> None:
            asked, sender = own.recvfrom(100)
            own.sendto(asked + b" me", sender)

        answering = threading.Thread(target=answer, daemon=True)
        answering.start()
        words = ["--", sys.executable, "-c", ASK, str(port)]
        done = subprocess.run([*SOJOURN, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "who? me\n"), done.stderr


@real
def test_no_outside_is_none():
    with server(1) as port:
        words = ["--no-outside", "--", sys.executable, "-c", "import os; print('SOJOURN_HOST' in os.environ)"]
        done = subprocess.run([*SOJOURN, *words, str(port)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "False\n")


@real
@pytest.mark.skipif(os.geteuid() != 0, reason="needs a network namespace")
def test_a_machine_without_a_default_route_has_no_outside():
    alone = ["unshare", "-n", *SOJOURN]
    done = subprocess.run([*alone, "--", "true"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lacking = "this machine has no default route (IPv4)"
    assert done.stderr.startswith(f"note: the program reaches nothing outside: {lacking}\n")
    done = subprocess.run([*alone, "--outside", "--", "true"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"sojourn: --outside: {lacking}\n")


@real
def test_shells_nest(tmp_path: Path):
    # The machine's own address, by which it is reached from within both.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.connect(("198.51.100.1", 9))
        address = own.getsockname()[0]
    with server(100_000, address) as port:
        (tmp_path / "fetch.py").write_text(FETCH.replace("SOJOURN_HOST", "MACHINE"), encoding="utf-8")
        words = [*SOJOURN, "--", *SOJOURN, "--", sys.executable, str(tmp_path / "fetch.py"), str(port)]
        environment = {**os.environ, "MACHINE": address}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "100000\n"), done.stderr


def _carriers() -> set[str]:
    """The processes that are pasta."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "comm").read_text().startswith(("passt", "pasta")):
                found.add(process.name)
    return found


@real
@pytest.mark.parametrize("after_s", [0.3, 0.6, 1.2])
def test_nothing_is_left_of_the_outside(after_s: float):
    before = _carriers()
    with subprocess.Popen([*SOJOURN, "--", "sleep", "1000"]) as shell:
        time.sleep(after_s)
        shell.kill()
    until = time.monotonic() + 20
    while _carriers() - before and time.monotonic() < until:
        time.sleep(0.02)
    assert _carriers() <= before
