"""Long names of arms leave room for the axes, in figures as wide as a column or a page."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

import sojourn as sj
from sojourn.figure.names import cut, differing
from sojourn.figure.style import TALLEST_IN, WIDTHS_IN, settle

LONG = ("pfifo", *(f"dualpi2 nqb=true queue_protection={on}" for on in ("true", "false")))
MANY = (*LONG, *(f"{aqm} target={ms}ms" for aqm in ("codel", "pie", "fq_codel", "cobalt") for ms in range(5, 10)))
REST = """
experiment = { duration = "1 s" }
link = { rate = "10 Mbit/s", up = { rate = "5 Mbit/s" } }
traffic = [{ kind = "bulk", rtt = "20 ms" }, { kind = "voip", direction = "up", rtt = "20 ms" }]
"""


def of_arms(labels: tuple[str, ...]) -> sj.Results:
    queues = ", ".join(f'{{ label = "{label}", aqm = "{label.split()[0]}" }}' for label in labels)
    return sj.run_text(f"queue = [{queues}]\n{REST}", jobs=2)


@pytest.fixture(scope="module", params=[LONG, MANY], ids=["3 arms", "23 arms"])
def results(request: pytest.FixtureRequest) -> sj.Results:
    return of_arms(request.param)


def shares(drawn: Figure) -> list[tuple[float, float]]:
    settle(drawn)
    return [(axes.get_position().width, axes.get_position().height) for axes in drawn.axes if axes.get_visible()]


@pytest.mark.parametrize("width", WIDTHS_IN)
def test_long_names_leave_the_axes_two_fifths_of_a_figure(results: sj.Results, width):
    for drawn in (results.plot.bars(width=width), results.plot.box(width=width)):
        ((across, up),) = shares(drawn)
        assert across > 0.7
        assert up > 0.4
        assert drawn.get_figheight() <= TALLEST_IN


@pytest.mark.parametrize("width", [*WIDTHS_IN, None])
def test_an_overview_fits_on_a_page_and_its_panels_are_axes(results: sj.Results, width):
    drawn = results.plot.overview(width=width)
    found = shares(drawn)
    columns = len({round(axes.get_position().x0, 3) for axes in drawn.axes if axes.get_visible()})
    widest, tallest = (WIDTHS_IN[width], TALLEST_IN) if width else (12.5, 12.5)
    assert drawn.get_figwidth() <= widest
    assert drawn.get_figheight() <= tallest
    assert min(across for across, _ in found) > 0.7 / columns
    # One above the other they have a third of the height, even where a row of names is in the middle.
    assert found[0][1] * -(-len(found) // columns) > 1 / 3
    for axes in drawn.axes:
        for label in axes.get_xticklabels():
            if label.get_visible() and label.get_text():
                assert label.get_window_extent().y0 >= -1.0


def test_names_are_reduced_to_what_differs():
    assert differing(LONG) == ["pfifo", "dualpi2 queue_protection=true", "dualpi2 queue_protection=false"]
    assert differing(["a one x", "a one y"]) == ["a x", "a y"]
    assert differing(["codel, rate 1 Mbit/s", "codel, rate 2 Mbit/s"]) == ["codel rate 1 Mbit/s", "codel rate 2 Mbit/s"]
    assert differing(["a x", "a x x"]) == ["a x", "a x x"], "they would be equal"


def test_cases_have_whole_names_and_no_lines_between_them():
    cases = ["as it is", *(f"CAKE at {down} % down, {up} % up" for down in (85, 90, 95) for up in (85, 90, 95))]
    text = 'repeat = 2\n[link]\nrate = "10 Mbit/s"\n[[queue]]\naqm = "cake"\n[[traffic]]\nkind = "bulk"\nrtt = "20 ms"'
    text = f'[experiment]\nduration = "1 s"\n{text}\n' + "".join(f'[[case]]\nlabel = "{case}"\n' for case in cases)
    axes = sj.run_text(text).plot.over("case").axes[0]
    assert [label.get_text().replace("\n", " ") for label in axes.get_xticklabels()] == cases
    assert {line.get_linestyle() for line in axes.get_lines()} == {"None"}


def test_the_label_of_the_vertical_axis_is_within_the_figure():
    traffic = 'traffic = [{ kind = "bulk", rtt = "20 ms", direction = "both", from = "a", to = "c" }]'
    ends = ("a", "b"), ("b", "c")
    rates = 'rate = "9 Mbit/s", up = { rate = "9 Mbit/s" }'
    links = ", ".join(f'{{ name = "{one}{two}", from = "{one}", to = "{two}", {rates} }}' for one, two in ends)
    text = f'experiment = {{ duration = "1 s" }}\nlink = [{links}]\nqueue = [{{ aqm = "pfifo" }}]\n{traffic}\n'
    drawn = sj.run_text(text).plot.scatter("ab/down")
    settle(drawn)
    extent = drawn.axes[0].yaxis.label.get_window_extent()
    assert 0 <= extent.y0 < extent.y1 <= drawn.bbox.height


def test_names_that_are_cut_differ():
    assert cut(["queue_protection=true", "queue_protection=false"], 16) == ["queue_pr…on=true", "queue_pr…n=false"]
    assert cut(["a very long name", "b"], 8) == ["a very …", "b"]
