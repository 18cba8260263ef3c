"""``sojourn worker``: executes the pending runs of a store."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sojourn.cli.options import Jobs, StoreFolder
from sojourn.cli.outcome import complain, stop_reason
from sojourn.cli.progress import Display
from sojourn.executors import default_workers
from sojourn.store import Store


def command(
    store: StoreFolder,
    jobs: Jobs = None,
    wait: Annotated[
        bool,
        typer.Option("--wait/--no-wait", help="Stay until all runs are done, and take over from workers that die."),
    ] = True,
) -> None:
    """Execute the pending runs of a store. Use any number of workers on any machines; killing one is safe."""
    from sojourn.store.work import index, work

    kept = Store(store, say=complain)
    own: list[int] = []
    for plan in kept.plans():
        if not plan.missing():
            continue
        known = index(other for other in kept.plans() if other.id != plan.id)
        with Display(then=" in the store") as display:
            stopped_by = work(plan, known, jobs=jobs or default_workers(), report=display, wait=wait, count=own.append)
        if stopped_by is not None:
            raise stop_reason(stopped_by, "finished runs are in the store")
    made = sum(own)
    print(f"{made} runs made by this worker" if made else "nothing to do", file=sys.stderr)
