"""Estimates how long runs take, by making a few of them for a moment.

Processor time is measured, which does not depend on what else the machine does.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from threading import Timer
from typing import NamedTuple

from sojourn import _core
from sojourn.runs.backends import Backend

PATIENCE_S = 15.0
"""Most wall time for a run to begin."""
LEAST_SHARE = 1e-6
"""Least part of a run that a trial is taken to have made."""


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
    """Makes each run for about ``each_s`` of wall time.

    Raises
    ------
    RunError
        None of them can be run; the error is that of the last.
    """
    measured: dict[str, tuple[float, float]] = {}
    kilobytes: list[float] = []
    failed: _core.RunError | None = None
    for spec in specs:
        monitor = _core.Monitor()
        timer = Timer(each_s, _cancel_once_begun, [monitor])
        timer.daemon = True
        timer.start()
        began_s = time.thread_time()
        share = 1.0
        try:
            core = backend.run(spec, monitor)
            kilobytes.append(len(core.summary_json) / 1000)
        except _core.Cancelled:
            share = max(monitor.simulated_s / spec.duration_s, LEAST_SHARE)
        except _core.RunError as error:
            failed = error
            continue
        finally:
            timer.cancel()
        cpu_s, effort = measured.get(spec.queue, (0.0, 0.0))
        measured[spec.queue] = cpu_s + time.thread_time() - began_s, effort + spec.effort * share
    if failed is not None and not measured:
        raise failed
    costs = {queue: max(cpu_s, 1e-6) / effort for queue, (cpu_s, effort) in measured.items()}
    whole = [sum(both) for both in zip(*measured.values(), strict=True)] or [0.0, 1.0]
    mean_kb = sum(kilobytes) / len(kilobytes) if kilobytes else None
    return Trial(costs, max(whole[0], 1e-6) / whole[1], mean_kb)


def is_python(spec: _core.RunSpec) -> bool:
    """Whether the run has a discipline in Python: threads make such runs one after another."""
    return bool(json.loads(spec.document).get("own"))


def _cancel_once_begun(monitor: _core.Monitor) -> None:
    """Cancels a trial run once it has begun to simulate; before that, as with very many flows, its pace is unknown."""
    until = time.monotonic() + PATIENCE_S
    while not monitor.simulated_s and time.monotonic() < until:
        time.sleep(0.05)
    monitor.cancel()
