"""Runs on the running kernel, in real time: needs root, and the kernel's disciplines."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

from sojourn import _core
from sojourn.linux import programs
from sojourn.linux.errors import LinuxError
from sojourn.linux.machine import POLL_S, Console

CLEAN_UP_S = 30.0
"""How long the agent may take to clean up after it was told to stop."""


def run(told: str, monitor: _core.Monitor) -> bytes:
    """Has the agent carry out a job here; returns its recording. Whatever happens, the network is gone afterwards.

    Raises
    ------
    LinuxError
        Rights, a program or a module are missing, or the run failed.
    Cancelled
        The monitor was told to stop.
    """
    if os.geteuid() != 0:
        raise LinuxError("--on host needs root: it makes network namespaces; without root leave it out")
    agent = programs.require_agent().read_bytes()
    for tool in programs.TOOLS:
        programs.require(tool)
    job = json.loads(told)
    _load_modules(job["modules"])
    try:
        with tempfile.TemporaryDirectory(prefix="sojourn-host-") as temporary:
            folder = Path(temporary)
            (folder / "job.json").write_text(told, encoding="utf-8")
            # Packages do not always keep a file executable.
            (folder / "sojourn-agent").write_bytes(agent)
            (folder / "sojourn-agent").chmod(0o755)
            command = [str(folder / "sojourn-agent"), "run", str(folder / "job.json"), str(folder / "recording")]
            try:
                _run_agent(command, folder / "said", monitor)
            finally:
                _remove_left(job["namespaces"])
            return (folder / "recording").read_bytes()
    except OSError as error:
        raise LinuxError(f"{error.filename}: {error.strerror}") from None


def _load_modules(modules: list[str]) -> None:
    modprobe = programs.find("modprobe")
    if modprobe is not None:
        # One that is built in, or missing, shows when it is used.
        subprocess.run([str(modprobe), "-qa", *modules], check=False, stderr=subprocess.DEVNULL)


def _run_agent(command: list[str], said: Path, monitor: _core.Monitor) -> None:
    console = Console(monitor)
    with (
        said.open("wb") as out,
        said.open("rb") as listening,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as process,
    ):
        try:
            while True:
                try:
                    status = process.wait(POLL_S)
                    break
                except subprocess.TimeoutExpired:
                    console.take(listening.read())
                    if monitor.cancelled:
                        raise _core.Cancelled("cancelled") from None
        finally:
            _stop(process)
        assert process.stderr is not None
        complaint = process.stderr.read()
    if status != 0:
        raise LinuxError(
            " ".join(complaint.removeprefix("sojourn-agent: ").split()) or f"the agent ended with {status}"
        )


def _stop(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(CLEAN_UP_S)
        except subprocess.TimeoutExpired:
            process.kill()


def _remove_left(namespaces: list[str]) -> None:
    """Removes what an agent that was killed left behind."""
    for name in namespaces:
        if Path("/run/netns", name).exists():
            subprocess.run([str(programs.require("ip")), "netns", "delete", name], check=False, capture_output=True)
