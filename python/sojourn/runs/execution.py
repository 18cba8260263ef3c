"""The loop that makes runs on an executor: progress, failures, Ctrl-C; for a list, results in order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol, cast

import msgspec

from sojourn import _core, schema
from sojourn.files import interrupts
from sojourn.frame.arrow import columns_as_arrow
from sojourn.frame.later import pa
from sojourn.frame.results import Recorded, Run
from sojourn.runs.executors import POLL_S, TOGETHER, CoreRun, Executor


@dataclass(frozen=True)
class Progress:
    """The progress of a batch of runs."""

    finished: int
    runs: int
    fraction: float
    """Share of the work that is done, by the efforts of the runs."""
    elapsed_s: float
    stopping: bool = False
    """The user has asked to stop: runs in progress are being cancelled."""

    @property
    def left_s(self) -> float | None:
        """Estimated wall time left at the speed so far; None before there is an estimate."""
        return self.elapsed_s * (1.0 - self.fraction) / self.fraction if self.fraction > 0.0 else None


Report = Callable[[Progress], None]


def as_run(core: CoreRun) -> Run:
    """Converts a run of the core, with its tables as Arrow, which share the core's memory.

    The core returns what was recorded only once. Without pyarrow a run has no tables.
    """
    tables: dict[Recorded, pa.Table | None] = {}
    files: list[dict[str, bytes]] = []

    def table(name: Recorded) -> pa.Table | None:
        if name not in tables:
            tables[name] = None
            if (columns := core.table(name)) is not None:
                with suppress(ModuleNotFoundError):
                    tables[name] = columns_as_arrow(columns)
        return tables[name]

    def named_files() -> dict[str, bytes]:
        if not files:
            files.append(core.files())
        return files[0]

    return Run(cast("schema.Run", msgspec.json.decode(core.summary_json)), table, named_files)


class Source(Protocol):
    """Gives runs to ``make_runs``, and takes their outcomes."""

    @property
    def is_over(self) -> bool:
        """True once no further run will come."""

    def next(self) -> tuple[int, _core.RunSpec] | None:
        """The next run, with the index of its outcome; None if there is none now."""

    def end(self, index: int, spec: _core.RunSpec, outcome: CoreRun | _core.RunError) -> None:
        """Takes a finished run, or why it failed. An exception raised here ends the loop."""

    def progress(self, unfinished: float, elapsed_s: float) -> Progress:
        """The progress so far; ``unfinished``: the part of the efforts of the runs in progress that is made."""


def make_runs(source: Source, executor: Executor, presses: interrupts.Presses, report: Report | None = None) -> bool:
    """Makes the runs of a source until it is over, or until the user asks to stop; returns whether that was the case.

    A Ctrl-C cancels the runs in progress, and a second one does not wait for them to end. The executor is closed; runs
    that succeed meanwhile are passed on.
    """
    began = due_s = time.monotonic()
    running: dict[int, tuple[_core.RunSpec, float]] = {}
    """The runs that were started, with their efforts, which the core computes each time that it is asked."""

    def is_fed() -> bool:
        each = len(running) / executor.workers
        enough = 2 * TOGETHER * executor.workers
        return each >= executor.ahead or (each >= 2 and sum(effort for _, effort in running.values()) >= enough)

    try:
        while True:
            while not is_fed() and (todo := source.next()) is not None:
                executor.start(*todo)
                running[todo[0]] = todo[1], todo[1].effort
            if running:
                for index, outcome in executor.ended(POLL_S):
                    spec, _ = running.pop(index)
                    if isinstance(outcome, BaseException) and not isinstance(outcome, _core.RunError):
                        raise outcome
                    source.end(index, spec, outcome)
            elif source.is_over:
                return False
            else:
                time.sleep(POLL_S)
            # Read only once: a Ctrl-C during the report appears in the next one.
            stopping = bool(presses)
            now_s = time.monotonic()
            if report is not None and (now_s >= due_s or stopping or (source.is_over and not running)):
                due_s = now_s + POLL_S
                there = ((running[index], at_s) for index, at_s in executor.simulated_s().items() if index in running)
                unfinished = sum(effort * at_s / spec.duration_s for (spec, effort), at_s in there)
                report(replace(source.progress(unfinished, now_s - began), stopping=stopping))
            if stopping:
                return True
    finally:
        executor.close(presses)
        for index, outcome in executor.ended(0.0):
            if not isinstance(outcome, BaseException):
                source.end(index, running[index][0], outcome)


def execute(
    specs: Sequence[_core.RunSpec],
    take: Callable[[int, Run], None],
    *,
    executor: Executor,
    made: Callable[[int, Run], None] = lambda index, run: None,
    report: Report | None = None,
    known: Mapping[int, Run] = {},
) -> BaseException | None:
    """Makes a list of runs and passes each to ``take`` with its index, in order. Closes the executor.

    ``made`` gets each run as soon as it ends, in any order; ``known`` are runs that there are before. If a run fails,
    the others continue. Finished runs are passed on in every case. Returns why runs are missing: a KeyboardInterrupt,
    or the RunError of the first run that failed.
    """
    runs = _List(specs, take, made, known)
    with interrupts.held() as presses:
        stopped = make_runs(runs, executor, presses, report)
        # Those after one that is missing.
        for index in sorted(runs.finished):
            take(index, runs.finished[index])
    return KeyboardInterrupt() if stopped else next(iter(runs.failed.values()), None)


def named(error: _core.RunError, spec: _core.RunSpec) -> _core.RunError:
    """The error of a failed run with its arm, the values of its swept keys and its seed."""
    arm = ", ".join([spec.label, *(f"{key} {value}" for key, value in msgspec.json.decode(spec.set_json).items())])
    found = _core.RunError(f"{spec.name}: {arm}, seed {spec.seed}: {error}")
    found.__cause__ = error.__cause__
    return found


class _List:
    """A list of runs, which are taken in its order."""

    def __init__(
        self,
        specs: Sequence[_core.RunSpec],
        take: Callable[[int, Run], None],
        made: Callable[[int, Run], None],
        known: Mapping[int, Run],
    ) -> None:
        self.failed: dict[int, _core.RunError] = {}
        self._specs = specs
        self._take = take
        self._made = made
        self.finished = dict(known)
        self._taken = 0
        self._left = deque(index for index in range(len(specs)) if index not in known)
        self._runs = len(self._left)
        self._done = 0
        self._effort = sum(specs[index].effort for index in self._left)
        self._done_effort = 0.0

    @property
    def is_over(self) -> bool:
        """True once the last run has been started."""
        return not self._left

    def next(self) -> tuple[int, _core.RunSpec] | None:
        """The next run."""
        if not self._left:
            return None
        index = self._left.popleft()
        return index, self._specs[index]

    def end(self, index: int, spec: _core.RunSpec, outcome: CoreRun | _core.RunError) -> None:
        """Takes a run, and passes on those that are next in order."""
        if isinstance(outcome, _core.RunError):
            self.failed[index] = named(outcome, spec)
        else:
            self.finished[index] = as_run(outcome)
            self._made(index, self.finished[index])
        self._done += 1
        self._done_effort += spec.effort
        while self._taken in self.finished or self._taken in self.failed:
            if self._taken in self.finished:
                self._take(self._taken, self.finished.pop(self._taken))
            self._taken += 1

    def progress(self, unfinished: float, elapsed_s: float) -> Progress:
        """The share of the runs' efforts."""
        done = self._done_effort + unfinished
        return Progress(self._done, self._runs, min(1.0, done / self._effort) if self._effort else 1.0, elapsed_s)
