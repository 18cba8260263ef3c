"""The programs that a run needs: the agent and QEMU."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from sojourn._core import RunError


class LinuxError(RunError):
    """A run on Linux cannot be made or failed; the message is one line, with a remedy if there is one."""


QEMU = "qemu-system-x86_64"
SSH = "ssh"
PASTA = "pasta"
PACKAGE_OF = {QEMU: "qemu-system-x86", SSH: "openssh-client", PASTA: "passt"}
"""Debian's package of each program."""

_ADMINISTRATION = os.pathsep.join(["/usr/local/sbin", "/usr/sbin", "/sbin"])
"""Folders of administration programs, which a user's PATH may not contain."""


def find(program: str) -> Path | None:
    """The path of a program; None if it is not installed."""
    search = os.pathsep.join([os.environ.get("PATH", os.defpath), _ADMINISTRATION])
    path = shutil.which(program, path=search)
    return None if path is None else Path(path)


def require(program: str) -> Path:
    """The path of a program. Raises LinuxError if it is not installed; the message says how to get it."""
    path = find(program)
    if path is None:
        raise LinuxError(f"{program} is not installed; on Debian: apt-get install {PACKAGE_OF[program]}")
    return path


def agent() -> Path | None:
    """The agent, one static program: from ``SOJOURN_AGENT``, or from this package; None if it was not built."""
    given = os.environ.get("SOJOURN_AGENT")
    path = Path(given) if given else Path(__file__).with_name("sojourn-agent")
    return path if path.is_file() else None


NO_AGENT = "the agent is not built; in the source tree: make install, or name it in SOJOURN_AGENT"


def require_agent() -> Path:
    """The agent. Raises LinuxError if it was not built."""
    path = agent()
    if path is None:
        raise LinuxError(NO_AGENT)
    return path


def call(command: list[str], folder: Path) -> str:
    """Runs a command in a folder; returns its standard output. Raises LinuxError with its standard error."""
    done = subprocess.run(ending_with_us(command), cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        why = " ".join(done.stderr.split()) or f"status {done.returncode}"
        raise LinuxError(f"{' '.join(command)}: {why}")
    return done.stdout


def ending_with_us(command: list[str]) -> list[str]:
    """A command that is killed when the thread that starts it ends, if there is a suitable setpriv(1)."""
    return [*_death_signal(), *command]


@cache
def _death_signal() -> tuple[str, ...]:
    setpriv = find("setpriv")
    if setpriv is None:
        return ()
    words = (str(setpriv), "--pdeathsig", "KILL", "--")
    # util-linux before 2.33 and BusyBox do not have this option.
    done = subprocess.run([*words, "true"], check=False, capture_output=True)
    return words if done.returncode == 0 else ()
