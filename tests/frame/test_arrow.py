"""Values as Arrow, without pandas: the same as ``pa.array`` makes of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from sojourn.frame.arrow import values_as_arrow


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
