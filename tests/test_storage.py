"""Result files appear whole and together, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from sojourn.storage import OutputError, Staging, prepare


def test_nothing_has_its_final_name_before_the_end(tmp_path):
    with Staging(tmp_path) as staging:
        final = staging.add_text("a.txt", "one")
        assert not final.exists()
    assert final.read_text() == "one"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_failure_removes_every_file_and_keeps_what_was_there(tmp_path):
    (tmp_path / "a.txt").write_text("old")

    def fail(path: Path) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError), Staging(tmp_path) as staging:
        staging.add_text("a.txt", "new")
        staging.add("b.txt", fail)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


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
    assert [path.name for path in tmp_path.iterdir()] == ["summary.json"]
    assert (tmp_path / "summary.json").read_text() == "second"


def test_a_failure_removes_the_directory_that_was_made_for_the_files(tmp_path):
    with pytest.raises(ValueError), Staging(tmp_path / "new" / "deep"):
        raise ValueError
    assert list(tmp_path.iterdir()) == []


def test_what_new_files_supersede_goes_when_they_come(tmp_path):
    for name in ("old.parquet", "kept.parquet", "notes.txt"):
        (tmp_path / name).write_text("old")
    with pytest.raises(ValueError), Staging(tmp_path) as staging:
        staging.supersede(["*.parquet"])
        raise ValueError
    assert len(list(tmp_path.iterdir())) == 3
    with Staging(tmp_path) as staging:
        staging.supersede(["*.parquet"])
        staging.add_text("kept.parquet", "new")
        assert (tmp_path / "old.parquet").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept.parquet", "notes.txt"]
    assert (tmp_path / "kept.parquet").read_text() == "new"
