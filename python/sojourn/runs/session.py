"""One run, driven step by step, with observations and changes of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sojourn import _core, schema
from sojourn.frame.results import Results
from sojourn.frame.swept import as_in_file
from sojourn.runs.execution import as_run
from sojourn.runs.plan import plan


@dataclass(frozen=True)
class QueueState:
    """A queue at the moment of an observation."""

    packets: int
    """Packets that have left since the last observation."""
    sojourn_mean_ms: float
    """Mean of their sojourn times; NaN if there were none."""
    sojourn_max_ms: float
    """The longest of their sojourn times."""
    backlog_packets: int
    backlog_bytes: int
    """The packets queued at this time."""
    dropped: int
    marked: int
    """Packets dropped for any reason, and marked, since the run began."""
    state: dict[str, float]
    """The algorithm's variables, with the names of its defining document."""


@dataclass(frozen=True)
class FlowState:
    """A flow at the moment of an observation."""

    goodput_bps: float
    """Payload bits per second received since the last observation."""
    cwnd_segments: float
    """Congestion window at this time; NaN for traffic without one."""
    rtt_ms: float
    """Mean of the round-trip times measured since the last observation; NaN if there were none."""


@dataclass(frozen=True)
class Observation:
    """The state of a run, and the events since the last observation."""

    since_s: float
    now_s: float
    """The times of the last observation and of this one, in simulated seconds."""
    queues: dict[str, QueueState]
    """By place: ``down``, ``up``; with several links ``home/down`` and so on."""
    flows: list[FlowState]
    """In the order of ``flows`` in the summary."""


class Session:
    """One run of an experiment in the simulator.

    Its results are those of ``run``, however it is divided into steps, unless ``set`` changes a key.

    Parameters
    ----------
    experiment
        A file, TOML, or a ``RunSpec``.
    queue
        The label of the arm to run; default: the first.
    seed
        Default: the experiment's.
    set
        Values that override those in the file, by dotted key. The first combination of a sweep is run.

    Raises
    ------
    ExperimentError
        The file has an error, or no such queue.

    Examples
    --------
    >>> import sojourn as sj
    >>> session = sj.Session("examples/home.toml", seed=7)
    >>> while not session.finished:
    ...     session.step("1 s")
    ...     if session.observe().queues["down"].sojourn_mean_ms > 100.0:
    ...         session.set("queue.limit", "50 packets")
    >>> results = session.results()
    """

    def __init__(
        self,
        experiment: str | Path | _core.RunSpec,
        *,
        queue: str | None = None,
        seed: int | None = None,
        set: Mapping[str, object] | None = None,
    ) -> None:
        if isinstance(experiment, _core.RunSpec):
            self.spec = experiment
        else:
            self.spec = _chosen(experiment, queue, seed, set or {})
        self._session = _core.Session(self.spec)
        self._results: Results | None = None

    def __repr__(self) -> str:
        return f"<Session {self.spec.label}, seed {self.spec.seed}, at {self.now_s:g} of {self.end_s:g} s>"

    @property
    def now_s(self) -> float:
        """The simulated seconds so far."""
        return self._session.now_s

    @property
    def end_s(self) -> float:
        """The end of the run in simulated seconds."""
        return self._session.end_s

    @property
    def finished(self) -> bool:
        """True if the run has reached its end."""
        return self._session.finished

    def step(self, span: str | float) -> None:
        """Continues for a span of simulated time, ``"15 ms"`` or seconds, at most to the end.

        Raises
        ------
        ExperimentError
            The span is not a time, or negative.
        RunError
            A discipline in Python failed, or the session has finished.
        """
        self._session.step(span)

    def observe(self) -> Observation:
        """The state of the queues and flows, and the events since the last call."""
        seen = self._session.observe()
        return Observation(
            seen["since_s"],
            seen["now_s"],
            {place: QueueState(**state) for place, state in seen["queues"].items()},
            [FlowState(**state) for state in seen["flows"]],
        )

    def set(self, key: str, value: object) -> None:
        """Changes a key from now on: queued packets and the algorithm's state are kept.

        Parameters
        ----------
        key
            ``queue.target`` is a key of the queue under test; ``link.rate``, ``link.up.rate`` or ``link.home.rate`` is
            the rate of a link; ``link.home.queue.target`` is a key of a link's own discipline.
        value
            As in a file: ``"10 ms"``.

        Raises
        ------
        ExperimentError
            The key does not exist or does not accept the value, or the discipline cannot be changed while it runs.
        """
        self._session.set(key, as_in_file(value))

    def results(self) -> Results:
        """The results, as from ``run``. A run that has not reached its end is first continued to it."""
        if self._results is None:
            run = as_run(self._session.finish())
            summary: schema.Summary = {
                "format": schema.FORMAT,
                "sojourn": _core.version,
                "experiment": self.spec.name,
                "backend": "sim",
                "runs": [run.summary],
            }
            self._results = Results(summary, [run])
        return self._results


def _chosen(file: str | Path, queue: str | None, seed: int | None, set: Mapping[str, object]) -> _core.RunSpec:
    overrides = dict(set) if seed is None else {**set, "experiment.seed": seed}
    specs = plan(file, set=overrides)
    labels = dict.fromkeys(label for _, _, _, label in specs.jobs)
    for index, (_, _, _, label) in enumerate(specs.jobs):
        if queue in (None, label):
            return specs[index]
    raise _core.ExperimentError(f'queue: got "{queue}"; must be one of {", ".join(labels)}')
