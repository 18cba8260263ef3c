"""A program with its network behind Sojourn's own path; the terminal, signals and exit status are the program's.

Or the path lies between two interfaces of the machine, for as long as the program runs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from sojourn import _core
from sojourn.linux import programs
from sojourn.linux.datapath import apart, prepared, require
from sojourn.linux.programs import LinuxError
from sojourn.live.feed import Feed

if sys.platform != "win32":
    _OF_TERMINAL = {signal.SIGINT, signal.SIGQUIT}
    """Signals that a terminal sends to all processes: they are the program's alone."""
    _PASSED_ON = {signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2}
_INTERFACES = Path("/sys/class/net")
_UP, _ETHERNET = 1, 1
"""IFF_UP of netdevice(7), ARPHRD_ETHER of linux/if_arp.h."""
_ROUTES, _ALL = Path("/proc/net/route"), "00000000"
"""The routes of the machine; the destination and mask of that to everywhere."""
POLL_S = 0.5
"""Wall time after which the agent is looked at, although no signal has come."""


def outside_lacks() -> str | None:
    """What the outside of programs lacks on this machine, with the remedy; None if nothing is known to be missing."""
    if programs.find(programs.PASTA) is None:
        return f"{programs.PASTA} is missing; apt-get install {programs.PACKAGE_OF[programs.PASTA]}"
    routes = [line.split() for line in _ROUTES.read_text().splitlines()[1:]]
    if not any(route[1] == route[7] == _ALL for route in routes):
        return "this machine has no default route (IPv4)"
    return None


@dataclass
class Shell:
    """A program as a backend: its packets are the traffic of the only run of a plan."""

    program: Sequence[str]
    servers: Sequence[str] = ()
    """Commands for a shell, each a server at the other end of the path."""
    between: tuple[str, str] | None = None
    """The interfaces between which the path lies while the program runs, from the first down to the second."""
    feed: Feed | None = None
    """Hears of the run."""
    outside: bool | None = None
    """Whether the program reaches the outside, beyond the servers' end. None: if it can and there are no servers."""
    status: int | None = field(default=None, repr=False)
    """The program's exit status, once it has ended; 128 and the signal's number if a signal has ended it."""
    name: ClassVar[str] = "datapath"

    def check(self, plan: _core.Plan) -> None:
        """Raises ExperimentError if an interface cannot be used, and LinuxError if a requirement is not met."""
        if self.between is None:
            require()
            if self.outside and (lacking := outside_lacks()):
                raise LinuxError(f"--outside: {lacking}")
        else:
            programs.require_agent()
            _check_interfaces(self.between)

    @property
    def _expects_outside(self) -> bool:
        """Whether a program like this reaches the outside, unless it is said otherwise."""
        return self.between is None and self.outside is None and not self.servers

    def notes(self, plan: _core.Plan) -> list[str]:
        """That the outside is missing where it is expected; the program brings its own traffic."""
        lacking = outside_lacks() if self._expects_outside else None
        return [] if lacking is None else [f"the program reaches nothing outside: {lacking}"]

    def run(self, spec: _core.RunSpec, monitor: _core.Monitor) -> _core.Run:
        """Runs the program to its end; returns what was measured. Raises LinuxError if the agent has failed."""
        began = time.monotonic()
        job_json = _core.shell_job(spec, list(self.servers), self.between)
        outside = bool(self.outside or self._expects_outside) and outside_lacks() is None
        with prepared(job_json, spec, monitor, self.feed, outside=outside) as folder:
            recording = folder / "recording"
            command = [*apart(folder), "shell", str(folder / "job.json"), str(recording), *self.program]
            with _signals_held() as held, subprocess.Popen(command) as agent:
                while agent.poll() is None:
                    came = signal.sigtimedwait(held, POLL_S)
                    if came is not None and came.si_signo in _PASSED_ON:
                        agent.send_signal(came.si_signo)
                    if monitor.cancelled:
                        agent.terminate()
            _take_terminal_back()
            self.status = agent.returncode if agent.returncode >= 0 else 128 - agent.returncode
            if not recording.exists():
                raise LinuxError("the shell has failed")
            return _core.linux_run(spec, recording.read_bytes(), time.monotonic() - began)


def _check_interfaces(between: tuple[str, str]) -> None:
    """Checks that two interfaces can have a path between them; errors as for ``Shell.check``."""
    if os.geteuid() != 0:
        raise LinuxError("--between needs root: it reads and writes whole interfaces")
    given = f'--between: got "{",".join(between)}"'
    known = sorted(path.name for path in _INTERFACES.iterdir())
    for name in between:
        if name not in known:
            raise _core.ExperimentError(f"{given}; there is no interface {name}; must be two of {', '.join(known)}")
        if not int((_INTERFACES / name / "flags").read_text(), 16) & _UP:
            raise _core.ExperimentError(f"{given}; {name} is down: ip link set {name} up")
        if _of(name, "type") != _ETHERNET:
            raise _core.ExperimentError(f"{given}; {name} does not carry frames of Ethernet")
        if (_INTERFACES / name / "master").exists():
            raise _core.ExperimentError(f"{given}; {name} is part of a bridge or bond: ip link set {name} nomaster")
    mtus = [_of(name, "mtu") for name in between]
    if mtus[0] != mtus[1]:
        remedy = f"ip link set {between[mtus.index(max(mtus))]} mtu {min(mtus)}"
        raise _core.ExperimentError(f"{given}; their MTUs are {mtus[0]} and {mtus[1]}; must be the same: {remedy}")


def _of(interface: str, name: str) -> int:
    return int((_INTERFACES / interface / name).read_text())


@contextmanager
def _signals_held() -> Iterator[set[signal.Signals]]:
    """Holds the signals back from this process, which reads those it passes on; forgets those of the terminal."""
    held = {*_OF_TERMINAL, *_PASSED_ON, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield held
    finally:
        while signal.sigtimedwait(held, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _take_terminal_back() -> None:
    """An interactive shell leaves the terminal to a group of processes that has ended."""
    with suppress(OSError):
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
            try:
                if os.tcgetpgrp(terminal) != os.getpgrp():
                    os.tcsetpgrp(terminal, os.getpgrp())
            finally:
                os.close(terminal)
        finally:
            signal.signal(signal.SIGTTOU, before)
