"""Many figures are saved by several processes, as one would save them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sojourn.plots import render
from sojourn.plots.style import figure, log_axis, style
from sojourn.storage import Staging


def drawn(count: int) -> list[tuple[str, Callable[[], object]]]:
    figures: list[tuple[str, Callable[[], object]]] = []
    for number in range(count):
        with style():
            one = figure()
            axes = one.subplots()
            axes.plot([1, 10, 1000], [1, number + 1, 3])
            log_axis(axes, "x")
        figures.append((f"figure{number}", lambda one=one: one))
    return figures


def test_figures_are_the_same_from_one_process_and_from_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    # A module of the user's that has the name of one that the other process imports.
    (tmp_path / "numpy.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    for processes in (1, 2):
        monkeypatch.setattr(render, "default_workers", lambda processes=processes: processes)
        with Staging(tmp_path / str(processes)) as staging:
            assert len(render.save_all(staging, drawn(12), ("png", "svg"))) == 24
    for path in (tmp_path / "1").glob("figure*"):
        assert path.read_bytes() == (tmp_path / "2" / path.name).read_bytes(), path.name


def test_a_figure_that_another_process_cannot_write_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(render, "default_workers", lambda: 2)
    before = render.pickle.dumps

    def without_a_folder(share: object) -> bytes:
        return before([(one, [(Path("/no/such/folder/figure.png"), "png")]) for one, _ in share])

    monkeypatch.setattr(render.pickle, "dumps", without_a_folder)
    with Staging(tmp_path / "out") as staging:
        staging.add_text("summary.json", "kept")
        with pytest.raises(OSError, match="No such file"):
            render.save_all(staging, drawn(12), ("png",))
    assert [path.name for path in (tmp_path / "out").glob("[!.]*")] == ["summary.json"]
