"""Runs a plan's jobs on a pool of threads. The core releases the GIL, so threads are all that is needed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass

from sojourn import _core
from sojourn.backends import Backend

POLL_S = 0.1
"""How often progress is reported and a Ctrl-C is noticed."""


@dataclass(frozen=True)
class Progress:
    """How far a batch of runs has come."""

    finished: int
    runs: int
    fraction: float
    """Simulated time done, of all there is to simulate."""
    elapsed_s: float

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
    take: Callable[[int, _core.Run], None],
    *,
    threads: int | None = None,
    report: Report | None = None,
) -> BaseException | None:
    """Runs all jobs and hands each result to ``take`` with its job's index, in the jobs' order.

    A run that fails leaves the others alone; a Ctrl-C cancels what is still running. What is finished is handed over
    all the same.

    Returns
    -------
    BaseException or None
        Why not all is there: a KeyboardInterrupt, or the RunError of the first run that failed.
    """
    pool = _Pool(jobs, threads or default_threads())
    began = time.monotonic()
    taken = 0
    stopped_by: BaseException | None = None
    with _ctrl_c() as interrupted:
        try:
            while pool.advance():
                while taken in pool.finished or taken in pool.failed:
                    if taken in pool.finished:
                        take(taken, pool.finished.pop(taken))
                    taken += 1
                if report is not None:
                    report(Progress(pool.done, len(jobs), pool.fraction(), time.monotonic() - began))
                if interrupted.is_set():
                    stopped_by = KeyboardInterrupt()
                    break
        finally:
            pool.close()
        for index in sorted(pool.finished):
            take(index, pool.finished.pop(index))
    return stopped_by or next(iter(pool.failed.values()), None)


class _Pool:
    """Jobs on threads, a few submitted ahead."""

    def __init__(self, jobs: Sequence[Job], threads: int) -> None:
        self.finished: dict[int, _core.Run] = {}
        self.failed: dict[int, _core.RunError] = {}
        self.done = 0
        self._jobs = jobs
        self._threads = threads
        self._next = 0
        self._running: dict[Future[_core.Run], tuple[int, _core.Monitor]] = {}
        self._total_s = sum(job.duration_s for job in jobs)
        self._done_s = 0.0
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="sojourn")

    def advance(self) -> bool:
        """Waits a moment for jobs to end; false once all have been seen to."""
        if self._next == len(self._jobs) and not self._running:
            return False
        while self._next < len(self._jobs) and len(self._running) < 2 * self._threads:
            monitor = _core.Monitor()
            future = self._executor.submit(self._jobs[self._next].run, monitor)
            self._running[future] = (self._next, monitor)
            self._next += 1
        ended, _ = wait(self._running, timeout=POLL_S, return_when=FIRST_COMPLETED)
        for future in ended:
            self._settle(future)
        return True

    def fraction(self) -> float:
        """Simulated time done, of all there is."""
        running_s = sum(monitor.simulated_s for _, monitor in self._running.values())
        return min(1.0, (self._done_s + running_s) / self._total_s) if self._total_s else 1.0

    def close(self) -> None:
        """Cancels what is still running and waits for it; what ended well in the meantime counts as finished."""
        for _, monitor in self._running.values():
            monitor.cancel()
        self._executor.shutdown(wait=True, cancel_futures=True)
        for future in list(self._running):
            if not future.cancelled() and future.exception() is None:
                self._settle(future)

    def _settle(self, future: Future[_core.Run]) -> None:
        index, _ = self._running.pop(future)
        try:
            self.finished[index] = future.result()
        except _core.RunError as error:
            self.failed[index] = error
        self.done += 1
        self._done_s += self._jobs[index].duration_s


@contextmanager
def _ctrl_c() -> Iterator[threading.Event]:
    """Makes Ctrl-C, and any other signal that Python handles as one, set an event instead of raising.

    So no result is torn apart on its way to a file. Threads other than the main one get no signals.
    """
    interrupted = threading.Event()
    previous: dict[signal.Signals, Callable[..., object]] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if callable(handler):
                previous[number] = handler
                signal.signal(number, lambda *_: interrupted.set())
    try:
        yield interrupted
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
