"""Values as Arrow, without pandas: the same as ``pa.array`` makes of them."""

from __future__ import annotations

import csv
import io
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from sojourn.frame.arrow import csv_text, for_csv, numbers, values_as_arrow
from sojourn.page.sheet import csv_of


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", None, "ü"], None),
        ([None, "b"], pa.string()),
        ([None, None], pa.string()),
        ([1, None, 1 << 40], None),
        ([1.5, None, 2], None),
        ([None, 3], pa.uint64()),
        ([True, None], None),
        ([None] * 9 + [1], None),
        ([None], None),
        ([], None),
    ],
)
def test_values_and_nulls_are_those_of_arrow(values: list[Any], kind: pa.DataType | None):
    made, known = values_as_arrow(values, kind), pa.array(values, kind)
    made.validate(full=True)
    assert made.type == known.type and made.equals(known)


@pytest.mark.parametrize(
    "column",
    [
        pa.chunked_array(
            [pa.array([7, 1, 2], pa.int32()).slice(1), pa.array([], pa.int32()), pa.array([3], pa.int32())]
        ),
        pa.chunked_array([pa.array([0.5, 1.5, 2.5]).slice(1, 1)]),
        pa.chunked_array([pa.array([1, None])]),
        pa.chunked_array([pa.array([True, False])]),
        pa.chunked_array([], pa.uint64()),
    ],
)
def test_columns_are_numbers_as_arrow_gives_them(column: pa.ChunkedArray):
    found, known = numbers(pa.table({"x": column}), "x"), column.to_numpy()
    assert found.dtype == known.dtype and np.array_equal(found, known, equal_nan=known.dtype != np.bool_)


def as_exported(rows: list[dict[str, Any]]) -> str:
    text = io.BytesIO()
    pyarrow.csv.write_csv(for_csv(pa.Table.from_pylist(rows)), text)
    return text.getvalue().decode()


@pytest.mark.parametrize(
    "written",
    [csv_text, as_exported, lambda rows: csv_of(rows[0], [list(row.values()) for row in rows])],
    ids=["summary.csv", "export", "tables of studies"],
)
def test_a_missing_number_is_an_empty_field_and_no_text_a_formula(written: Any):
    rows = [
        {"label": "=1+1", "=a.goodput_bps": -0.5, "n": 1},
        {"label": "-a", "=a.goodput_bps": math.nan, "n": None},
    ]
    assert list(csv.reader(io.StringIO(written(rows)))) == [
        ["label", "'=a.goodput_bps", "n"],
        ["'=1+1", "-0.5", "1"],
        ["'-a", "", ""],
    ]


def test_a_number_of_a_studys_table_stays_one():
    assert csv_of(["x"], [["-0.5"], ["+1e6"], ["-x"]]) == "x\n-0.5\n+1e6\n'-x\n"
