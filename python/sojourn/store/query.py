"""Queries a store in SQL."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sojourn import _core
from sojourn.frame.later import duckdb
from sojourn.store import files
from sojourn.store.plans import Store, StoredPlan

ROWS = "read_parquet({files}, union_by_name = true, file_row_number = true, hive_partitioning = false)"
ORDER = "plan, index, file_row_number"
QUEUES = f"create view queues as select * exclude (file_row_number) from {ROWS}"
ONCE = f"qualify row_number() over (partition by coalesce(hash, plan || index) order by {ORDER}) = 1"
"""Of the rows of a run, which may be in several sweeps, the first."""
RUNS = f"create view runs as select * exclude (file_row_number) from {ROWS} {ONCE}"
_READS = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?:select|from|with|pivot)\b", re.DOTALL)
CHUNK = 1000
"""Rows of a chunk."""


@dataclass(frozen=True)
class Answer:
    """The rows of an answer, in chunks, as they are computed."""

    names: list[str]
    """The columns."""
    chunks: Iterator[list[tuple[Any, ...]]]
    """At most ``CHUNK`` rows each. May raise ExperimentError, like ``query``."""


@contextmanager
def query(store: Store, sql: str) -> Iterator[Answer]:
    """Executes a statement over two views; nothing is written.

    ``runs`` has a row per run, with the figures of its first queue; ``queues`` has a row per run and queue. A run of
    several sweeps is in ``runs`` once. A sweep with a damaged file is left out, with a note.

    Raises ExperimentError if the statement is wrong or would write, or the store has no runs, or only damaged ones.
    """
    with contextlib.ExitStack() as stack:
        yield files.again(lambda: _answer(store, sql, stack))


def _answer(store: Store, sql: str, stack: contextlib.ExitStack) -> Answer:
    listed = [part for _, parts in whole_parts(store, "query") for part in parts]
    with contextlib.ExitStack() as own:
        paths = ", ".join(map(literal, own.enter_context(files.pinned(listed))))
        connection = own.enter_context(duckdb.connect(":memory:"))
        with refusals("query", listed):
            connection.execute(RUNS.format(files=f"[{paths}]"))
            connection.execute(QUEUES.format(files=f"[{paths}]"))
            _refuse_writing(connection, sql)
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
            first = _chunk(connection) if names else []
        stack.push(own.pop_all())
    return Answer(names, _chunks(connection, first))


def whole_parts(store: Store, what: str) -> list[tuple[StoredPlan, list[files.Part]]]:
    """The files of each sweep, without the sweeps that have a damaged one, with a note. ``what``: the command.

    Raises ExperimentError if there is none, and Gone if a listed file was replaced meanwhile.
    """
    found: list[tuple[StoredPlan, list[files.Part]]] = []
    damaged: list[files.Part] = []
    for plan in store.plans():
        parts = plan.parts()
        lost = [part for part in parts if not part.is_whole]
        damaged += lost
        if parts and not lost:
            found.append((plan, parts))
    if damaged and not found:
        raise _core.ExperimentError(f"{what}: {damaged[0].damage}")
    for part in damaged:
        store.say_once(f"note: {part.damage}; this sweep is left out")
    if not found:
        raise _core.ExperimentError(f"{what}: {store.path} has no runs yet; sojourn worker --store executes them")
    return found


def _refuse_writing(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    for statement in connection.extract_statements(sql):
        kind, text = statement.type.name, statement.query.lower()
        # An explanation that analyzes executes its statement. A pivot is several statements.
        reads = (
            kind == "SELECT"
            or (kind == "EXPLAIN" and "analyze" not in text)
            or (kind == "MULTI" and _READS.match(text) is not None)
        )
        if not reads:
            what = "copy" if kind == "MULTI" else kind.lower()
            raise _core.ExperimentError(
                f"query: got a statement of kind {what}; must only read: select, from, with, pivot, describe"
            )


def _chunk(connection: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    return [
        tuple(None if isinstance(value, float) and not math.isfinite(value) else value for value in row)
        for row in connection.fetchmany(CHUNK)
    ]


def _chunks(connection: duckdb.DuckDBPyConnection, chunk: list[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    while chunk:
        yield chunk
        with refusals("query"):
            chunk = _chunk(connection)


@contextmanager
def refusals(what: str, listed: Sequence[files.Part] = ()) -> Iterator[None]:
    """Converts DuckDB's errors: names what is gone, or repeats its message. ``what``: the command."""
    try:
        yield
    except duckdb.Error as error:
        for part in listed:
            if not part.path.exists():
                raise files.Gone(str(part.path)) from None
        # DuckDB quotes the statement on further lines after its message; omit them.
        reason = " ".join(str(error).partition("\nLINE ")[0].split())
        raise _core.ExperimentError(f"{what}: {reason}") from None
    except RuntimeError as error:
        # What DuckDB makes of a Ctrl-C.
        if "interrupted" in str(error):
            raise KeyboardInterrupt from None
        raise


def literal(path: str) -> str:
    """A path as a string of SQL that DuckDB takes for one file, whatever is in it."""
    return "'" + re.sub(r"([*?\[])", r"[\1]", path).replace("'", "''") + "'"
