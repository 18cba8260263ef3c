"""Prepares a sweep: chooses the batch size, estimates time and space, and removes damaged results."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypedDict

from sojourn import _core
from sojourn.frame.later import pc
from sojourn.runs.costs import TABLES_BYTES, is_python, possible, recording, trial
from sojourn.runs.executors import POLL_S, TOGETHER, default_workers
from sojourn.store import files
from sojourn.store.batches import FILES, PART_RUNS, known_runs
from sojourn.store.plans import Runs, Store, StoredPlan

SAMPLE_S = 0.3
"""Duration of each trial run."""
LOOKS = 100
"""Runs whose costs are looked at."""
BATCH_EFFORT = 500 * TOGETHER
"""Effort of a batch, 2 to 12 seconds: the work lost if its worker dies, and the time between looks at the store."""
SHARE = 128
"""Fewest batches of a plan that one cannot hold: the time of the first ones predicts that of the others."""
SHRINKS = 16
"""A batch has at least ``BATCH_EFFORT`` over this: to store a smaller one would take longer than its runs."""
PYTHON = 6.0
"""How much longer a run takes with a discipline in Python: 4.7 to 7.5 times with that of docs/tutorial-aqm.md."""
ROW_KB = 2.0
"""Disk space of a run: measured on examples/home.toml, 400 runs of 60 s. Similar runs take far less."""


class Estimate(TypedDict):
    """The output of ``sojourn sweep --dry-run --json``."""

    runs: int
    stored: int
    """Runs that the store has."""
    estimate_s: float
    """Wall time of the remaining runs."""
    estimate_mb: float
    """Disk space of all runs."""


def batch_of(runs: Runs) -> int:
    """The runs per batch, a power of two. A plan that is not longer is one batch: its files are written once."""
    looks = _looks(runs)
    effort = sum(spec.effort * (PYTHON if is_python(spec) else 1.0) for spec in looks) / max(1, len(looks))
    most = min(PART_RUNS, BATCH_EFFORT / max(effort, 1.0))
    if len(runs) > most:
        most = max(1, most / SHRINKS, min(most, len(runs) / SHARE))
    return 1 << math.frexp(most)[1] - 1


def estimate(sweep: _core.Sweep, store: Store | None, workers: int) -> Estimate:
    """Estimates a sweep's time and disk space."""
    runs = len(sweep)
    stored = 0
    if store is not None:
        plan = store.find(sweep)
        stored = 0 if plan is None else plan.runs_done()
        if plan is None and store.plans():
            stored = _shared(sweep, store)
    looks = _looks(sweep)
    disk = sum(recording(spec).disk for spec in looks) / len(looks) if looks else 0.0
    # Rows are in large files; recordings have files of their own.
    own_kb = max(0.0, disk - TABLES_BYTES) / 1000
    wall_s = _mean_s(looks) * (runs - stored) / max(1, min(workers, default_workers(), runs))
    return {
        "runs": runs,
        "stored": stored,
        "estimate_s": round(wall_s, 1),
        "estimate_mb": round(runs * (ROW_KB + own_kb) / 1000, 1),
    }


def _looks(runs: Runs) -> list[_core.RunSpec]:
    """Some runs, spread over all."""
    return list(possible(runs.__getitem__, range(0, len(runs), max(1, len(runs) // LOOKS))))


def _mean_s(looks: Sequence[_core.RunSpec]) -> float:
    """The mean time of these runs on an idle processor, from short trials of a few. 0 if none can be run."""
    if not looks:
        return 0.0
    indices = sorted({0, len(looks) // 2, len(looks) - 1})
    try:
        tried = trial([looks[index] for index in indices], SAMPLE_S)
    except _core.RunError:
        return 0.0
    return sum(map(tried.cpu_s, looks)) / len(looks)


def _shared(sweep: _core.Sweep, store: Store) -> int:
    """The number of runs that other sweeps have, by hash; extrapolated from a sample of about a thousand."""
    known = known_runs(store.plans())
    indices = range(0, len(sweep), max(1, len(sweep) // 1000))
    found = sum(spec.hash in known for spec in possible(sweep.__getitem__, indices))
    return round(found * len(sweep) / len(indices))


def mend(plan: StoredPlan, say: Callable[[str], None]) -> None:
    """Removes what must be repeated: damaged files, and batches with runs that failed during execution.

    Runs with invalid combinations of values stay, because they would fail again. Damaged files are renamed, and ``say``
    is told of them. Also removes the files whose rows are in larger ones, which a killed process left behind.
    """
    while not files.again(partial(_is_sound, plan)):
        # Only one process mends. Another may have renamed and repeated a file that was damaged before.
        with plan.claims.hold(FILES) as is_ours:
            if is_ours:
                for path in files.again(partial(_mend, plan)):
                    say(f"{path}: damaged; its runs are repeated")
                return
        time.sleep(POLL_S)


def _listed(plan: StoredPlan) -> Iterator[files.Part]:
    """Its files of rows and of recorded tables."""
    yield from plan.parts()
    for folder in plan.recorded.glob("*/"):
        yield from files.parts(folder)


def _is_sound(plan: StoredPlan) -> bool:
    """Whether there is nothing to mend."""
    return (
        not files.listing(plan.results)[1]
        and all(part.is_whole for part in _listed(plan))
        and not any(_failed(plan, part) for part in plan.parts())
    )


def _mend(plan: StoredPlan) -> list[Path]:
    damaged = []
    lost: set[int] = set()
    """Batches whose recorded tables are damaged."""
    for part in _listed(plan):
        if not part.is_whole:
            damaged.append(part.path)
            part.path.rename(part.path.with_name(f"{part.path.name}.damaged"))
            if part.path.parent != plan.results:
                lost.update(plan.batches_of(part.first, part.last))
    files.remove(files.listing(plan.results)[1])
    split: list[files.Part] = []
    for part in plan.parts():
        own = lost.intersection(plan.batches_of(part.first, part.last))
        if again := own | _failed(plan, part):
            _take_out(plan, part, again)
            split.append(part)
    # Delete them last: until then they take precedence over the files of their batches.
    files.remove(split)
    return damaged


def _failed(plan: StoredPlan, part: files.Part) -> set[int]:
    """The batches of a file in which a run failed."""
    rows = part.read(["index", "hash", "error"])
    if rows["error"].null_count == len(rows):
        return set()
    # An invalid combination of values has no hash.
    found = zip(*(rows[name].to_pylist() for name in ("index", "hash", "error")), strict=True)
    return {plan.batch_of(index) for index, hash_, error in found if hash_ is not None and error is not None}


def _take_out(plan: StoredPlan, part: files.Part, failed: set[int]) -> None:
    """Writes a file per batch of a file, except for the failed batches."""
    rows = part.read()
    for batch in plan.batches_of(part.first, part.last):
        indices = plan.indices(batch)
        if batch in failed:
            for folder in plan.recorded.glob("*/"):
                for recorded in files.parts(folder):
                    if recorded.first == indices[0]:
                        recorded.path.unlink(missing_ok=True)
        elif (part.first, part.last) != (indices[0], indices[-1]):
            of_batch = pc.field("index").isin(list(indices))
            files.write_part(plan.results, indices[0], indices[-1], rows.filter(of_batch))
