"""Makes a batch of runs; with a store, reads those that it has, and keeps the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sojourn import _core
from sojourn.frame.results import Run
from sojourn.runs.backends import Backend, backend_of
from sojourn.runs.execution import Report, as_run, execute, named
from sojourn.runs.executors import MakeExecutor, Threads, default_workers
from sojourn.store import Store
from sojourn.store.keys import backend_key
from sojourn.store.planning import batch_of_list, mend
from sojourn.store.run_list import RunList
from sojourn.store.stored import runs_of
from sojourn.store.work import known_besides, work

T = TypeVar("T")


def make_batch(
    name: str,
    specs: Sequence[_core.RunSpec],
    take: Callable[[int, T], None],
    *,
    finish: Callable[[int, Run], T],
    backend: str | Backend = "sim",
    executor: MakeExecutor = Threads,
    jobs: int | None = None,
    store: Store | None = None,
    report: Report | None = None,
) -> BaseException | None:
    """Makes all runs and passes each result to ``take`` with its index, in order, as ``execution.execute`` does.

    ``finish`` computes the result of a run, in any order. A store provides runs that need not be made and keeps the
    others, under the name of the batch; ExperimentError is raised if it cannot. Returns why results are missing.
    """
    workers = min(jobs or default_workers(), len(specs)) or 1
    if store is None:
        on = executor(backend_of(backend), workers)
        return execute(specs, take, finish=lambda index, core: finish(index, as_run(core)), executor=on, report=report)
    runs, stopped_by = make(
        store, name, specs, jobs=workers, backend=backend_of(backend), executor=executor, report=report
    )
    for index in sorted(runs):
        take(index, finish(index, runs[index]))
    return stopped_by


def make(
    store: Store,
    name: str,
    specs: Sequence[_core.RunSpec],
    *,
    jobs: int,
    backend: Backend | None = None,
    executor: MakeExecutor = Threads,
    report: Report | None = None,
) -> tuple[dict[int, Run], BaseException | None]:
    """Executes the runs of a list that a store lacks, by default on the simulator, and reads all of them.

    Other workers of the store may help. Returns the finished runs by index in the list, and the reason if runs are
    missing. Raises ExperimentError if a run cannot be stored.
    """
    if not specs:
        return {}, None
    where = backend or backend_of("sim")
    run_list = RunList.of(name, specs, backend_key(where))
    # Only the simulator is fast enough for several runs to be worth a batch.
    plan = store.find(run_list) or store.add_list(run_list, batch_of_list(specs, jobs) if where.name == "sim" else 1)
    for path in mend(plan):
        store.say(f"{path}: damaged; its runs are repeated")
    stopped_by = None
    if plan.missing():
        store.check_writable()
        stopped_by = work(plan, known_besides(store, plan), jobs=jobs, backend=where, executor=executor, report=report)
    runs, failed = runs_of(plan)
    if stopped_by is None and failed:
        first = specs[min(failed)]
        stopped_by = named(_core.RunError(failed[min(failed)]), first)
    return runs, stopped_by
