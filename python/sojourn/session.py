"""One run, driven step by step: looked at on the way, and changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sojourn import _core, schema
from sojourn.api import as_run, plan, written
from sojourn.results import Results


@dataclass(frozen=True)
class QueueState:
    """A queue at the moment of an observation."""

    packets: int
    """Packets that have left since the last observation."""
    sojourn_mean_ms: float
    """Mean of their sojourn times; NaN if there were none."""
    sojourn_max_ms: float
    """The longest of them."""
    backlog_packets: int
    backlog_bytes: int
    """What is queued now."""
    dropped: int
    marked: int
    """Packets dropped for any reason, and marked, since the run began."""
    state: dict[str, float]
    """The algorithm's variables, by the names of its defining document."""


@dataclass(frozen=True)
class FlowState:
    """A flow at the moment of an observation."""

    goodput_bps: float
    """Payload bits per second received since the last observation."""
    cwnd_segments: float
    """Congestion window now; NaN for traffic without one."""
    rtt_ms: float
    """Mean of the round-trip times measured since the last observation; NaN if there were none."""


@dataclass(frozen=True)
class Observation:
    """A run as it stands, and what has happened since the last observation."""

    since_s: float
    now_s: float
    """The last observation, and this one, in simulated seconds."""
    queues: dict[str, QueueState]
    """By place: ``down``, ``up``; with several links ``home/down`` and so on."""
    flows: list[FlowState]
    """In the order of ``flows`` in the summary."""


class Session:
    """One run of an experiment in the simulator.

    However it is cut into steps, it gives the results of ``run``; only what ``set`` changes makes a difference.

    Parameters
    ----------
    experiment
        A file, TOML, or a ``RunSpec``.
    queue
        The label of the arm to run; default: the first.
    seed
        Default: the experiment's.
    set
        Values that replace those of the file, by dotted key. The first combination of a sweep is run.

    Raises
    ------
    ExperimentError
        The file is wrong, or has no such queue.

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

    @property
    def now_s(self) -> float:
        """How far the run has come, in simulated seconds."""
        return self._session.now_s

    @property
    def end_s(self) -> float:
        """Where it ends, in simulated seconds."""
        return self._session.end_s

    @property
    def finished(self) -> bool:
        """Whether it has come to its end."""
        return self._session.finished

    def step(self, span: str | float) -> None:
        """Goes on for a span of simulated time, ``"15 ms"`` or seconds, at most to the end.

        Raises
        ------
        RunError
            A discipline in Python failed, or the session has finished.
        """
        self._session.step(span)

    def observe(self) -> Observation:
        """The queues and flows as they stand, and what has happened since the last call."""
        seen = self._session.observe()
        return Observation(
            seen["since_s"],
            seen["now_s"],
            {place: QueueState(**state) for place, state in seen["queues"].items()},
            [FlowState(**state) for state in seen["flows"]],
        )

    def set(self, key: str, value: object) -> None:
        """Gives a key another value from now on: what is queued, and the algorithm's state, stay.

        Parameters
        ----------
        key
            ``queue.target`` is a key of the queue under test, ``link.rate``, ``link.up.rate`` or ``link.home.rate`` the
            rate of a link, ``link.home.queue.target`` a key of the discipline that a link has of its own.
        value
            As in a file: ``"10 ms"``.

        Raises
        ------
        ExperimentError
            There is no such key, the value is refused, or the discipline does not change while it runs.
        """
        self._session.set(key, written(value))

    def results(self) -> Results:
        """The results, as of ``run``. A run that has not come to its end is first run to there."""
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
