"""The console of a guest, or of the agent on a host, and its supervision until it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from sojourn import _core
from sojourn.linux import programs
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
        self.monitor = monitor
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
            self.monitor.report(float(rest))
        elif word == "@done":
            self.recorded = int(rest)
        elif word == "@failed":
            self.failure = rest
        elif line:
            self.last_words = line


def recorded(program: str, folder: Path, command: list[str], monitor: _core.Monitor, off_s: float = 0.0) -> bytes:
    """Runs a guest in a folder until its recording is there, and returns it; then it has ``off_s`` to power itself off.

    Its console goes to a file in the folder. Raises LinuxError if it fails, hangs or is killed; ``program`` is its name
    in messages.
    """
    console = Console(monitor)
    recording = folder / "recording"

    def is_whole() -> bool:
        # QEMU may still be writing what the guest has sent.
        return console.recorded is not None and recording.exists() and recording.stat().st_size == console.recorded

    with (folder / CONSOLE).open("wb") as file:
        process = subprocess.Popen(
            programs.ending_with_us(command),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            cwd=folder,
            # Ctrl-C is ours to handle.
            start_new_session=True,
        )
    with process:
        try:
            follow(process, folder, console, PATIENCE_S, is_whole)
            if not is_whole():
                _explain(program, process.wait(), console)
            content = recording.read_bytes()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(off_s)
            return content
        finally:
            # The processes of User-Mode Linux are processes of the host, in the same session.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def follow(
    process: subprocess.Popen[Any],
    folder: Path,
    console: Console,
    patience_s: float,
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Passes what a guest writes into its file to the console, until it ends, or ``is_over``.

    Raises LinuxError if it is silent for ``patience_s``, and Cancelled if the monitor was told to stop.
    """
    silent_s = 0.0
    with (folder / CONSOLE).open("rb", buffering=0) as file:
        while not is_over():
            # Asked first, so that all it wrote before its end is read.
            has_ended = process.poll() is not None
            output = file.read()
            console.take(output)
            if has_ended:
                return
            if console.monitor.cancelled:
                raise _core.Cancelled("cancelled")
            silent_s = 0.0 if output else silent_s + POLL_S
            if silent_s > patience_s:
                raise LinuxError(
                    f"the guest hangs: no sign of life for {patience_s:.0f} s, after {console.seconds} s of its time"
                )
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(POLL_S)


def _explain(program: str, status: int, console: Console) -> NoReturn:
    """Raises LinuxError: why a guest ended without a whole recording, with this status of its program."""
    if console.failure is not None:
        raise LinuxError(console.failure)
    after = f"after {console.seconds} s of the guest's time"
    if status < 0:
        raise LinuxError(f"{program} was killed by {signal.Signals(-status).name} {after}")
    why = f": {console.last_words}" if console.last_words else ""
    raise LinuxError(f"{program} ended early with status {status} {after}{why}")
