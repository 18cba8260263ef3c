"""``sojourn status``: the progress of a store's sweeps."""

from __future__ import annotations

import json as json_

from rich import box
from rich.table import Table

from sojourn.cli.options import Json, StoreFolder
from sojourn.cli.outcome import complain
from sojourn.cli.output import show
from sojourn.store import Store
from sojourn.store.plans import status


def command(store: StoreFolder, json: Json = False) -> None:
    """Show the progress of a store's sweeps."""
    plans = Store(store, say=complain).plans()
    if json:
        print(json_.dumps(status(plans)))
        return
    table = Table("sweep", "runs", "done", "running", "failed", box=box.SIMPLE)
    for plan in plans:
        found = status([plan])
        figures = (found["runs"], found["done"], found["running"], found["failed"])
        table.add_row(f"{plan.meta.experiment} {plan.id[:8]}", *map(str, figures))
    show(table)
