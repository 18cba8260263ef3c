"""The compiled core: reads experiment files and runs them."""

from typing import final

import numpy as np
import numpy.typing as npt

__all__ = [
    "Cancelled",
    "ExperimentError",
    "Monitor",
    "Plan",
    "Run",
    "RunError",
    "congestion_controls_json",
    "disciplines_json",
    "replay_json",
    "schema_json",
    "traffic_json",
    "version",
]

version: str

class ExperimentError(ValueError):
    """The input is wrong: one line with file, line, key, what was given and what is accepted."""

class RunError(RuntimeError):
    """A run failed."""

class Cancelled(RuntimeError):
    """A run was given up because its monitor was cancelled."""

@final
class Monitor:
    """Watches one run from another thread."""

    def __new__(cls) -> Monitor: ...
    @property
    def simulated_s(self) -> float:
        """How far the run has come, in simulated seconds."""

    def cancel(self) -> None:
        """Makes the run stop at its next event."""

    @property
    def cancelled(self) -> bool:
        """Whether the run was asked to stop."""

    def report(self, simulated_s: float) -> None:
        """Tells how far a run has come that is made outside of this module."""

@final
class Run:
    """What one run left behind."""

    @property
    def summary_json(self) -> str:
        """One element of ``runs`` in summary.json."""

    def table(self, name: str) -> dict[str, npt.NDArray[np.generic]] | None:
        """Hands over the columns of ``packets``, ``queue_series`` or ``flow_series``, once; None if not recorded."""

@final
class Plan:
    """A checked experiment, its sweep expanded into jobs."""

    @staticmethod
    def read_file(path: str, overrides: list[tuple[str, str]]) -> Plan: ...
    @staticmethod
    def read_text(text: str, name: str, overrides: list[tuple[str, str]]) -> Plan: ...
    @property
    def name(self) -> str: ...
    @property
    def jobs(self) -> list[tuple[int, int, int, str]]:
        """(cell, queue, seed, label) in result order: cells, then seeds, then queues."""

    def duration_s(self, job: int) -> float:
        """Simulated length of a job, in seconds."""

    def resolved_json(self) -> str:
        """The experiment with every default filled in, one object per cell of the sweep."""

    def run(self, job: int, monitor: Monitor) -> Run:
        """Runs one job; other threads go on meanwhile."""

def replay_json(
    plan: Plan,
    departs: npt.NDArray[np.uint8],
    ids: npt.NDArray[np.uint64],
    t_us: npt.NDArray[np.uint64],
    bytes: npt.NDArray[np.uint32],
) -> str:
    """Replays recorded events through the first queue of a plan; ``departs`` is 0 for an arrival."""

def disciplines_json() -> str: ...
def congestion_controls_json() -> str: ...
def traffic_json() -> str: ...
def schema_json() -> str: ...
def linux_job(plan: Plan, job: int, prefix: str) -> str:
    """What the agent on Linux is to be told for a job, as JSON; ExperimentError if Linux cannot run it."""

def linux_run(plan: Plan, job: int, told: str, recording: bytes, wall_s: float) -> Run:
    """The results of a job from what the agent was told and what it recorded; RunError if that is damaged."""
