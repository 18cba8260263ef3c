"""Before a sweep is run: how large its batches are, what it takes, and what of it was damaged."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Timer
from typing import TypedDict

from sojourn import _core
from sojourn.store.plans import Store, StoredPlan
from sojourn.store.work import PART_RUNS

SAMPLE_S = 0.3
"""How long each of a few runs is tried."""
BATCH_S = 3.0
"""What a batch takes, roughly: what is lost if its worker dies, and the time between two looks at the store."""
ROW_KB = 0.9
"""A run in a store, compressed, by the length of its summary: measured on examples/home.toml."""


class Estimate(TypedDict):
    """What ``sojourn sweep --dry-run --json`` prints."""

    runs: int
    stored: int
    """Those that the store has."""
    estimate_s: float
    """Wall time of the others."""
    estimate_mb: float
    """Disk space of all."""


def batch_of(grid: _core.Grid) -> int:
    """Runs of a batch that takes a few seconds: a power of two, so that files of finished sweeps begin with a batch."""
    runs = 1
    while runs < PART_RUNS and 2 * runs * run_s(grid) <= BATCH_S:
        runs *= 2
    return runs


def run_s(grid: _core.Grid) -> float:
    """Wall time of a run on one processor, by a few that are tried for a moment."""
    simulated_s = wall_s = whole_s = 0.0
    last = len(grid) - 1
    for place in sorted({0, last // 2, last}):
        try:
            spec = grid[place]
        except _core.ExperimentError:
            continue
        whole_s = max(whole_s, spec.duration_s)
        monitor = _core.Monitor()
        timer = Timer(SAMPLE_S, monitor.cancel)
        timer.daemon = True
        timer.start()
        began = time.monotonic()
        try:
            spec.run(monitor)
            simulated_s += spec.duration_s
        except _core.Cancelled:
            simulated_s += monitor.simulated_s
        except _core.RunError:
            continue
        finally:
            timer.cancel()
        wall_s += time.monotonic() - began
    return whole_s * wall_s / max(simulated_s, 1e-9) if wall_s else 0.0


def estimate(grid: _core.Grid, store: Store | None, workers: int) -> Estimate:
    """What a sweep takes."""
    runs = len(grid)
    stored = 0
    if store is not None:
        plan = store.find(grid)
        stored = 0 if plan is None else plan.runs_done()
        if plan is None and store.plans():
            stored = _shared(grid, store)
    wall_s = run_s(grid) * (runs - stored) / max(1, min(workers, runs))
    return {
        "runs": runs,
        "stored": stored,
        "estimate_s": round(wall_s, 1),
        "estimate_mb": round(runs * ROW_KB / 1000, 1),
    }


def _shared(grid: _core.Grid, store: Store) -> int:
    """How many runs other sweeps have made, by their hashes; of many runs a thousand are looked at."""
    from sojourn.store.work import index

    known = index(store.plans())
    step = max(1, len(grid) // 1000)
    places = range(0, len(grid), step)
    found = 0
    for place in places:
        try:
            found += grid[place].hash in known
        except _core.ExperimentError:
            continue
    return round(found * len(grid) / len(places))


def mend(plan: StoredPlan) -> list[Path]:
    """Puts damaged files out of the way, and those with runs that failed: both are made again. Returns the damaged."""
    import pyarrow.parquet as pq

    damaged = []
    for part in plan.parts():
        if not part.is_whole:
            damaged.append(part.path)
            part.path.rename(part.path.with_name(f"damaged-{part.path.name}"))
        elif part.last + 1 - part.first <= plan.meta.batch_runs:
            errors = pq.read_table(part.path, columns=["error"], partitioning=None)["error"]
            if errors.null_count < len(errors):
                part.path.unlink()
    return damaged
