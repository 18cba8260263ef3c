"""Values as Arrow, without pandas: the same as ``pa.array`` makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sojourn.frame.arrow import numbers, values_as_arrow


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
