"""The compiled core: reads experiment files and runs them."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "Algorithm",
    "Cancelled",
    "ExperimentError",
    "Monitor",
    "Packet",
    "Plan",
    "Queue",
    "Recording",
    "Run",
    "RunError",
    "RunSpec",
    "Session",
    "Sweep",
    "congestion_controls_json",
    "disciplines_json",
    "linux_job",
    "linux_modules",
    "linux_notes",
    "linux_run",
    "register_aqm",
    "schema_json",
    "traffic_json",
    "unregister_aqm",
    "version",
]

version: str

class ExperimentError(ValueError):
    """The input is wrong: one line with file, line, key, what was given and what is accepted."""

class RunError(RuntimeError):
    """A run failed."""

class Cancelled(RuntimeError):
    """A run was cancelled."""

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
        """Hands over what was recorded by name (``packets``, ``flow_series``, …), once; None if it was not."""

    def capture(self) -> bytes | None:
        """Hands over the capture of packets, a pcapng file, once; None if there is none."""

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

    def __len__(self) -> int:
        """How many runs there are."""

    def __getitem__(self, index: int, /) -> RunSpec:
        """A run by its place: cells, then seeds, then queues."""

    def __iter__(self) -> Iterator[RunSpec]: ...
    @property
    def recorded(self) -> list[str]:
        """The tables that some of its runs record because the file asks for them."""

    @property
    def hash(self) -> str:
        """SHA-256, in hexadecimal, of all that decides what the runs give and what they are called."""

    def resolved_json(self) -> str:
        """The experiment with every default filled in, one object per cell of the sweep."""

@final
class Sweep:
    """The runs of an experiment file, each read when it is asked for: for sweeps too large to be held."""

    @staticmethod
    def read_file(path: str, overrides: Sequence[tuple[str, str]]) -> Sweep: ...
    @property
    def name(self) -> str:
        """The experiment's name."""

    def __len__(self) -> int:
        """How many runs there are."""

    def __getitem__(self, place: int, /) -> RunSpec:
        """A run by its place: cells, then seeds, then queues; ExperimentError if its values cannot go together."""

    def edges(self) -> list[int]:
        """The first runs of the cells that differ from the first one in at most one value."""

    @property
    def axes_json(self) -> str:
        """The swept keys with their values, as JSON."""

    @property
    def hash(self) -> str:
        """SHA-256, in hexadecimal, of all that decides what the runs give and what they are called."""

@final
class RunSpec:
    """One run: an experiment, one of its arms, and a seed. It can be pickled, compared and used as a key of a dict."""

    @staticmethod
    def read(document: str) -> RunSpec:
        """Reads a run from its ``document``; ExperimentError if it is none, or of another version of results."""

    @property
    def document(self) -> str:
        """The run as JSON, with every default and the traces: what ``read`` takes."""

    @property
    def hash(self) -> str:
        """SHA-256, in hexadecimal, of all that decides what the run gives; names and swept values are not in it."""

    @property
    def name(self) -> str:
        """The experiment's name."""

    @property
    def queue(self) -> str:
        """The arm's discipline."""

    @property
    def label(self) -> str:
        """The arm's name."""

    @property
    def seed(self) -> int: ...
    @property
    def set_json(self) -> str:
        """The swept keys and their values, as JSON."""

    @property
    def duration_s(self) -> float:
        """Simulated length, in seconds."""

    def run(self, monitor: Monitor) -> Run:
        """Runs it in the simulator; other threads go on meanwhile."""

@final
class Session:
    """One run under way."""

    def __new__(cls, spec: RunSpec) -> Session: ...
    @property
    def now_s(self) -> float:
        """How far the run has come, in simulated seconds."""

    @property
    def end_s(self) -> float:
        """Where it ends, in simulated seconds."""

    @property
    def finished(self) -> bool:
        """Whether it has come to its end."""

    def step(self, span: str | float) -> None:
        """Goes on for a span of simulated time, or to the end: text with a unit, or seconds."""

    def observe(self) -> dict[str, Any]:
        """The queues and flows as they stand, and what has happened since the last call."""

    def set(self, key: str, value: str) -> None:
        """Gives a key another value from now on; ExperimentError if that cannot be."""

    def finish(self) -> Run:
        """What the run gave, run to its end if it has not come there. The session ends."""

@final
class Recording:
    """A recording, read and checked."""

    @staticmethod
    def read(text: bytes, name: str) -> Recording: ...
    def replay(self, aqm: str, overrides: list[tuple[str, str]]) -> str:
        """Replays it through a discipline; the outcome as JSON."""

    def follow(self, aqm: str, overrides: list[tuple[str, str]], every: str) -> dict[str, npt.NDArray[np.generic]]:
        """Shows the recorded queue to a discipline's algorithm: ``t_us`` and its variables."""

@final
class Packet:
    """A packet in a queue, as an algorithm in Python sees it."""

    @property
    def bytes(self) -> int:
        """Bytes on the link, link header included."""

    @property
    def enqueued_s(self) -> float:
        """When it entered the queue, in seconds of the run."""

    @property
    def ecn(self) -> Literal["not-ect", "ect0", "ect1", "ce"]:
        """The ECN field."""

    @property
    def dscp(self) -> int:
        """The DiffServ code point, 0 to 63."""

    @property
    def flow(self) -> tuple[int, int, int, int, int]:
        """(source, destination, source port, destination port, protocol)."""

@final
class Queue:
    """What is queued, not counting the packet that is decided about."""

    @property
    def packets(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def ce_bytes(self) -> int:
        """The part of ``bytes`` that carries CE."""

    def random(self) -> float:
        """A uniform random number in [0, 1), from the run's seed. Use no other, lest runs differ."""

@final
class Algorithm:
    """An algorithm of ours, with the methods of a class of one's own: ``Algorithm("pie", target="20 ms")``.

    Values are text as in an experiment file, or numbers: seconds, bit/s, bytes. ``mtu`` is a full frame in bytes and
    ``rate`` the link's rate, for algorithms that depend on them.
    """

    def __new__(
        cls, name: str, /, *, mtu: int = 1514, rate: int = 10_000_000, **settings: str | float
    ) -> Algorithm: ...
    def enqueue(self, packet: Packet, queue: Queue, now: float) -> Literal["pass", "mark", "drop"]: ...
    def dequeue(self, packet: Packet, queue: Queue, now: float) -> Literal["pass", "mark", "drop"]: ...
    def update(self, queue: Queue, now: float) -> None: ...
    def overflow(self, queue: Queue, now: float) -> None: ...
    def empty(self, queue: Queue, now: float, /) -> None: ...
    def state(self) -> dict[str, float]:
        """Its variables by the names of its defining document."""

def register_aqm(
    name: str, class_: type, summary: str, parameters: list[tuple[str, list[object]]], digest: str
) -> None:
    """Registers a class under a name; parameters are names and defaults (none or one), the digest is of its source."""

def unregister_aqm(name: str) -> None:
    """Forgets the class registered under a name."""

def disciplines_json() -> str: ...
def congestion_controls_json() -> str: ...
def traffic_json() -> str: ...
def schema_json() -> str: ...
def linux_job(spec: RunSpec, prefix: str) -> str:
    """What the agent on Linux is to be told for a run, as JSON; RunError if Linux cannot make it."""

def linux_modules(plan: Plan) -> list[str]:
    """The kernel modules that a plan's runs need; ExperimentError, with the file's line, if Linux cannot make one."""

def linux_notes(plan: Plan) -> list[str]:
    """What an experiment asks for and Linux gives otherwise, in lines for the user."""

def linux_run(spec: RunSpec, told: str, recording: bytes, wall_s: float) -> Run:
    """The results of a run from what the agent was told and what it recorded; RunError if that is damaged."""
