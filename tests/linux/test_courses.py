"""The first packet in which two runs differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sojourn as sj
from sojourn.studies.agreement.courses import as_rows, parting, sentences

EXPERIMENT = """
[experiment]
name = "two"
duration = "2 s"
[link]
rate = "10 Mbit/s"
[[queue]]
aqm = "codel"
[[traffic]]
kind = "bulk"
flows = 2
rtt = "20 ms"
[record]
packets = true
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> sj.Results:
    file = tmp_path_factory.mktemp("courses") / "two.toml"
    file.write_text(EXPERIMENT, encoding="utf-8")
    return sj.run(file)


Change = Callable[[dict[str, Any]], object]


def changed(results: sj.Results, change: Change) -> sj.Results:
    """The same results, with other packets in the run."""
    (run,) = results.runs
    table = run.packets()
    assert table is not None
    columns = {name: table[name].to_numpy().copy() for name in table.column_names}
    change(columns)
    other = replace(run, read_table={"packets": pa.table(columns)}.get)
    return sj.Results(results.summary, [other])


def of_flow(columns: dict[str, Any], flow: int) -> Any:
    """The rows of a flow, in order of arrival."""
    arrived = columns["time_ns"].astype(np.int64) - columns["sojourn_ns"].astype(np.int64)
    rows = np.flatnonzero((columns["flow"] == flow) & (columns["direction"] == 0))
    return rows[np.argsort(arrived[rows], kind="stable")]


def test_equal_runs_have_no_packet_that_differs(results):
    assert parting(results.runs[0], results.runs[0], results.queues) is None
    (line,) = sentences({"sim": results, "linux": results})
    assert line == "codel, seed 1: linux and sim: all packets are the same"
    assert as_rows({"sim": results, "linux": results}) == [
        {"arm": "codel", "seed": 1, "result": "linux", "packet": None}
    ]


def test_the_clocks_of_kernels_make_no_difference(results):
    def later(columns: dict[str, Any]) -> None:
        columns["time_ns"] += 50_000

    assert parting(results.runs[0], changed(results, later).runs[0], results.queues) is None


def test_an_earlier_handshake_makes_no_difference(results):
    def connected_before(columns: dict[str, Any]) -> None:
        first = of_flow(columns, 1)[0]
        for name, values in columns.items():
            columns[name] = np.insert(values, 0, values[first])
        columns["time_ns"] += 50_000_000
        columns["time_ns"][0] -= 40_000_000
        columns["bytes"][0] = 66

    def later(columns: dict[str, Any]) -> None:
        columns["time_ns"] += 50_000_000

    both = changed(results, later), changed(results, connected_before)
    assert parting(both[0].runs[0], both[1].runs[0], results.queues) is None


def test_the_packet_that_arrived_first_is_named(results):
    def two_flows(columns: dict[str, Any]) -> None:
        first, second = (of_flow(columns, flow) for flow in (0, 1))
        columns["fate"][second[300]] = 3
        columns["bytes"][first[100]] -= 48

    other = changed(results, two_flows)
    found = parting(results.runs[0], other.runs[0], results.queues)
    assert found is not None
    assert found.first is not None and found.second is not None
    assert (found.queue, found.flow, found.number) == ("down", 0, 101)
    assert (found.first.bytes, found.second.bytes) == (1514, 1466)
    (line,) = sentences({"sim": results, "linux": other})
    assert (
        f"the first {found.same} packets are the same; then packet 101 of flow 0 down differs (sim: 1514 B at" in line
    )
    (row,) = as_rows({"sim": results, "linux": other})
    assert (row["packet"], row["flow"], row["queue"], row["same"]) == (101, 0, "down", found.same)


def test_reasons_of_drops_make_no_difference_but_drops_do(results):
    def reason(columns: dict[str, Any]) -> None:
        columns["fate"][columns["fate"] == 2] = 4

    assert parting(results.runs[0], changed(results, reason).runs[0], results.queues) is None

    def drop(columns: dict[str, Any]) -> None:
        columns["fate"][of_flow(columns, 1)[50]] = 3

    found = parting(results.runs[0], changed(results, drop).runs[0], results.queues)
    assert found is not None and found.second is not None
    assert (found.flow, found.number, found.second.end) == (1, 51, "dropped")


def test_a_course_that_ends_differs_there(results):
    def lose_the_last(columns: dict[str, Any]) -> None:
        last = of_flow(columns, 0)[-1]
        for name, values in columns.items():
            columns[name] = np.delete(values, last)

    found = parting(results.runs[0], changed(results, lose_the_last).runs[0], results.queues)
    assert found is not None
    assert found.flow == 0
    assert found.second is None


def test_a_drop_of_the_same_instant_has_no_order(results):
    """A list of departures and drops does not tell which packet of a burst found no room."""

    def dropped(after_ns: int) -> Change:
        def change(columns: dict[str, Any]) -> None:
            drop, other = of_flow(columns, 0)[100:102]
            columns["time_ns"][drop] = columns["time_ns"][other] - columns["sojourn_ns"][other] + after_ns
            columns["sojourn_ns"][drop] = 0
            columns["fate"][drop] = 3

        return change

    at_once, just_after = changed(results, dropped(0)), changed(results, dropped(300))
    assert parting(at_once.runs[0], just_after.runs[0], results.queues) is None
