"""Runs a plan's jobs on a pool of threads. The core releases the GIL, so threads are all that is needed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from sojourn import _core

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
class PlannedJob:
    """One job of a plan."""

    plan: _core.Plan
    index: int

    @property
    def duration_s(self) -> float:
        """Simulated length in seconds."""
        return self.plan.duration_s(self.index)

    def run(self, monitor: _core.Monitor) -> _core.Run:
        """Runs it; a failure names the arm and the seed."""
        try:
            return self.plan.run(self.index, monitor)
        except _core.RunError as error:
            _, _, seed, label = self.plan.jobs[self.index]
            raise _core.RunError(f"{self.plan.name}: {label}, seed {seed}: {error}") from None


@dataclass(frozen=True)
class Outcome:
    """What came of a batch: a run per job in the jobs' order, None where it was not finished."""

    runs: list[_core.Run | None]
    stopped_by: BaseException | None
    """What ended the batch early: a KeyboardInterrupt, or the RunError of the run that failed."""


def default_jobs() -> int:
    """As many threads as this process may use processors."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def execute(jobs: Sequence[PlannedJob], *, threads: int | None = None, report: Report | None = None) -> Outcome:
    """Runs all jobs and returns their results in order, whatever the number of threads.

    The first failure or a Ctrl-C cancels what is still running and keeps what is finished.
    """
    monitors = [_core.Monitor() for _ in jobs]
    total_s = sum(job.duration_s for job in jobs) or 1.0
    began = time.monotonic()

    def progress(finished: int) -> Progress:
        simulated_s = sum(monitor.simulated_s for monitor in monitors)
        return Progress(finished, len(jobs), min(1.0, simulated_s / total_s), time.monotonic() - began)

    stopped_by: BaseException | None = None
    pool = ThreadPoolExecutor(max_workers=max(1, threads or default_jobs()), thread_name_prefix="sojourn")
    futures = [pool.submit(job.run, monitor) for job, monitor in zip(jobs, monitors, strict=True)]
    try:
        pending: set[Future[_core.Run]] = set(futures)
        while pending:
            done, pending = wait(pending, timeout=POLL_S, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
            if report is not None:
                report(progress(len(futures) - len(pending)))
    except (KeyboardInterrupt, _core.RunError) as error:
        stopped_by = error
    finally:
        for monitor in monitors:
            monitor.cancel()
        pool.shutdown(wait=True, cancel_futures=True)
    return Outcome([_result(future) for future in futures], stopped_by)


def _result(future: Future[_core.Run]) -> _core.Run | None:
    if future.cancelled() or future.exception() is not None:
        return None
    return future.result()
