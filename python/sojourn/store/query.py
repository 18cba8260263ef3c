"""Queries a store in SQL."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sojourn import _core
from sojourn.store.plans import Store

if TYPE_CHECKING:
    import duckdb

ROWS = "read_parquet({files}, union_by_name = true, filename = true, file_row_number = true)"
QUEUES = f"create view queues as select * exclude (filename, file_row_number) from {ROWS}"
RUNS = (
    f"create view runs as select * exclude (filename, file_row_number) from {ROWS} "
    "qualify row_number() over (partition by coalesce(hash, plan || place) order by filename, file_row_number) = 1"
)


def connect(store: Store) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection with two views.

    ``runs`` has a row per run, with the figures of its first queue; ``queues`` has a row per run and queue. A run of
    several sweeps is in ``runs`` once.

    Raises
    ------
    ExperimentError
        The store has no runs yet.
    """
    import duckdb

    paths = [str(part.path) for plan in store.plans() for part in plan.parts()]
    if not paths:
        raise _core.ExperimentError(f"query: {store.path} has no runs yet; sojourn worker --store executes them")
    files = "[" + ", ".join("'" + path.replace("'", "''") + "'" for path in paths) + "]"
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
            names = [column[0] for column in connection.description or []]
            rows = connection.fetchall() if names else []
            return [dict(zip(names, map(_finite, row), strict=True)) for row in rows]
    except duckdb.Error as error:
        raise refusal(store, "query", error) from None


def refusal(store: Store, what: str, error: Exception) -> _core.ExperimentError:
    """The error after a failure of DuckDB: names the damaged file, or else DuckDB's message. ``what``: the command."""
    damaged = [part.path for plan in store.plans() for part in plan.parts() if not part.is_whole]
    if damaged:
        told = f"{damaged[0]} is damaged; sojourn sweep FILE --store repeats its runs"
        return _core.ExperimentError(f"{what}: {told}")
    # DuckDB quotes the statement on further lines after its message; omit them.
    message = str(error).partition("\nLINE ")[0]
    return _core.ExperimentError(f"{what}: {' '.join(message.split())}")


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
