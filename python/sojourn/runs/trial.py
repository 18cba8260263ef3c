"""Estimates how long runs take, by making a few of them for a moment.

Processor time is measured, which does not depend on what else the machine does.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import NamedTuple

from sojourn import _core

LEAST_SHARE = 1e-6
"""Least part of a run that a trial is taken to have made, and its first step."""
LOOK_S = 0.005
"""Least processor time between two looks at how far a trial is."""


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


def trial(specs: Iterable[_core.RunSpec], each_s: float) -> Trial:
    """Makes each run for about ``each_s`` of wall time from its first event on, in the simulator.

    Raises RunError if none of them can be run; the error is that of the last.
    """
    measured: dict[str, tuple[float, float]] = {}
    kilobytes: list[float] = []
    failed: _core.RunError | None = None
    for spec in specs:
        try:
            of_run_s, kilobyte = _cpu_s(spec, each_s)
        except _core.RunError as error:
            failed = error
            continue
        kilobytes += [] if kilobyte is None else [kilobyte]
        cpu_s, effort = measured.get(spec.queue, (0.0, 0.0))
        measured[spec.queue] = cpu_s + of_run_s, effort + spec.effort
    if failed is not None and not measured:
        raise failed
    costs = {queue: max(cpu_s, 1e-6) / effort for queue, (cpu_s, effort) in measured.items()}
    whole = [sum(both) for both in zip(*measured.values(), strict=True)] or [0.0, 1.0]
    mean_kb = sum(kilobytes) / len(kilobytes) if kilobytes else None
    return Trial(costs, max(whole[0], 1e-6) / whole[1], mean_kb)


def is_python(spec: _core.RunSpec) -> bool:
    """Whether the run has a discipline in Python: threads make such runs one after another."""
    return bool(json.loads(spec.document).get("own"))


def _cpu_s(spec: _core.RunSpec, each_s: float) -> tuple[float, float | None]:
    """The processor time of a whole run, from that of its part; the size of its summary if it has ended."""
    start_s = time.thread_time()
    session = _core.Session(spec)
    span_s = spec.duration_s * LEAST_SHARE
    session.step(span_s)
    begun = time.thread_time(), session.now_s
    until_s = time.monotonic() + each_s
    while not session.finished and time.monotonic() < until_s:
        looked_s = time.thread_time()
        session.step(span_s)
        if time.thread_time() - looked_s < LOOK_S:
            span_s *= 2.0
    if session.finished:
        summary = session.finish().summary_json
        return time.thread_time() - start_s, len(summary) / 1000
    return whole_s(start_s, begun, (time.thread_time(), session.now_s), spec.duration_s), None


def whole_s(start_s: float, begun: tuple[float, float], now: tuple[float, float], duration_s: float) -> float:
    """The processor time of a run, of which the processor and the simulated time are known at two moments.

    What it needs before the first, as with very many flows, is counted once, and what it needs then for all of it.
    """
    made_s = max(now[1] - begun[1], duration_s * LEAST_SHARE)
    return begun[0] - start_s + (now[0] - begun[0]) * (duration_s - begun[1]) / made_s
