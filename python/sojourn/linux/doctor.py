"""The requirements of the Linux backend, whether they are met, and the commands that install them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from sojourn.linux import kernel, programs

MACHINES = "the virtual machine and the host"
BUILT = "runs in a built kernel, the default if there is one"
EMULATED = "the emulated machine, the default if there is no built kernel"

_PURPOSES = {
    programs.QEMU: EMULATED,
    programs.SSH: "--on lab.toml only",
    programs.PASTA: "the outside of sojourn shell",
}


@dataclass(frozen=True)
class Check:
    """One requirement."""

    name: str
    found: str | None
    """Where it is; None if it is missing."""
    remedy: str
    """The command that installs it."""
    needed_for: str = MACHINES


def checks() -> list[Check]:
    """All requirements of the backend. Nothing is downloaded."""
    found = {program: programs.find(program) for program in programs.PACKAGE_OF}
    agent, here, apt = programs.agent(), kernel.cached() or kernel.own(), programs.find("apt-get")
    described = None if here is None else f"{here.release} ({here.image})"
    if here is None and apt is not None:
        described = f"Debian's {kernel.PACKAGE}, downloaded at the first run"
    return [
        *(
            Check(program, _text(path), f"apt-get install {programs.PACKAGE_OF[program]}", _PURPOSES[program])
            for program, path in found.items()
        ),
        Check("agent", _text(agent), "make install (in the source tree)"),
        Check(
            "built kernels", ", ".join(one.release for one in kernel.built()) or None, "sojourn kernel build 6.1", BUILT
        ),
        Check("kernel", described, "name one with --kernel DIRECTORY or IMAGE:MODULES", EMULATED),
        Check("root", "yes" if os.geteuid() == 0 else None, "run as root", "--on host only"),
    ]


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def is_available(*machines: str) -> bool:
    """True if a run can be made without root in one of these machines, by default in a built kernel or emulated."""
    found = checks()
    return any(
        all(check.found is not None for check in found if check.needed_for in (MACHINES, machine))
        for machine in machines or (BUILT, EMULATED)
    )
