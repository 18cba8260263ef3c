"""Runs on the running kernel, in real time and one at a time: needs root, and the kernel's disciplines."""

from __future__ import annotations

import ctypes
import json
import math
import os
import platform
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sojourn import _core
from sojourn.files import locks
from sojourn.files.workspace import scratch
from sojourn.linux import programs
from sojourn.linux.guest import CONSOLE, POLL_S, Console, follow
from sojourn.linux.kernel import Kernel, meaning
from sojourn.linux.programs import LinuxError

AGENT = "sojourn-agent"
CLEAN_UP_S = 30.0
"""Seconds for the agent to clean up after it was told to stop."""
LOCK = Path("/run/sojourn-host.lock")
"""Held by the current run."""
_MNT_DETACH = 2
"""Of umount2(2)."""


def check(modules: Iterable[str]) -> None:
    """Checks before a run that this host has the rights, programs and modules; raises LinuxError if not."""
    if os.geteuid() != 0:
        raise LinuxError("--on host needs root: it creates network namespaces; without root omit it")
    programs.require_agent()
    release = platform.release()
    running = Kernel(Path("/boot", f"vmlinuz-{release}"), Path("/lib/modules", release))
    # Without the list of built-in modules, a missing module is only noticed when it is used.
    if (running.modules / "modules.builtin").is_file():
        for module in modules:
            if not running.has(module):
                raise LinuxError(f"the running kernel {release} has no {module}{meaning(module, 'omit --on host')}")


def run(job_json: str, monitor: _core.Monitor) -> bytes:
    """Runs a job with the agent on this host; returns its recording. In every case the network is removed afterwards.

    Only one run is made at a time: the packets of two would pass the same tracepoints, and each would delay the other.
    Raises LinuxError if something is missing or the run failed, and Cancelled if the monitor was cancelled.
    """
    job = json.loads(job_json)
    with with_agent() as folder, alone(monitor):
        if modprobe := programs.find("modprobe"):
            # A built-in or missing module is only noticed when it is used.
            subprocess.run([str(modprobe), "-qa", *job["modules"]], check=False, stderr=subprocess.DEVNULL)
        (folder / "job.json").write_text(job_json, encoding="utf-8")
        command = [str(folder / AGENT), "run", str(folder / "job.json"), str(folder / "recording")]
        with _restored(job):
            run_agent(command, folder, monitor)
        return (folder / "recording").read_bytes()


@contextmanager
def with_agent() -> Iterator[Path]:
    """A folder with a copy of the agent: packages do not always keep it executable. Raises LinuxError."""
    try:
        agent = programs.require_agent()
        with scratch() as folder:
            copy = folder / AGENT
            copy.write_bytes(agent.read_bytes())
            copy.chmod(0o755)
            yield folder
    except OSError as error:
        raise LinuxError(f"{error.filename}: {error.strerror}") from None


@contextmanager
def alone(monitor: _core.Monitor, file: Path = LOCK) -> Iterator[None]:
    """Waits until no other run that holds this file is in progress, of this process or another."""
    with file.open("w") as lock:
        # The file was opened anew, so the lock also excludes other threads of this process.
        while not locks.take(lock.fileno()):
            if monitor.cancelled:
                raise _core.Cancelled("cancelled")
            time.sleep(POLL_S)
        yield


def own_lock() -> Path:
    """The file held by the current run of this user that is not on this host alone."""
    return Path(tempfile.gettempdir(), f"sojourn-{os.geteuid()}.lock")


def run_agent(command: list[str], folder: Path, monitor: _core.Monitor) -> None:
    """Runs the agent to its end, in a folder. Raises LinuxError if it failed or was killed, and Cancelled."""
    console = Console(monitor)
    with (
        (folder / CONSOLE).open("wb") as out,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as process,
    ):
        try:
            follow(process, folder, console, math.inf)
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(CLEAN_UP_S)
                except subprocess.TimeoutExpired:
                    process.kill()
            with suppress(OSError):
                Path(f"/sys/kernel/tracing/instances/sojourn-{process.pid}").rmdir()
        status = process.returncode
        assert process.stderr is not None
        complaint = process.stderr.read()
    if status < 0:
        after = f"after {console.seconds} s of the run"
        raise LinuxError(f"the agent was killed by {signal.Signals(-status).name} {after}")
    if status != 0:
        raise LinuxError(
            " ".join(complaint.removeprefix("sojourn-agent: ").split()) or f"the agent ended with status {status}"
        )


@contextmanager
def _restored(job: dict[str, Any]) -> Iterator[None]:
    """Restores the host's settings afterwards, even if the agent was killed before it could."""
    steps = [step for step in job["setup"] if step["namespace"] is None and "Sysctl" in step["action"]]
    settings = [Path("/proc/sys", key) for step in steps for key, _ in step["action"]["Sysctl"]]
    before = [(setting, setting.read_bytes()) for setting in settings]
    try:
        yield
    finally:
        for name in job["namespaces"]:
            namespace = Path("/run/netns", name)
            if namespace.exists():
                # Without its name the namespace ends, because nothing else refers to it.
                ctypes.CDLL(None).umount2(os.fsencode(namespace), _MNT_DETACH)
                namespace.unlink()
        for setting, value in before:
            setting.write_bytes(value)
