"""The backends, which make the runs of a plan."""

from __future__ import annotations

import sys
from typing import Protocol

from sojourn import _core, linux

BACKENDS = ("sim", "linux", "datapath")
"""The backends that this version has."""


class Backend(Protocol):
    """Makes runs."""

    @property
    def name(self) -> str:
        """The name in summaries and on the command line."""

    def check(self, plan: _core.Plan) -> None:
        """Checks, as far as possible before a run, that the backend can run a plan.

        Raises ExperimentError if it does not support an option of the plan, and RunError if it lacks something.
        """

    def notes(self, plan: _core.Plan) -> list[str]:
        """What the user may overlook, and differences from the plan's requirements, a line each."""

    def run(self, spec: _core.RunSpec, monitor: _core.Monitor) -> _core.Run:
        """Makes one run. Raises RunError if the run failed, and Cancelled if the monitor was cancelled."""


class Simulator:
    """The simulator, which can run every plan."""

    name = "sim"

    def check(self, plan: _core.Plan) -> None:
        """Checks nothing: the plan was checked when it was read."""

    def notes(self, plan: _core.Plan) -> list[str]:
        """The plan's own: the simulator supports every option of a plan."""
        return plan.notes

    def run(self, spec: _core.RunSpec, monitor: _core.Monitor) -> _core.Run:
        """Makes one run."""
        return spec.run(monitor)


def backend_of(backend: str | Backend) -> Backend:
    """Returns a backend by its name, or unchanged. Raises ExperimentError if this version has no such backend."""
    if not isinstance(backend, str):
        return backend
    if backend == "sim":
        return Simulator()
    if backend in BACKENDS and sys.platform == "win32":
        raise _core.ExperimentError(f'backend: got "{backend}"; needs Linux; must be "sim" on this system')
    if backend in BACKENDS:
        return linux.Linux() if backend == "linux" else linux.Datapath()
    raise _core.ExperimentError(
        f'backend: got "{backend}"; not available in this version; backends: {", ".join(BACKENDS)}'
    )
