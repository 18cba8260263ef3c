"""``sojourn worker``, ``status`` and ``query``: what works on a store, and what looks into it."""

from __future__ import annotations

import json as json_
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from sojourn.cli.options import Jobs, Json, out_directory
from sojourn.cli.outcome import Stopped, stop_reason
from sojourn.cli.progress import Display
from sojourn.executors import default_workers
from sojourn.store import Store
from sojourn.tables import plain

Folder = Annotated[
    Path, typer.Option("--store", metavar="DIR", parser=out_directory, help="The folder that keeps the runs.")
]


def worker(
    store: Folder,
    jobs: Jobs = None,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Stay until all is done, and make what other workers leave behind.")
    ] = True,
) -> None:
    """Make the runs that a store lacks. Any number of workers may, on any machines; each may be killed at any time."""
    from sojourn.store.work import index, work

    kept = Store(store)
    made = 0
    for plan in kept.plans():
        if not plan.missing():
            continue
        known = index(other for other in kept.plans() if other.id != plan.id)
        before = plan.runs_done()
        with Display(then=" in the store") as display:
            stopped_by = work(plan, known, jobs=jobs or default_workers(), report=display, wait=wait)
        made += plan.runs_done() - before
        if isinstance(stopped_by, OSError):
            what = f"{stopped_by.filename or store}: {stopped_by.strerror or stopped_by}"
            raise Stopped(1, f"{what}; what is finished is in the store")
        if stopped_by is not None:
            raise stop_reason(stopped_by, "what is finished is in the store")
    print(f"{made} runs made" if made else "nothing to do", file=sys.stderr)


def status(store: Folder, json: Json = False) -> None:
    """Show how far the sweeps of a store have come."""
    from sojourn.store.status import status as counted

    plans = Store(store).plans()
    if json:
        print(json_.dumps(counted(plans)))
        return
    table = Table("sweep", "runs", "done", "running", "failed", box=box.SIMPLE)
    for plan in plans:
        found = counted([plan])
        figures = (found["runs"], found["done"], found["running"], found["failed"])
        table.add_row(f"{plan.meta.experiment} {plan.id[:8]}", *map(str, figures))
    _show(table)


def query(
    store: Folder,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="A statement of DuckDB over the tables runs and queues.")],
    json: Json = False,
) -> None:
    """Ask a store: SQL over ``runs``, a row per run, and ``queues``, a row per run and queue."""
    from sojourn.store.query import query as ask

    rows = ask(Store(store), sql)
    if json:
        print(json_.dumps(rows, default=str))
        return
    if not rows:
        print("no rows")
        return
    table = Table(*rows[0], box=box.SIMPLE)
    for row in rows:
        table.add_row(
            *(
                "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
                for value in row.values()
            )
        )
    _show(table)


def _show(table: Table) -> None:
    if sys.stdout.isatty():
        Console().print(table)
    else:
        print(plain(table))
