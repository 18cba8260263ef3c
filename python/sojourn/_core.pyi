"""The compiled core: reads experiment files and runs them."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "Ack",
    "Algorithm",
    "Cancelled",
    "Decider",
    "Delivery",
    "ExperimentError",
    "Monitor",
    "Packet",
    "Path",
    "Plan",
    "Queue",
    "Recording",
    "Run",
    "RunError",
    "RunSpec",
    "Sample",
    "Session",
    "Sweep",
    "Vector",
    "Window",
    "congestion_controls_json",
    "design_json",
    "disciplines_json",
    "linux_job",
    "linux_joined",
    "linux_modules",
    "linux_notes",
    "linux_parts",
    "linux_run",
    "metrics_json",
    "network_json",
    "path_check",
    "path_job",
    "quantity",
    "register_aqm",
    "register_congestion_control",
    "run_each",
    "schema_json",
    "shell_job",
    "traffic_json",
    "units_json",
    "unregister_aqm",
    "unregister_congestion_control",
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
        """The simulated seconds so far."""

    def cancel(self) -> None:
        """Stops the run at its next event."""

    @property
    def cancelled(self) -> bool:
        """True if the run was asked to stop."""

    def report(self, simulated_s: float) -> None:
        """Sets the simulated seconds so far, for a run made outside of this module."""

@final
class Run:
    """The results of one run."""

    @property
    def summary_json(self) -> str:
        """One element of ``runs`` in summary.json."""

    def table(self, name: str) -> dict[str, npt.NDArray[np.generic]] | None:
        """Takes a recorded table (``packets``, ``flow_series``, …), only once; None if it was not recorded."""

    def files(self) -> dict[str, bytes]:
        """Takes the capture and the flows' qlogs, only once, by their names, where ``*`` stands for the run."""

@final
class Plan:
    """A checked experiment, with its sweep expanded into runs."""

    @staticmethod
    def read_file(path: str, overrides: list[tuple[str, str]]) -> Plan: ...
    @staticmethod
    def read_text(text: str, name: str, overrides: list[tuple[str, str]]) -> Plan: ...
    @staticmethod
    def for_programs(text: str, name: str, overrides: list[tuple[str, str]], label: str | None) -> Plan:
        """As `read_text`, for programs that bring the traffic: one run, of the arm with this label, or of the first."""
    @property
    def name(self) -> str: ...
    @property
    def jobs(self) -> list[tuple[int, int, int, str]]:
        """(cell, queue, seed, label) in result order: cells, then seeds, then queues."""

    def __len__(self) -> int:
        """The number of runs."""

    def __getitem__(self, index: int, /) -> RunSpec:
        """The run with this index: by cell, then seed, then queue."""

    def __iter__(self) -> Iterator[RunSpec]: ...
    @property
    def notes(self) -> list[str]:
        """What the user may overlook, a line each."""

    @property
    def recorded(self) -> list[str]:
        """The tables that some of its runs record, as the file requires."""

    @property
    def hash(self) -> str:
        """SHA-256, in hexadecimal, of everything that determines the runs' results and their names."""

    def resolved_json(self) -> str:
        """The experiment with every default filled in, one object per cell of the sweep."""

@final
class Sweep:
    """The runs of an experiment file, each read on request, for sweeps too large for memory."""

    @staticmethod
    def read_file(path: str, overrides: Sequence[tuple[str, str]]) -> Sweep: ...
    @property
    def name(self) -> str:
        """The experiment's name."""

    def __len__(self) -> int:
        """The number of runs."""

    def __getitem__(self, place: int, /) -> RunSpec:
        """The run with this index: by cell, then seed, then queue; ExperimentError if its values conflict."""

    def edges(self) -> list[int]:
        """The first runs of the cells that differ from the first one in at most one value."""

    @property
    def axes_json(self) -> str:
        """The swept keys with their values, as JSON."""

    @property
    def hash(self) -> str:
        """SHA-256, in hexadecimal, of everything that determines the runs' results and their names."""

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
    def parts_json(self) -> str:
        """Its queues and flows, described, as JSON."""

    @property
    def hash(self) -> str:
        """SHA-256, in hexadecimal, of everything that determines the run's results, without names and swept values."""

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
    def effort(self) -> float:
        """What the run costs beside other runs, for estimates of the time left."""

    def progress(self, seconds: float) -> float:
        """The part of its packets, estimated, that is sent in its first seconds."""

    @property
    def packets(self) -> float:
        """The packets that the traffic sends, estimated, without acknowledgements."""

    @property
    def queued_packets(self) -> float:
        """The packets that enter queues, estimated, one per queue and with acknowledgements."""

    @property
    def duration_s(self) -> float:
        """Simulated duration in seconds."""

    def run(self, monitor: Monitor) -> Run:
        """Runs it in the simulator; other threads continue meanwhile."""

def run_each(runs: list[tuple[RunSpec, Monitor]]) -> list[Run | BaseException]:
    """Runs several in the simulator, one after another, and hashes them; returns a result or an error for each."""

@final
class Session:
    """One run in progress."""

    def __new__(cls, spec: RunSpec) -> Session: ...
    @property
    def now_s(self) -> float:
        """The simulated seconds so far."""

    @property
    def end_s(self) -> float:
        """The end of the run in simulated seconds."""

    @property
    def finished(self) -> bool:
        """True if the run has reached its end."""

    def step(self, span: str | float) -> None:
        """Continues for a span of simulated time, as text with a unit or in seconds, or to the end."""

    def observe(self) -> dict[str, Any]:
        """The state of the queues and flows, and the events since the last call."""

    def set(self, key: str, value: str) -> None:
        """Sets a key to another value from now on; ExperimentError if it cannot be set."""

    def space(self) -> dict[str, Any]:
        """``actions``, the keys to ``act`` on: ``key``, ``unit``, ``low``, ``high``; ``observations``, names."""

    def act(self, index: int, value: float) -> None:
        """Sets the key with this number in ``space`` to a number in its unit; ExperimentError if it is refused."""

    def observe_into(self, numbers: npt.NDArray[np.float64]) -> None:
        """Fills an array with an observation, in the order of ``space``; ExperimentError if it is too short."""

    def finish(self) -> Run:
        """Runs to the end if necessary, and returns the results. The session is then finished."""

@final
class Vector:
    """Many runs in step, on several threads."""

    def __new__(cls, specs: Sequence[RunSpec], keys: Sequence[str], interval_s: float, threads: int) -> Vector: ...
    def space(self) -> dict[str, Any]:
        """As of a session."""

    def reset(self, index: int, spec: RunSpec) -> None:
        """Puts another run in the place of one, at its beginning."""

    def step(self, values: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Sets the keys of each run to a row of values and advances it: an observation each, and whether it ended."""

@final
class Recording:
    """A parsed and checked recording."""

    @staticmethod
    def read(text: bytes, name: str) -> Recording: ...
    def replay(self, aqm: str, overrides: list[tuple[str, str]]) -> str:
        """Replays it through a discipline; returns the outcome as JSON."""

    def follow(self, aqm: str, overrides: list[tuple[str, str]], every: str) -> dict[str, npt.NDArray[np.generic]]:
        """Shows the recorded queue to a discipline's algorithm; returns ``t_us`` and its variables."""

@final
class Packet:
    """A packet in a queue, for algorithms in Python."""

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
    """The queued packets, without the one to be decided about."""

    @property
    def packets(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def ce_bytes(self) -> int:
        """The part of ``bytes`` in CE-marked packets."""

    def random(self) -> float:
        """A uniform random number in [0, 1), from the run's seed. With other sources, runs are not reproducible."""

@final
class Algorithm:
    """A built-in algorithm, with the methods of a user-defined class: ``Algorithm("pie", target="20 ms")``.

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
        """Its variables, with the names of its defining document."""

def register_aqm(
    name: str, class_: type, summary: str, parameters: list[tuple[str, list[object]]], digest: str
) -> None:
    """Registers a class under a name; parameters are names and defaults (none or one); the digest is of its source."""

def unregister_aqm(name: str) -> None:
    """Removes the class registered under a name."""

@final
class Path:
    """A bottleneck around packets of your own, for tests of network protocols.

    A link with a queue discipline lies between two ends, with propagation and the way back. There is no clock and no
    thread: you say what time it is. Packets down cross the link under test, then propagation of half of ``rtt``;
    packets up cross a link of their own if there is ``up``, then the other half. Instants are in seconds since the
    path's beginning, rounded to nanoseconds, and may not go back from one call to the next. The same calls have the
    same result.

    Parameters
    ----------
    rate
        The link's rate: ``"20 Mbit/s"``.
    rtt
        Propagation there and back: ``"40 ms"``.
    aqm, keys
        The discipline and its keys, as in an experiment file: ``aqm="codel", keys={"target": "5 ms", "ecn": True}``.
    up, up_aqm, up_keys
        The rate of a link for packets up, its discipline (default: pfifo) and keys. Without ``up``, packets up cross no
        queue.
    impair, up_impair
        What propagation does to packets down and up: ``loss``, ``duplicate`` and ``corrupt`` (probabilities),
        ``jitter`` (the standard deviation as text, ``"3 ms"``).
    seed
        Of the random numbers.

    Raises
    ------
    ExperimentError
        A value is refused; the message says what is accepted.
    """

    def __new__(
        cls,
        rate: str,
        rtt: str,
        *,
        aqm: str = "pfifo",
        keys: dict[str, str | float] | None = None,
        up: str | None = None,
        up_aqm: str | None = None,
        up_keys: dict[str, str | float] | None = None,
        impair: dict[str, str | float] | None = None,
        up_impair: dict[str, str | float] | None = None,
        seed: int = 1,
    ) -> Path: ...
    def send(
        self,
        now: float,
        payload: object,
        bytes: int,
        *,
        way: Literal["down", "up"] = "down",
        ecn: Literal["not-ect", "ect0", "ect1", "ce"] = "not-ect",
        flow: int = 0,
        dscp: int = 0,
    ) -> int:
        """Sends a packet of any payload and 1 or more ``bytes`` on the link, with headers; returns its number, from 0.

        ``flow`` is any number of its flow, for disciplines that tell flows apart.
        """

    def poll(self, now: float) -> Delivery | None:
        """Handles what is due by ``now``, and returns a packet that has arrived; to be called until it returns None."""

    def next_event(self) -> float | None:
        """When to call ``poll`` next, never before the last call; None: only after a packet was sent."""

    def verdicts(self) -> list[dict[str, Any]]:
        """What happened to packets since the last call, oldest first; the newest 65,536 are kept.

        Each has ``at_s``, ``way``, ``number`` and ``verdict``: ``"arrived"``, ``"marked"``, ``"dropped"`` (with
        ``reason``: ``"aqm"`` or ``"overflow"``), ``"left"`` (with ``sojourn_s``), ``"lost"`` or ``"duplicated"``.
        """

    def counts(self, way: Literal["down", "up"] = "down") -> dict[str, int]:
        """Packets ``sent``, ``delivered``, ``dropped``, ``marked``, ``lost`` and ``duplicated`` of a direction."""

    @property
    def packets(self) -> int:
        """Packets under way, in queues and in propagation."""

    def set_rate(self, rate: str, *, way: Literal["down", "up"] = "down") -> None:
        """Sets the rate of a direction's link."""

    def set_delay(self, rtt: str) -> None:
        """Sets the propagation there and back."""

@final
class Delivery:
    """A packet that has arrived over a ``Path``."""

    @property
    def payload(self) -> Any: ...
    @property
    def at_s(self) -> float:
        """When it arrived."""

    @property
    def sent_s(self) -> float:
        """When it was sent."""

    @property
    def sojourn_s(self) -> float:
        """The time that it spent in the link's queue."""

    @property
    def way(self) -> Literal["down", "up"]: ...
    @property
    def number(self) -> int:
        """What ``send`` returned for it."""

    @property
    def ecn(self) -> Literal["not-ect", "ect0", "ect1", "ce"]:
        """The ECN field as it arrived."""

    @property
    def bytes(self) -> int:
        """Bytes on the link."""

    @property
    def dscp(self) -> int: ...

@final
class Window:
    """A congestion window and its state, in segments, for congestion controls in Python."""

    cwnd: int
    """The congestion window, at least 1."""
    ssthresh: int
    """The slow start threshold, at least 2; very large before the first congestion."""

    @property
    def in_slow_start(self) -> bool:
        """True below the slow start threshold."""

    @property
    def is_used(self) -> bool:
        """True if the window is used and so may grow; in slow start it is enough to have half of it in flight."""

    @property
    def flight_size(self) -> int:
        """Segments sent and not cumulatively acknowledged when congestion was detected (FlightSize of RFC 5681)."""

    def slow_start(self, acked: int) -> int:
        """Grows by one segment per segment acknowledged, up to ``ssthresh``; returns the rest of ``acked``."""

    def additive_increase(self, acked: int, per_segment: int) -> None:
        """Grows by one segment per ``per_segment`` segments acknowledged."""

@final
class Ack:
    """What an acknowledgement tells, for congestion controls in Python."""

    @property
    def now(self) -> float:
        """When it arrived, in seconds of the run."""

    @property
    def delivered(self) -> int:
        """Segments newly delivered."""

    @property
    def acked(self) -> int:
        """Segments newly acknowledged, also if a SACK reported them before."""

    @property
    def marks(self) -> int:
        """Segments newly reported as marked; with RFC 3168's echo, all that it delivered."""

    @property
    def rtt_s(self) -> float | None:
        """The RTT of the newest segment delivered, in seconds; None if that was retransmitted."""

@final
class Sample:
    """The details of an acknowledgement, for congestion controls in Python."""

    @property
    def delivery_rate_bps(self) -> float | None:
        """Delivery rate in bit/s of payload (draft-cheng-iccrg-delivery-rate-estimation); None if it yields none."""

    @property
    def app_limited(self) -> bool:
        """True if the application had nothing to send for a part of the rate's interval."""

    @property
    def total_delivered(self) -> int:
        """Segments delivered since the connection began."""

    @property
    def prior_delivered(self) -> int | None:
        """``total_delivered`` when the newest of these segments was sent; None without a rate."""

    @property
    def lost(self) -> int:
        """Segments newly judged lost."""

    @property
    def in_flight(self) -> int:
        """Segments in flight now."""

    @property
    def prior_in_flight(self) -> int:
        """Segments in flight before the acknowledgement arrived."""

    @property
    def in_recovery(self) -> bool:
        """True in loss recovery."""

    @property
    def smoothed_rtt_s(self) -> float | None:
        """The smoothed RTT in seconds; None before the first."""

    @property
    def mss(self) -> int:
        """Payload bytes of a full segment."""

def register_congestion_control(
    name: str, class_: type, summary: str, parameters: list[tuple[str, list[object]]], digest: str
) -> None:
    """Registers a class under a name, as ``register_aqm`` does."""

def unregister_congestion_control(name: str) -> None:
    """Removes the class registered under a name."""

def design_json(path: str, overrides: Sequence[tuple[str, str]]) -> str:
    """The design that an experiment file asks for; ``null`` if it has a grid or the points of its design."""

def disciplines_json() -> str: ...
def metrics_json() -> str: ...
def network_json(archive: bytes) -> str:
    """A learned network from an archive of numpy.savez, as the JSON of ``weights``; ExperimentError if damaged."""

def quantity(text: str) -> tuple[float, str] | None:
    """A text of an experiment file as a number and its unit; None if it is not numeric."""

def congestion_controls_json() -> str: ...
def traffic_json() -> str: ...
def units_json() -> str: ...
def schema_json() -> str: ...
def linux_job(spec: RunSpec, prefix: str) -> str:
    """The job of the agent on Linux for a run, as JSON; RunError if Linux cannot make it."""

def linux_joined(job: str, prefix: str, machines: str, recordings: Sequence[bytes]) -> bytes:
    """The recording of a job from those of its parts, in the order of the machines; see ``linux_parts``."""

def linux_modules(plan: Plan, parts: bool = False) -> list[str]:
    """The kernel modules that a plan's runs need; ExperimentError, with the file's line, if Linux cannot make one."""

def linux_notes(plan: Plan) -> list[str]:
    """Settings of an experiment that Linux implements differently, in lines for the user."""

def linux_parts(job: str, prefix: str, machines: str) -> list[str]:
    """The parts of a job on several machines, all as JSON; the machines as the tables of a testbed's file."""

@final
class Decider:
    """The algorithms in Python of one run whose queues are in another process, which asks at a socket."""

    @staticmethod
    def begin(spec: RunSpec, socket: str, monitor: Monitor) -> Decider | None:
        """Listens at a socket; None if the run has no such algorithm. An exception of one cancels the monitor."""

    def end(self) -> None:
        """Ends it after the other process; RunError if an algorithm has raised an exception."""

def path_check(plan: Plan) -> None:
    """ExperimentError, with the file's line, if real packets cannot make one of a plan's runs."""

def path_job(spec: RunSpec) -> str:
    """The job of the agent for a run whose packets pass Sojourn's own path, as JSON; RunError if it cannot be made."""

def shell_job(spec: RunSpec, servers: list[str], between: tuple[str, str] | None) -> str:
    """The job of the agent, as JSON, for programs behind the path of a run, or for two interfaces with it between."""

def linux_run(spec: RunSpec, recording: bytes, wall_s: float) -> Run:
    """The results of a run from the agent's job and its recording; RunError if that is damaged."""
