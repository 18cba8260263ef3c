"""Estimates how long runs take, by making a few of them for a moment.

Processor time is measured, which does not depend on what else the machine does.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from sojourn import _core
from sojourn.runs.backends import Backend

PATIENCE_S = 15.0
"""Most wall time for a run to begin."""
LEAST_SHARE = 1e-6
"""Least part of a run that a trial is taken to have made."""
LOOK_S = 0.005
"""Wall time between two looks at whether a run has begun."""


class Trial(NamedTuple):
    """The measurements of the trial runs."""

    costs: dict[str, float]
    """Seconds of a processor per unit of effort, by discipline."""
    cost: float
    """The same of all trials together."""
    summary_kb: float | None
    """Size of a run's summary; None if none was finished in its time."""

    def cpu_s(self, spec: _core.RunSpec) -> float:
        """Estimated seconds of a processor for a run."""
        return spec.effort * self.costs.get(spec.queue, self.cost)


def trial(specs: Iterable[_core.RunSpec], backend: Backend, each_s: float) -> Trial:
    """Makes each run for about ``each_s`` of wall time from its first event on.

    What a run needs before, as with very many flows, is counted once, and what it needs then for its whole duration.

    Raises RunError if none of them can be run; the error is that of the last.
    """
    measured: dict[str, tuple[float, float]] = {}
    kilobytes: list[float] = []
    failed: _core.RunError | None = None
    for spec in specs:
        monitor = _core.Monitor()
        clock = _clock()
        watched = Watched(monitor, each_s, clock)
        began_s = clock()
        try:
            with watched:
                core = backend.run(spec, monitor)
            kilobytes.append(len(core.summary_json) / 1000)
            whole_s = clock() - began_s
        except _core.Cancelled:
            whole_s = watched.whole_s(began_s, clock(), spec.duration_s)
        except _core.RunError as error:
            failed = error
            continue
        cpu_s, effort = measured.get(spec.queue, (0.0, 0.0))
        measured[spec.queue] = cpu_s + whole_s, effort + spec.effort
    if failed is not None and not measured:
        raise failed
    costs = {queue: max(cpu_s, 1e-6) / effort for queue, (cpu_s, effort) in measured.items()}
    whole = [sum(both) for both in zip(*measured.values(), strict=True)] or [0.0, 1.0]
    mean_kb = sum(kilobytes) / len(kilobytes) if kilobytes else None
    return Trial(costs, max(whole[0], 1e-6) / whole[1], mean_kb)


def is_python(spec: _core.RunSpec) -> bool:
    """Whether the run has a discipline in Python: threads make such runs one after another."""
    return bool(json.loads(spec.document).get("own"))


def _clock() -> Callable[[], float]:
    """The processor time of this thread, read by any; wall time where a system does not tell it."""
    if sys.platform in ("win32", "darwin"):
        return time.perf_counter
    number = time.pthread_getcpuclockid(threading.get_ident())
    return lambda: time.clock_gettime(number)


class Watched:
    """Cancels a run some time after it has begun to simulate, and notes its processor time then."""

    def __init__(self, monitor: _core.Monitor, each_s: float, clock: Callable[[], float]) -> None:
        self._monitor, self._each_s, self._clock = monitor, each_s, clock
        self.begun: tuple[float, float] | None = None
        """Its processor time and the simulated time when it was first seen to run."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def whole_s(self, start_s: float, end_s: float, duration_s: float) -> float:
        """The processor time of the whole run, from that of its part."""
        simulated_s = self._monitor.simulated_s
        begun_s, at_s = self.begun or (start_s, 0.0)
        least_s = duration_s * LEAST_SHARE
        return begun_s - start_s + (end_s - begun_s) * (duration_s - at_s) / max(simulated_s - at_s, least_s)

    def _watch(self) -> None:
        until = time.monotonic() + PATIENCE_S
        while not self._monitor.simulated_s and time.monotonic() < until:
            if self._over.wait(LOOK_S):
                return
        self.begun = self._clock(), self._monitor.simulated_s
        self._over.wait(self._each_s)
        self._monitor.cancel()
