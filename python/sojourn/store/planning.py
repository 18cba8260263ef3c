"""Before a sweep is run: how large its batches are, what it takes, and what of it was damaged."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from sojourn import _core
from sojourn.backends import backend_of
from sojourn.store import files
from sojourn.store.files import Part
from sojourn.store.plans import Store, StoredPlan
from sojourn.store.work import PART_RUNS
from sojourn.trial import trial

SAMPLE_S = 0.3
"""How long each of a few runs is tried."""
BATCH_S = 3.0
"""What a batch takes, roughly: what is lost if its worker dies, and the time between two looks at the store."""
BATCHES_EACH = 8
"""Fewest batches of a listing per worker, if it has so many runs."""
ROW_KB = 2.0
"""Disk space of a run: measured on examples/home.toml, 400 runs of 60 s. Runs that are much alike take far less."""


class Estimate(TypedDict):
    """What ``sojourn sweep --dry-run --json`` prints."""

    runs: int
    stored: int
    """Those that the store has."""
    estimate_s: float
    """Wall time of the others."""
    estimate_mb: float
    """Disk space of all."""


def batch_of(sweep: _core.Sweep) -> int:
    """Runs of a batch that takes a few seconds: a power of two, so that files of finished sweeps begin with a batch."""
    one_s = run_s(sweep)
    return _batch(PART_RUNS, one_s)


def batch_of_listing(specs: Sequence[_core.RunSpec], workers: int) -> int:
    """As ``batch_of`` for listed runs, which differ more: small enough that workers are done at about the same time."""
    if len(specs) <= BATCHES_EACH * workers:
        return 1
    places = sorted({0, len(specs) // 3, 2 * len(specs) // 3, len(specs) - 1})
    return _batch(len(specs) // (BATCHES_EACH * workers), _run_s([specs[place] for place in places]))


def _batch(most: int, run_s: float) -> int:
    runs = 1
    while 2 * runs <= most and 2 * runs * run_s <= BATCH_S:
        runs *= 2
    return runs


def run_s(sweep: _core.Sweep) -> float:
    """Wall time of a run on one processor: a few are tried for a moment. 0 if none of them can be run."""
    specs = []
    for place in sorted({0, len(sweep) // 2, len(sweep) - 1}):
        with contextlib.suppress(_core.ExperimentError):
            specs.append(sweep[place])
    return _run_s(specs)


def _run_s(specs: Sequence[_core.RunSpec]) -> float:
    if not specs:
        return 0.0
    try:
        return max(spec.duration_s for spec in specs) / trial(specs, backend_of("sim"), SAMPLE_S).pace
    except _core.RunError:
        return 0.0


def estimate(sweep: _core.Sweep, store: Store | None, workers: int) -> Estimate:
    """What a sweep takes."""
    runs = len(sweep)
    stored = 0
    if store is not None:
        plan = store.find(sweep)
        stored = 0 if plan is None else plan.runs_done()
        if plan is None and store.plans():
            stored = _shared(sweep, store)
    wall_s = run_s(sweep) * (runs - stored) / max(1, min(workers, runs))
    return {
        "runs": runs,
        "stored": stored,
        "estimate_s": round(wall_s, 1),
        "estimate_mb": round(runs * ROW_KB / 1000, 1),
    }


def _shared(sweep: _core.Sweep, store: Store) -> int:
    """How many runs other sweeps have made, by their hashes; of many runs a thousand are looked at."""
    from sojourn.store.work import index

    known = index(store.plans())
    step = max(1, len(sweep) // 1000)
    places = range(0, len(sweep), step)
    found = 0
    for place in places:
        try:
            found += sweep[place].hash in known
        except _core.ExperimentError:
            continue
    return round(found * len(sweep) / len(places))


def mend(plan: StoredPlan) -> list[Path]:
    """Takes out what has to be made again: damaged files, and batches with runs that failed as they ran.

    Runs whose values cannot go together stay: they would fail again. Returns the damaged files; they are renamed.
    """
    damaged = []
    lost: set[int] = set()
    """Batches whose recorded tables are damaged."""
    for part in [*plan.parts(), *(part for folder in plan.recorded.glob("*/") for part in files.parts(folder))]:
        if not part.is_whole:
            damaged.append(part.path)
            part.path.rename(part.path.with_name(f"{part.path.name}.damaged"))
            if part.path.parent != plan.results:
                lost.add(part.first // plan.meta.batch_runs)
    for part in plan.parts():
        own = {batch for batch in lost if part.first <= plan.places(batch)[0] <= part.last}
        if again := own | _failed(plan, part):
            _take_out(plan, part, again)
    return damaged


def _failed(plan: StoredPlan, part: Part) -> set[int]:
    """The batches of a file in which a run failed."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    # Values that cannot go together are no run, and have no hash.
    failed = pc.is_valid(pc.field("error")) & pc.is_valid(pc.field("hash"))
    rows = pq.read_table(part.path, columns=["place"], filters=failed, partitioning=None)
    return {place // plan.meta.batch_runs for place in rows["place"].to_pylist()}


def _take_out(plan: StoredPlan, part: Part, failed: set[int]) -> None:
    """Replaces a file by one for each of its batches but those that failed, as if they had not been made."""
    import pyarrow.compute as pc

    rows = part.read()
    runs = plan.meta.batch_runs
    for batch in range(part.first // runs, part.last // runs + 1):
        places = plan.places(batch)
        if batch in failed:
            for folder in plan.recorded.glob("*/"):
                for recorded in files.parts(folder):
                    if recorded.first == places[0]:
                        recorded.path.unlink(missing_ok=True)
        elif (part.first, part.last) != (places[0], places[-1]):
            of_batch = pc.field("place").isin(list(places))
            files.write_part(plan.results, places[0], places[-1], rows.filter(of_batch))
    # Last: until then the file has all its runs, and those of its batches do not count.
    part.path.unlink(missing_ok=True)
