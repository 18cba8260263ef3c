"""Tables of groups, narrow terminals, small numbers, swept values as numbers, and notebooks."""

from __future__ import annotations

import copy
import math
import re
import warnings

import pytest
from matplotlib.figure import Figure

import sojourn as sj
from conftest import EXPERIMENT
from sojourn.figure import style
from sojourn.frame.metrics import metric_called
from sojourn.frame.notes import Note
from sojourn.frame.statistics import Interval, fixed, median_interval
from sojourn.frame.swept import quantity, setting_text, words
from sojourn.page.sheet import as_table, fitting, plain, shortened
from sojourn.page.tables import (
    groups_sheet,
    groups_table,
    inner_sheet,
    interval_text,
    overview_sheet,
    results_sheet,
    results_table,
)

SWEEP = '\n[sweep]\n"link.rate" = ["500 kbit/s", "5 Mbit/s", "50 Mbit/s"]\n"traffic.0.flows" = [1, 2]\n'
VOIP = '\n[[traffic]]\nkind = "voip"\nrtt = "40 ms"\n'


@pytest.fixture(scope="module")
def sweep() -> sj.Results:
    return sj.run_text(EXPERIMENT + SWEEP, set={"experiment.repeat": 1, "experiment.duration": "2 s"})


@pytest.fixture(scope="module")
def calls() -> sj.Results:
    return sj.run_text(EXPERIMENT + VOIP, set={"experiment.repeat": 1})


def with_groups(results: sj.Results, groups: list[dict]) -> sj.Results:
    summary = copy.deepcopy(results.summary)
    for run in summary["runs"]:
        run["groups"] = groups
    return sj.Results(summary, [sj.Run(run, lambda _: None) for run in summary["runs"]])


GROUPS = [
    {"traffic": 0, "name": "movie", "kind": "bulk", "direction": "down", "flows": 2, "goodput_bps": 8e6,
     "jain_goodput": 0.9, "rtt_ms": {"p50": 41.0, "p95": 52.0}},
    {"traffic": 1, "name": "talk", "kind": "voip", "direction": "down", "flows": 3, "goodput_bps": 2e5, "mos": 4.2,
     "one_way_ms": {"p95": 33.0}},
    {"traffic": 2, "name": "news", "kind": "web", "direction": "down", "flows": 1, "goodput_bps": 1e6,
     "page_load_ms": {"p50": 800.0, "p95": 1600.0}, "completion_ms": {"n": 0, "p50": None, "p95": None}},
]  # fmt: skip


def test_what_groups_saw_is_in_table_frame_and_figures(calls: sj.Results):
    results = with_groups(calls, GROUPS)
    text = str(results)
    for part in ("movie ×2", "talk ×3", "MOS", "800", "0.90"):
        assert part in text, part
    frame = results.to_pandas()
    assert list(frame["talk.mos"]) == [4.2, 4.2]
    assert list(frame["movie.rtt_p95_ms"]) == [52.0, 52.0]
    assert list(frame["news.page_load_p50_ms"]) == [800.0, 800.0]
    assert not any("completion" in name for name in frame.columns)
    assert [bar.get_height() for bar in results.plot.bars("mos").axes[0].patches] == [4.2, 4.2]
    titles = [axes.get_title(loc="left") for axes in results.plot.overview().axes]
    assert any("talk: call quality" in title for title in titles)
    assert any("news: median page load time" in title for title in titles)


def test_lost_datagrams_are_in_table_and_frame(calls: sj.Results):
    summary = copy.deepcopy(calls.summary)
    for run in summary["runs"]:
        next(group for group in run["groups"] if group["kind"] == "voip")["lost_packets"] = 42
    results = sj.Results(summary, [sj.Run(run, lambda _: None) for run in summary["runs"]])
    assert list(results.to_pandas()["voip.lost_packets"]) == [42, 42]
    sheet = groups_sheet(results)
    assert sheet is not None and "lost: over the whole run" in sheet.caption
    lost = sheet.headings.index("lost")
    assert [row[lost] for row in sheet.rows] == ["–", "42"] * 2


def test_page_loads_are_counted(calls: sj.Results):
    pages = {**GROUPS[2], "page_load_ms": {"n": 7, "p50": 800.0, "p95": 1600.0}}
    results = with_groups(calls, [GROUPS[0], pages])
    assert list(results.to_pandas()["news.page_load_n"]) == [7, 7]
    sheet = groups_sheet(results)
    assert sheet is not None and sheet.rows[1][sheet.headings.index("pages")] == "7"


def test_a_name_both_ways_is_two_groups_and_not_one_metric(calls: sj.Results):
    results = with_groups(calls, [GROUPS[0], {**GROUPS[0], "direction": "up", "goodput_bps": 1e6}])
    assert results.groups.titles == ("movie.down", "movie.up")
    assert metric_called("movie.up.goodput_bps", results).value(results.runs[0].summary, "down") == 1e6
    with pytest.raises(ValueError, match=r"movie\.down\.rtt_p50_ms, movie\.up\.rtt_p50_ms"):
        metric_called("rtt_p50_ms", results)


def test_fairness_of_unlike_groups_is_told_by_group(calls: sj.Results):
    mixed = with_groups(calls, [GROUPS[0], GROUPS[2]])
    assert "Jain" not in results_sheet(mixed).headings
    sheet = groups_sheet(mixed)
    assert sheet is not None and "Jain" in sheet.headings
    assert "Jain" in results_sheet(calls).headings
    assert groups_sheet(with_groups(calls, GROUPS[:1])) is None


def test_fairness_is_between_flows_of_one_direction(calls: sj.Results):
    def together(groups: list[dict]) -> str:
        sheet = groups_sheet(with_groups(calls, groups))
        assert sheet is not None
        row = next(row for row in sheet.rows if row[1].startswith("all TCP"))
        return row[sheet.headings.index("Jain")]

    assert together([GROUPS[0], GROUPS[2]]) != "–"
    assert together([GROUPS[0], {**GROUPS[2], "direction": "up"}]) == "–"


def test_datagrams_in_bursts_are_no_tcp_flows():
    burst = '\n[[traffic]]\nkind = "onoff"\nname = "burst"\ntransport = "udp"\nrate = "2 Mbit/s"\nrtt = "40 ms"\n'
    one = sj.run_text(EXPERIMENT + burst, set={"experiment.repeat": 1})
    assert "all TCP" not in str(one)
    other = '\n[[traffic]]\nkind = "bulk"\nname = "other"\nrtt = "40 ms"\n'
    sheet = groups_sheet(sj.run_text(EXPERIMENT + burst + other, set={"experiment.repeat": 1}))
    assert sheet is not None
    assert [row[1] for row in sheet.rows[:4]] == ["bulk ×2", "burst", "other", "all TCP ×3"]
    bulk, _, third, together = (float(row[2]) for row in sheet.rows[:4])
    assert together == pytest.approx(bulk + third, abs=0.02)


@pytest.mark.parametrize("width", [100, 80, 64, 50])
def test_narrow_terminals_keep_what_is_swept(sweep: sj.Results, width: int):
    text = plain(results_table(sweep, width=width), width)
    assert "…" not in text
    assert all(len(line) <= width for line in text.splitlines())
    for part in ("500", "kbit/s", "50", "p95"):
        assert part in text
    caption = " ".join(text[text.index("sojourn time") - 20 :].split())
    for heading in ("mean", "p50"):
        is_shown = heading in text[: text.index("─")].split()
        assert (f"{heading}" in caption.partition("sojourn time")[0]) == is_shown


def test_a_table_of_many_rows_ends_after_a_screen(sweep: sj.Results):
    text = plain(as_table(shortened(results_sheet(sweep), 3, "--out DIR writes all")))
    assert "the first 3 of 12 rows" in text
    assert text.count("codel") + text.count("pfifo") == 3


@pytest.mark.parametrize(("value", "text"), [(0.001, "0.0010"), (0.05, "0.050"), (0.0, "0.00"), (1.5, "1.50")])
def test_a_small_value_does_not_look_like_nothing(value: float, text: str):
    assert interval_text(median_interval([value]), 2) == text


def test_swept_values_are_numbers_with_their_unit(sweep: sj.Results):
    frame = sweep.to_pandas()
    assert list(frame["link.rate_bps"].unique()) == [500e3, 5e6, 50e6]
    assert list(frame["link.rate"].unique()) == ["500 kbit/s", "5 Mbit/s", "50 Mbit/s"]
    assert frame["traffic.0.flows"].dtype.kind == "i"


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("10mbit", 10e6, "bps"), ("5 ms", 5.0, "ms"), ("2 s", 2000.0, "ms"), ("150 kB", 150e3, "bytes"),
        ("1 bdp", 1.0, "bdp"), ("83 packets", 83.0, "packets"), (0.25, 0.25, ""), ("2 KiB", 2048.0, "bytes"),
    ],
)  # fmt: skip
def test_quantities(text: object, value: float, unit: str):
    assert quantity(text) == (value, unit)


def test_what_is_no_quantity_is_none():
    assert [quantity(value) for value in ("cubic", True, "0..1 s", [1], "5 apples")] == [None] * 5


def test_keys_in_words_tell_each_other_apart():
    assert words(["link.rate", "link.up.rate", "queue.0.target"]) == {
        "link.rate": "link rate", "link.up.rate": "up rate", "queue.0.target": "target",
    }  # fmt: skip
    assert words(["link.up.rate"]) == {"link.up.rate": "up rate"}
    assert words(["link.rate"]) == {"link.rate": "rate"}
    assert words(["traffic.0.rate"]) == {"traffic.0.rate": "traffic 0 rate"}
    assert list(words(["traffic.0.rtt", "traffic.1.rtt"]).values()) == ["traffic 0 rtt", "traffic 1 rtt"]
    assert setting_text({"link.rate": "5 Mbit/s", "traffic.0.flows": 1}) == "rate 5 Mbit/s, 1 flow"


def test_a_metric_over_a_swept_key_has_a_numeric_axis(sweep: sj.Results):
    axes = sweep.plot.over("link.rate", "goodput_bps").axes[0]
    assert axes.get_xscale() == "log"
    assert axes.get_xlabel() == "rate [Mbit/s]"
    assert [list(line.get_xdata()) for line in axes.lines] == [[0.5, 5.0, 50.0]] * 4
    with pytest.raises(ValueError, match=r"link\.rate, traffic\.0\.flows"):
        sweep.plot.over("link.delay")


def test_notebooks_show_a_table(calls: sj.Results):
    results = with_groups(calls, [{**GROUPS[1], "name": "<b>"}])
    html = results._repr_html_()
    assert "<table>" in html and "&lt;b&gt;" in html and "<b>" not in html


def test_a_notebook_prints_tables_as_text_only(calls: sj.Results, monkeypatch: pytest.MonkeyPatch):
    expected = str(calls)
    shown: list[object] = []
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda *given: shown.append(given))
    assert str(calls) == expected
    assert shown == []


def test_disciplines_have_their_colours_and_no_two_share_one():
    alone, beside = style.looks_of(["codel"])[0], style.looks_of(["pfifo_fast", "pie", "codel"])
    assert beside[2].color == alone.color == style.COLOR_OF["codel"]
    many = ["pfifo", "pfifo_head_drop", "red", "choke", "sfq", "sfq_red", "pi2", "codel", "cobalt", "own"]
    assert len({look.color for look in style.looks_of(many)}) == len(many)
    crowd = (*many, *(name for name in style.COLOR_OF if name not in many))[:20]
    assert len({(look.color, look.dashes, look.marker) for look in style.looks_of(crowd)}) == len(crowd)
    grid = style.looks_of(["pie", "codel", "cake"] * 10)
    assert len(set(grid)) == 30
    # Without colour, too: six lines have six patterns.
    assert len({look.dashes for look in style.looks_of(crowd[:6])}) == 6
    assert len({look.dashes for look in style.looks_of(["codel"] * 13)[:6]}) == 6


def test_the_way_is_in_the_figure():
    text = EXPERIMENT.replace("[link]", '[link]\nup = { rate = "2 Mbit/s" }').replace("repeat = 2", "repeat = 1")
    both = sj.run_text(text)
    for name in ("cdf", "box", "ellipse", "scatter"):
        assert getattr(both.plot, name)("up").axes[0].get_title(loc="left").startswith("upward direction"), name


def test_axes_are_logarithmic_where_one_arm_flattens_the_others(calls: sj.Results):
    summary = copy.deepcopy(calls.summary)
    factor = 1000.0 / summary["runs"][1]["bottleneck"]["down"]["sojourn_ms"]["p99"]
    far = summary["runs"][1]["bottleneck"]["down"]["sojourn_ms"]
    summary["runs"][1]["bottleneck"]["down"]["sojourn_ms"] = {
        key: value if key == "n" else value * 20 * factor for key, value in far.items()
    }
    flat = sj.Results(summary, [sj.Run(run, lambda _: None) for run in summary["runs"]])
    assert flat.plot.cdf().axes[0].get_xscale() == "log"
    assert flat.plot.box().axes[0].get_yscale() == "log"
    same = sj.Results({**summary, "runs": summary["runs"][:1]}, flat.runs[:1])
    assert same.plot.cdf().axes[0].get_xscale() == "linear"


def test_figures_have_the_width_of_a_column_or_a_page(calls: sj.Results):
    for width, inches in style.WIDTHS_IN.items():
        for drawn in (calls.plot.cdf(width=width), calls.plot.bars(width=width), calls.plot.box(width=width)):
            assert isinstance(drawn, Figure)
            assert drawn.get_figwidth() == pytest.approx(inches)
    assert math.isclose(calls.plot.overview(width="page").get_figwidth(), style.WIDTHS_IN["page"])
    with pytest.raises(ValueError, match="column, page"):
        calls.plot.cdf(width="wide")  # type: ignore[arg-type]


def test_the_label_of_a_long_metric_is_within_a_column_wide_figure(calls: sj.Results):
    name = "the-second-television-of-the-house"
    results = with_groups(calls, [{**GROUPS[2], "name": name}, GROUPS[1]])
    for figure in (
        results.plot.bars(f"{name}.page_load_p95_ms", width="column"),
        results.plot.overview([f"{name}.page_load_p95_ms"], width="column"),
    ):
        figure.draw_without_rendering()
        labels = [figure.axes[0].yaxis.label, figure.axes[0]._left_title]
        assert any(name in label.get_text().replace("\n", "") for label in labels)
        for label in filter(lambda label: label.get_text(), labels):
            box = label.get_window_extent()
            assert box.y0 >= 0 and box.y1 <= figure.bbox.y1, label.get_text()
            assert box.x1 <= figure.bbox.x1, label.get_text()


def test_a_legend_is_read_row_by_row(calls: sj.Results):
    with style.applied():
        figure = style.figure()
        axes = figure.add_subplot()
        for name in "abcdef":
            axes.plot([0, 1], [0, 1], label=name)
        style.legend(figure, axes)
        figure.draw_without_rendering()
    texts = figure.legends[0].get_texts()
    read = sorted(texts, key=lambda text: (-round(text.get_window_extent().y0), text.get_window_extent().x0))
    assert [text.get_text() for text in read] == list("abcdef")
    assert len({round(text.get_window_extent().y0) for text in texts}) == 2


def test_an_opinion_score_has_its_own_scale(calls: sj.Results):
    results = with_groups(calls, GROUPS)
    assert results.plot.bars("mos").axes[0].get_ylim() == (1.0, 4.5)
    assert results.plot.overview(["mos"]).axes[0].get_ylim() == (1.0, 4.5)
    assert results.plot.bars("movie.goodput_bps").axes[0].get_ylim()[0] == 0.0


def test_a_figure_of_page_loads_says_how_many(calls: sj.Results):
    made = with_groups(calls, [{**GROUPS[2], "page_load_ms": {"n": 7, "p50": 800.0, "p95": 1600.0}}, GROUPS[1]])
    made.runs[0].summary["groups"] = [{**GROUPS[2], "page_load_ms": {"n": 12, "p50": 800.0, "p95": 1600.0}}, GROUPS[1]]
    made = sj.Results(made.summary, made.runs)
    assert "of 7 to 12 pages a run" in made.plot.bars("page_load_p95_ms").axes[0].get_title(loc="left")
    titles = [axes.get_title(loc="left") for axes in made.plot.overview().axes]
    assert [title.splitlines()[-1] for title in titles if "page" in title] == ["of 7 to 12 pages a run"]
    assert "a run" not in made.plot.bars("mos").axes[0].get_title(loc="left")


def test_missing_glyphs_are_one_note(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(style, "_CJK", ())
    style._families.cache_clear()
    style._tell_once.cache_clear()
    text = EXPERIMENT.replace('aqm = "pfifo"', 'aqm = "pfifo"\nlabel = "先入先出"').replace("repeat = 2", "repeat = 1")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plots = sj.run_text(text).plot
        plots.cdf().savefig(tmp_path / "cdf.png")
        # Arranges its panels while it is drawn.
        plots.overview().savefig(tmp_path / "overview.png")
    style._families.cache_clear()
    assert [one.category for one in caught] == [Note]


def test_what_cannot_be_arranged_is_one_note():
    style._tell_once.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            with style.applied():
                warnings.warn("constrained_layout not applied because axes sizes collapsed to zero.", stacklevel=1)
    assert [one.category for one in caught] == [Note]
    assert "the labels of a figure leave no room" in str(caught[0].message)


def test_a_label_is_text_and_no_formula(tmp_path):
    text = EXPERIMENT.replace('aqm = "pfifo"', 'aqm = "pfifo"\nlabel = "$x^{$"').replace("repeat = 2", "repeat = 1")
    sj.run_text(text).plot.overview().savefig(tmp_path / "overview.svg")
    assert "$x^{$" in (tmp_path / "overview.svg").read_text()


COEXISTENCE = """
experiment = { duration = "5 s", warmup = "1 s" }
link = { rate = "10 Mbit/s", buffer = "20 packets" }
queue = [{ aqm = "pfifo" }]
[[traffic]]
kind = "bulk"
name = "near"
rtt = "10 ms"
[[traffic]]
kind = "bulk"
name = "far"
rtt = "200 ms"
[[traffic]]
kind = "ping"
rtt = "10 ms"
"""


def test_fairness_is_that_between_groups():
    results = sj.run_text(COEXISTENCE)
    (run,) = results.runs
    table = groups_table(groups_sheet(results))
    assert table is not None
    rows = {line.split()[1]: line for line in plain(table, 160).splitlines() if line.lstrip().startswith("pfifo")}
    assert list(rows) == ["near", "far", "ping", "all"]
    jain = run.summary["jain_goodput"]
    assert jain is not None
    assert jain < 0.9
    total = sum(flow["goodput_bps"] for flow in run.summary["flows"] if flow["kind"] == "bulk") / 1e6
    words = rows["all"].split()
    assert words[1:5] == ["all", "TCP", "×2", f"{total:.2f}"]
    assert words[5] == f"{jain:.2f}"
    # One flow has no fairness of its own.
    assert "1.00" not in rows["near"] + rows["far"]


def test_goodput_above_the_rate_has_a_note():
    """First measured while data waits behind a lost segment, then before the loss, with nothing to say."""

    def table(warmup: str, duration: str) -> str:
        text = COEXISTENCE.partition("[[traffic]]")[0] + '[[traffic]]\nkind = "bulk"\nname = "film"\nrtt = "40 ms"\n'
        length = {"experiment.warmup": warmup, "experiment.duration": duration}
        line = {"link.rate": "10 Mbit/s", "link.buffer": "100 packets"}
        return " ".join(plain(results_table(sj.run_text(text, set={**length, **line})), 160).split())

    note = "the goodput of film exceeds the link's rate"
    assert note in table("2.7 s", "3 s")
    assert note not in table("1 s", "2 s")


def test_goodputs_of_flows_that_send_at_different_times_have_a_note():
    """One datagram flow stops with the queue full, which is not its goodput; two flows one after the other."""

    def table(traffic: str) -> str:
        head = COEXISTENCE.partition("[[traffic]]")[0]
        length = {"experiment.warmup": "0 s", "experiment.duration": "10 s", "link.rate": "10 Mbit/s"}
        results = sj.run_text(head + traffic, set={**length, "link.buffer": "1000 packets"})
        return " ".join(plain(results_table(results), 160).split())

    stops = '[[traffic]]\nkind = "cbr"\nname = "burst"\nrate = "20 Mbit/s"\nrtt = "20 ms"\nstop = "2 s"\n'
    shown = table(stops)
    assert "exceeds the link's rate" not in shown
    parts = ['start = "0 s"\nstop = "4 s"', 'start = "5 s"']
    after = "".join(f'[[traffic]]\nkind = "cbr"\nrate = "8 Mbit/s"\nrtt = "20 ms"\n{part}\n' for part in parts)
    assert "each over the time in which it sends, add up to more than the link carried" in table(after)
    # 4 Mbit/s twice is less than the link's rate, but never passed it together.
    assert "add up to more" in table(after.replace("8 Mbit/s", "4 Mbit/s"))
    whole = after.replace('start = "0 s"\nstop = "4 s"', "").replace('start = "5 s"', "")
    assert "add up to more" not in table(whole.replace("8 Mbit/s", "4 Mbit/s"))


def test_a_row_names_the_discipline_that_stands_there():
    """A link has a queue of its own both ways; of the one that is compared, the way back has another."""
    text = """
        experiment = { duration = "1 s" }
        link = [
            { name = "core", from = "a", to = "b", rate = "9 Mbit/s", queue.aqm = "pie", up.rate = "9 Mbit/s" },
            { name = "home", from = "b", to = "c", rate = "8 Mbit/s", up = { rate = "5 Mbit/s", queue.aqm = "cake" } },
        ]
        queue = [{ aqm = "pfifo" }, { aqm = "fq_codel", label = "mine" }]
        traffic = [{ kind = "bulk", from = "a", to = "c", rtt = "20 ms" }]
    """

    def names(results: sj.Results) -> list[tuple[str, str]]:
        return [row[:2] for row in results_sheet(results).rows]

    results = sj.run_text(text)
    both = [("core/down", "pie"), ("core/up", "pie"), ("home/down", ""), ("home/up", "cake")]
    arms = ("pfifo", "mine")
    assert names(results) == [(f"{own} (with {arm})" if own else arm, queue) for arm in arms for queue, own in both]
    inner = inner_sheet(results)
    assert inner is not None
    assert {row[0] for row in inner.rows} == {"cake (with pfifo)", "cake (with mine)", "mine"}
    alone = sj.run_text(text.replace(', { aqm = "fq_codel", label = "mine" }', ""))
    assert names(alone) == names(results)[: len(both)]
    same = names(sj.run_text(text.replace('queue.aqm = "cake"', 'queue.aqm = "pfifo"')))
    assert [name for name, queue in same if queue == "home/up"] == ["pfifo", "pfifo (with mine)"], "no name twice"


def test_an_inner_queue_without_packets_has_no_row_though_another_discipline_has_one_of_its_name():
    text = """
        experiment = { duration = "1 s" }
        link = { rate = "9 Mbit/s" }
        queue = [{ aqm = "fq_codel" }, { aqm = "cake" }]
        traffic = [{ kind = "bulk", rtt = "20 ms" }]
    """
    inner = inner_sheet(sj.run_text(text))
    assert inner is not None
    assert [row[:2] for row in inner.rows] == [("fq_codel", "bulk"), ("fq_codel", "sparse"), ("cake", "besteffort")]


def test_halves_are_rounded_away_from_zero():
    one = Interval(132.5, -132.5, 0.5, 3)
    assert interval_text(one, 0) == "133\n-133–1"
    assert fixed(-132.5, 0, "+") == "-133" and fixed(2.5, 0, "+") == "+3"
    assert (fixed(0.125, 2), fixed(1e20, 1), fixed(math.inf, 1)) == ("0.13", "100000000000000000000.0", "inf")


def test_a_ping_alone_has_its_round_trips():
    text = COEXISTENCE.partition("[[traffic]]")[0] + '[[traffic]]\nkind = "ping"\nrtt = "40 ms"\n'
    table = groups_table(groups_sheet(sj.run_text(text)))
    assert table is not None and "RTT" in plain(table, 160)


def test_groups_are_called_after_their_code_points():
    text = COEXISTENCE.partition("[[traffic]]")[0] + '[[traffic]]\nkind = "rrul"\nrtt = "30 ms"\nidle = "1 s"\n'
    results = sj.run_text(text.replace("pfifo", "cake").replace("rate = ", 'up = { rate = "10 Mbit/s" }, rate = '))
    table = groups_table(groups_sheet(results))
    assert table is not None
    shown = plain(table, 160)
    for name in ("BE.down", "BK.up", "CS5.down", "EF.up", "ping BK", "ping EF"):
        assert re.search(rf"cake +{re.escape(name)} ", shown), name
    assert "bulk 0" not in shown


def test_a_group_table_gives_up_columns_in_order(calls: sj.Results):
    table = groups_table(groups_sheet(with_groups(calls, GROUPS)), width=60)
    assert table is not None
    text = plain(table, 60)
    assert "MOS" in text and "Jain" in text[text.index("without") :]


@pytest.mark.parametrize("width", [100, 60, 44])
def test_tables_of_a_row_per_queue_fit_a_narrow_terminal(calls: sj.Results, width: int):
    inner = sj.run_text(
        EXPERIMENT.replace('aqm = "pfifo"', 'aqm = "fq_codel"'),
        set={"experiment.repeat": 1, "experiment.duration": "2 s"},
    )
    for table in (fitting(overview_sheet(calls), width), fitting(inner_sheet(inner), width)):
        assert table is not None
        text = plain(table, width)
        assert "…" not in text
        assert all(len(line) <= width for line in text.splitlines())
        assert "p95" in text


def test_repeats_without_chance_are_named():
    # One flow that starts at zero: CoDel draws nothing, PIE does.
    text = EXPERIMENT.split("[[queue]]")[0] + (
        '[[queue]]\naqm = "codel"\n\n[[queue]]\naqm = "pie"\n\n[[traffic]]\nkind = "bulk"\nrtt = "40 ms"\n'
    )
    same = {"experiment.repeat": 2, "experiment.duration": "3 s"}
    caption = results_sheet(sj.run_text(text, set=same)).caption
    assert "the repeats of codel are equal, because nothing in them is random" in caption
    spread = results_sheet(sj.run_text(text, set={**same, "traffic.0.start": "0..1 s"})).caption
    assert "the same" not in spread
    assert "the same" not in results_sheet(sj.run_text(text, set={**same, "experiment.repeat": 1})).caption


def test_the_overview_has_quality_of_outcome_of_what_is_used():
    """That of bulk transfers would push the rest out of the table; alone they have it."""
    link = (
        '[experiment]\nduration = "3 s"\n[link]\nrate = "5 Mbit/s"\n[[queue]]\naqm = "fq_codel"\n[record]\nqoo = true\n'
    )
    bulk = '[[traffic]]\nkind = "bulk"\nrtt = "20 ms"\n'
    both = overview_sheet(sj.run_text(link + bulk + '[[traffic]]\nkind = "voip"\nrtt = "20 ms"\n'))
    assert both is not None
    assert [heading for heading in both.headings if "QoO" in heading] == ["voip QoO 0–100"]
    alone = overview_sheet(sj.run_text(link + bulk))
    assert alone is not None
    assert [heading for heading in alone.headings if "QoO" in heading] == ["bulk QoO 0–100"]


def test_a_label_breaks_between_its_words():
    label = "dualpi2 nqb=true queue_protection=true"
    text = EXPERIMENT.replace('aqm = "codel"', f'label = "{label}"\naqm = "codel"', 1)
    results = sj.run_text(text, set={"experiment.repeat": 4})
    shown = plain(results.paired(results.arms[0].label), 120)
    assert "queue_protection=true" in shown


def test_an_interrupted_table_says_how_many_repeats_its_rows_have():
    whole = sj.run_text(EXPERIMENT, set={"experiment.repeat": 6})
    kept = [run for run in whole.runs if (run.label, run.seed) != (whole.arms[1].label, whole.arms[1].runs[-1].seed)]
    summary = {**whole.summary, "partial": True, "planned_runs": 12, "runs": [run.summary for run in kept]}
    stopped = sj.Results(summary, kept)  # type: ignore[arg-type]
    assert [len(arm.runs) for arm in stopped.arms] == [6, 5]
    assert "median of 5 to 6 repeats" in " ".join(plain(results_table(stopped, width=160), 160).split())
    assert "median difference over 5 seeds" in " ".join(plain(stopped.paired(stopped.arms[0].label)).split())
