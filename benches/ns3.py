"""Builds our ns-3 programs against the distribution's ns-3 (Debian: libns3-dev)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
MODULES = {
    "ns3_dumbbell": (
        "core", "network", "internet", "point-to-point", "applications", "traffic-control", "stats", "bridge",
        "virtual-net-device",
    ),
    "ns3_wifi": (
        "core", "network", "internet", "mobility", "propagation", "wifi", "applications", "traffic-control", "stats",
        "bridge", "spectrum", "antenna",
    ),
}  # fmt: skip
"""The libraries of each program, in the order of the linker."""


class BuildError(Exception):
    """A program does not compile; one line."""


def is_installed() -> bool:
    """True with a compiler and ns-3's headers; otherwise says on standard error how to get them."""
    probe: Sequence[str] = ["g++", "-E", "-x", "c++", "-include", "ns3/core-module.h", "/dev/null"]
    if shutil.which("g++") and subprocess.run(probe, capture_output=True).returncode == 0:
        return True
    print("ns-3 is missing and left out; on Debian: apt-get install g++ libns3-dev", file=sys.stderr)
    return False


def build(name: str, directory: Path) -> Path:
    """Compiles a program of this folder into ``directory``.

    Raises
    ------
    BuildError
        It does not compile.
    """
    source, program = HERE / f"{name}.cc", directory / name
    # pkg-config is no help: Debian's files name libraries that the package does not depend on.
    libraries = [f"-lns3-{module}" for module in MODULES[name]]
    if subprocess.run(["g++", "-O2", "-std=c++17", str(source), "-o", str(program), *libraries]).returncode:
        raise BuildError(f"{source}: does not compile against the ns-3 that is installed")
    return program


def version() -> str:
    """The ns-3 that is installed."""
    if not shutil.which("pkg-config"):
        return "no ns-3"
    shown = subprocess.run(["pkg-config", "--modversion", "ns3-core"], capture_output=True, text=True)
    return f"ns-3 {shown.stdout.strip()}" if shown.returncode == 0 else "no ns-3"
