"""A guest's console, and its supervision until it ends: for an emulated machine and for User-Mode Linux."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from sojourn import _core
from sojourn.linux.programs import LinuxError

PATIENCE_S = 300.0
"""Wall time without output after which a guest counts as hung. A second of its time takes a few seconds at most."""
POLL_S = 0.2
CONSOLE = "console"
"""The file with a guest's console, in its folder."""


class Console:
    """The guest's console. Lines that begin with ``@`` come from the agent, others from the kernel or QEMU."""

    def __init__(self, monitor: _core.Monitor) -> None:
        self.seconds = 0
        """Guest time of the run so far."""
        self.recorded: int | None = None
        """Length of the recording, once the guest has sent it."""
        self.failure: str | None = None
        self.last_words = ""
        """The last line that does not come from the agent."""
        self._monitor = monitor
        self._rest = b""

    def take(self, output: bytes) -> None:
        """Processes new output."""
        *lines, self._rest = (self._rest + output).split(b"\n")
        for line in lines:
            self._line(line.decode(errors="replace").strip())

    def _line(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "@second":
            self.seconds = int(rest)
            self._monitor.report(float(rest))
        elif word == "@done":
            self.recorded = int(rest)
        elif word == "@failed":
            self.failure = rest
        elif line:
            self.last_words = line


def start(command: list[str], pass_fds: tuple[int, ...] = ()) -> subprocess.Popen[bytes]:
    """Starts a guest with its console on standard output."""
    return _start(command, stdout=subprocess.PIPE, pass_fds=pass_fds)


def start_in(folder: Path, command: list[str]) -> subprocess.Popen[bytes]:
    """Starts a guest in a folder, with its console in a file there, as ``follow_file`` expects."""
    with (folder / CONSOLE).open("wb") as file:
        return _start(command, stdout=file, cwd=folder)


def _start(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        # Ctrl-C is ours to handle.
        start_new_session=True,
        **options,
    )


def follow(
    listeners: Mapping[int, Callable[[bytes], None]],
    is_over: Callable[[], bool],
    console: Console,
    monitor: _core.Monitor,
) -> None:
    """Passes the bytes read from each file descriptor to its listener, until ``is_over`` or all descriptors have ended.

    Raises LinuxError if the guest hangs, and Cancelled if the monitor was told to stop.
    """
    silence = _Silence(console, monitor)
    with selectors.DefaultSelector() as selector:
        for descriptor, listener in listeners.items():
            selector.register(descriptor, selectors.EVENT_READ, listener)
        while selector.get_map() and not is_over():
            ready = selector.select(POLL_S)
            for key, _ in ready:
                output = os.read(key.fd, 1 << 16)
                if output:
                    key.data(output)
                else:
                    selector.unregister(key.fd)
            silence.check(heard=bool(ready))


def follow_file(process: subprocess.Popen[bytes], folder: Path, console: Console, monitor: _core.Monitor) -> None:
    """Passes what a guest writes into its file to the console, until it has sent its recording or ends.

    Raises LinuxError if the guest hangs, and Cancelled if the monitor was told to stop.
    """
    silence = _Silence(console, monitor)
    with (folder / CONSOLE).open("rb", buffering=0) as file:
        while console.recorded is None:
            # Asked first, so that all it wrote before its end is read.
            has_ended = process.poll() is not None
            output = file.read()
            console.take(output)
            if has_ended:
                return
            silence.check(heard=bool(output))
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(POLL_S)


class _Silence:
    """How long a guest has said nothing."""

    def __init__(self, console: Console, monitor: _core.Monitor) -> None:
        self._console = console
        self._monitor = monitor
        self._waited_s = 0.0

    def check(self, *, heard: bool) -> None:
        """To be called every ``POLL_S`` at the latest, and told whether the guest has said something since.

        Raises LinuxError if it has been silent for too long, and Cancelled if the monitor was told to stop.
        """
        if self._monitor.cancelled:
            raise _core.Cancelled("cancelled")
        self._waited_s = 0.0 if heard else self._waited_s + POLL_S
        if self._waited_s > PATIENCE_S:
            raise LinuxError(
                f"the guest hangs: no sign of life for {PATIENCE_S:.0f} s, after {self._console.seconds} s of its time"
            )


def explain(program: str, status: int, console: Console) -> NoReturn:
    """Raises the reason why a guest ended without a whole recording; ``status`` is that of the guest's program.

    Raises LinuxError always.
    """
    if console.failure is not None:
        raise LinuxError(console.failure)
    after = f"after {console.seconds} s of the guest's time"
    if status < 0:
        raise LinuxError(f"{program} was killed by {signal.Signals(-status).name} {after}")
    why = f": {console.last_words}" if console.last_words else ""
    raise LinuxError(f"{program} ended early with status {status} {after}{why}")
