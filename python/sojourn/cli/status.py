"""``sojourn status``: the progress of a store's sweeps."""

from __future__ import annotations

import json as json_

from sojourn.cli.options import Json, StoreFolder
from sojourn.cli.outcome import complain
from sojourn.cli.output import show
from sojourn.page.sheet import listing
from sojourn.store import Store
from sojourn.store.plans import status


def command(store: StoreFolder, json: Json = False) -> None:
    """Show the progress of a store's sweeps."""
    plans = Store(store, say=complain).plans()
    if json:
        print(json_.dumps(status(plans)))
        return
    rows = []
    for plan in plans:
        runs, done, running, failed = (str(count) for count in status([plan]).values())
        rows.append((f"{plan.meta.experiment} {plan.id[:8]}", runs, done, running, failed))
    show(listing(("sweep", "runs", "done", "running", "failed"), rows))
