"""Runs in a guest, as its only program: datagrams through a `cake_mq` of the kernel; see cake_mq.py.

Its argument is a file with a case. The times at which packets leave go to the file beside it that ends in ``.left``.
"""

from __future__ import annotations

import array
import ctypes
import heapq
import json
import os
import random
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NEWQDISC, REQUEST, ACK, CREATE, EXCL = 36, 1, 4, 0x400, 0x200
ROOT = 0xFFFFFFFF
KIND, OPTIONS = 1, 2
BASE_RATE64, DIFFSERV, FLOW_MODE = 2, 3, 5
BEST_EFFORT, FLOWS = 3, 4
"""Numbers of linux/rtnetlink.h and linux/pkt_sched.h: tc(8) may be older than ``cake_mq``."""
PORT = 6000
TIMESTAMPS = 35
"""SO_TIMESTAMPNS."""
TIMER_SLACK = 29
"""PR_SET_TIMERSLACK."""
PAYLOAD = 1472


def main() -> None:
    """Sets up, sends, records."""
    case = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    _mount()
    _set_up(case["queues"], case["bandwidth_bps"], case["flows"])
    left, flows = _run(case)
    with Path(sys.argv[1]).with_suffix(".left").open("wb") as out:
        out.write(struct.pack("<q", len(left)) + left.tobytes() + flows.tobytes())


def _mount() -> None:
    for what, where in (("proc", "/proc"), ("sysfs", "/sys")):
        subprocess.run(["mount", "-t", what, what, where], check=False)


def _set_up(queues: int, bandwidth_bps: int, flows: list[dict[str, Any]]) -> None:
    def call(words: str) -> None:
        subprocess.run(words.split(), check=True)

    call(f"ip link add v0 numtxqueues {queues} type veth peer name v1 numrxqueues {queues}")
    call("ip addr add 10.0.0.1/24 dev v0")
    call("ip link set v1 address 02:00:00:00:00:02 up")
    call("ip link set v0 up")
    call("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev v0")
    _cake_mq(socket.if_nametoindex("v0"), bandwidth_bps)
    call("tc qdisc add dev v0 clsact")
    for number, flow in enumerate(flows):
        match = f"flower ip_proto udp dst_port {PORT + number}"
        call(f"tc filter add dev v0 egress protocol ip {match} action skbedit queue_mapping {flow['queue']}")


def _cake_mq(device: int, bandwidth_bps: int) -> None:
    """``tc qdisc replace dev v0 root cake_mq bandwidth … besteffort flows``."""

    def attribute(kind: int, value: bytes) -> bytes:
        return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)

    options = attribute(BASE_RATE64, struct.pack("=Q", bandwidth_bps // 8))
    options += attribute(DIFFSERV, struct.pack("=I", BEST_EFFORT)) + attribute(FLOW_MODE, struct.pack("=I", FLOWS))
    message = struct.pack("=BxxxiIII", 0, device, 0x10000, ROOT, 0)
    message += attribute(KIND, b"cake_mq\0") + attribute(OPTIONS, options)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
        flags = REQUEST | ACK | CREATE | EXCL
        netlink.send(struct.pack("=IHHII", 16 + len(message), NEWQDISC, flags, 1, 0) + message)
        (error,) = struct.unpack_from("=i", netlink.recv(4096), 16)
    if error:
        raise OSError(-error, f"cake_mq: {os.strerror(-error)}")


def _run(case: dict[str, Any]) -> tuple[array.array[int], array.array[int]]:
    ctypes.CDLL(None).prctl(TIMER_SLACK, 1)
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
    tap.bind(("v1", 0x0800))
    tap.setsockopt(socket.SOL_SOCKET, 33, 256 << 20)  # SO_RCVBUFFORCE
    tap.setsockopt(socket.SOL_SOCKET, TIMESTAMPS, 1)
    tap.setblocking(False)
    senders = []
    for number in range(len(case["flows"])):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sender.setsockopt(socket.SOL_SOCKET, 32, 256 << 20)  # SO_SNDBUFFORCE
        sender.connect(("10.0.0.2", PORT + number))
        senders.append(sender)
    left, flows = array.array("q"), array.array("q")
    begin = time.time_ns() + 10_000_000
    for sent, (at_ns, number) in enumerate(_times(case)):
        wait = begin + at_ns - time.time_ns()
        if wait > 0:
            time.sleep(wait / 1e9)
        senders[number].send(bytes(PAYLOAD))
        if sent % 256 == 0:
            _drain(tap, begin, left, flows)
    _drain(tap, begin, left, flows)
    return left, flows


def _times(case: dict[str, Any]) -> Iterator[tuple[int, int]]:
    """When which flow sends, in order."""
    draws = random.Random(case["seed"])
    end = case["duration_ns"]

    def of_one(number: int, flow: dict[str, Any]) -> Iterator[tuple[int, int]]:
        gap = int((PAYLOAD + 28) * 8e9 / flow["rate_bps"])
        mine = random.Random(draws.random())
        at = mine.randrange(gap)
        if "on_ns" not in flow:
            while at < end:
                yield at, number
                at += gap
            return
        at = int(mine.expovariate(1 / flow["off_ns"]))
        while at < end:
            until = at + mine.expovariate(1 / flow["on_ns"])
            while at < min(until, end):
                yield at, number
                at += gap
            at += int(mine.expovariate(1 / flow["off_ns"]))

    yield from heapq.merge(*(of_one(number, flow) for number, flow in enumerate(case["flows"])))


def _drain(tap: socket.socket, begin: int, left: array.array[int], flows: array.array[int]) -> None:
    while True:
        try:
            frame, ancillary, _, _ = tap.recvmsg(64, 64)
        except BlockingIOError:
            return
        seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
        left.append(seconds * 10**9 + nanoseconds - begin)
        flows.append(struct.unpack_from("!H", frame, 36)[0] - PORT)


if __name__ == "__main__":
    main()
