"""Estimates how long runs take, by making a few of them for a moment."""

from __future__ import annotations

import time
from collections.abc import Iterable
from threading import Timer
from typing import NamedTuple

from sojourn import _core
from sojourn.backends import Backend

PATIENCE_S = 15.0
"""Most wall time for a run to begin."""


class Trial(NamedTuple):
    """The measurements of the trial runs."""

    pace: float
    """Simulated seconds per second of one thread."""
    summary_kb: float | None
    """Size of a run's summary; None if none was finished in its time."""


def trial(specs: Iterable[_core.RunSpec], backend: Backend, each_s: float) -> Trial:
    """Makes each run for at most ``each_s`` of wall time.

    Raises
    ------
    RunError
        None of them can be run; the error is that of the last.
    """
    wall_s = simulated_s = 0.0
    kilobytes: list[float] = []
    failed: _core.RunError | None = None
    for spec in specs:
        monitor = _core.Monitor()
        timer = Timer(each_s, _cancel_once_begun, [monitor])
        timer.daemon = True
        timer.start()
        began = time.monotonic()
        try:
            core = backend.run(spec, monitor)
            kilobytes.append(len(core.summary_json) / 1000)
            simulated_s += spec.duration_s
        except _core.Cancelled:
            simulated_s += monitor.simulated_s
        except _core.RunError as error:
            failed = error
            continue
        finally:
            timer.cancel()
        wall_s += time.monotonic() - began
    if failed is not None and not simulated_s:
        raise failed
    mean_kb = sum(kilobytes) / len(kilobytes) if kilobytes else None
    return Trial(max(simulated_s, 1e-9) / max(wall_s, 1e-6), mean_kb)


def _cancel_once_begun(monitor: _core.Monitor) -> None:
    """Cancels a trial run once it has begun to simulate; before that, as with very many flows, its pace is unknown."""
    until = time.monotonic() + PATIENCE_S
    while not monitor.simulated_s and time.monotonic() < until:
        time.sleep(0.05)
    monitor.cancel()
