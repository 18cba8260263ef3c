"""Real packets: the kernel's hosts with their traffic, and between them Sojourn's own links, in real time.

The agent makes namespaces that end with it, so that nothing is left on the host. It needs neither root nor any
discipline of the kernel, only user namespaces and a TUN device.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, ClassVar

from sojourn import _core
from sojourn.linux import host, programs
from sojourn.linux.kernel import simulated
from sojourn.linux.programs import LinuxError
from sojourn.live.feed import Feed

_LONGEST = 1 << 20
"""Bytes of a message of the agent."""
_ANSWER_S = 2.0
"""How long the agent may take to answer."""
TUN = Path("/dev/net/tun")
"""The file by which the agent makes its devices."""


def missing() -> str | None:
    """What real packets lack on this machine, with the remedy; None if nothing is known to be missing."""
    if programs.agent() is None:
        return programs.NO_AGENT
    if not TUN.exists():
        return f"{TUN} is missing; as root: modprobe tun"
    if not os.access(TUN, os.R_OK | os.W_OK):
        return f"{TUN} may not be opened; run as root, or as root: chmod 666 {TUN}"
    switches = ("/proc/sys/kernel/unprivileged_userns_clone", "/proc/sys/user/max_user_namespaces")
    if os.geteuid() != 0 and any(Path(name).exists() and Path(name).read_text().strip() == "0" for name in switches):
        return "there are no user namespaces; run as root, or as root: sysctl user.max_user_namespaces=10000"
    return None


def require() -> None:
    """Checks the requirements. Raises LinuxError if one is not met; the message has the remedy."""
    what = missing()
    if what is not None:
        raise LinuxError(f"real packets: {what}")


@dataclass(frozen=True)
class Datapath:
    """Runs a plan's traffic over the kernel's TCP, with its packets on Sojourn's own path."""

    feed: Feed | None = None
    """Hears of the runs."""
    name: ClassVar[str] = "datapath"

    @property
    def release(self) -> str:
        """The release of the kernel whose TCP it uses."""
        return os.uname().release

    @property
    def followed(self) -> dict[str, str]:
        """The key with which the simulator follows it: the TCP of its kernel."""
        return {"experiment.kernel": simulated(self.release)}

    def wall_s(self, simulated_s: float, runs: int) -> float:
        """Wall time of successive runs: a second more than they simulate."""
        return runs + simulated_s

    def check(self, plan: _core.Plan) -> None:
        """Checks a plan. Raises ExperimentError for its options, LinuxError for what the machine lacks."""
        _core.path_check(plan)
        require()

    def notes(self, plan: _core.Plan) -> list[str]:
        """Differences from the plan's requirements, a line each for the user."""
        return [*plan.notes, *_core.linux_notes(plan)]

    def run(self, spec: _core.RunSpec, monitor: _core.Monitor) -> _core.Run:
        """Makes one run, in real time. Only one is made at a time, as each would delay the other.

        Raises LinuxError if the run failed, and Cancelled if the monitor was cancelled.
        """
        began = time.monotonic()
        job_json = _core.path_job(spec)
        with (
            host.alone(monitor, host.LOCK if os.geteuid() == 0 else host.own_lock()),
            prepared(job_json, spec, monitor, self.feed) as folder,
        ):
            command = [*apart(folder), "path", str(folder / "job.json"), str(folder / "recording")]
            host.run_agent(command, folder, monitor)
            recording = (folder / "recording").read_bytes()
        return _core.linux_run(spec, recording, time.monotonic() - began)


@contextmanager
def prepared(
    job_json: str, spec: _core.RunSpec, monitor: _core.Monitor, feed: Feed | None = None, *, outside: bool = False
) -> Iterator[Path]:
    """A folder with a run's job and the agent. A feed hears of the run. ``outside``: its program reaches it.

    Raises RunError if a discipline in Python has raised an exception, and LinuxError if the agent was not built, or the
    folder cannot be written.
    """
    with host.with_agent() as folder, ExitStack() as stack:
        job = json.loads(job_json)
        decider = _core.Decider.begin(spec, str(folder / "decide"), monitor)
        if decider is not None:
            job["decider"] = str(folder / "decide")
            # Behind the exception that an ended run raises is the cause.
            stack.callback(decider.end)
        if feed is not None:
            job["watcher"] = stack.enter_context(_watched(folder, feed))
        if outside:
            job["outside"] = str(folder / "resolv.conf")
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        yield folder


@contextmanager
def _watched(folder: Path, feed: Feed) -> Iterator[str]:
    """A socket to which the agent tells a feed of its run, and answers what the feed asks of it."""
    answers: SimpleQueue[dict[str, Any]] = SimpleQueue()
    asking = threading.Lock()

    def hear() -> None:
        while received := own.recv(_LONGEST):
            message = json.loads(received)
            if "set" in message:
                answers.put(message)
            else:
                feed.add({"sample": message})

    def ask(key: str, value: str) -> None:
        with asking:
            try:
                own.sendto(json.dumps({"key": key, "value": value}).encode(), str(folder / "watch.agent"))
                error = answers.get(timeout=_ANSWER_S)["error"]
            except (OSError, Empty):
                error = "the run is not going on"
        if error is not None:
            raise _core.ExperimentError(error)

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
        own.bind(str(folder / "watch"))
        hearing = threading.Thread(target=hear, daemon=True)
        hearing.start()
        feed.setter = ask
        try:
            yield str(folder / "watch")
        finally:
            feed.setter = None
            # An empty message ends the thread.
            own.sendto(b"", str(folder / "watch"))
            hearing.join()


def apart(folder: Path) -> list[str]:
    """The beginning of a command of the agent in namespaces of its own, which end with this process."""
    return [str(folder / host.AGENT), "apart", str(os.getpid())]
