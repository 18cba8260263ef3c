"""Result files appear whole and together, or not at all, and never over a file that is not ours."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest

from conftest import visible
from sojourn import ExperimentError
from sojourn.cli.outcome import stop_reason
from sojourn.files import whole
from sojourn.files.manifest import FILE, Manifest, OutputError
from sojourn.files.storage import Staging, file_name, prepare
from sojourn.files.workspace import Workspace
from sojourn.store.folder import load


def put(folder: Path, *names: str, text: str = "ours", by: str = "results") -> None:
    """Writes files as results are written; those of earlier results go."""
    with Staging(folder, by=by, replaces=("results", "csv")) as staging:
        for name in names:
            staging.add_text(name, text)


def test_a_file_is_replaced_and_not_overwritten(tmp_path: Path):
    """Who has the old file open goes on reading it whole."""
    path, old = tmp_path / "a.txt", tmp_path / "old.txt"
    whole.write(path, b"one")
    os.link(path, old)
    whole.write(path, b"two")
    assert (path.read_bytes(), old.read_bytes()) == (b"two", b"one")
    assert not whole.write_new(path, b"three")
    assert path.read_bytes() == b"two"
    assert visible(tmp_path) == {"a.txt", "old.txt"}


def test_what_is_no_file_is_written_to_and_stays(tmp_path: Path):
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(tmp_path / "a.txt")
    whole.write(link, b"one")
    assert link.is_symlink()
    assert (tmp_path / "a.txt").read_bytes() == b"one"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    whole.write(pipe, b"two")
    assert (os.read(reader, 9), pipe.is_fifo()) == (b"two", True)
    os.close(reader)


def test_nothing_has_its_final_name_before_the_end(tmp_path):
    with Staging(tmp_path) as staging:
        final = staging.add_text("a.txt", "one")
        assert not final.exists()
    assert final.read_text() == "one"
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt", FILE}


def test_the_first_file_has_its_final_name_last(tmp_path, monkeypatch):
    placed: list[str] = []
    replace = Path.replace

    def recorded(self: Path, target: Path) -> Path:
        placed.append(Path(target).name)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", recorded)
    put(tmp_path, "summary.json", "summary.csv", "packets.parquet")
    assert [name for name in placed if name != FILE] == ["packets.parquet", "summary.csv", "summary.json"]


def test_files_are_synced_and_their_lines_end_as_everywhere_on_windows_too(tmp_path, monkeypatch):
    synced = []

    def fsync(number: int) -> None:
        # Windows refuses a file that is open for reading only.
        synced.append(fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY)

    ends = []

    def write_text(path: Path, text: str, *, newline: str | None = None, **_: str) -> int:
        ends.append(newline)
        return path.write_bytes(text.encode())

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "write_text", write_text)
    put(tmp_path, "a.csv")
    assert len(synced) == 3 and all(synced)
    assert ends == ["\n"]


def test_a_failure_removes_every_file_and_keeps_what_was_there(tmp_path):
    put(tmp_path, "a.txt", text="old")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(path: Path) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError), Staging(tmp_path) as staging:
        staging.add_text("a.txt", "new")
        staging.add("b.txt", fail)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_full_disk_names_the_file_that_it_has_no_room_for(tmp_path, monkeypatch):
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError) as caught:
        whole.write(tmp_path / "store" / "part.parquet", b"rows")
    told = stop_reason(caught.value, "1 of 2 runs are in the store").message
    assert told == f"{tmp_path / 'store' / 'part.parquet'}: No space left on device; 1 of 2 runs are in the store"
    assert not list((tmp_path / "store").iterdir())


def test_an_existing_file_is_no_output_directory(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="--out"):
        prepare(tmp_path / "file")
    with pytest.raises(OutputError):
        prepare(tmp_path / "file" / "below")


def test_preparing_leaves_no_trace_but_the_directory(tmp_path):
    prepare(tmp_path / "new" / "deep")
    assert list((tmp_path / "new" / "deep").iterdir()) == []


def test_a_file_that_was_interrupted_is_left_out_of_the_rest(tmp_path):
    def interrupted(path: Path) -> None:
        path.write_text("half")
        raise KeyboardInterrupt

    with Staging(tmp_path) as staging:
        with pytest.raises(KeyboardInterrupt):
            staging.add("figure.png", interrupted)
        staging.add_text("summary.json", "first")
        staging.add_text("summary.json", "second")
    assert visible(tmp_path) == {"summary.json"}
    assert (tmp_path / "summary.json").read_text() == "second"


def test_a_failure_removes_the_directory_that_was_made_for_the_files(tmp_path):
    with pytest.raises(ValueError), Staging(tmp_path / "new" / "deep"):
        raise ValueError
    assert list(tmp_path.iterdir()) == []


def test_what_new_files_supersede_goes_when_they_come(tmp_path):
    put(tmp_path, "old.parquet", "kept.parquet", "csv/runs.csv")
    (tmp_path / "csv" / "notes.txt").write_text("mine")
    (tmp_path / "notes.parquet").write_text("mine")
    put(tmp_path, "report.html", by="report")  # replaces what results are made of
    put(tmp_path, "old.parquet", "kept.parquet", "csv/runs.csv")
    with pytest.raises(ValueError), Staging(tmp_path, replaces=("results",)) as staging:
        staging.add_text("kept.parquet", "new")
        raise ValueError
    assert (tmp_path / "old.parquet").exists()
    put(tmp_path, "kept.parquet", text="new")
    assert visible(tmp_path) == {"kept.parquet", "notes.parquet", "csv", "report.html"}
    assert visible(tmp_path / "csv") == {"notes.txt"}
    assert (tmp_path / "kept.parquet").read_text() == "new"


def test_a_file_of_the_users_is_neither_removed_nor_replaced(tmp_path):
    (tmp_path / "packets.parquet").write_text("mine")
    put(tmp_path, "summary.json")
    put(tmp_path, "summary.json", text="new")
    assert (tmp_path / "packets.parquet").read_text() == "mine"
    with pytest.raises(OutputError, match=r"packets\.parquet .*nothing was replaced"):
        put(tmp_path, "summary.json", "packets.parquet", text="newer")
    assert (tmp_path / "packets.parquet").read_text() == "mine"
    assert (tmp_path / "summary.json").read_text() == "new"
    with pytest.raises(OutputError, match=r"packets\.parquet"):
        prepare(tmp_path, ["packets.parquet"])


def test_a_file_of_ours_that_was_changed_since_is_the_users(tmp_path):
    put(tmp_path, "summary.csv", "report.html")
    (tmp_path / "summary.csv").write_text("note")
    (tmp_path / "report.html").write_text("note")
    with pytest.raises(OutputError, match=r"summary\.csv"):
        prepare(tmp_path, ["summary.csv"])
    put(tmp_path, "summary.json")
    assert visible(tmp_path) == {"summary.csv", "summary.json", "report.html"}


def test_a_copy_of_our_folder_is_ours_as_well(tmp_path):
    put(tmp_path / "a", "summary.json")
    (tmp_path / "b").mkdir()
    for name in ("summary.json", FILE):
        (tmp_path / "b" / name).write_bytes((tmp_path / "a" / name).read_bytes())
    put(tmp_path / "b", "summary.json", text="new")
    assert (tmp_path / "b" / "summary.json").read_text() == "new"


def test_links_and_directories_of_our_names_stay(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.txt").symlink_to(elsewhere / "file")
    (out / "b.txt").mkdir()
    (out / "csv").symlink_to(elsewhere)
    for name in ("a.txt", "b.txt", "csv/runs.csv"):
        with pytest.raises(OutputError):
            put(out, name)
    assert (elsewhere / "file").read_text() == "mine"
    assert visible(elsewhere) == {"file"}
    assert (out / "a.txt").is_symlink()
    assert (out / "b.txt").is_dir()


def test_no_name_leads_out_of_the_directory(tmp_path):
    for name in ("../escaped.txt", "/tmp/escaped.txt", "a/../../escaped.txt", ""):
        with pytest.raises(OutputError), Staging(tmp_path / "out") as staging:
            staging.add_text(name, "out")
    assert list(tmp_path.iterdir()) == []


def test_a_list_from_elsewhere_removes_nothing_outside(tmp_path):
    put(tmp_path / "out", "old.parquet")
    (tmp_path / "mine.txt").write_text("ours")
    path = tmp_path / "out" / FILE
    document = json.loads(path.read_text())
    document["files"]["../mine.txt"] = document["files"]["old.parquet"]
    path.write_text(json.dumps(document))
    put(tmp_path / "out", "new.parquet")
    assert (tmp_path / "mine.txt").read_text() == "ours"


@pytest.mark.parametrize("content", ["", "{", '{"format": 9, "files": {}}', '{"format": 1}', "[]"])
def test_a_damaged_list_is_refused(tmp_path, content):
    (tmp_path / FILE).write_text(content)
    with pytest.raises(OutputError, match=r"manifest\.json"):
        prepare(tmp_path)


def test_a_file_that_came_meanwhile_leaves_the_new_ones_beside_it(tmp_path):
    with pytest.raises(OutputError, match="the new files are in"), Staging(tmp_path, rescue=True) as staging:
        staging.add_text("summary.json", "ours")
        (tmp_path / "summary.json").write_text("mine")
    assert (tmp_path / "summary.json").read_text() == "mine"
    (beside,) = tmp_path.glob("sojourn-results-*")
    assert (beside / "summary.json").read_text() == "ours"


def test_a_process_killed_while_it_puts_files_in_place_leaves_only_ours(tmp_path, monkeypatch):
    put(tmp_path, "a.txt", "b.txt", text="old")
    replace = Path.replace

    def killed(self: Path, target: Path) -> Path:
        if target.name == "a.txt":
            raise RuntimeError("killed")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(RuntimeError):
        put(tmp_path, "a.txt", "b.txt", text="new")
    monkeypatch.undo()
    Manifest.read(tmp_path).refuse_foreign(["a.txt", "b.txt"])  # refuses none
    # b.txt is new and a.txt old, which readers of results refuse.
    assert Manifest.read(tmp_path).is_mixed("results")
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(ExperimentError, match="old and of new results"):
        load(tmp_path)
    put(tmp_path, "a.txt", "b.txt", text="new")
    assert not Manifest.read(tmp_path).is_mixed("results")


def test_what_a_dead_process_left_is_found_and_that_of_a_living_one_is_not(tmp_path):
    alive, dead = Workspace.make(tmp_path), Workspace.make(tmp_path)
    (tmp_path / ".sojourn-1-mine.partial").mkdir()
    dead.leave()
    assert [one.path for one in Workspace.left_behind(tmp_path)] == [dead.path]
    alive.remove()


def test_a_long_name_is_cut_and_stays_its_own():
    one, other = (file_name("capture_" + "é" * 300 + end + ".pcapng") for end in "ab")
    assert len(one.encode()) <= 200
    assert one != other
    assert one.endswith(".pcapng")


def test_results_are_known_as_complete_only_once_all_files_are_in_place(tmp_path, monkeypatch):
    def staged(key: str, *, lacks: bool = False) -> None:
        with Staging(tmp_path, by="results", replaces=("results",)) as staging:
            staging.add_text("summary.json", key)
            if not lacks:
                staging.made_of["summary.json"] = key

    replace = Path.replace

    def full(self: Path, target: Path) -> Path:
        if Path(target).name == "summary.json":
            raise OSError(28, "No space left on device")
        return replace(self, target)

    staged("first")
    assert Manifest.read(tmp_path).made_of == {"summary.json": "first"}
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", full)
        with pytest.raises(OSError):
            staged("second")
    assert Manifest.read(tmp_path).made_of == {}
    staged("third", lacks=True)
    assert Manifest.read(tmp_path).made_of == {}
