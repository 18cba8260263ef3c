"""The Python package as a notebook uses it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.figure import Figure

import sojourn as sj
from conftest import EXPERIMENT
from sojourn.figure.filenames import FORMATS
from sojourn.frame.arrow import values_as_arrow

RECORD = '\n[record]\npackets = true\nseries = "500 ms"\n'


@pytest.fixture(scope="module")
def results() -> sj.Results:
    return sj.run_text(EXPERIMENT + RECORD, jobs=2)


def test_a_file_and_its_text_give_the_same(tmp_path: Path, results: sj.Results):
    (tmp_path / "e.toml").write_text(EXPERIMENT + RECORD, encoding="utf-8")
    from_file = sj.run(tmp_path / "e.toml", jobs=1)
    for ours, theirs in zip(results.runs, from_file.runs, strict=True):
        assert {**ours.summary, "wall_s": 0} == {**theirs.summary, "wall_s": 0}


def test_arms_group_the_repeats(results: sj.Results):
    assert [(arm.label, [run.seed for run in arm.runs]) for arm in results.arms] == [
        ("pfifo", [1, 2]),
        ("codel", [1, 2]),
    ]


def test_frames_have_a_row_per_run(results: sj.Results):
    frame = results.to_pandas()
    assert list(frame["label"]) == ["pfifo", "codel", "pfifo", "codel"]
    p95 = [run.sojourn_ms()["p95"] for run in results.runs]
    assert list(frame["sojourn_p95_ms"]) == p95
    assert results.to_arrow().num_rows == 4


def test_packets_come_with_their_run(results: sj.Results):
    packets = results.packets()
    assert packets is not None
    assert packets.column_names[:3] == ["run", "label", "seed"]
    assert packets.num_rows == sum(run.packets().num_rows for run in results.runs)


def test_columns_are_those_of_the_core_without_a_copy(results: sj.Results):
    column = results.runs[0].packets()["sojourn_ns"].chunk(0)
    first, second = column.to_numpy(zero_copy_only=True), column.to_numpy(zero_copy_only=True)
    assert np.shares_memory(first, second)


def test_what_was_not_recorded_is_none():
    results = sj.run_text(EXPERIMENT, set={"experiment.repeat": 1})
    assert results.packets() is None
    assert results.queue_series() is None
    with pytest.raises(ValueError, match="series"):
        results.plot.timeseries()


def test_round_trip_times_are_kept_one_by_one(tmp_path: Path):
    results = sj.run_text(EXPERIMENT, set={"experiment.repeat": 1, "record.rtt": True})
    table = results.runs[0].rtts()
    assert table.column_names == ["time_ns", "flow", "rtt_ns"]
    # All of them, those of the warm-up as well.
    assert table.num_rows >= sum(flow["rtt_ms"]["n"] for flow in results.runs[0].summary["flows"]) > 0
    results.save(tmp_path / "out", plots=False)
    assert sj.load(tmp_path / "out").rtts().num_rows == results.rtts().num_rows


@pytest.mark.parametrize(
    "values", [["a", "ü", ""], [1, 2, -3], [1.5, math.nan], [1, math.nan], [None, 1], ["a", None], [True], [2**40], []]
)
def test_values_become_the_arrow_array_that_pyarrow_would_make(values: list[object]):
    ours, theirs = values_as_arrow(values), pa.array(values)
    assert (ours.type, str(ours)) == (theirs.type, str(theirs))


@pytest.mark.parametrize("name", ["cdf", "box", "timeseries", "goodput"])
def test_every_figure_can_be_drawn(results: sj.Results, name, tmp_path: Path):
    figure = getattr(results.plot, name)()
    assert isinstance(figure, Figure)
    assert "[" in figure.axes[0].get_ylabel() or name == "cdf"
    figure.savefig(tmp_path / "figure.pdf")


def test_the_cdf_of_packets_and_of_quantiles_agree(results: sj.Results):
    plain = sj.run_text(EXPERIMENT)
    exact, rough = (r.plot.cdf().axes[0].lines for r in (results, plain))
    # Between two quantiles the rough curve is straight where the exact one has steps: a packet's 1.2 ms on this link.
    for line, other in zip(exact, rough, strict=True):
        x, y = other.get_xdata(), other.get_ydata()
        at = np.interp(0.5, y, x)
        assert np.interp(0.5, line.get_ydata(), line.get_xdata()) == pytest.approx(at, abs=1.3)


def test_saved_results_load_again(results: sj.Results, tmp_path: Path):
    written = results.save(tmp_path / "out", plots=False)
    assert all(path.exists() for path in written)
    loaded = sj.load(tmp_path / "out")
    assert loaded.summary == results.summary
    assert loaded.runs[1].packets().equals(results.runs[1].packets())
    assert loaded.queue_series().num_rows == results.queue_series().num_rows
    assert str(loaded) == str(results)


def test_a_figure_saved_twice_has_the_same_bytes(results: sj.Results, tmp_path: Path):
    for name in ("a", "b"):
        results.save(tmp_path / name, formats=FORMATS)
    for kind in FORMATS:
        first, second = ((tmp_path / name / f"sojourn_cdf.{kind}").read_bytes() for name in ("a", "b"))
        assert first == second, kind


def test_wrong_input_raises_one_line():
    with pytest.raises(sj.ExperimentError, match=r"^bad:\d+: queue\.1\.aqm: .*codel") as caught:
        sj.run_text(EXPERIMENT.replace('"codel"', '"codle"'), name="bad")
    assert "\n" not in str(caught.value)
    with pytest.raises(sj.ExperimentError, match="at least one"):
        sj.compare(rate="10mbit", rtt="40ms")
    with pytest.raises(sj.ExperimentError, match="backend"):
        sj.run("x.toml", backend="ns3")


def test_progress_is_reported_to_the_end():
    seen = []
    sj.run_text(EXPERIMENT, report=seen.append)
    assert seen[-1].finished == seen[-1].runs == 4
    assert seen[-1].fraction == pytest.approx(1.0)


def test_a_queue_name_cannot_break_out_of_the_file():
    with pytest.raises(sj.ExperimentError):
        sj.compare('codel"\n[link]\nrate="1 Mbit/s', rate="10mbit", rtt="40ms")


def test_a_figure_saved_by_hand_is_the_same_as_ours(results: sj.Results, tmp_path: Path):
    results.save(tmp_path / "out", formats=FORMATS)
    for kind in FORMATS:
        results.plot.cdf().savefig(tmp_path / f"own.{kind}")
        assert (tmp_path / f"own.{kind}").read_bytes() == (tmp_path / "out" / f"sojourn_cdf.{kind}").read_bytes(), kind


def test_a_notebook_shows_a_figure(results: sj.Results):
    assert results.plot.box()._repr_png_().startswith(b"\x89PNG")


def test_only_a_summary_stands_for_its_directory(results: sj.Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    results.save(tmp_path / "out", plots=False)
    monkeypatch.chdir(tmp_path / "out")
    assert sj.load("summary.json").summary == sj.load(".").summary == results.summary
    for other in ("zzz", "summary.csv", "zzz/summary.json"):
        with pytest.raises(OSError):
            sj.load(other)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"runs": 3}', '{"runs": [3]}', "\xff"])
def test_damaged_results_do_not_load(tmp_path: Path, content: str):
    (tmp_path / "summary.json").write_text(content, encoding="latin-1")
    with pytest.raises(sj.ExperimentError, match=r"summary\.json: the results are damaged"):
        sj.load(tmp_path)


def test_a_notebook_shows_a_wrong_input_in_one_line():
    with pytest.raises(sj.ExperimentError) as told:
        sj.run_text("[experiment]\nduration = 3\n")
    shown = told.value._render_traceback_()  # type: ignore[attr-defined]
    assert len(shown) == 1
    assert shown[0].startswith("ExperimentError: experiment:2: experiment.duration: got 3")
