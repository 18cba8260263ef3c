"""Makes a batch of runs on an executor: progress, failures, Ctrl-C, and results in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Generic, TypeVar, cast

import msgspec

from sojourn import _core, interrupts, schema
from sojourn.executors import CoreRun, Executor, Outcome
from sojourn.interrupts import Presses
from sojourn.results import Recorded, Run, as_arrow

if TYPE_CHECKING:
    import pyarrow as pa

POLL_S = 0.1
"""Interval of progress reports, and of checks for Ctrl-C, in seconds."""

T = TypeVar("T")


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

    The core returns each table only once; the run keeps it.
    """

    def read_table(name: Recorded) -> pa.Table | None:
        import pyarrow as pa

        columns = core.table(name)
        return None if columns is None else pa.table({key: as_arrow(column) for key, column in columns.items()})

    return Run(cast("schema.Run", msgspec.json.decode(core.summary_json)), cache(read_table), cache(core.capture))


def execute(
    specs: Sequence[_core.RunSpec],
    take: Callable[[int, T], None],
    *,
    finish: Callable[[int, CoreRun], T],
    executor: Executor,
    report: Report | None = None,
) -> BaseException | None:
    """Makes all runs and passes each result to ``take`` with its index, in order. Closes the executor.

    ``finish`` computes the result of a run as soon as the run ends, in any order. If a run fails, the others continue.
    A Ctrl-C cancels the runs in progress, and a second one does not wait for them to end. Finished results are passed
    on in every case.

    Returns
    -------
    BaseException or None
        Why results are missing: a KeyboardInterrupt, or the RunError of the first run that failed.
    """
    batch = _Batch(specs, executor, finish)
    began = time.monotonic()
    taken = 0
    stopped_by: BaseException | None = None
    with interrupts.held() as presses:
        try:
            while batch.advance():
                while taken in batch.finished or taken in batch.failed:
                    if taken in batch.finished:
                        take(taken, batch.finished.pop(taken))
                    taken += 1
                # Read only once: a Ctrl-C during the report appears in the next one.
                stopping = bool(presses)
                if report is not None:
                    elapsed_s = time.monotonic() - began
                    report(Progress(batch.done, len(specs), batch.fraction(), elapsed_s, stopping))
                if stopping:
                    stopped_by = KeyboardInterrupt()
                    break
        finally:
            batch.close(presses)
        for index in sorted(batch.finished):
            take(index, batch.finished.pop(index))
    return stopped_by or next(iter(batch.failed.values()), None)


class _Batch(Generic[T]):
    """Runs on an executor, with a few runs started ahead."""

    def __init__(self, specs: Sequence[_core.RunSpec], executor: Executor, finish: Callable[[int, CoreRun], T]) -> None:
        self.finished: dict[int, T] = {}
        self.failed: dict[int, _core.RunError] = {}
        self.done = 0
        self._specs = specs
        self._executor = executor
        self._finish = finish
        self._next = 0
        self._running = 0
        self._effort = sum(spec.effort for spec in specs)
        self._done_effort = 0.0
        self._stopping = False

    def advance(self) -> bool:
        """Waits shortly for runs to end; returns False once all are processed."""
        while self._next < len(self._specs) and self._running < 2 * self._executor.workers:
            self._executor.start(self._next, self._specs[self._next])
            self._next += 1
            self._running += 1
        if not self._running:
            return False
        self._settle(self._executor.ended(POLL_S))
        return True

    def fraction(self) -> float:
        """Share of the work that is done."""
        running = ((self._specs[index], at_s) for index, at_s in self._executor.simulated_s().items())
        done = self._done_effort + sum(spec.effort * at_s / spec.duration_s for spec, at_s in running)
        return min(1.0, done / self._effort) if self._effort else 1.0

    def close(self, presses: Presses) -> None:
        """Cancels the runs in progress; runs that succeed meanwhile count as finished."""
        self._stopping = True
        self._executor.close(presses)
        self._settle(self._executor.ended(0.0))

    def _settle(self, ended: Iterable[tuple[int, Outcome]]) -> None:
        for index, outcome in ended:
            self._running -= 1
            if not isinstance(outcome, BaseException):
                self.finished[index] = self._finish(index, outcome)
            elif self._stopping:
                continue
            elif isinstance(outcome, _core.RunError):
                self.failed[index] = outcome
            else:
                raise outcome
            self.done += 1
            self._done_effort += self._specs[index].effort
