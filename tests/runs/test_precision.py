"""Repeats that end once a metric is known well enough."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sojourn as sj
from conftest import EXPERIMENT, Cli
from sojourn.frame.results import Run
from sojourn.runs.precision import Cell, Precision


def runs(*goodputs):
    """Runs of one queue with a flow of this goodput each."""
    flows = [[{"direction": "down", "goodput_bps": bps}] for bps in goodputs]
    fixed = {"label": "codel", "set": {}, "bottleneck": {"down": {}}, "links": {"link": {"down": {}}}}
    return [Run({**fixed, "flows": flow}, lambda _: None) for flow in flows]


def missed(precision, repeats):
    """The queues that are not precise enough after these runs."""
    cell = Cell(Precision.parse(precision))
    for run in repeats:
        cell.take(run)
    return cell.missed()


def test_the_interval_of_the_mean_is_students():
    # Mean 10, standard deviation 0.0791, Student's t with 4 degrees 2.776: 2.776 * 0.0791 / sqrt(5) = 0.0982.
    repeats = runs(10.0, 10.1, 9.9, 10.05, 9.95)
    assert missed("goodput_bps=0.99%", repeats) == {}
    assert missed("goodput_bps=0.97%", repeats)["codel"] == pytest.approx(0.00982, rel=0.01)


def test_of_several_links_the_queue_with_the_widest_interval_counts():
    def run(*p95s):
        links = {
            name: {"down": {"delivered_packets": n, "sojourn_ms": {"p95": p95}}}
            for name, n, p95 in zip(("modem", "unused", "home"), (9, 0, 9), p95s, strict=True)
        }
        return Run(
            {"label": "codel", "set": {}, "bottleneck": links["modem"], "links": links, "flows": []}, lambda _: None
        )

    repeats = [run(10.0, None, p95) for p95 in (10.0, 10.1, 9.9, 10.05, 9.95)]
    assert missed("sojourn_p95_ms=0.99%", repeats) == {}
    assert missed("sojourn_p95_ms=0.97%", repeats)["codel"] == pytest.approx(0.00982, rel=0.01)


def test_a_figure_of_groups_is_that_of_all_that_have_it_or_of_the_named_one():
    def run(p95):
        groups = [
            {"traffic": 0, "name": "meeting", "kind": "call", "direction": "down", "frame_ms": {"p95": p95}},
            {"traffic": 1, "name": "lecture", "kind": "call", "direction": "down", "frame_ms": {"p95": 8.0}},
            {"traffic": 2, "name": "bulk", "kind": "bulk", "direction": "down"},
        ]
        return Run({"label": "codel", "set": {}, "groups": groups}, lambda _: None)

    repeats = [run(p95) for p95 in (10.0, 10.1, 9.9, 10.05, 9.95)]
    for name in ("frame_p95_ms", "meeting.frame_p95_ms"):
        assert missed(f"{name}=0.99%", repeats) == {}
        assert missed(f"{name}=0.97%", repeats)["codel"] == pytest.approx(0.00982, rel=0.01)
    assert missed("lecture.frame_p95_ms=0.1%", repeats) == {}
    assert "codel" in missed("nobody.frame_p95_ms=9%", repeats)


def test_what_is_always_the_same_is_precise_and_what_is_missing_is_not():
    assert missed("goodput_bps=1%", runs(0.0, 0.0, 0.0)) == {}
    assert "codel" in missed("goodput_bps=1%", runs(float("nan"), float("nan")))


@pytest.mark.parametrize("text", ["goodput=2%", "goodput_bps", "goodput_bps=2", "goodput_bps=0%", "goodput_bps=100%"])
def test_what_is_no_precision_is_refused(text):
    with pytest.raises(sj.ExperimentError, match="must be METRIC=SHARE, like goodput_bps=2%"):
        Precision.parse(text)


def test_repeats_end_when_all_queues_are_precise(tmp_path: Path):
    file = tmp_path / "experiment.toml"
    file.write_text(EXPERIMENT.replace("repeat = 2", "repeat = 40"))
    results = sj.run(file, until="sojourn_mean_ms=4%")
    pfifo, codel = results.arms
    assert 5 <= len(codel.runs) == len(pfifo.runs) < 40
    assert [run.seed for run in codel.runs] == list(range(1, len(codel.runs) + 1))
    precision = "sojourn_mean_ms=4%"
    assert missed(precision, results.runs) == {}
    # One fewer would not have been enough, unless it is the first look.
    before = [run for run in results.runs if run.seed < len(codel.runs)]
    assert len(codel.runs) == 5 or missed(precision, before)
    assert sj.run(file, until="sojourn_mean_ms=4%", jobs=1).summary["until"] == results.summary["until"]
    assert not results.partial


def test_what_repeat_does_not_suffice_for_is_told(sojourn: Cli, tmp_path: Path):
    (tmp_path / "experiment.toml").write_text(EXPERIMENT.replace("repeat = 2", "repeat = 6"))
    done = sojourn(
        "run", "experiment.toml", "--until", "sojourn_mean_ms=0.001%", "--json", "--out", "out", "--figures", "none"
    )
    assert done.returncode == 0
    summary = json.loads(done.stdout)
    assert len(summary["runs"]) == 12
    assert "partial" not in summary
    # On a busy machine progress is told before.
    missed = [line for line in done.stderr.splitlines() if line.endswith("after 6 repeats")]
    assert missed
    assert missed[0].startswith("pfifo: the 95% interval of sojourn_mean_ms is ±")
    assert json.loads((tmp_path / "out/summary.json").read_text())["until"]["missed"]


def test_too_few_repeats_to_stop_before_the_last_are_refused(sojourn: Cli, experiment: Path):
    done = sojourn("run", experiment, "--until", "goodput_bps=2%")
    assert done.returncode == 2
    assert done.stderr == "until: experiment.repeat, the maximum number of repeats, must be above 5; got 2\n"


def test_a_group_that_is_not_there_is_refused_before_a_run(sojourn: Cli, tmp_path: Path):
    (tmp_path / "experiment.toml").write_text(EXPERIMENT.replace("repeat = 2", "repeat = 6"))
    done = sojourn("run", "experiment.toml", "--until", "nix.rtt_p95_ms=5%")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'until: got "nix.rtt_p95_ms"; there is no group "nix"; must be one of bulk\n'


def test_a_metric_that_no_run_has_is_said_so(sojourn: Cli, tmp_path: Path):
    (tmp_path / "experiment.toml").write_text(EXPERIMENT.replace("repeat = 2", "repeat = 6"))
    done = sojourn("run", "experiment.toml", "--until", "bulk.frame_p95_ms=5%")
    assert "codel: bulk.frame_p95_ms has no value in these runs" in done.stderr + done.stdout
