"""Recorded tables as files of many runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from sojourn.files.storage import Staging
from sojourn.frame.later import pq
from sojourn.store.tablefiles import TableFiles

EXPERIMENT = """
experiment = { name = "many", duration = "100 ms", repeat = 3 }
link = { rate = "4 Mbit/s" }
queue = [{ aqm = "codel" }]
traffic = [{ kind = "bulk", flows = 1, rtt = "20 ms" }]
"""


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each opening of a file, whether its end was known already."""
    known: list[bool] = []
    opened = pq.ParquetFile

    def open_(path: Path, metadata: Any = None) -> Any:
        known.append(metadata is not None)
        return opened(path, metadata=metadata)

    monkeypatch.setattr(pq, "ParquetFile", open_)
    return known


def test_the_end_of_a_file_is_read_once_for_all_runs(tmp_path: Path, known: list[bool]):
    """It grows with the runs: read again for each, the figures of 2,000 runs took half a minute."""
    made = sj.run_text(EXPERIMENT)
    with Staging(tmp_path / "out", by="results") as staging:
        with TableFiles(staging) as files:
            runs = [files.add(run) for run in made.runs]
        found = [run.histogram() for run in runs]
    assert known == [False, True, True]
    for run, table in zip(made.runs, found, strict=True):
        assert table == run.histogram()


def test_the_end_of_a_saved_file_is_read_once_for_all_runs(tmp_path: Path, known: list[bool]):
    """The report of 2,000 runs took a minute and a half of processor time."""
    made = sj.run_text(EXPERIMENT)
    made.save(tmp_path / "out", plots=False)
    found = [run.histogram() for run in sj.load(tmp_path / "out").runs]
    assert known == [False, True, True]
    assert found == [run.histogram() for run in made.runs]


def test_a_file_that_was_replaced_is_read_as_it_is_now(tmp_path: Path):
    made = sj.run_text(EXPERIMENT)
    made.save(tmp_path / "out", plots=False)
    loaded = sj.load(tmp_path / "out")
    assert loaded.runs[0].histogram() == made.runs[0].histogram()
    again = sj.run_text(EXPERIMENT, set={"link.rate": "1 Mbit/s", "experiment.duration": "1 s"})
    again.save(tmp_path / "out", plots=False)
    assert [run.histogram() for run in loaded.runs] == [run.histogram() for run in again.runs]
