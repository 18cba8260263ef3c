"""What papers published, as marks in figures and numbers in tables: each in its place and its unit."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from test_verdicts import Fake, study_in

from sojourn.studies import available, tabulate
from sojourn.studies.figures import caption, draw, drawn_with_marks
from sojourn.studies.figures.words import scheme_looks
from sojourn.studies.grid import Alias, Cell, Grid
from sojourn.studies.measures import Measure, Single, Values
from sojourn.studies.published import published_values
from sojourn.studies.recipe import FigureSpec, Published, Reading, Study, TableSpec, Value

FOUR = {"flows": 4.0}
SIXTEEN = {"flows": 16.0}


class SummaryRun(list):
    """Values of a run on a link with queues both ways."""

    @property
    def summary(self):
        return {"bottleneck": {"down": {}, "up": {}}}

    def histogram(self):
        """Kept without one."""


class Spread(Measure):
    """A measure whose run is a list of values."""

    def sample(self, run):
        return Values(np.array(run, dtype=float))


def claim(
    id_: str, metric: str, published: str, statistic: str = "median", qdisc: str = "a", condition: str = ""
) -> str:
    where = f"condition = {condition}\n" if condition else ""
    return f"""
[[claim]]
id = "{id_}"
experiment = "e"
kind = "number"
check = "auto"
statement = "It is so."
location = "sec 1, Fig 3"
metric = "{metric}"
statistic = "{statistic}"
unit = "ms"
qdisc = "{qdisc}"
{where}{published}
"""


def study_of(tmp_path: Path, claims: str, *, readings=None, measure=None, derived=None) -> Study:
    (tmp_path / "claims.toml").write_text(claims, encoding="utf-8")
    delay = measure or Fake("sojourn_ms", "ms", "queueing delay")
    measures = {
        "delay": delay,
        "rtt": (Spread if measure else Fake)("sojourn_ms", "ms", "RTT", plus={"base": 1.0}),
    }
    experiment = Published("e", "", (), "{scheme}", {"flows": "traffic.0.flows"}, {}, {}, "")
    more = {"measures": measures, "derived": derived or {}, "labels": {"a": "Alpha"}}
    return study_in(tmp_path, (readings or {}).get("c"), experiments=(experiment,), **more)


def grid_of(study: Study, runs) -> dict[str, Grid]:
    """Of ``{(scheme, flows): [run, …]}``."""
    cells = [Cell(scheme, {"flows": float(flows)}, tuple(own)) for (scheme, flows), own in runs.items()]
    return {"e": Grid(cells, study.measures, {"per_pair": Alias("flows", 0.25)}, {"base": 100.0})}


def single(**of) -> dict:
    return {(name[0], int(name[1:])): [Single(value)] for name, value in of.items()}


def test_a_number_is_where_its_condition_says(tmp_path):
    study = study_of(tmp_path, claim("c", "delay", "value = 7", condition="{ per_pair = 4 }"))
    (mark,) = published_values(study, grid_of(study, single(a4=1.0, a16=2.0, b16=3.0)), "e", {"delay"})
    assert (mark.scheme, mark.places, mark.low, mark.high, mark.bound) == ("a", (SIXTEEN,), 7.0, 7.0, None)
    assert (mark.statistic, mark.measured, mark.relative) == ("median", 2.0, False)
    assert mark.is_at({"flows": 16.0}) and not mark.is_at({"flows": 4.0})


def test_a_gain_is_taken_from_what_was_measured(tmp_path):
    # 25 % less than b's 8 ms are 6 ms of a; 50 % are 4 ms.
    reading = Reading(because="", measure="100 * (1 - a.delay.median / b.delay.median)")
    study = study_of(tmp_path, claim("c", "delay", "min = 25\nmax = 50"), readings={"c": reading})
    (mark,) = published_values(study, grid_of(study, single(a4=7.0, b4=8.0)), "e", {"delay"})
    assert (mark.low, mark.high) == (pytest.approx(4.0), pytest.approx(6.0))
    assert mark.relative and mark.measured == pytest.approx(12.5)


def test_a_bound_on_a_gain_turns_round(tmp_path):
    # At least 25 % less than 8 ms is at most 6 ms.
    reading = Reading(because="", measure="100 * (1 - a.delay.median / b.delay.median)")
    study = study_of(tmp_path, claim("c", "delay", 'bound = ">="\nvalue = 25'), readings={"c": reading})
    (mark,) = published_values(study, grid_of(study, single(a4=7.0, b4=8.0)), "e", {"delay"})
    assert (mark.low, mark.bound) == (pytest.approx(6.0), "<=")


def test_a_number_in_seconds_is_put_in_the_metrics_milliseconds(tmp_path):
    reading = Reading(because="", measure="a.delay.max / 1000")
    study = study_of(tmp_path, claim("c", "delay", "value = 0.3"), readings={"c": reading}, measure=spread())
    (mark,) = published_values(study, grid_of(study, {("a", 4): [[1.0, 2.0]]}), "e", {"delay"})
    assert (mark.low, mark.statistic) == (pytest.approx(300.0), "max")


def test_what_is_no_straight_line_of_one_statistic_is_not_drawn(tmp_path):
    for formula in ("max(a.delay.median, b.delay.median)", "a.delay.median * a.delay.median", "1 / a.delay.median"):
        reading = Reading(because="", measure=formula)
        study = study_of(tmp_path, claim("c", "delay", "value = 3"), readings={"c": reading})
        assert published_values(study, grid_of(study, single(a4=1.0, b4=2.0)), "e", {"delay"}) == [], formula


def test_relations_and_what_is_not_comparable_are_not_drawn(tmp_path):
    grids = None
    for reading in (Reading(because="", not_comparable=True), Reading(because="", relation="a.delay < b.delay")):
        study = study_of(tmp_path, claim("c", "delay", "value = 3"), readings={"c": reading})
        grids = grid_of(study, single(a4=1.0, b4=2.0))
        assert published_values(study, grids, "e", {"delay"}) == []
    study = study_of(tmp_path, claim("c", "delay", "value = 3"))
    assert len(published_values(study, grids or {}, "e", {"delay"})) == 1
    assert published_values(study, grids or {}, "other", {"delay"}) == []


def spread() -> Measure:
    return Spread("sojourn_ms", "ms", "queueing delay")


def box(**fields) -> FigureSpec:
    return FigureSpec(**{"name": "fig3", "title": "T", "kind": "box", "experiment": "e", "metric": "delay", **fields})


def diamonds(axes) -> list[tuple[float, float]]:
    return [(line.get_xdata()[0], line.get_ydata()[0]) for line in axes.lines if line.get_marker() == "D"]


def legend(drawn) -> list[str]:
    return [text.get_text() for text in drawn.legends[0].get_texts()]


def test_a_box_has_its_diamond_and_the_legend_says_so(tmp_path, runs_of_two):
    study = study_of(tmp_path, claim("c", "delay", "value = 7", condition="{ flows = 16 }"), measure=spread())
    grids = grid_of(study, runs_of_two)
    drawn = draw(box(x="flows"), study, grids)
    # The second of two places, the left of two schemes, each 0.4 wide.
    assert diamonds(drawn.axes[0]) == [(pytest.approx(0.8), 7.0)]
    assert legend(drawn) == ["Alpha", "b", "published"]
    assert drawn_with_marks(box(x="flows"), study, grids)[1].claims == {"c"}
    assert legend(draw(box(x="flows", where={"flows": 4}), study, grids)) == ["Alpha", "b"]


def test_a_published_range_is_a_band_as_high_as_it(tmp_path, runs_of_two):
    study = study_of(tmp_path, claim("c", "delay", "min = 5\nmax = 9", condition="{ flows = 4 }"), measure=spread())
    drawn = draw(box(x="flows"), study, grid_of(study, runs_of_two))
    bands = [patch for patch in drawn.axes[0].patches if hasattr(patch, "get_height") and patch.get_y() == 5.0]
    assert [(band.get_height(), band.get_x() + band.get_width() / 2) for band in bands] == [(4.0, pytest.approx(-0.2))]
    assert legend(drawn)[-1] == "published range"


def test_a_delay_is_drawn_where_it_belongs_on_an_axis_of_rtts(tmp_path):
    study = study_of(tmp_path, claim("c", "delay", "value = 7"), measure=spread())
    drawn = draw(
        box(metric="rtt", of_runs=True), study, grid_of(study, {("a", 4): [SummaryRun([1.0]), SummaryRun([2.0])]})
    )
    assert [y for _, y in diamonds(drawn.axes[0])] == [107.0]


def test_a_quantile_is_on_its_level_of_a_distribution_function(tmp_path):
    study = study_of(tmp_path, claim("c", "delay", "value = 7", statistic="p80"), measure=spread())
    drawn = draw(box(kind="cdf"), study, grid_of(study, {("a", 4): [SummaryRun(range(11))]}))
    assert diamonds(drawn.axes[0]) == [(7.0, 0.8)]


def test_the_range_of_the_repeats_medians_is_in_the_box(tmp_path, runs_of_two):
    study = study_of(tmp_path, "", measure=spread())
    axes = draw(box(x="flows"), study, grid_of(study, runs_of_two)).axes[0]
    bars = [tuple(line.get_ydata()) for line in axes.lines if line.get_color() == "black"]
    assert (2.0, 4.0) in bars


@pytest.fixture
def runs_of_two():
    """Two repeats, with medians of 2 and 4 for a at 4 flows."""
    wide = [SummaryRun([1.0, 2.0, 3.0]), SummaryRun([3.0, 4.0, 5.0])]
    return {("a", 4): wide, ("a", 16): wide, ("b", 4): wide, ("b", 16): wide}


def test_a_caption_says_what_whiskers_are(tmp_path):
    study = study_of(tmp_path, "", measure=spread())
    runs = {("a", 4): [SummaryRun([1.0]), SummaryRun([2.0])]}
    assert "whiskers: p5 and p95, means of 2 repeats" in caption(box(whiskers=[5, 95]), study, grid_of(study, runs))
    assert "Downstream." in caption(box(), study, grid_of(study, runs))


def table(**fields) -> TableSpec:
    values = (Value("delay [ms]", "delay", "median"),)
    return TableSpec(
        **{"name": "table2", "title": "T", "experiment": "e", "rows": ["scheme"], "values": values, **fields}
    )


def test_a_table_has_published_above_measured(tmp_path):
    published = claim("c", "delay", "value = 7\ntol_abs = 2", condition="{ flows = 4 }")
    published += claim("d", "delay", "value = 7\ntol_abs = 2", qdisc="b", condition="{ flows = 4 }")
    study = study_of(tmp_path, published)
    grids = grid_of(study, single(a4=5.5, b4=9.5, a16=1.0, b16=1.0))
    lines = tabulate.markdown(table(where={"flows": 4}), study, grids).splitlines()
    assert lines[0] == "**Table 2: T**"
    assert lines[2:] == [
        "| scheme |  | delay [ms] |",
        "| --- | --- | --- |",
        "| Alpha | published | 7 |",
        "|  | measured | 5.5 |",
        "| b | published | 7 |",
        "|  | measured | 9.5 ✗ |",
        "",
        "✗: outside of what the claim accepts.",
    ]


def test_a_table_across_schemes_counts_in_the_papers_axis(tmp_path):
    study = study_of(tmp_path, claim("c", "delay", "value = 7", condition="{ per_pair = 4 }"))
    spec = table(rows=["per_pair"], across="scheme")
    text = tabulate.as_csv(spec, study, grid_of(study, single(a4=1.0, b4=2.0, a16=3.0)))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["per_pair"], row["scheme"], row["published_low"], row["measured"]) for row in rows] == [
        ("1", "a", "", "1"),
        ("1", "b", "", "2"),
        ("4", "a", "7", "3"),
    ]
    assert [(row["accepted"], row["claim"]) for row in rows][2] == ("false", "c")


def test_a_number_that_cannot_be_compared_is_in_its_table_unjudged(tmp_path):
    reading = Reading(because="", not_comparable=True)
    study = study_of(tmp_path, claim("c", "delay", "value = 7"), readings={"c": reading})
    text = tabulate.markdown(table(), study, grid_of(study, single(a4=1.0)))
    assert "| Alpha | published | 7 |" in text and "|  | measured | 1 |" in text


def csv_rows(spec: TableSpec, study: Study, grids) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(tabulate.as_csv(spec, study, grids))))


def test_a_table_has_only_what_was_published_of_its_statistic_and_in_its_place(tmp_path):
    published = claim("high", "delay", "value = 90", statistic="p95 of runs")
    published += claim("other", "delay", "value = 80").replace("Fig 3", "Table 21")
    published += claim("own", "delay", "value = 7").replace("Fig 3", "Table 2")
    study = study_of(tmp_path, published)
    (row,) = csv_rows(table(), study, grid_of(study, single(a4=1.0)))
    assert (row["published_low"], row["claim"]) == ("7", "own")
    (row,) = csv_rows(table(name="delays"), study, grid_of(study, single(a4=1.0)))
    assert row["claim"] == "other", "a table that the paper does not have shows what was published anywhere"


def test_a_number_read_of_one_scheme_by_name_is_in_that_schemes_row(tmp_path):
    reading = Reading(because="", measure="a.delay.median", schemes=("a", "b"))
    study = study_of(tmp_path, claim("c", "delay", "value = 7"), readings={"c": reading})
    rows = csv_rows(table(name="t"), study, grid_of(study, single(a4=1.0, b4=2.0)))
    assert [(row["scheme"], row["claim"]) for row in rows] == [("a", "c"), ("b", "")]


def test_a_derived_metric_may_look_outside_of_its_table(tmp_path):
    study = study_of(tmp_path, "", derived={"gain": "each.delay.median[flows=16] / each.delay.median[flows=4]"})
    spec = table(rows=["flows"], values=(Value("gain", "gain"),), where={"flows": 16})
    (row,) = csv_rows(spec, study, grid_of(study, single(a4=2.0, a16=3.0)))
    assert (row["flows"], row["measured"]) == ("16", "1.5")


def test_a_published_number_whose_event_was_never_seen_stays_in_its_table_and_is_outside(tmp_path):
    study = study_of(tmp_path, claim("c", "delay", "value = 7"))
    grids = grid_of(study, single(a4=float("nan")))
    (row,) = csv_rows(table(name="t"), study, grids)
    assert (row["published_low"], row["measured"], row["accepted"]) == ("7", "", "false")
    assert "|  | measured | – ✗ |" in tabulate.markdown(table(name="t"), study, grids)


def test_a_tables_words_are_shown_as_they_are(tmp_path):
    study = study_of(tmp_path, "")
    spec = table(title="a <b> & c", values=(Value("a|b](x", "delay", "median"),))
    lines = tabulate.markdown(spec, study, grid_of(study, single(a4=1.0))).splitlines()
    assert lines[0] == "**Table 2: a &lt;b> &amp; c**"
    assert lines[2] == "| scheme | a\\|b\\](x |"


@pytest.mark.parametrize("study", available(), ids=lambda study: study.name)
def test_no_two_schemes_of_a_study_have_one_colour(study):
    looks = scheme_looks(list(study.labels))
    assert len({look.color for look in looks}) == len(looks)
