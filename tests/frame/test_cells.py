"""Runs in cells, from columns by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from sojourn import ExperimentError
from sojourn.frame.cells import LABEL, CellTable, axis_of, axis_of_values

KEYS = {
    LABEL: ["pfifo"] * 6,
    "link.rate": ["10 Mbit/s", "10mbit", "10000 kbit/s", "2 Mbit/s", "2 Mbit/s", "2 Mbit/s"],
    "traffic.0.flows": [1, 1, 4, 1, 4, 4],
}
DELAYS = [5.0, 7.0, 30.0, 1.0, math.nan, 3.0]


class Runs(CellTable):
    """Six runs."""

    def __init__(self) -> None:
        coded = {key: axis_of(key, key, pa.chunked_array([values])) for key, values in KEYS.items()}
        self._columns, self._links = {"delay_ms": "DOUBLE"}, []
        self._set({key: axis for key, (axis, _) in coded.items()}, np.stack([codes for _, codes in coded.values()], 1))

    @property
    def name(self) -> str:
        return "by hand"

    def _numbers(self, column: str) -> np.ndarray:
        return np.array(DELAYS)

    def _counts(self, columns: Sequence[str]) -> Sequence[int]:
        return [5] * len(columns)


def test_a_value_is_the_same_however_it_is_written_and_shown_as_it_was_first():
    axis = Runs().axes["link.rate"]
    assert (axis.texts, axis.unit) == (("2 Mbit/s", "10 Mbit/s"), "Mbit/s")
    assert axis.numbers is not None
    assert axis.numbers.tolist() == [2.0, 10.0]
    assert [axis.place_of(text) for text in ("2mbit", "10000 kbit/s", "3 Mbit/s")] == [0, 1, None]


def test_values_of_different_units_are_no_numbers_of_one_axis():
    axis, of_rows = axis_of_values("link.buffer", "buffer", ["100 packets", "50 ms", "20 packets"])
    assert (axis.numbers, axis.texts) == (None, ("100 packets", "50 ms", "20 packets"))
    assert of_rows.tolist() == [0, 1, 2]
    axis, of_rows = axis_of_values("link.buffer", "buffer", ["100 packets", "20 packets"])
    assert axis.numbers is not None
    assert (axis.numbers.tolist(), axis.unit, of_rows.tolist()) == ([20.0, 100.0], "packets", [1, 0])


def test_a_cell_has_the_median_of_its_runs_that_have_a_value():
    runs = Runs()
    found = runs.intervals(runs.column("delay_ms"))
    assert [runs.setting(cell, ["link.rate", "traffic.0.flows"]).replace("\xa0", " ") for cell in range(len(runs))] == [
        "link.rate 2 Mbit/s, traffic.0.flows 1",
        "link.rate 2 Mbit/s, traffic.0.flows 4",
        "link.rate 10 Mbit/s, traffic.0.flows 1",
        "link.rate 10 Mbit/s, traffic.0.flows 4",
    ]
    assert (found.middle.tolist(), found.n.tolist()) == ([1.0, 3.0, 6.0, 30.0], [1, 1, 2, 1])


def test_cells_of_several_settings_have_the_range_of_their_values_however_often_they_are_pooled():
    runs = Runs()
    once = runs.pooled([LABEL, "link.rate"])
    for pooled in (once, once.pooled([LABEL, "link.rate"])):
        found = pooled.intervals(pooled.column("delay_ms"))
        assert pooled.is_pooled
        # 1 and 3 beside a run without a value; 5, 7 and 30.
        assert (found.low.tolist(), found.middle.tolist(), found.high.tolist()) == ([1.0, 5.0], [2.0, 7.0], [3.0, 30.0])
    assert not runs.pooled(runs.axes).is_pooled


def test_an_infinite_value_is_none():
    class Endless(Runs):
        def _numbers(self, column: str) -> np.ndarray:
            return np.array([math.inf, *DELAYS[1:]])

    runs = Endless()
    found = runs.intervals(runs.column("delay_ms"))
    # 7 alone, of the two runs at 10 Mbit/s with a flow.
    assert (found.middle.tolist(), found.n.tolist()) == ([1.0, 3.0, 7.0, 30.0], [1, 1, 1, 1])


def test_of_several_links_no_number_of_a_queue_is_offered():
    runs = Runs()
    runs._columns = {"sojourn_p95_ms": "DOUBLE", "bulk.rtt_p50_ms": "DOUBLE"}
    runs._links = ["home", "provider"]
    assert runs.metrics == ["bulk.rtt_p50_ms"]
    with pytest.raises(ExperimentError, match="the runs have several links, home, provider: choose one"):
        runs.column("sojourn_p95_ms")
