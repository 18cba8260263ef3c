"""What is told of runs under way."""

from __future__ import annotations

from pathlib import Path

import pytest

from sojourn.cli.progress import Display
from sojourn.files import storage
from sojourn.runs.execution import Progress

STOPPING = Progress(93, 282, 0.3, 4.0, stopping=True)


@pytest.mark.parametrize(
    ("display", "told"),
    [
        (Display(then=" in the store"), "interrupted: keeping 93 finished of 282 runs in the store"),
        (Display(keeps=False), "interrupted: 93 finished of 282 runs, nothing kept"),
    ],
)
def test_an_interrupt_tells_whether_finished_runs_are_kept(
    capsys: pytest.CaptureFixture[str], display: Display, told: str
):
    display(STOPPING)
    assert capsys.readouterr().err == f"{told}; another Ctrl-C stops at once\n"


def test_a_bar_has_the_number_of_the_rounds_runs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with Display() as display:
        for finished, runs in [(10, 100), (1, 4)]:
            display(Progress(finished, runs, finished / runs, 4.0))
            assert display._bar is not None
            (task,) = display._bar.tasks
            assert (task.completed, task.total) == (finished, runs)


def test_a_new_folder_in_which_nothing_was_written_does_not_stay(tmp_path: Path):
    for written, stays in [([], False), (["table.csv"], True)]:
        folder = tmp_path / f"new-{stays}"
        with pytest.raises(KeyboardInterrupt), storage.reserved(folder):
            for name in written:
                (folder / name).touch()
            raise KeyboardInterrupt
        assert folder.exists() == stays
    empty = tmp_path / "empty"
    empty.mkdir()
    with storage.reserved(empty):
        pass
    assert empty.exists()
