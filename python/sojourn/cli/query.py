"""``sojourn query``: SQL over the runs of a store."""

from __future__ import annotations

import json as json_
from typing import Annotated

from sojourn import ExperimentError
from sojourn.cli.options import Json, StoreFolder
from sojourn.cli.outcome import complain
from sojourn.cli.output import show
from sojourn.cli.parameters import argument, is_text
from sojourn.page.sheet import listing
from sojourn.store import Store
from sojourn.store.query import query


def command(
    store: StoreFolder,
    sql: Annotated[str, argument("A DuckDB statement over the tables runs and queues.", "SQL")],
    json: Json = False,
) -> None:
    """Query a store in SQL: ``runs`` has a row per run, ``queues`` a row per run and queue."""
    if not is_text(sql):
        raise ExperimentError("query: must be UTF-8")
    with query(Store(store, say=complain), sql) as answer:
        comma, is_first = "[", True
        for chunk in answer.chunks:
            if json:
                for row in chunk:
                    print(comma, json_.dumps(dict(zip(answer.names, row, strict=True)), default=str), sep="", end="")
                    comma = ", "
            else:
                # Only the first table has a head.
                show(listing(answer.names, ([_cell(value) for value in row] for row in chunk), head=is_first))
            is_first = False
        if json:
            print("[]" if comma == "[" else "]")
        elif is_first:
            print("no rows")


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
