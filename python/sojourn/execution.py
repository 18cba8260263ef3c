"""A batch of runs on an executor: progress, failures, Ctrl-C, and results in their order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sojourn import _core, interrupts
from sojourn.executors import CoreRun, Executor, Outcome
from sojourn.interrupts import Presses

POLL_S = 0.1
"""How often progress is reported and a Ctrl-C is noticed."""

T = TypeVar("T")


@dataclass(frozen=True)
class Progress:
    """How far a batch of runs has come."""

    finished: int
    runs: int
    fraction: float
    """Simulated time done, of all there is to simulate."""
    elapsed_s: float
    stopping: bool = False
    """The user has asked to stop: what is still running is being cancelled."""

    @property
    def left_s(self) -> float | None:
        """Estimated wall time left at the pace so far; None before anything is known."""
        return self.elapsed_s * (1.0 - self.fraction) / self.fraction if self.fraction > 0.0 else None


Report = Callable[[Progress], None]


def execute(
    specs: Sequence[_core.RunSpec],
    take: Callable[[int, T], None],
    *,
    finish: Callable[[int, CoreRun], T],
    executor: Executor,
    report: Report | None = None,
) -> BaseException | None:
    """Makes all runs and hands each result to ``take`` with its place, in their order. The executor is closed.

    ``finish`` makes the result of a run, as soon as it is finished and in whatever order. A run that fails leaves the
    others alone; a Ctrl-C cancels what is still running, and a second one does not wait for that. What is finished is
    handed over all the same.

    Returns
    -------
    BaseException or None
        Why not all is there: a KeyboardInterrupt, or the RunError of the first run that failed.
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
                # Asked once: a Ctrl-C that comes while the report is written is told by the next.
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
    """Runs on an executor, a few handed out ahead."""

    def __init__(self, specs: Sequence[_core.RunSpec], executor: Executor, finish: Callable[[int, CoreRun], T]) -> None:
        self.finished: dict[int, T] = {}
        self.failed: dict[int, _core.RunError] = {}
        self.done = 0
        self._specs = specs
        self._executor = executor
        self._finish = finish
        self._next = 0
        self._running = 0
        self._total_s = sum(spec.duration_s for spec in specs)
        self._done_s = 0.0
        self._stopping = False

    def advance(self) -> bool:
        """Waits a moment for runs to end; false once all have been seen to."""
        while self._next < len(self._specs) and self._running < 2 * self._executor.workers:
            self._executor.start(self._next, self._specs[self._next])
            self._next += 1
            self._running += 1
        if not self._running:
            return False
        self._settle(self._executor.ended(POLL_S))
        return True

    def fraction(self) -> float:
        """Simulated time done, of all there is."""
        done_s = self._done_s + self._executor.simulated_s()
        return min(1.0, done_s / self._total_s) if self._total_s else 1.0

    def close(self, presses: Presses) -> None:
        """Cancels what is still running; what ended well in the meantime counts as finished."""
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
            self._done_s += self._specs[index].duration_s
