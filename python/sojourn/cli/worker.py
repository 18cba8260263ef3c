"""``sojourn worker``: executes the pending runs of a store."""

from __future__ import annotations

import sys
from typing import Annotated

from sojourn import _core
from sojourn.cli.options import Jobs, StoreFolder, Trust
from sojourn.cli.outcome import complain, stop_reason
from sojourn.cli.parameters import flag
from sojourn.cli.progress import Display
from sojourn.store import Store
from sojourn.store.runner import Runner


def command(
    store: StoreFolder,
    jobs: Jobs = None,
    wait: Annotated[
        bool, flag("Stay until all runs are done, and take over from workers that die.", "--wait/--no-wait")
    ] = True,
    trust: Trust = False,
) -> None:
    """Execute the pending runs of a store. Use any number of workers on any machines; killing one is safe.

    A worker runs the Python files of user-defined disciplines that a sweep has put into the store, and names them.
    """
    kept = Store(store, say=complain, trusted=trust)
    own: list[int] = []
    left_out: list[_core.ExperimentError] = []
    pending = [plan for plan in kept.plans() if plan.missing()]
    for plan in pending:
        if plan.meta.backend != "sim":
            complain(f"note: {plan.meta.experiment}: the command that began it on {plan.meta.backend} continues it")
    pending = [plan for plan in pending if plan.meta.backend == "sim"]
    for plan in pending:
        try:
            for file, sum_ in plan.checked_files():
                complain(f"note: runs the code of {file} (SHA-256 {sum_[:12]}…)")
            _ = plan.sweep
        except _core.ExperimentError as error:
            complain(f"note: {error}; this sweep is left out")
            left_out.append(error)
            continue
        with Display(then=" in the store") as display:
            stopped_by = Runner(jobs=jobs, report=display).fill(kept, plan, wait=wait, count=own.append)
        if stopped_by is not None:
            raise stop_reason(stopped_by, "finished runs are in the store")
    if left_out and len(left_out) == len(pending):
        raise left_out[0]
    made = sum(own)
    print(f"{made} runs made by this worker" if made else "nothing to do", file=sys.stderr)
