"""The requirements of the Linux backend, whether they are met, and the commands that install them."""

from __future__ import annotations

import os
from dataclasses import dataclass

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
    results = [
        Check(
            program,
            None if path is None else str(path),
            f"apt-get install {programs.PACKAGE_OF[program]}",
            _PURPOSES[program],
        )
        for program, path in found.items()
    ]
    agent = programs.agent()
    results.append(Check("agent", None if agent is None else str(agent), "make install (in the source tree)"))
    built = ", ".join(one.release for one in kernel.built()) or None
    results.append(Check("built kernels", built, "sojourn kernel build 6.1", BUILT))
    here = kernel.cached() or kernel.own()
    apt = programs.find("apt-get")
    described = None if here is None else f"{here.release} ({here.image})"
    if here is None and apt is not None:
        described = f"Debian's {kernel.PACKAGE}, downloaded at the first run"
    results.append(Check("kernel", described, "name one with --kernel DIRECTORY or IMAGE:MODULES", EMULATED))
    root = "yes" if os.geteuid() == 0 else None
    results.append(Check("root", root, "run as root", "--on host only"))
    return results


def is_available() -> bool:
    """True if a run can be made without root: in a built kernel or in the emulated machine."""
    return any(_has(purpose) for purpose in (BUILT, EMULATED))


def is_emulation_available() -> bool:
    """True if a run can be made in the emulated machine."""
    return _has(EMULATED)


def _has(purpose: str) -> bool:
    return all(check.found is not None for check in checks() if check.needed_for in (MACHINES, purpose))
