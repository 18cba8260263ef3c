"""A run as an animation."""

from __future__ import annotations

import pytest

import sojourn as sj
from sojourn._core import ExperimentError

# With ECN nothing is lost, so that no window of time receives what waited behind a hole, more than the link carries.
LINE = """
experiment = { duration = "2 s" }
link = { rate = "10 Mbit/s", buffer = "100 packets" }
queue = [{ aqm = "codel", ecn = true }]
traffic = [{ kind = "bulk", flows = 2, rtt = "20 ms", ecn = true }]
"""


@pytest.fixture
def line(tmp_path):
    file = tmp_path / "line.toml"
    file.write_text(LINE)
    return file


def test_an_animation_drives_the_run_to_its_end(line):
    session = sj.Session(line)
    session.step("500 ms")
    animation = session.animate("300 ms", window="1 s", width="column")
    page = animation._repr_html_()
    assert session.finished
    assert page.count("data:image/png") == 5  # of 1.5 s
    queue, delay, goodput = (axes.get_ylabel() for axes in animation._fig.axes)
    assert (queue, delay, goodput) == ("queue [packets]", "sojourn time [ms]", "goodput [Mbit/s]")
    flows = [line.get_ydata() for line in animation._fig.axes[2].lines]
    assert sum(values[-1] for values in flows) == pytest.approx(9.4, abs=0.6)
    alone = sj.Session(line).results().runs[0].summary
    assert session.results().runs[0].summary["flows"] == alone["flows"]


def test_mistakes_are_told_in_one_line(line):
    with pytest.raises(ExperimentError, match=r'every: got "often"; must be a time above 0 like "100 ms"'):
        sj.Session(line).animate("often")
    with pytest.raises(ExperimentError, match=r'every: got "1 us"; must be at least "0\.001 s", 2000 pictures'):
        sj.Session(line).animate("1 us")
