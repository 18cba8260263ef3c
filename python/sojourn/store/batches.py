"""Makes a batch of runs, or reads them from a store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sojourn import _core
from sojourn.frame.results import Run
from sojourn.runs.backends import Backend, backend_of
from sojourn.runs.execution import Report, as_run, execute
from sojourn.runs.executors import MakeExecutor, Threads, default_workers
from sojourn.store import Store
from sojourn.store.listed import make

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

    Parameters
    ----------
    name
        Name of the batch in the store.
    finish
        Computes the result of a run, in any order.
    store
        Provides runs that need not be made, and keeps the others.

    Returns
    -------
    BaseException or None
        Why results are missing.

    Raises
    ------
    ExperimentError
        A run cannot be stored.
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
