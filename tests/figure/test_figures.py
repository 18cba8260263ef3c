"""Figures of goodput against delay, bars, boxes and bands: what they show, checked by numbers."""

from __future__ import annotations

import importlib
import math
import pkgutil

import numpy as np
import pytest
from matplotlib.figure import Figure

import sojourn as sj
from conftest import EXPERIMENT
from sojourn import figure
from sojourn.figure.bars import draw_bars
from sojourn.figure.covered import COVERED, uncover
from sojourn.figure.distributions import one_sigma_ellipse, points
from sojourn.figure.plots import Plots
from sojourn.figure.style import OfResults, looks_of
from sojourn.frame.statistics import Interval


@pytest.fixture(scope="module")
def results() -> sj.Results:
    return sj.run_text(EXPERIMENT + '\n[record]\nseries = "500 ms"\n', set={"experiment.repeat": 4}, jobs=2)


def test_results_have_the_marks_of_every_file():
    for file in pkgutil.iter_modules(figure.__path__, f"{figure.__name__}."):
        importlib.import_module(file.name)
    unnamed = {mark.__qualname__ for mark in OfResults.__subclasses__() if not issubclass(Plots, mark)}
    assert unnamed == set(), "without their names in figure/plots.py, results.plot does not have them"


def test_an_ellipse_reaches_one_standard_deviation_along_each_axis():
    upright = one_sigma_ellipse(np.array([[1.0, 30.0], [3.0, 10.0], [3.0, 50.0], [5.0, 30.0]]))
    # Means 3 and 30; squared deviations add up to 8 and 800, over n - 1 = 3; no covariance.
    assert upright[:, 0].max() == pytest.approx(3.0 + math.sqrt(8 / 3), abs=1e-3)
    assert upright[:, 1].min() == pytest.approx(30.0 - math.sqrt(800 / 3), abs=1e-2)


def test_an_ellipse_of_points_on_a_line_is_that_line():
    # y = 2x: x = 1, 2, 3 has variance 1, so the contour ends at (2 ± 1, 4 ± 2).
    contour = one_sigma_ellipse(np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]))
    assert contour[:, 1] == pytest.approx(2 * contour[:, 0])
    assert (contour[:, 0].min(), contour[:, 0].max()) == pytest.approx((1.0, 3.0))


def test_the_delay_axis_runs_backwards_and_the_circle_is_at_the_medians(results: sj.Results):
    axes = results.plot.ellipse().axes[0]
    left, right = axes.get_xlim()
    assert left > right
    circles = {line.get_label(): line.get_xydata()[0] for line in axes.lines if line.get_marker() == "o"}
    codel = next(arm for arm in results.arms if arm.label == "codel")
    runs = [(run.sojourn_ms()["mean"], sum(flow["goodput_bps"] for flow in run.summary["flows"])) for run in codel.runs]
    assert circles["codel"] == pytest.approx((np.median([d for d, _ in runs]), np.median([g for _, g in runs]) / 1e6))
    assert len(axes.patches) == 2


def test_more_arms_than_colours_differ_in_their_marks():
    sweep = '\n[sweep]\n"link.rate" = ["4 Mbit/s", "5 Mbit/s", "6 Mbit/s", "7 Mbit/s"]\n'
    axes = sj.run_text(EXPERIMENT.replace("repeat = 2", "repeat = 1") + sweep).plot.ellipse().axes[0]
    marks = [(line.get_color(), line.get_marker()) for line in axes.lines if line.get_marker() != "."]
    assert len(marks) == len(set(marks)) == 8


@pytest.mark.parametrize("draw", ["cdf", "tail", "timeseries", "goodput"])
def test_more_than_eight_lines_of_a_sweep_are_in_panels(draw: str):
    sweep = '\n[record]\nseries = "500 ms"\n[sweep]\n"link.rate" = ["4 Mbit/s", "5 Mbit/s", "6 Mbit/s"]\n'
    both = EXPERIMENT.replace("repeat = 2", "repeat = 1") + sweep + '"traffic.0.flows" = [1, 2]\n'
    drawn = getattr(sj.run_text(both).plot, draw)()
    names = [axes.get_title(loc="left") for axes in drawn.axes]
    assert names == [f"rate {rate} Mbit/s, {flows}" for rate in (4, 5, 6) for flows in ("1 flow", "2 flows")]
    assert [len(axes.lines) for axes in drawn.axes] == [2] * 6
    assert {text.get_text() for text in drawn.legends[0].get_texts()} == {"pfifo", "codel"}
    assert len({(line.get_color(), line.get_linestyle()) for axes in drawn.axes for line in axes.lines}) == 2
    one = both.replace('[[queue]]\naqm = "pfifo"\n', "").replace("[1, 2]", "[1, 2, 3]")
    drawn = getattr(sj.run_text(one).plot, draw)()
    names = [axes.get_title(loc="left") for axes in drawn.axes if axes.get_visible()]
    assert names == ["1 flow", "2 flows", "3 flows"]
    names = [text.get_text() for text in drawn.legends[0].get_texts()]
    assert sorted(names) == [f"rate {rate} Mbit/s" for rate in (4, 5, 6)], "of one queue a line per value"


def test_a_mark_is_seen_around_another_at_its_point():
    twins = EXPERIMENT.replace('aqm = "codel"', 'aqm = "codel"\n[[queue]]\naqm = "codel"\necn = true\nlabel = "twin"')
    axes = sj.run_text(twins).plot.ellipse().axes[0]
    circles = [(line.get_xydata(), line.get_markersize()) for line in axes.lines if line.get_marker() == "o"]
    (_, of_pfifo), (below, of_codel), (above, of_twin) = circles
    assert of_pfifo == of_twin < of_codel and above.tolist() == below.tolist()
    assert COVERED in axes.get_title(loc="left")
    assert [text.get_text() for text in axes.get_figure().legends[0].get_texts()] == ["pfifo", "codel", "twin"]


def test_marks_at_one_point_have_a_ring_for_each_above_them():
    axes = Figure().add_subplot()
    arms = [("a", [1.0, 2.0]), ("b", [1.0, 3.0]), ("c", [1.0])]
    lines = [(arm, axes.plot(xs, xs, "o", markersize=4.0)[0]) for arm, xs in arms]
    lines.append(("a", axes.plot([2.0], [2.0], "o", markersize=4.0)[0]))
    assert uncover(axes, lines), "but not of one arm by itself"
    drawn = [(line.get_markersize(), line.get_xdata().tolist()) for line in axes.lines if len(line.get_xdata())]
    assert sorted(drawn) == [(4.0, [1.0]), (4.0, [2.0]), (4.0, [2.0]), (4.0, [3.0]), (9.0, [1.0]), (14.0, [1.0])]
    assert not uncover(Figure().add_subplot(), [])


def test_fewer_than_three_repeats_have_no_ellipse():
    assert not sj.run_text(EXPERIMENT).plot.ellipse().axes[0].patches


def test_a_scatter_has_a_mark_per_run(results: sj.Results):
    marks = results.plot.scatter(delay="p99").axes[0].lines
    assert [len(line.get_xdata()) for line in marks] == [4, 4]
    assert list(marks[0].get_xdata()) == [run.sojourn_ms()["p99"] for run in results.arms[0].runs]
    assert points(results.arms[0], "down", "p50").shape == (4, 2)


def test_bars_are_the_table(results: sj.Results):
    axes = results.plot.bars("sojourn_p95_ms").axes[0]
    expected = [np.median([run.sojourn_ms()["p95"] for run in arm.runs]) for arm in results.arms]
    points = [line.get_ydata()[0] for line in axes.lines if line.get_marker() == "D"]
    assert points == pytest.approx(expected), "they differ by more than a factor of eight"
    heights = [bar.get_height() for bar in results.plot.bars("utilization").axes[0].patches]
    shares = [np.median([run.summary["bottleneck"]["down"]["utilization"] for run in arm.runs]) for arm in results.arms]
    assert heights == pytest.approx([100 * share for share in shares])
    with pytest.raises(ValueError, match="goodput_bps"):
        results.plot.bars("goodput")


def test_whiskers_go_where_they_are_asked_to(results: sj.Results):
    def reach(figure) -> float:
        return max(line.get_ydata().max() for line in figure.axes[0].lines if line.get_ydata().size)

    assert reach(results.plot.box(whiskers=(5, 95))) > reach(results.plot.box())


def test_the_mean_over_repeats_lies_in_its_band(results: sj.Results):
    axes = results.plot.timeseries("mean").axes[0]
    rows = [run.queue_series()["sojourn_mean_ms"].to_numpy() for run in results.arms[0].runs]
    assert axes.lines[0].get_ydata() == pytest.approx(np.mean(rows, axis=0))
    assert len(axes.collections) == 2


@pytest.mark.parametrize("packets", [False, True], ids=["quantiles", "packets"])
def test_every_distribution_function_reaches_the_top(packets: bool):
    # A short full queue: many packets wait the same time, which is the longest.
    full = EXPERIMENT.replace("100 packets", "5 packets")
    drawn = sj.run_text(full, set={"record.packets": packets}).plot.cdf()
    assert [line.get_ydata()[-1] for line in drawn.axes[0].lines] == pytest.approx([0.999, 0.999])
    assert all((np.diff(line.get_ydata()) > -1e-12).all() for line in drawn.axes[0].lines)


def test_a_tail_passes_the_quantiles_of_a_run_and_ends_at_its_longest_wait():
    run = sj.run_text(EXPERIMENT, set={"experiment.repeat": 1})
    axes = run.plot.tail().axes[0]
    assert axes.get_yscale() == "log"
    for arm, line in zip(run.arms, axes.lines, strict=True):
        waits, shares = (np.asarray(one) for one in line.get_data())
        of_run = arm.runs[0].sojourn_ms()
        # A bucket of a run's histogram is less than 1 % wide.
        for name, share in (("p50", 0.5), ("p90", 0.1), ("p99", 0.01)):
            above = waits[shares <= share].min()
            assert above == pytest.approx(of_run[name], rel=0.01), (arm.label, name)
        assert waits.max() <= of_run["max"]


def test_a_wait_that_many_packets_share_is_a_vertical_line(results: sj.Results):
    run = results.runs[0]
    shared = {**run.sojourn_ms(), **dict.fromkeys(("p95", "p99", "p99_9", "max"), 200.0)}
    summary = {**run.summary, "bottleneck": {"down": {**run.summary["bottleneck"]["down"], "sojourn_ms": shared}}}
    drawn = sj.Results({**results.summary, "runs": [summary]}, [sj.Run(summary, lambda _: None)]).plot.cdf()
    (line,) = drawn.axes[0].lines
    assert line.get_xydata()[-2:] == pytest.approx(np.array([[200.0, 0.95], [200.0, 0.999]]))


NETWORK = """
experiment = { name = "network", duration = "6 s", repeat = 2 }
queue = [{ aqm = "cake" }, { aqm = "fq_codel" }]
[[link]]
name = "router"
from = "home"
to = "modem"
rate = "100 Mbit/s"
[[link]]
name = "line"
from = "modem"
to = "net"
rate = "10 Mbit/s"
queue = { aqm = "pfifo", limit = "200 packets" }
[[traffic]]
kind = "bulk"
flows = 2
from = "home"
to = "net"
rtt = "20 ms"
[[traffic]]
name = "call"
kind = "voip"
from = "home"
to = "net"
rtt = "20 ms"
"""


@pytest.fixture(scope="module")
def network() -> sj.Results:
    return sj.run_text(NETWORK, jobs=2)


def test_an_overview_of_a_network_names_the_queue_in_which_packets_wait(network: sj.Results):
    panels = {" ".join(axes.get_title(loc="left").split()): axes for axes in network.plot.overview().axes}
    idle = panels["p95 of the sojourn time, queue router/down [ms]"]
    full = panels["p95 of the sojourn time, queue line/down [ms]"]
    assert [text.get_text() for text in idle.texts] == ["0", "0"]
    assert min(bar.get_height() for bar in full.patches) > 100.0
    assert min(bar.get_height() for bar in panels["call: p95 of the one-way delay [ms]"].patches) > 100.0
    names = {one.name for one in network.plot.drawings()}
    assert {"sojourn_cdf_router_down", "sojourn_cdf_line_down", "goodput_delay_ellipse_line_down"} <= names
    assert "sojourn_cdf" not in names
    assert network.plot.cdf("line/down").axes[0].get_title(loc="left") == "queue line/down"
    assert network.plot.cdf().axes[0].get_title(loc="left") == "queue router/down"
    with pytest.raises(ValueError, match='queue: got "modem/up"; must be one of router/down, line/down'):
        network.plot.cdf("modem/up")
    axes = network.plot.scatter("line/down").axes[0]
    assert min(line.get_xdata().min() for line in axes.lines) > 100.0
    assert min(line.get_ydata().min() for line in axes.lines) > 8.0


def test_a_logarithmic_axis_shows_every_arm():
    found = sj.compare("pfifo", "codel", "fq_codel", rate="10 Mbit/s", rtt="40 ms", flows=2, duration="10 s")
    cdf = found.plot.cdf().axes[0]
    assert cdf.get_xscale() == "log"
    medians = [arm.runs[0].sojourn_ms()["p50"] for arm in found.arms]
    assert cdf.get_xlim()[0] < min(medians) / 2
    assert max(medians) / min(medians) > 8
    bars = found.plot.bars("sojourn_p50_ms").axes[0]
    assert bars.get_yscale() == "log"
    assert not bars.patches, "the length of a bar on a logarithmic axis means nothing"
    low, high = bars.get_ylim()
    assert low < min(medians) < max(medians) < high


def test_many_lines_over_a_key_are_panels():
    rtts = '["10 ms", "20 ms", "30 ms", "40 ms", "50 ms"]'
    swept = f'\n[sweep]\n"link.rate" = ["2 Mbit/s", "4 Mbit/s"]\n"traffic.0.rtt" = {rtts}\n'
    found = sj.run_text(EXPERIMENT.replace("repeat = 2", "repeat = 1") + swept)
    drawn = found.plot.over("link.rate", "goodput_bps")
    panels = [axes for axes in drawn.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in panels] == [f"rtt {rtt} ms" for rtt in (10, 20, 30, 40, 50)]
    assert [len(axes.lines) for axes in panels] == [2] * 5
    assert len(found.plot.over("traffic.0.rtt", "goodput_bps").axes) == 1


def test_a_score_has_its_scale_whatever_it_is():
    axes = Figure().add_subplot()
    draw_bars(axes, [Interval(one, one, one, 1) for one in (2.0, 100.0)], looks_of(["pie", "codel"]), (0.0, 100.0))
    assert (axes.get_yscale(), axes.get_ylim()) == ("linear", (0.0, 100.0))


def test_windows_of_both_directions_name_theirs():
    both = EXPERIMENT.partition("[[traffic]]")[0].replace("[[queue]]", '[link.up]\nrate = "5 Mbit/s"\n\n[[queue]]', 1)
    text = both + '[[traffic]]\nkind = "bulk"\ndirection = "both"\nrtt = "20 ms"\n[record]\nseries = "100 ms"\n'
    axes = sj.run_text(text, set={"experiment.duration": "2 s"}).plot.windows().axes[0]
    _, labels = axes.get_legend_handles_labels()
    assert labels == ["bulk down 1", "bulk up 2"]


def test_ellipse_and_scatter_note_goodputs_above_what_was_carried():
    """One flow after the other with 8 Mbit/s over 10 Mbit/s: each over its own time, 16 together."""
    head = EXPERIMENT.partition("[[traffic]]")[0]
    parts = ['start = "0 s"\nstop = "1 s"', 'start = "1 s"']
    after = "".join(f'[[traffic]]\nkind = "cbr"\nrate = "8 Mbit/s"\nrtt = "20 ms"\n{part}\n' for part in parts)
    results = sj.run_text(head + after, set={"experiment.warmup": "0 s", "experiment.duration": "2 s"})
    for drawn in (results.plot.ellipse(), results.plot.scatter()):
        assert "add up to more than the link carried" in " ".join(drawn.axes[0].get_title(loc="left").split())


def test_pacing_rates_are_below_the_windows_of_arms_that_pace():
    text = """
    experiment = { duration = "3 s" }
    link = { rate = "10 Mbit/s" }
    queue = [{ aqm = "pfifo" }]
    traffic = [{ kind = "bulk", tcp = "bbr3", rtt = "40 ms" }, { kind = "bulk", tcp = "cubic", rtt = "40 ms" }]
    record = { series = "100 ms" }
    """
    results = sj.run_text(text)
    above, below = results.plot.windows().axes
    assert (above.get_ylabel(), below.get_ylabel()) == ("segments", "Mbit/s")
    table = results.runs[0].flow_series()
    assert table is not None
    rates = table["pacing_bps"].to_numpy().reshape(-1, 2) / 1e6
    assert below.lines[0].get_ydata() == pytest.approx(rates[:, 0], nan_ok=True)
    # A bin's window is that at its end.
    assert above.lines[0].get_xdata() == pytest.approx(table["time_s"].to_numpy()[::2] + 0.1)
    assert np.nanmax(rates[:, 0]) > 9
    assert len(sj.run_text(text.replace("bbr3", "reno")).plot.windows().axes) == 1


def test_goodputs_at_different_times_have_a_note_in_figures_of_their_direction():
    text = """
    experiment = { duration = "4 s" }
    link = { rate = "10 Mbit/s", up = { rate = "10 Mbit/s" } }
    queue = [{ aqm = "pfifo" }]
    traffic = [
        { kind = "cbr", rate = "8 Mbit/s", rtt = "20 ms", stop = "1 s" },
        { kind = "cbr", rate = "8 Mbit/s", rtt = "20 ms", start = "2 s" },
        { kind = "cbr", rate = "8 Mbit/s", rtt = "20 ms", direction = "up" },
    ]
    """
    results = sj.run_text(text)
    said = [
        "more than" in results.plot.bars("goodput_bps", way).axes[0].get_title(loc="left") for way in ("down", "up")
    ]
    assert said == [True, False]
