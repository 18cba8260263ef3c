"""``sojourn query``: SQL over the runs of a store."""

from __future__ import annotations

import json as json_
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from sojourn import ExperimentError
from sojourn.cli.options import Json, StoreFolder, is_text
from sojourn.cli.outcome import complain
from sojourn.cli.shown import show
from sojourn.store import Store


def command(
    store: StoreFolder,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="A DuckDB statement over the tables runs and queues.")],
    json: Json = False,
) -> None:
    """Query a store in SQL: ``runs`` has a row per run, ``queues`` a row per run and queue."""
    from sojourn.store.query import query

    if not is_text(sql):
        raise ExperimentError("query: must be UTF-8")
    rows = query(Store(store, say=complain), sql)
    if json:
        print(json_.dumps(rows, default=str))
        return
    if not rows:
        print("no rows")
        return
    table = Table(*rows[0], box=box.SIMPLE)
    for row in rows:
        table.add_row(*map(_cell, row.values()))
    show(table)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
