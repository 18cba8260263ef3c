"""The journal of finished runs: what a killed process leaves, and what was damaged since."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from conftest import EXPERIMENT
from sojourn import _core
from sojourn.files.manifest import OutputError
from sojourn.files.workspace import Workspace
from sojourn.frame.results import Run
from sojourn.runs.backends import Simulator
from sojourn.runs.plan import read_plan
from sojourn.store.journal import FILE, Header, Journal, LeftBehind, plan_key

HEADER = Header("1", "two flows", "key", 3)


def run(number: int) -> Run:
    """A run with a table of its own, and a capture."""
    table = pa.table({"time_ns": [number, number + 1]})
    summary: Any = {"label": "pfifo", "seed": number, "set": {}}
    return Run(summary, lambda name: table if name == "packets" else None, lambda: {"capture_*.pcapng": b"\n" * number})


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """The folder of a process that was killed after runs 0 and 1, of three."""
    journal = Journal(Workspace.make(tmp_path, for_runs=True), HEADER)
    for number in (0, 1):
        journal.add(number, run(number))
    journal.close(keep=True)
    return journal.workspace.path


def taken(folder: Path) -> Journal:
    journal = LeftBehind(folder.parent).take(HEADER)
    assert journal is not None
    return journal


def test_what_was_finished_comes_back_with_all_that_it_recorded(left: Path):
    journal = taken(left)
    assert sorted(journal.stored) == [0, 1]
    for number, stored in journal.stored.items():
        assert stored.summary == run(number).summary
        assert stored.read_table("packets") == run(number).read_table("packets")
        assert stored.read_table("rtts") is None
        assert stored.read_files() == run(number).read_files()


def test_a_line_whose_digits_were_changed_is_repeated(left: Path):
    file = left / FILE
    file.write_bytes(file.read_bytes().replace(b'"seed":0', b'"seed":7'))
    journal = taken(left)
    assert (sorted(journal.stored), journal.lost) == ([1], 1)


def test_a_table_that_was_changed_is_repeated(left: Path):
    file = left / FILE
    content = bytearray(file.read_bytes())
    content[-1] ^= 1  # of run 1's capture
    file.write_bytes(content)
    journal = taken(left)
    assert (sorted(journal.stored), journal.lost) == ([0], 1)


def test_tables_that_were_cut_are_repeated(left: Path):
    file = left / FILE
    file.write_bytes(file.read_bytes()[:-1])
    journal = taken(left)
    assert (sorted(journal.stored), journal.lost) == ([0], 0)


@pytest.mark.parametrize("cut", [1, 400])
def test_what_is_added_behind_an_entry_that_was_cut_comes_back(left: Path, cut: int):
    file = left / FILE
    whole = file.read_bytes()
    assert whole.rindex(b'"run":1') < len(whole) - 400, "within the table"
    file.write_bytes(whole[:-cut])
    journal = taken(left)
    assert sorted(journal.stored) == [0]
    journal.add(1, run(1))
    journal.add(2, run(2))
    journal.close(keep=True)
    assert {number: one.seed for number, one in taken(left).stored.items()} == {0: 0, 1: 1, 2: 2}


@pytest.mark.parametrize("digits", [b'{"run":1,', b'"sizes":{', b'"seed":1', b"time_ns"])
def test_behind_a_damaged_entry_the_others_come_back(left: Path, digits: bytes):
    journal = taken(left)
    journal.add(2, run(2))
    journal.close(keep=True)
    file = left / FILE
    whole = file.read_bytes()
    at = whole.index(digits, whole.index(b'"run":1') - 1)
    file.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
    journal = taken(left)
    assert (sorted(journal.stored), journal.lost) == ([0, 2], 1)
    assert journal.stored[2].read_files() == run(2).read_files()
    journal.add(1, run(1))
    journal.close(keep=True)
    journal = taken(left)
    assert {number: one.seed for number, one in journal.stored.items()} == {0: 0, 1: 1, 2: 2}
    assert journal.lost == 0


def test_another_experiment_is_refused_and_its_runs_stay(left: Path):
    found = LeftBehind(left.parent)
    with pytest.raises(OutputError, match='finished runs of another experiment, "two flows"'):
        found.take(Header("1", "other", "other key", 3))
    found.close(remove=False)
    assert sorted(taken(left).stored) == [0, 1]


@pytest.mark.parametrize("of_second", [1, 3])
def test_of_two_killed_processes_the_one_with_more_runs_is_continued(left: Path, of_second: int):
    second = Journal(Workspace.make(left.parent, for_runs=True), HEADER)
    for number in range(of_second):
        second.add(number, run(number))
    second.close(keep=True)
    found = LeftBehind(left.parent)
    assert found.runs_of(HEADER.key) == max(2, of_second)
    journal = found.take(HEADER)
    assert journal is not None
    assert len(journal.stored) == max(2, of_second)
    found.close(remove=True)


def test_a_journal_of_another_format_is_refused(left: Path):
    file = left / FILE
    file.write_bytes(file.read_bytes().replace(b'"format": 5', b'"format": 4'))
    found = LeftBehind(left.parent)
    assert found.runs_of(HEADER.key) == 0
    with pytest.raises(OutputError, match="version differ"):
        found.take(HEADER)
    found.close(remove=False)


def test_another_version_has_another_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "e.toml").write_text(EXPERIMENT, encoding="utf-8")
    plan = read_plan(str(tmp_path / "e.toml"), [])
    before = plan_key(plan, Simulator())
    monkeypatch.setattr(_core, "version", "0.0.1")
    assert plan_key(plan, Simulator()) != before


def test_runs_of_another_backend_or_release_have_another_key(tmp_path: Path):
    (tmp_path / "e.toml").write_text(EXPERIMENT, encoding="utf-8")
    plan = read_plan(str(tmp_path / "e.toml"), [])

    class Other(Simulator):
        name = "linux"
        release = "6.1"

        def __repr__(self) -> str:
            return "Other()"

    class Later(Other):
        release = "6.12"

    backends = (Simulator(), Other(), Later())
    assert len({plan_key(plan, cast("Any", backend)) for backend in backends}) == 3
