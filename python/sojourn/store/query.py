"""Queries a store in SQL."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from sojourn import _core
from sojourn.store.files import Part
from sojourn.store.plans import Store

if TYPE_CHECKING:
    import duckdb

ROWS = "read_parquet({files}, union_by_name = true, filename = true, file_row_number = true, hive_partitioning = false)"
QUEUES = f"create view queues as select * exclude (filename, file_row_number) from {ROWS}"
RUNS = (
    f"create view runs as select * exclude (filename, file_row_number) from {ROWS} "
    "qualify row_number() over (partition by coalesce(hash, plan || place) order by filename, file_row_number) = 1"
)


def connect(store: Store) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection with two views. A sweep with a damaged file is left out, with a note.

    ``runs`` has a row per run, with the figures of its first queue; ``queues`` has a row per run and queue. A run of
    several sweeps is in ``runs`` once.

    Raises
    ------
    ExperimentError
        The store has no runs yet, or only damaged ones.
    """
    import duckdb

    parts: list[Part] = []
    damaged: list[Part] = []
    for plan in store.plans():
        own = plan.parts()
        lost = [part for part in own if not part.is_whole]
        damaged += lost
        parts += [] if lost else own
    if damaged and not parts:
        raise _core.ExperimentError(f"query: {damaged[0].damage}")
    for part in damaged:
        store.say(f"note: {part.damage}; this sweep is left out")
    paths = [_literal(str(part.path)) for part in parts]
    if not paths:
        raise _core.ExperimentError(f"query: {store.path} has no runs yet; sojourn worker --store executes them")
    files = "[" + ", ".join(paths) + "]"
    connection = duckdb.connect(":memory:")
    connection.execute(RUNS.format(files=files))
    connection.execute(QUEUES.format(files=files))
    return connection


def query(store: Store, sql: str) -> list[dict[str, Any]]:
    """Executes a statement and returns its rows.

    Raises
    ------
    ExperimentError
        The statement is wrong, or a file of the store is damaged.
    """
    import duckdb

    try:
        with connect(store) as connection:
            connection.execute(sql)
            # None: the text contains no statement.
            columns = connection.description or []
            names = [column[0] for column in columns]
            for name, kind, *_ in columns:
                if "TIME ZONE" in str(kind):
                    raise _core.ExperimentError(f"query: column {name} has a time zone; cast it: {name}::timestamp")
            if len(set(names)) < len(names):
                raise _core.ExperimentError(
                    f"query: two columns have the same name: {', '.join(names)}; rename with as"
                )
            rows = connection.fetchall() if names else []
            return [dict(zip(names, map(_finite, row), strict=True)) for row in rows]
    except duckdb.Error as error:
        raise refusal(store, "query", error) from None
    except RuntimeError as error:
        # What DuckDB makes of a Ctrl-C.
        if "interrupted" in str(error):
            raise KeyboardInterrupt from None
        raise


def refusal(store: Store, what: str, error: Exception) -> _core.ExperimentError:
    """The error after a failure of DuckDB: names the damaged file, or else DuckDB's message. ``what``: the command."""
    damaged = [part.damage for plan in store.plans() for part in plan.parts() if not part.is_whole]
    if damaged:
        return _core.ExperimentError(f"{what}: {damaged[0]}")
    # DuckDB quotes the statement on further lines after its message; omit them.
    message = str(error).partition("\nLINE ")[0]
    return _core.ExperimentError(f"{what}: {' '.join(message.split())}")


def _literal(path: str) -> str:
    """A path as a string of SQL that DuckDB takes for one file, whatever is in it."""
    return "'" + re.sub(r"([*?\[])", r"[\1]", path).replace("'", "''") + "'"


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
