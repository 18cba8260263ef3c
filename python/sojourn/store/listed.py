"""Runs a list through a store: reads the runs that the store has, executes and keeps the others."""

from __future__ import annotations

from collections.abc import Sequence

from sojourn import _core
from sojourn.execution import Report
from sojourn.results import Run
from sojourn.store.listing import Listing
from sojourn.store.planning import batch_of_listing, mend
from sojourn.store.plans import Store, StoredPlan
from sojourn.store.stored import runs_of
from sojourn.store.work import index, work


def make(
    store: Store,
    name: str,
    specs: Sequence[_core.RunSpec],
    *,
    jobs: int,
    report: Report | None = None,
) -> tuple[dict[int, Run], BaseException | None]:
    """Executes the runs of a list that a store lacks, on the simulator, and reads all of them.

    Other workers of the store may help.

    Parameters
    ----------
    name
        The name of the list in ``sojourn status``.

    Returns
    -------
    tuple
        The finished runs by index in the list, and the reason if runs are missing.

    Raises
    ------
    ExperimentError
        A run cannot be stored.
    """
    if not specs:
        return {}, None
    listing = Listing.of(name, specs)
    plan = store.find(listing) or store.add_listing(listing, batch_of_listing(specs, jobs))
    for path in mend(plan):
        store.say(f"{path}: damaged; its runs are repeated")
    stopped_by = _fill(store, plan, jobs, report) if plan.missing() else None
    runs, failed = runs_of(plan)
    if stopped_by is None and failed:
        first = specs[min(failed)]
        stopped_by = _core.RunError(f"{first.name}: {first.label}, seed {first.seed}: {failed[min(failed)]}")
    return runs, stopped_by


def _fill(store: Store, plan: StoredPlan, jobs: int, report: Report | None) -> BaseException | None:
    store.check_writable()
    known = index(other for other in store.plans() if other.id != plan.id)
    return work(plan, known, jobs=jobs, report=report)
