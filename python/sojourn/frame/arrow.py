"""Columns and tables of Arrow, made without pandas; rows as CSV.

In every CSV file a missing value, NaN too, is an empty field, and no text is one that a spreadsheet would calculate.
In ``csv_text`` texts are in quotes, and numbers have as many digits as tell them apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from types import NoneType
from typing import TYPE_CHECKING, Any

from sojourn.frame.later import np, npt, pa

if TYPE_CHECKING:
    from sojourn.frame.results import Run

RUN_COLUMNS = ["run", "label", "seed"]
"""The first columns of a recorded table of several runs."""


def as_arrow(column: npt.NDArray[np.generic]) -> pa.Array:
    """A column as Arrow, without copying it. ``pa.array`` would load pandas wherever it is installed."""
    return pa.Array.from_buffers(pa.from_numpy_dtype(column.dtype), len(column), [None, pa.py_buffer(column)])


def columns_as_arrow(columns: Mapping[str, npt.NDArray[np.generic]]) -> pa.Table:
    """Columns as a table, without copying them."""
    return pa.Table.from_arrays(list(map(as_arrow, columns.values())), list(columns))


def values_as_arrow(values: Sequence[Any], kind: pa.DataType | None = None) -> pa.Array:
    """Values as Arrow, None as null. Uses ``pa.array``, which loads pandas, only for values of mixed types."""
    kinds, valid = set(map(type, values)), None
    if NoneType in kinds:
        kinds.remove(NoneType)
        known = np.array([value is not None for value in values], dtype=np.bool_)
        valid = pa.py_buffer(np.packbits(known, bitorder="little"))
    if not kinds and kind is None:
        return pa.nulls(len(values))
    if kinds <= {str} and kind in (None, pa.string()):
        texts = [b"" if value is None else value.encode() for value in values]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
        return pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends), pa.py_buffer(b"".join(texts)), valid)
    if kinds <= {int, float}:
        given = values if valid is None else [0 if value is None else value for value in values]
        numbers = np.array(given, kind and kind.to_pandas_dtype())
        type_ = pa.from_numpy_dtype(numbers.dtype)
        return pa.Array.from_buffers(type_, len(numbers), [valid, pa.py_buffer(numbers)])
    return pa.array(values, kind)


def numbers(table: pa.Table, name: str) -> npt.NDArray[Any]:
    """A column of numbers, if possible without copying it, null as NaN. ``to_numpy`` would load pandas."""
    column = table[name]
    if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        found: npt.NDArray[Any] = column.to_numpy()
        return found
    kind = column.type.to_pandas_dtype()
    chunks = [
        np.frombuffer(chunk.buffers()[1], kind, len(chunk), chunk.offset * np.dtype(kind).itemsize)
        for chunk in column.chunks
        if len(chunk)
    ]
    return chunks[0] if len(chunks) == 1 else np.concatenate([np.empty(0, kind), *chunks])


def table_of(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows as a table; the first rows may lack a column."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: values_as_arrow([row.get(name) for row in rows]) for name in names})


def with_run_columns(table: pa.Table, index: int, run: Run) -> pa.Table:
    """A run's table with ``RUN_COLUMNS`` first, without copying its own columns."""
    rows = table.num_rows
    columns = [
        as_arrow(np.full(rows, index, np.int32)),
        pa.DictionaryArray.from_arrays(as_arrow(np.zeros(rows, np.int32)), values_as_arrow([run.label])),
        as_arrow(np.full(rows, run.seed, np.uint64)),
    ]
    for at, (name, column) in enumerate(zip(RUN_COLUMNS, columns, strict=True)):
        table = table.add_column(at, name, column)
    return table


def for_csv(table: pa.Table) -> pa.Table:
    """A table for a CSV file: NaN as null, texts and names of columns ``plain``."""
    for index, field in enumerate(table.schema):
        column = table[field.name]
        if pa.types.is_string(field.type):
            texts = [None if text is None else plain(text) for text in column.to_pylist()]
            table = table.set_column(index, field.name, values_as_arrow(texts))
        elif pa.types.is_floating(field.type):
            values = numbers(table, field.name)
            if np.isnan(values).any():
                known = [None if np.isnan(value) else value for value in values.tolist()]
                table = table.set_column(index, field.name, values_as_arrow(known, field.type))
    return table.rename_columns([plain(name) for name in table.column_names])


def csv_text(rows: Sequence[Mapping[str, object]]) -> str:
    """The rows under a line of their keys; a row may lack keys. No text is one that a spreadsheet calculates."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [",".join(_quoted(plain(name)) for name in names)]
    # A column with a fraction in it has no whole numbers.
    whole = {name for name in names if all(isinstance(row.get(name), int | None) for row in rows)}
    lines += [",".join(_field(row.get(name), name in whole) for name in names) for row in rows]
    return "".join(f"{line}\n" for line in lines)


def is_missing(value: object) -> bool:
    """Whether a value is none, which CSV shows as an empty field."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def plain(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _field(value: object, whole: bool) -> str:
    if is_missing(value):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value) if whole else _number(float(value))
    return _quoted(plain(str(value)))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _number(value: float) -> str:
    """The shortest digits that give the number back; with an exponent below 1e-6 and from 1e10 on."""
    if 1e-4 <= abs(value) < 1e10 or not math.isfinite(value):
        return repr(value).removesuffix(".0")
    shortest = Decimal(repr(value)).normalize()
    return format(shortest, "f" if -7 < shortest.adjusted() < 10 else "e")
