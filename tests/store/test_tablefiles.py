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


def test_the_end_of_a_file_is_read_once_for_all_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It grows with the runs: read again for each, the figures of 2,000 runs took half a minute."""
    made = sj.run_text(EXPERIMENT)
    known: list[bool] = []
    opened = pq.ParquetFile

    def open_(path: Path, metadata: Any = None) -> Any:
        known.append(metadata is not None)
        return opened(path, metadata=metadata)

    with Staging(tmp_path / "out", by="results") as staging:
        with TableFiles(staging) as files:
            runs = [files.add(run) for run in made.runs]
        monkeypatch.setattr(pq, "ParquetFile", open_)
        found = [run.histogram() for run in runs]
    assert known == [False, True, True]
    for run, table in zip(made.runs, found, strict=True):
        assert table == run.histogram()
