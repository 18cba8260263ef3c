"""The backends: what makes the runs of a plan."""

from __future__ import annotations

from typing import Protocol

from sojourn import _core
from sojourn.linux import Linux

BACKENDS = ("sim", "linux")
"""The backends that this version has."""


class Backend(Protocol):
    """Makes runs."""

    @property
    def name(self) -> str:
        """The name in summaries and on the command line."""

    def check(self, plan: _core.Plan) -> None:
        """Makes sure, as far as that can be known before, that it can run a plan.

        Raises
        ------
        ExperimentError
            The plan asks for what this backend does not have.
        RunError
            Something that it needs is missing.
        """

    def notes(self, plan: _core.Plan) -> list[str]:
        """What it gives otherwise than a plan asks for, a line each for the user."""

    def run(self, spec: _core.RunSpec, monitor: _core.Monitor) -> _core.Run:
        """Makes one run.

        Raises
        ------
        RunError
            It failed.
        Cancelled
            The monitor was told to stop.
        """


class Simulator:
    """The simulator: all that a plan can hold, it can run."""

    name = "sim"

    def check(self, plan: _core.Plan) -> None:
        """Nothing is left to check: reading the plan did."""

    def notes(self, plan: _core.Plan) -> list[str]:
        """Nothing: it measures all that a plan can ask for."""
        return []

    def run(self, spec: _core.RunSpec, monitor: _core.Monitor) -> _core.Run:
        """Makes one run."""
        return spec.run(monitor)


def backend_of(backend: str | Backend) -> Backend:
    """A backend by its name, or itself.

    Raises
    ------
    ExperimentError
        This version has no such backend.
    """
    if not isinstance(backend, str):
        return backend
    if backend == "sim":
        return Simulator()
    if backend == "linux":
        return Linux()
    raise _core.ExperimentError(
        f'backend: got "{backend}"; not available in this version; backends: {", ".join(BACKENDS)}'
    )
