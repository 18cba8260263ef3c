"""A testbed for tests: three network namespaces, each with its own sshd, in a row; and how to look at them."""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sojourn.linux import lab, programs

HOSTS = ("sender", "router", "receiver")
SIOCETHTOOL = 0x8946
GET_TSO, GET_GSO, GET_GRO, SET_GRO = 0x1E, 0x23, 0x2B, 0x2C
SSHD = programs.find("sshd")


def missing() -> str | None:
    """What the tests lack; None if they can be made."""
    if os.geteuid() != 0:
        return "needs root: three network namespaces"
    for program in ("ssh", "ssh-keygen", "ip", "tc", "unshare"):
        if programs.find(program) is None:
            return f"needs {program}"
    if SSHD is None:
        return "needs sshd (Debian: openssh-server)"
    if programs.agent() is None:
        return "needs the agent: make install"
    name = f"try{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode != 0:
        return "needs network namespaces"
    made = subprocess.run(
        ["ip", "-n", name, "link", "add", "v0", "type", "veth", "peer", "name", "v1"], capture_output=True, check=False
    )
    subprocess.run(["ip", "netns", "del", name], check=True)
    return None if made.returncode == 0 else "needs virtual Ethernet"


@dataclass
class Testbed:
    """The hosts ``sender``, ``router`` and ``receiver``; the router is between the others."""

    folder: Path
    prefix: str
    servers: dict[str, subprocess.Popen[bytes]]

    @property
    def file(self) -> Path:
        return self.folder / "lab.toml"

    @property
    def environment(self) -> dict[str, str]:
        """In which ``ssh`` knows the hosts by name."""
        return {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"}

    def namespace(self, host: str) -> str:
        return f"{self.prefix}-{host}"

    def inside(self, host: str, *command: str) -> str:
        done = subprocess.run(
            ["ip", "netns", "exec", self.namespace(host), *command], capture_output=True, text=True, check=True
        )
        return done.stdout

    def serve(self, host: str, *options: str) -> None:
        """Starts a host's sshd, with a /run of its own as another machine has."""
        private = "mount --make-rprivate / && mount -t tmpfs run /run && mkdir /run/sshd"
        server = f"{private} && exec {SSHD} -D -f {self.folder}/sshd_config {' '.join(options)}"
        command = ["ip", "netns", "exec", self.namespace(host), "unshare", "-m", "sh", "-c", server]
        self.servers[host] = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 30
        while subprocess.run([self.folder / "ssh", host, "true"], capture_output=True, check=False).returncode != 0:
            assert time.monotonic() < until, "sshd does not answer"
            time.sleep(0.05)

    def processes(self, host: str) -> dict[str, int]:
        """Its processes."""
        found = {}
        for number in _out("ip", "netns", "pids", self.namespace(host)).split():
            with suppress(OSError):
                found[Path("/proc", number, "comm").read_text().strip() + number] = int(number)
        return found

    def stop(self, host: str) -> None:
        """Ends a host: all its processes at once."""
        for process in self.processes(host).values():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.servers.pop(host).wait()

    def state(self, *hosts: str) -> dict[str, Any]:
        """Everything that a run may change on these hosts, or on all."""
        hosts = hosts or HOSTS
        found: dict[str, Any] = {"hosts": hosts}
        for host in hosts:
            found[host] = [
                # Without the state of the other end, and the idle discipline that an interface has once it was up.
                re.sub(
                    r"NO-CARRIER,|,LOWER_UP|,M-DOWN|qdisc no\w+| state \w+",
                    "",
                    self.inside(host, "ip", "-d", "address"),
                ),
                self.inside(host, "ip", "route", "show", "table", "all"),
                [line for line in self.inside(host, "tc", "qdisc").splitlines() if "noqueue" not in line],
                self.inside(host, "sysctl", "-a", "--pattern", r"net\.(ipv4|core)\.(ip_forward|[rw]mem_max|tcp_)"),
            ]
        found["offloads"] = [
            self.offload(one.name, wire, command)
            for one in lab.Lab.read(self.file).hosts
            if one.name in hosts
            for wire in one.wires
            for command in (GET_TSO, GET_GSO, GET_GRO)
        ]
        found["agents"] = [path.name for path in (self.folder / "tmp").iterdir()]
        found["namespaces"] = [line for line in _out("ip", "netns").splitlines() if line.startswith("sj")]
        found["processes"] = [name for host in hosts for name in self.processes(host) if not name.startswith("sshd")]
        return found

    def offload(self, host: str, device: str, command: int, value: int = 0) -> int:
        """Reads or sets an offload of a device (ethtool(8); linux/ethtool.h)."""
        found = []

        def inside() -> None:
            with Path("/run/netns", self.namespace(host)).open("rb") as namespace:
                assert ctypes.CDLL(None).setns(namespace.fileno(), 0x40000000) == 0
            asked = ctypes.create_string_buffer(struct.pack("II", command, value))
            with socket.socket() as any_socket:
                fcntl.ioctl(any_socket, SIOCETHTOOL, struct.pack("16sP16x", device.encode(), ctypes.addressof(asked)))
            found.append(struct.unpack("II", asked.raw[:8])[1])

        # The namespace is that of a thread.
        thread = threading.Thread(target=inside)
        thread.start()
        thread.join()
        return found[0]

    def sojourn(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        """Starts the command line."""
        return subprocess.Popen(
            [sys.executable, "-m", "sojourn", *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def done(self, *words: str) -> tuple[int, str, str]:
        """The exit status of the command line, its output and its errors."""
        with self.sojourn(*words) as process:
            out, errors = process.communicate(timeout=60)
        return process.returncode, out, errors


def _out(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def build(folder: Path) -> Testbed:
    """Makes a testbed; ``remove`` removes it."""
    # Other processes may have testbeds, too.
    own = os.getpid()
    bed = Testbed(folder, f"lab{os.getpid()}", {})
    for key in ("host_key", "key"):
        _out("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key))
    (folder / "tmp").mkdir()
    (folder / "sshd_config").write_text(
        f"HostKey {folder}/host_key\nAuthorizedKeysFile {folder}/key.pub\nStrictModes no\nPermitRootLogin yes\n"
        f"UsePAM no\nPidFile none\nSetEnv TMPDIR={folder}/tmp\n"
    )
    network = f"10.{64 + own % 64}"
    known = "User root\nUserKnownHostsFile /dev/null\nStrictHostKeyChecking no\nLogLevel ERROR\n"
    config = f"IdentityFile {folder}/key\n{known}"
    tables = ""
    for number, host in enumerate(HOSTS):
        namespace, device = bed.namespace(host), f"m{own}{host[:2]}"
        _out("ip", "netns", "add", namespace)
        _out("ip", "-n", namespace, "link", "set", "lo", "up")
        _out("ip", "link", "add", device, "type", "veth", "peer", "name", "management", "netns", namespace)
        _out("ip", "address", "add", f"{network}.{4 * (own // 64 % 64) + number}.1/24", "dev", device)
        _out("ip", "link", "set", device, "up")
        _out(
            "ip",
            "-n",
            namespace,
            "address",
            "add",
            f"{network}.{4 * (own // 64 % 64) + number}.2/24",
            "dev",
            "management",
        )
        # An address of IPv6 would change while the tests run: it is tentative at first.
        _out("ip", "netns", "exec", namespace, "sysctl", "-qw", "net.ipv6.conf.management.disable_ipv6=1")
        _out("ip", "-n", namespace, "link", "set", "management", "up")
        config += f"Host {host}\nHostName {network}.{4 * (own // 64 % 64) + number}.2\n"
        wires = {"sender": 'out = "eth1"', "router": 'in = "eth1"\nout = "eth2"', "receiver": 'in = "eth1"'}[host]
        tables += f'[[host]]\nname = "{host}"\nssh = "{host}"\nrole = "{host}"\n{wires}\n'
    for one, other, wire in (("sender", "router", "eth1"), ("receiver", "router", "eth2")):
        ends = bed.namespace(one), bed.namespace(other)
        _out("ip", "-n", ends[0], "link", "add", "eth1", "type", "veth", "peer", "name", wire, "netns", ends[1])
        for namespace, device in zip(ends, ("eth1", wire), strict=True):
            _out("ip", "netns", "exec", namespace, "sysctl", "-qw", f"net.ipv6.conf.{device}.disable_ipv6=1")
    # One interface is down, and comes up for a run only. The others are up.
    for host, device in (("sender", "eth1"), ("router", "eth1"), ("router", "eth2")):
        _out("ip", "-n", bed.namespace(host), "link", "set", device, "up")
    (folder / "config").write_text(config)
    (folder / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/config "$@"\n')
    (folder / "ssh").chmod(0o755)
    bed.file.write_text(tables)
    for host in HOSTS:
        bed.serve(host)
    return bed


def remove(bed: Testbed) -> None:
    for host in list(bed.servers):
        bed.stop(host)
    for host in HOSTS:
        subprocess.run(["ip", "netns", "del", bed.namespace(host)], check=False)
