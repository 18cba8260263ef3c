"""Runs a plan on Linux: compiles each job, runs it with the agent, and computes its results."""

from __future__ import annotations

import itertools
import json
import os
import time
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

from sojourn import _core
from sojourn.linux import host, lab, machine, programs
from sojourn.linux.kernel import Kernel, is_user_mode, locate, simulated
from sojourn.linux.lab import Lab

Place = Literal["vm", "host"]

_host_runs = itertools.count()


@dataclass(frozen=True)
class Linux:
    """Where and on which kernel to run.

    Parameters
    ----------
    on
        ``"vm"``: in a virtual machine in virtual time, without root. ``"host"``: on the running kernel, as root. A
        ``Lab``: on several hosts, as root there.
    kernel
        For the virtual machine: the version of a kernel that ``sojourn kernel build`` made, or its folder;
        ``"emulated"``, the emulated machine; for that machine also a directory with ``boot/`` and ``lib/modules/``, or
        ``IMAGE:MODULES``. By default the newest that was built; if there is none, the emulated machine. Its own kernel
        is the first that exists of: the cached download of the distribution's package, the host's own, a new download.
    """

    on: Place | Lab = "vm"
    kernel: str | None = None
    name: ClassVar[str] = "linux"

    def wall_s(self, simulated_s: float, runs: int) -> float:
        """Rough wall time of successive runs: measured at 10 Mbit/s with a dedicated processor."""
        if self.on != "vm":
            start_s, pace = (1.0 if self.on == "host" else 3.0), 1.0
        elif is_user_mode(self.kernel):
            start_s, pace = 1.0, 20.0
        else:
            start_s, pace = 20.0, 2.0
        return runs * start_s + simulated_s / pace

    @cached_property
    def _kernel(self) -> Kernel:
        return locate(self.kernel)

    @property
    def release(self) -> str:
        """The release of the kernel that it runs. Raises LinuxError if there is no kernel."""
        if isinstance(self.on, Lab):
            return lab.release(self.on)
        return os.uname().release if self.on == "host" else self._kernel.release

    @property
    def followed(self) -> dict[str, str]:
        """The keys with which the simulator follows it: its TCP, and which packet is first at one instant."""
        ties = {"experiment.ties": "departures"} if self.on == "vm" and is_user_mode(self.kernel) else {}
        return {"experiment.kernel": simulated(self.release), **ties}

    def check(self, plan: _core.Plan) -> None:
        """Checks before a run, as far as possible, that Linux can run every job of a plan.

        Raises ExperimentError if the agent is not built or lacks an option, and LinuxError if there is no kernel, or it
        lacks a module.
        """
        is_user_mode(self.kernel)  # Refuses one that is not there; nothing is downloaded yet.
        if programs.agent() is None:
            raise _core.ExperimentError(f'backend: got "linux"; {programs.NO_AGENT}')
        modules = _core.linux_modules(plan, isinstance(self.on, Lab))
        if self.on == "vm":
            self._kernel.in_order(modules)
        elif isinstance(self.on, Lab):
            lab.check(self.on, plan)
        else:
            host.check(modules)

    def notes(self, plan: _core.Plan) -> list[str]:
        """Differences of Linux from the plan's requirements, a line each for the user."""
        return [*plan.notes, *_core.linux_notes(plan)]

    def run(self, spec: _core.RunSpec, monitor: _core.Monitor) -> _core.Run:
        """Makes one run. Raises LinuxError if the run failed, and Cancelled if the monitor was cancelled."""
        began = time.monotonic()
        # A machine has its own namespaces; on a host they are distinguished by process and run.
        prefix = "sj" if self.on == "vm" else f"sj{os.getpid()}-{next(_host_runs)}"
        job_json = _core.linux_job(spec, prefix)
        if self.on == "vm":
            recording = machine.run(job_json, spec.seed, self._kernel, json.loads(job_json)["modules"], monitor)
        elif isinstance(self.on, Lab):
            recording = lab.run(self.on, job_json, prefix, monitor)
        else:
            recording = host.run(job_json, monitor)
        return _core.linux_run(spec, recording, time.monotonic() - began)
