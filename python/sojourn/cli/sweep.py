"""``sojourn sweep``: executes the runs of an experiment file and keeps them in a store."""

from __future__ import annotations

import json as json_
import sys
from pathlib import Path
from typing import Annotated

from sojourn import _core
from sojourn.cli.estimate import in_bytes, in_runs, in_time
from sojourn.cli.options import Jobs, Json, Set, Trust, Until, overrides
from sojourn.cli.outcome import Stopped, complain, stop_reason
from sojourn.cli.parameters import argument, flag, folder, option
from sojourn.cli.progress import Display
from sojourn.runs.costs import possible, refuse_too_large
from sojourn.runs.designs import with_points
from sojourn.runs.executors import Dask, Threads, default_workers
from sojourn.runs.plan import read_plan
from sojourn.runs.precision import Precision, Rounds
from sojourn.store import Store
from sojourn.store.planning import Estimate, batch_of, estimate, mend
from sojourn.store.plans import Status, status
from sojourn.store.runner import Runner

MOST_RUNS = 1_000_000
"""Most runs of a sweep, as of ``sojourn run``."""


def command(
    file: Annotated[str, argument("The experiment, TOML.", "FILE")],
    store: Annotated[
        Path | None,
        folder("The store: a folder of runs, created if missing. Only --dry-run works without.", "--store", "--out"),
    ] = None,
    set: Set = None,
    jobs: Jobs = None,
    dask: Annotated[str | None, option("Execute the runs on the workers of this Dask scheduler.", "ADDRESS")] = None,
    until: Until = None,
    plan_only: Annotated[
        bool, flag("Only add the sweep to the store; sojourn worker executes its runs.", "--plan")
    ] = False,
    dry_run: Annotated[bool, flag("Only show the number of runs, and their time and disk space.", "--dry-run")] = False,
    resume: Annotated[
        bool, flag("Continue where the sweep stopped; a sweep into a store always does.", "--resume")
    ] = False,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Run an experiment file into a store. Runs that the store has are not repeated."""
    replaced = with_points(file, overrides(set))
    precision = None if until is None else Precision.parse(until)
    if precision is not None and (dask is not None or plan_only):
        raise _core.ExperimentError("--until: repeats depend on results; omit it, or --dask and --plan")
    sweep = _core.Sweep.read_file(file, replaced)
    if len(sweep) > MOST_RUNS:
        raise _core.ExperimentError(
            f"{file}: asks for {len(sweep)} runs (sweep × queues × repeat); must be at most {MOST_RUNS}"
        )
    workers = jobs or default_workers()
    if dry_run:
        known_store = Store(store) if store is not None and (store / "store.json").exists() else None
        takes = estimate(sweep, known_store, workers)
        print(json_.dumps(takes) if json else _sentence(takes))
        return
    if store is None:
        raise _core.ExperimentError("sweep: needs --store, the folder that keeps the runs")
    if precision is not None:
        found = _repeat(read_plan(file, replaced), precision, store, workers)
        print(json_.dumps(found) if json else _outcome_text(found, store.absolute(), plan_only=False))
        return
    refuse_too_large(possible(sweep.__getitem__, sweep.edges()), min(workers, len(sweep)))
    kept = Store.make(store, say=complain, trusted=trust)
    plan = kept.find(sweep) or kept.add(Path(file), replaced, sweep, batch_of(sweep))
    mend(plan, complain)
    if not plan_only and plan.missing():
        with Display(then=" in the store") as display:
            make = Threads if dask is None else lambda *_: Dask(dask, [file for file, _ in plan.checked_files()])
            stopped_by = Runner(executor=make, jobs=workers, report=display).fill(kept, plan)
        if stopped_by is not None:
            kept_runs = f"{plan.runs_done()} of {plan.meta.runs} runs are in the store"
            raise stop_reason(stopped_by, f"{kept_runs}; the same command continues from there")
    found = status([plan])
    print(json_.dumps(found) if json else _outcome_text(found, store, plan_only=plan_only))
    if found["failed"]:
        raise Stopped(
            1,
            f"{found['failed']} of {found['runs']} runs failed: sojourn query --store {store} "
            '"select error, count(*) from runs where error is not null group by error"',
        )


def _repeat(plan: _core.Plan, precision: Precision, folder: Path, jobs: int) -> Status:
    """Repeats every cell until it is precise enough; each round is a list of runs in the store."""
    rounds = Rounds(plan, precision)
    store = Store.make(folder, say=complain)
    with Display(then=" in the store") as display:
        _, stopped_by = Runner(jobs=jobs, store=store, report=display).run_plan(plan, rounds=rounds)
    if stopped_by is not None:
        raise stop_reason(stopped_by, f"round {rounds.number}; finished runs are in the store and are not repeated")
    for line in rounds.missed():
        print(line, file=sys.stderr)
    return {"runs": rounds.taken, "done": rounds.taken, "running": 0, "failed": 0}


def _outcome_text(found: Status, store: Path, *, plan_only: bool) -> str:
    if plan_only:
        done = f"{in_runs(found['runs'])}, {found['done']} of them done"
        return f"{done}; sojourn worker --store {store} executes the others"
    return f'{in_runs(found["done"])} in {store}; sojourn query --store {store} "select * from runs" shows them'


def _sentence(found: Estimate) -> str:
    return (
        f"{in_runs(found['runs'])}, {found['stored']} of them in the store: about {in_time(found['estimate_s'])} "
        f"on this machine if it is idle, and {in_bytes(found['estimate_mb'])} on disk"
    )
