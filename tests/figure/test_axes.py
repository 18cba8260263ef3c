"""Where axes begin, and what becomes of values below."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure

import sojourn as sj
from sojourn.figure import style
from sojourn.figure.panels import color_scale

IDLE = """
experiment = { duration = "1 s", repeat = 2 }
link = { rate = "10 Mbit/s" }
queue = [{ aqm = "pfifo" }, { aqm = "codel" }]
traffic = [{ kind = "cbr", rate = "1 Mbit/s", rtt = "20 ms" }]
record = { series = "100 ms" }
sweep = { "link.rate" = ["10 Mbit/s", "20 Mbit/s"] }
"""


def test_values_below_a_logarithmic_axis_are_drawn_at_its_end():
    # A flow that pauses: the queue is empty for seconds.
    text = """
    experiment = { duration = "6 s" }
    link = { rate = "10 Mbit/s" }
    queue = [{ aqm = "pfifo" }, { aqm = "codel" }]
    traffic = [
        { kind = "bulk", rtt = "20 ms", flows = 4, stop = "4 s" },
        { kind = "cbr", rate = "1 Mbit/s", rtt = "20 ms" },
    ]
    record = { series = "100 ms" }
    """
    axes = sj.run_text(text).plot.timeseries().axes[0]
    low, high = axes.get_ylim()
    assert axes.get_yscale() == "log"
    drawn = [np.asarray(line.get_ydata()) for line in axes.lines]
    assert min(np.nanmin(values) for values in drawn) == pytest.approx(low)
    assert max(np.nanmax(values) for values in drawn) <= high
    assert "at the lower end: that or less" in axes.get_title(loc="left").replace("\n", " ")


def test_axes_of_zeros_begin_at_zero():
    results = sj.run_text(IDLE)
    for drawn in (results.plot.over("link.rate", "dropped_packets"), results.plot.timeseries(), results.plot.box()):
        assert drawn.axes[0].get_ylim() == (0.0, 1.0)
    found = color_scale(np.zeros((2, 2)))
    assert (found.vmin, found.vmax) == (0.0, 1.0)


def test_an_axis_with_a_zero_among_others_begins_at_it():
    slow = IDLE.replace('"20 Mbit/s"]', '"0.9 Mbit/s"]')
    axes = sj.run_text(slow).plot.over("link.rate", "sojourn_p50_ms").axes[0]
    values = [value for line in axes.lines for value in line.get_ydata()]
    assert min(values) == 0.0 < max(values)
    assert axes.get_ylim()[0] == 0.0


@pytest.mark.parametrize(("ends", "few"), [((9.5, 2000.0), 300.0), ((250.0, 1900.0), 300.0), ((0.01, 5e6), 300.0)])
@pytest.mark.parametrize("inches", [0.4, 0.8, 4.0])
def test_numbers_of_a_logarithmic_axis_have_room_and_are_there(ends: tuple[float, float], few: float, inches: float):
    with style.applied():
        for name, size in (("x", (inches + 1.0, 2.0)), ("y", (4.0, inches))):
            drawn = Figure(figsize=size, layout="none")
            axes = drawn.add_axes((0.2, 0.0, 0.8, 1.0))
            axes.set(**{f"{name}lim": ends})
            style.log_axis(axes, name, few)
            drawn.draw_without_rendering()
            axis = axes.xaxis if name == "x" else axes.yaxis
            labels = axis.get_ticklabels()
            assert len(labels) > 1
            boxes = [label.get_window_extent() for label in labels]
            if inches > 0.4:
                assert not any(one.overlaps(other) for one, other in pairwise(boxes)), [
                    label.get_text() for label in labels
                ]
