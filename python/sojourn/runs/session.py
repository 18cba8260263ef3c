"""One run, driven step by step, with observations and changes of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sojourn import _core
from sojourn.frame.results import Results
from sojourn.frame.swept import as_in_file, time_s
from sojourn.runs.execution import as_run
from sojourn.runs.plan import arm_of, plan

if TYPE_CHECKING:
    from sojourn.figure.live import Animation
    from sojourn.figure.style import Width


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
    ssthresh_segments: float
    """Slow start threshold; NaN for traffic without one, and before there is one."""
    pacing_bps: float
    """Rate at which the congestion control paces payload; NaN if it does not."""
    state: float
    """Loss recovery: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss; NaN for traffic without a connection."""
    rtt_ms: float
    """Mean of the round-trip times measured since the last observation; NaN if there were none."""


class Action(NamedTuple):
    """A key that can be set by its number, to numbers in its unit."""

    key: str
    """As for ``Session.set``."""
    unit: str
    """``ms``, ``bit/s``, ``packets``, ``bytes``, or ``1`` for bare numbers."""
    low: float
    high: float
    """The range of numbers that are accepted."""


class Space(NamedTuple):
    """What a controller may do and sees."""

    actions: tuple[Action, ...]
    """By their numbers for ``Session.act``."""
    observations: tuple[str, ...]
    """The names of the numbers that ``Session.observe_into`` fills: ``down.sojourn_mean_ms``, ``flow.0.rtt_ms``."""


@dataclass(frozen=True)
class Snapshot:
    """A moment of a run: everything that was done until then."""

    spec: _core.RunSpec
    done: tuple[tuple[str, tuple[Any, ...]], ...]
    """The calls, by name, with their arguments."""


@dataclass(frozen=True)
class Observation:
    """The state of a run, and the events since the last observation."""

    since_s: float
    now_s: float
    """The times of the last observation and of this one, in simulated seconds."""
    queues: dict[str, QueueState]
    """By name: ``down``, ``up``; with several links ``home/down`` and so on."""
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
            overrides = dict(set or {}) if seed is None else {**(set or {}), "experiment.seed": seed}
            runs = plan(experiment, set=overrides)
            self.spec = runs[arm_of(runs, queue)[0]]
        self._session = _core.Session(self.spec)
        self._done: list[tuple[str, tuple[Any, ...]]] = []
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
            A discipline in Python failed, or the results have been taken.
        """
        self._session.step(span)
        self._done.append(("step", (span,)))

    def observe(self) -> Observation:
        """The state of the queues and flows, and the events since the last call."""
        seen = self._session.observe()
        self._done.append(("observe", ()))
        return Observation(
            seen["since_s"],
            seen["now_s"],
            {queue: QueueState(**state) for queue, state in seen["queues"].items()},
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
        self._done.append(("set", (key, as_in_file(value))))

    def space(self) -> Space:
        """The keys that ``act`` sets, and the numbers that ``observe_into`` fills; the same all through a run."""
        space = self._session.space()
        return Space(tuple(Action(**action) for action in space["actions"]), tuple(space["observations"]))

    def act(self, index: int, value: float) -> None:
        """Sets the key with this number in ``space`` to a number in its unit, as ``set`` does.

        Raises
        ------
        ExperimentError
            There is no such number, or the key does not accept the value.
        """
        self._session.act(index, value)
        self._done.append(("act", (index, value)))

    def observe_into(self, numbers: npt.NDArray[np.float64]) -> None:
        """Fills an array with the state and the events since the last call, in the order of ``space``.

        Numbers that are not known, such as the sojourn time where no packet left, are 0.

        Raises
        ------
        ExperimentError
            It is no array of float64, or too short.
        """
        self._session.observe_into(numbers)
        self._done.append(("observe_into", (len(numbers),)))

    def snapshot(self) -> Snapshot:
        """The present moment, for ``restore``; it can be pickled."""
        return Snapshot(self.spec, tuple(self._done))

    def restore(self, snapshot: Snapshot) -> None:
        """Goes to the moment of a snapshot. The run is made again up to there, which takes as long as it did.

        Raises
        ------
        ExperimentError
            It is a snapshot of another run.
        """
        if not isinstance(snapshot, Snapshot) or snapshot.spec != self.spec:
            what = "a snapshot of another run" if isinstance(snapshot, Snapshot) else repr(snapshot)
            raise _core.ExperimentError(f"restore: got {what}; must be a snapshot of this run")
        self._session = _core.Session(self.spec)
        self._results = None
        self._done = list(snapshot.done)
        for name, arguments in snapshot.done:
            given = (np.empty(*arguments),) if name == "observe_into" else arguments
            getattr(self._session, name)(*given)

    def animate(
        self, every: str = "100 ms", *, window: str | None = None, fps: float = 20.0, width: Width = "page"
    ) -> Animation:
        """The rest of the run as an animation: the queues' lengths and delays, and what each flow receives.

        A notebook shows it with buttons; ``.save("run.mp4")`` and ``.to_jshtml()`` are matplotlib's. The run goes on to
        its end as the pictures are drawn.

        Parameters
        ----------
        every
            Simulated time from one picture to the next.
        window
            How much of the run is in a picture; default: all of it.
        fps
            Pictures a second.

        Raises
        ------
        ExperimentError
            A time is none, or there would be more than 2000 pictures.
        """
        from sojourn.figure import live

        every_s = time_s("every", every)
        window_s = None if window is None else time_s("window", window)
        if (self.end_s - self.now_s) / every_s > live.MOST_FRAMES:
            least = (self.end_s - self.now_s) / live.MOST_FRAMES
            raise _core.ExperimentError(
                f'every: got "{every}"; must be at least "{least:.3g} s", {live.MOST_FRAMES} pictures'
            )
        return live.animation(self, every_s, window_s, fps, width)

    def results(self) -> Results:
        """The results, as from ``run``. A run that has not reached its end is first continued to it."""
        if self._results is None:
            run = as_run(self._session.finish())
            self._results = Results.of([run], experiment=self.spec.name)
        return self._results
