"""Runs a plan's jobs on threads. The core releases the GIL, so threads are all that is needed."""

from __future__ import annotations

import contextlib
import ctypes
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sojourn import _core, interrupts
from sojourn.backends import Backend
from sojourn.interrupts import Presses

POLL_S = 0.1
"""How often progress is reported and a Ctrl-C is noticed."""
CALM_S = 0.3
"""What a cancelled run gets to end by itself, before an exception is raised in it."""
PATIENCE_S = 1.2
"""What it gets altogether. Then its thread is left to itself: Python code in it may be waiting for ever."""

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


@dataclass(frozen=True)
class Job:
    """One job of a plan."""

    plan: _core.Plan
    index: int
    backend: Backend

    @property
    def duration_s(self) -> float:
        """Simulated length in seconds."""
        return self.plan.duration_s(self.index)

    @property
    def can_be_left(self) -> bool:
        """Whether nothing but a thread stays behind if it is left to itself."""
        return self.backend.name == "sim"

    def run(self, monitor: _core.Monitor) -> _core.Run:
        """Runs it; a failure names the arm and the seed."""
        try:
            return self.backend.run(self.plan, self.index, monitor)
        except _core.RunError as error:
            _, _, seed, label = self.plan.jobs[self.index]
            raise _core.RunError(f"{self.plan.name}: {label}, seed {seed}: {error}") from error.__cause__


def jobs_of(plan: _core.Plan, backend: Backend) -> list[Job]:
    """All jobs of a plan, in result order."""
    return [Job(plan, index, backend) for index in range(len(plan.jobs))]


def default_threads() -> int:
    """As many threads as this process may use processors."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def execute(
    jobs: Sequence[Job],
    take: Callable[[int, T], None],
    *,
    finish: Callable[[int, _core.Run], T],
    threads: int | None = None,
    report: Report | None = None,
) -> BaseException | None:
    """Runs all jobs and hands each result to ``take`` with its job's index, in the jobs' order.

    ``finish`` makes the result of a run, as soon as it is finished and in whatever order. A run that fails leaves the
    others alone; a Ctrl-C cancels what is still running, and a second one does not wait for that. What is finished is
    handed over all the same.

    Returns
    -------
    BaseException or None
        Why not all is there: a KeyboardInterrupt, or the RunError of the first run that failed.
    """
    pool = _Pool(jobs, threads or default_threads(), finish)
    began = time.monotonic()
    taken = 0
    stopped_by: BaseException | None = None

    def progress(*, stopping: bool = False) -> Progress:
        return Progress(pool.done, len(jobs), pool.fraction(), time.monotonic() - began, stopping)

    with interrupts.held() as presses:
        try:
            while pool.advance():
                while taken in pool.finished or taken in pool.failed:
                    if taken in pool.finished:
                        take(taken, pool.finished.pop(taken))
                    taken += 1
                # Asked once: a Ctrl-C that comes while the report is written is told by the next.
                stopping = bool(presses)
                if report is not None:
                    report(progress(stopping=stopping))
                if stopping:
                    stopped_by = KeyboardInterrupt()
                    break
        finally:
            pool.close(presses)
        for index in sorted(pool.finished):
            take(index, pool.finished.pop(index))
    return stopped_by or next(iter(pool.failed.values()), None)


def left_behind() -> bool:
    """Whether threads were left to themselves and still live: the process then ends without waiting for them."""
    return any(thread.is_alive() for thread in _left)


_left: list[threading.Thread] = []


class _GivenUp(KeyboardInterrupt):
    """Raised in Python code that does not end by itself."""


class _Pool(Generic[T]):
    """Jobs on threads, a few handed out ahead."""

    def __init__(self, jobs: Sequence[Job], threads: int, finish: Callable[[int, _core.Run], T]) -> None:
        self.finished: dict[int, T] = {}
        self.failed: dict[int, _core.RunError] = {}
        self.done = 0
        self._jobs = jobs
        self._finish = finish
        self._ahead = 2 * threads
        self._next = 0
        self._monitors: dict[int, _core.Monitor] = {}
        """Of what was handed out and has not ended."""
        self._total_s = sum(job.duration_s for job in jobs)
        self._done_s = 0.0
        self._stopping = False
        self._todo: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[tuple[int, _core.Run | BaseException]] = queue.SimpleQueue()
        # Daemons: a thread that hangs in somebody's Python code must not keep the process from ending.
        self._threads = [
            threading.Thread(target=self._work, name=f"sojourn_{number}", daemon=True)
            for number in range(min(threads, len(jobs)))
        ]
        for thread in self._threads:
            thread.start()

    def advance(self) -> bool:
        """Waits a moment for jobs to end; false once all have been seen to."""
        while self._next < len(self._jobs) and len(self._monitors) < self._ahead:
            self._monitors[self._next] = _core.Monitor()
            self._todo.put(self._next)
            self._next += 1
        if not self._monitors:
            return False
        self._settle(POLL_S)
        return True

    def fraction(self) -> float:
        """Simulated time done, of all there is."""
        running_s = sum(monitor.simulated_s for monitor in self._monitors.values())
        return min(1.0, (self._done_s + running_s) / self._total_s) if self._total_s else 1.0

    def close(self, presses: Presses) -> None:
        """Cancels what is still running and waits for it; what ended well in the meantime counts as finished.

        Python code that does not end gets an exception; where that does not help, its thread is left to itself.
        """
        self._stopping = True
        for monitor in self._monitors.values():
            monitor.cancel()
        for _ in self._threads:
            self._todo.put(None)
        began = time.monotonic()
        asked = presses.count
        can_be_left = all(job.can_be_left for job in self._jobs)
        while alive := [thread for thread in self._threads if thread.is_alive()]:
            waited_s = time.monotonic() - began
            if can_be_left and (waited_s > PATIENCE_S or presses.count > asked):
                _left.extend(alive)
                break
            if can_be_left and waited_s > CALM_S:
                for thread in alive:
                    _raise_in(thread, _GivenUp)
            alive[0].join(POLL_S)
        self._settle(0.0)

    def _settle(self, wait_s: float) -> None:
        """Takes in what has ended, and waits for the first of it."""
        try:
            ended = self._ended.get(timeout=wait_s)
            while True:
                self._settle_one(*ended)
                ended = self._ended.get_nowait()
        except queue.Empty:
            pass

    def _settle_one(self, index: int, outcome: _core.Run | BaseException) -> None:
        del self._monitors[index]
        if isinstance(outcome, _core.Run):
            self.finished[index] = self._finish(index, outcome)
        elif self._stopping:
            return
        elif isinstance(outcome, _core.RunError):
            self.failed[index] = outcome
        else:
            raise outcome
        self.done += 1
        self._done_s += self._jobs[index].duration_s

    def _work(self) -> None:
        with contextlib.suppress(_GivenUp):
            while (index := self._todo.get()) is not None and not self._stopping:
                try:
                    outcome: _core.Run | BaseException = self._jobs[index].run(self._monitors[index])
                except BaseException as error:
                    outcome = error
                self._ended.put((index, outcome))


def _raise_in(thread: threading.Thread, what: type[BaseException]) -> None:
    """Raises an exception in the Python code of another thread, at its next instruction."""
    if thread.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(what))
