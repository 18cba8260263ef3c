"""Experiments on Linux, and stand-ins for QEMU that go wrong."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from sojourn import linux
from sojourn.linux.doctor import EMULATED

needs_emulation = pytest.mark.skipif(
    not linux.is_available(EMULATED), reason="the emulated machine needs more than is here: see sojourn doctor"
)

EXPERIMENT = """\
[experiment]
name = "short"
duration = "4 s"
warmup = "1 s"

[link]
rate = "10 Mbit/s"
buffer = "100 packets"

[[queue]]
aqm = "codel"

[[traffic]]
kind = "bulk"
flows = 2
rtt = "40 ms"
start = "0..100 ms"

[[traffic]]
kind = "ping"
interval = "100 ms"
rtt = "40 ms"

[record]
packets = true
series = "500 ms"
"""


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """Two flows and a ping through CoDel for 4 s."""
    path = tmp_path / "short.toml"
    path.write_text(EXPERIMENT, encoding="utf-8")
    return path


@pytest.fixture
def fake_qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a shell script in QEMU's place, and an agent and a kernel that are never run."""

    def put(script: str) -> None:
        folder = tmp_path / "bin"
        folder.mkdir()
        qemu = folder / "qemu-system-x86_64"
        qemu.write_text(f"#!/bin/sh\n{script}\n")
        qemu.chmod(qemu.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        agent = tmp_path / "agent"
        agent.write_bytes(b"agent")
        monkeypatch.setenv("SOJOURN_AGENT", str(agent))

    return put


@pytest.fixture
def fake_kernel(tmp_path: Path) -> Path:
    """A directory that looks like an unpacked kernel package, every module built in but sch_cake and what it needs."""
    release = tmp_path / "kernel/lib/modules/6.1.0-test"
    modules = release / "kernel/net/sched"
    modules.mkdir(parents=True)
    built_in = ["veth", "sch_htb", "sch_netem", "sch_codel", "sch_fq_codel", "inet_diag", "tcp_diag", "tcp_cubic"]
    built_in += ["virtio_pci", "virtio_console"]
    (release / "modules.builtin").write_text("".join(f"kernel/net/{name}.ko\n" for name in built_in))
    (modules / "sch_cake.ko").write_bytes(b"ELF\0license=GPL\0depends=helper,other-one\0name=sch_cake\0")
    (modules / "helper.ko").write_bytes(b"ELF\0depends=\0")
    (modules / "other-one.ko").write_bytes(b"ELF\0depends=helper\0")
    boot = tmp_path / "kernel/boot"
    boot.mkdir()
    (boot / "vmlinuz-6.1.0-test").write_bytes(b"image")
    return tmp_path / "kernel"
