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
from sojourn.cli.output import show
from sojourn.store import Store
from sojourn.store.query import Answer, query


def command(
    store: StoreFolder,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="A DuckDB statement over the tables runs and queues.")],
    json: Json = False,
) -> None:
    """Query a store in SQL: ``runs`` has a row per run, ``queues`` a row per run and queue."""
    if not is_text(sql):
        raise ExperimentError("query: must be UTF-8")
    with query(Store(store, say=complain), sql) as answer:
        if json:
            _print_json(answer)
        else:
            _print_tables(answer)


def _print_json(answer: Answer) -> None:
    comma = ""
    print("[", end="")
    for chunk in answer.chunks:
        for row in chunk:
            print(comma, json_.dumps(dict(zip(answer.names, row, strict=True)), default=str), sep="", end="")
            comma = ", "
    print("]")


def _print_tables(answer: Answer) -> None:
    """Prints a table per chunk; only the first has a head."""
    is_first = True
    for chunk in answer.chunks:
        table = Table(*answer.names, box=box.SIMPLE if is_first else None, show_header=is_first)
        for row in chunk:
            table.add_row(*map(_cell, row))
        show(table)
        is_first = False
    if is_first:
        print("no rows")


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
