"""Pictures of a store: cells, medians with intervals, heat maps, lines, fronts and surfaces."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from conftest import SOJOURN, SWEEP, Cli, wrong
from sojourn import ExperimentError, _core
from sojourn.figure.covered import COVERED
from sojourn.figure.grids import front
from sojourn.figure.panels import spread
from sojourn.frame.registry import column, short
from sojourn.frame.statistics import median_interval, median_intervals
from sojourn.store.cells import Grid
from sojourn.store.stored import setup_of


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the runs of a sweep over three keys: numbers with units, numbers and names."""
    folder = tmp_path_factory.mktemp("swept")
    (folder / "grid.toml").write_text(SWEEP)
    made = subprocess.run(
        [SOJOURN, "sweep", "grid.toml", "--store", "store"], cwd=folder, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    return folder / "store"


@pytest.fixture(scope="module")
def grid(swept: Path) -> Grid:
    return Grid(str(swept))


def test_the_intervals_of_many_cells_are_those_of_each():
    chance = np.random.default_rng(3)
    samples = [chance.lognormal(size=n) for n in (1, 2, 3, 4, 5, 8, 11, 20, 20, 3, 2)]
    # Of these an end of the interval lies between two unequal medians of resamples.
    samples += [np.random.default_rng(n).lognormal(size=n) for n in (8, 24)]
    samples += [np.array([7.0, 7.0, 7.0]), np.array([math.nan, 5.0, 1.0, math.nan]), np.array([math.nan]), np.array([])]
    cell_of = np.concatenate([np.full(len(sample), cell) for cell, sample in enumerate(samples)])
    order = chance.permutation(len(cell_of))
    found = median_intervals(np.concatenate(samples)[order], cell_of[order].astype(np.int64), len(samples))
    for cell, sample in enumerate(samples):
        alone = median_interval(list(sample))
        assert found.n[cell] == alone.n
        got = [found.middle[cell], found.low[cell], found.high[cell]]
        assert got == pytest.approx([alone.middle, alone.low, alone.high], rel=1e-12, nan_ok=True), (cell, sample)


def test_labels_and_seeds_are_no_part_of_a_setup():
    text = """
    experiment = { name = "labels", duration = "1 s", repeat = 2 }
    link = { rate = "4 Mbit/s" }
    queue = [{ aqm = "codel" }, { aqm = "codel", label = "mine" }, { aqm = "codel", label = "other", target = "6 ms" }]
    traffic = [{ kind = "bulk", rtt = "20 ms" }]
    """
    plan = _core.Plan.read_text(text, "labels", [])
    setups: dict[str, set[str]] = {}
    for index in range(len(plan)):
        setups.setdefault(plan[index].label, set()).add(setup_of(plan[index]))
    assert [len(of_label) for of_label in setups.values()] == [1, 1, 1]
    assert setups["codel"] == setups["mine"] != setups["other"]
    assert len({setup_of(plan[0], backend) for backend in ("sim", "linux Linux() 6.1", "linux Linux() 6.12")}) == 3


def test_a_front_is_of_points_that_none_dominates():
    cost = np.array([1.0, 2.0, 2.0, 3.0, 4.0, 1.0, math.nan, 5.0])
    gain = np.array([1.0, 3.0, 2.0, 3.0, 5.0, 1.0, 9.0, math.nan])
    # 2 has less gain than 1 at its cost, 3 more cost than 1 for its gain; 0 and 5 are equal.
    assert sorted(front(cost, gain)) == [0, 1, 4, 5]


def test_cells_are_queues_and_swept_values(grid: Grid):
    assert list(grid.axes) == ["label", "link.rate", "traffic.0.flows", "traffic.0.tcp"]
    assert (len(grid), grid.runs) == (24, 72)
    rate = grid.axes["link.rate"]
    assert rate.texts == ("1000 kbit/s", "2 Mbit/s", "20 Mbit/s")
    assert rate.numbers is not None
    assert (list(rate.numbers), rate.axis_label) == ([1.0, 2.0, 20.0], "rate [Mbit/s]")
    assert grid.axes["traffic.0.tcp"].texts == ("reno", "cubic")
    assert grid.axes["label"].texts == ("pfifo", "CoDel")
    assert grid.discipline("CoDel") == "codel"


def test_medians_are_those_that_sql_finds(grid: Grid, sojourn: Cli, swept: Path):
    goodput = grid.intervals(grid.column("goodput_bps"))
    sql = (
        "select median(goodput_bps) / 1e6 as middle from runs where label = 'CoDel' and \"link.rate\" = '2 Mbit/s' "
        'and "traffic.0.flows" = 3 and "traffic.0.tcp" = \'reno\''
    )
    expected = float(sojourn("query", "--store", swept, sql).stdout.split()[-1])
    cell = next(
        cell
        for cell in range(len(grid))
        if grid.setting(cell, list(grid.axes)).replace("\N{NO-BREAK SPACE}", " ")
        == "CoDel, rate 2 Mbit/s, 3 flows, tcp reno"
    )
    assert goodput.middle[cell] == pytest.approx(expected, rel=1e-4)
    assert goodput.low[cell] <= goodput.middle[cell] <= goodput.high[cell]
    assert goodput.n[cell] == 3


def test_pooled_cells_have_the_runs_of_all(grid: Grid):
    pooled = grid.pooled(["label", "link.rate"])
    assert (len(pooled), pooled.runs) == (6, 72)
    assert set(pooled.intervals(pooled.column("utilization")).n) == {12}


def test_a_condition_chooses_runs(swept: Path):
    assert len(Grid(str(swept), "label = 'CoDel' and \"link.rate_bps\" > 1e6")) == 8


def texts_of(figure: object) -> list[str]:
    import matplotlib.text

    return [text.get_text().replace("\n", " ") for text in figure.findobj(matplotlib.text.Text)]  # type: ignore[attr-defined]


def test_a_heat_map_shows_the_medians(grid: Grid):
    drawn = grid.plot.heatmap("link.rate", "traffic.0.flows", "goodput_bps")
    seen = texts_of(drawn)
    medians = grid.intervals(grid.column("goodput_bps")).middle
    assert {short(value) for value in medians} <= set(seen)
    assert {"rate [Mbit/s]", "flows", "goodput [Mbit/s]", "median of 3 runs"} <= set(seen)
    titles = {axes.get_title(loc="left").replace("\N{NO-BREAK SPACE}", " ") for axes in drawn.axes}
    assert {"pfifo, tcp reno", "pfifo, tcp cubic", "CoDel, tcp reno", "CoDel, tcp cubic"} <= titles


def test_cells_without_runs_are_hatched(swept: Path):
    grid = Grid(str(swept), 'not ("link.rate" = \'2 Mbit/s\' and "traffic.0.flows" = 1)')
    assert "median of 6 runs; all values of tcp together; hatched: no value" in texts_of(
        grid.plot.heatmap("link.rate", "traffic.0.flows", pool=True)
    )


def test_lines_have_the_values_of_the_cells(grid: Grid):
    drawn = grid.plot.lines("link.rate", metric="goodput_bps")
    assert len(drawn.axes) == 4
    lines = {line.get_label(): line for line in drawn.axes[0].lines}
    assert list(lines["CoDel"].get_xdata()) == [1.0, 2.0, 20.0]
    medians = grid.intervals(grid.column("goodput_bps"))
    chosen = [grid.indices("label") == 1, grid.indices("traffic.0.flows") == 0, grid.indices("traffic.0.tcp") == 0]
    assert list(lines["CoDel"].get_ydata()) == list(medians.middle[np.logical_and.reduce(chosen)])


def test_both_of_two_queues_at_one_point_of_a_front_are_seen(sojourn: Cli, tmp_path: Path):
    twins = '{ aqm = "codel" }, { aqm = "codel", ecn = true, label = "b" }'
    text = SWEEP.replace('{ aqm = "pfifo" }, { aqm = "codel", label = "CoDel" }', twins)
    (tmp_path / "twins.toml").write_text(text[: text.index("[sweep]")])
    assert sojourn("sweep", "twins.toml", "--store", "store").returncode == 0
    for width in ("column", None):
        drawn = Grid(str(tmp_path / "store")).plot.pareto(width=width)
        drawn.draw_without_rendering()
        below, above = sorted(
            (line for line in drawn.axes[0].lines if line.get_marker() != "None" and len(line.get_xdata())),
            key=lambda line: line.get_zorder(),
        )
        assert below.get_xydata().tolist() == above.get_xydata().tolist()
        assert below.get_markersize() > 1.5 * above.get_markersize() and below.get_color() != above.get_color()
        title, label = drawn._suptitle.get_window_extent(), drawn._supylabel.get_window_extent()
        assert COVERED in drawn.get_suptitle().replace("\n", " ") and label.y1 < title.y0


@pytest.mark.parametrize("kind", ["heatmap", "lines", "pareto", "surface"])
def test_the_command_draws_each_kind(kind: str, sojourn: Cli, swept: Path, tmp_path: Path):
    keys = [] if kind == "pareto" else ["--x", "link.rate"]
    keys += ["--y", "traffic.0.flows"] if kind in ("heatmap", "surface") else []
    suffix, begins = {"heatmap": ("png", b"\x89PNG"), "lines": ("pdf", b"%PDF")}.get(kind, ("svg", b"<?xml"))
    out = tmp_path / f"{kind}.{suffix}"
    drawn = sojourn("plot", "--store", swept, "--kind", kind, *keys, "--pool", "--out", out.name, "--width", "column")
    assert (drawn.returncode, drawn.stdout, drawn.stderr) == (0, f"{out.name}\n", "")
    assert out.read_bytes().startswith(begins)
    if suffix == "svg":
        assert re.search(rb'width="252pt"', out.read_bytes()), "3.5 inches, as wide as a column"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["--kind", "heatmap", "--x", "link.rat", "--y", "label"],
            '--x: got "link.rat"; must be one of label, link.rate, ',
        ),
        (["--kind", "heatmap", "--x", "label", "--y", "label"], '--y: got "label", as --x; must be another key'),
        (["--kind", "heatmap", "--x", "label"], "plot: heatmap needs --y, a swept key or label"),
        (
            ["--kind", "lines", "--x", "link.rate", "--metric", "goodput"],
            '--metric: got "goodput"; must be one of the store',
        ),
        (
            ["--kind", "surface", "--x", "link.rate", "--y", "traffic.0.tcp"],
            '--y: got "traffic.0.tcp", whose values are',
        ),
        (["--kind", "pareto", "--where", "nothing > 1"], "--where: Binder Error: Referenced column"),
        (["--kind", "pareto", "--where", "seed > 99"], "has no such runs"),
        (["--kind", "pie"], "'pie' is not one of"),
    ],
)
def test_mistakes_are_told_in_a_line(arguments: list[str], told: str, sojourn: Cli, swept: Path):
    failed = sojourn("plot", "--store", swept, *arguments, "--out", "a.png")
    assert failed.returncode == 2
    assert told in failed.stderr
    assert len(failed.stderr.splitlines()) == 1


def test_a_wrong_suffix_a_missing_store_and_too_many_panels_are_told(sojourn: Cli, swept: Path, tmp_path: Path):
    failed = sojourn("plot", "--store", swept, "--kind", "pareto", "--out", "a.jpg")
    assert failed.stderr == '--out: got "a.jpg"; must end with .png, .svg, .pdf\n'
    failed = sojourn("plot", "--store", "none", "--kind", "pareto", "--out", "a.png")
    assert failed.stderr.startswith('store: got "none"; there is no such folder')
    text = SWEEP.replace("[1, 3]", str(list(range(1, 14)))).replace("repeat = 3", "repeat = 1")
    (tmp_path / "more.toml").write_text(text.replace('"2 s"', '"1 s"'))
    assert sojourn("sweep", "more.toml", "--store", "more").returncode == 0
    failed = sojourn("plot", "--store", "more", "--kind", "lines", "--x", "link.rate", "--out", "a.png")
    assert failed.stderr == (
        "plot: would need 26 panels, one per combination of traffic.0.flows, traffic.0.tcp; must be at most 24: "
        "choose some of their values with --where, or combine them with --pool\n"
    )


def test_two_experiments_with_the_same_values_are_not_mixed(swept: Path, tmp_path: Path, sojourn: Cli):
    shutil.copytree(swept, tmp_path / "store")
    (tmp_path / "grid.toml").write_text(SWEEP.replace('"2 s"', '"1 s"'))
    assert sojourn("sweep", "grid.toml", "--store", "store").returncode == 0
    with pytest.raises(ExperimentError, match="the runs of this cell differ in more than their seeds"):
        Grid(str(tmp_path / "store"))
    sweeps = [path.name for path in (tmp_path / "store" / "plans").iterdir()]
    assert [len(Grid(str(tmp_path / "store"), f"plan = '{sweep}'")) for sweep in sweeps] == [24, 24]
    shutil.rmtree(tmp_path / "store")
    shutil.copytree(swept, tmp_path / "store")
    (tmp_path / "grid.toml").write_text(SWEEP.replace('"2 s"', '"1 s"').replace('"grid"', '"short"'))
    assert sojourn("sweep", "grid.toml", "--store", "store").returncode == 0
    assert list(Grid(str(tmp_path / "store")).axes)[:2] == ["label", "experiment"]


def test_other_seeds_do_not_mix_two_experiments(swept: Path, tmp_path: Path, sojourn: Cli):
    shutil.copytree(swept, tmp_path / "store")
    (tmp_path / "grid.toml").write_text(SWEEP)
    seeds = ("--set", "experiment.seed=100", "--store", "store")
    assert sojourn("sweep", "grid.toml", *seeds).returncode == 0
    whole = Grid(str(tmp_path / "store"))
    assert (len(whole), whole.runs) == (24, 144), "more seeds of the same experiment"
    other = ("--set", "experiment.seed=200", "--set", "link.delay='1 ms'", "--store", "store")
    assert sojourn("sweep", "grid.toml", *other).returncode == 0
    drawn = ("--kind", "lines", "--x", "link.rate", "--out", "lines.svg")
    for command in (("plot", *drawn), ("explore", "--out", "page.html")):
        refused = sojourn(*command, "--store", "store")
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
        told = refused.stderr.replace("\N{NO-BREAK SPACE}", " ")
        assert "store: pfifo, rate 1000 kbit/s, 1 flow, tcp reno: the runs of this cell differ in more than" in told
        choices = re.findall('--where "(.*?)"', told)
        assert sorted(Grid(str(tmp_path / "store"), choice).runs for choice in choices) == [72, 144]


def test_an_edited_discipline_does_not_mix_with_what_it_was(tmp_path: Path, sojourn: Cli):
    own = (
        "import sojourn as sj\n@sj.aqm('own')\nclass Own:\n"
        "    def enqueue(self, packet, queue, now):\n        return {}\n"
    )
    text = SWEEP.partition("[sweep]")[0].replace('"pfifo"', '"own"')
    (tmp_path / "grid.toml").write_text(text)
    for seed, verdict in ((1, "'pass'"), (50, "'drop' if queue.random() < 0.1 else 'pass'")):
        (tmp_path / "own.py").write_text(own.format(verdict))
        swept = ("sweep", "grid.toml", "--set", f"experiment.seed={seed}", "--store", "store")
        assert sojourn("--load", "own.py", *swept).returncode == 0
    refused = sojourn("explore", "--store", "store", "--out", "page.html")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "own: the runs of this cell differ in more than their seeds" in refused.stderr


def test_the_runs_of_several_settings_have_a_range_and_no_interval(grid: Grid):
    pooled = grid.pooled(["label", "link.rate"])
    shown = grid.column("goodput_bps")
    found, each = pooled.intervals(shown), grid.intervals(shown)
    assert (grid.is_pooled, pooled.is_pooled, grid.pooled(grid.axes).is_pooled) == (False, True, False)
    assert (found.low <= found.middle).all()
    assert found.low.min() <= np.nanmin(each.low)
    cell = [index for index in range(len(grid)) if (grid.codes[index, :2] == pooled.codes[0]).all()]
    assert found.high[0] == max(each.high[cell]) > max(each.middle[cell]) - 1e-9
    text = spread(found.n, interval=True, is_pooled=pooled.is_pooled)
    assert text == "median of 12 runs, with their range"


def test_metrics_have_words_and_units():
    assert column("goodput_bps").axis_label == "goodput [Mbit/s]"
    assert column("movie.rtt_p95_ms").axis_label == "movie: p95 of the RTT [ms]"
    assert column("queue.sparse.sojourn_p95_ms").axis_label == "sparse: p95 of the sojourn time [ms]"
    assert column("utilization").axis_label == "utilization [%]"
    assert column("unheard_of_ms").axis_label == "unheard of [ms]"
    assert [short(value) for value in (0.0, 1234567.0, 12.345, 0.00123, 1e-9, 100.0, math.nan)] == [
        "0", "1234567", "12.3", "0.00123", "1.00e-09", "100", "–",
    ]  # fmt: skip


NETWORK = """
experiment = { name = "network", duration = "1 s", repeat = 2 }
queue = [{ aqm = "codel" }]
[[link]]
name = "router"
from = "home"
to = "modem"
rate = "20 Mbit/s"
[[link]]
name = "line"
from = "modem"
to = "net"
rate = "10 Mbit/s"
queue = { aqm = "pfifo" }
[[traffic]]
name = "call"
kind = "voip"
from = "home"
to = "net"
rtt = "20 ms"
[sweep]
"link.router.rate" = ["10 Mbit/s", "20 Mbit/s"]
"""


def test_of_several_links_one_must_be_named(sojourn: Cli, tmp_path: Path):
    (tmp_path / "network.toml").write_text(NETWORK)
    assert sojourn("sweep", "network.toml", "--store", "network").returncode == 0
    plot = ("plot", "--store", "network", "--kind", "lines", "--x", "link.router.rate", "--out", "lines.png")
    wrong(sojourn(*plot), "--metric: sojourn_p95_ms is of a queue", "line, router", "--where \"link = 'line'\"")
    assert sojourn(*plot, "--where", "link = 'line'").returncode == 0
    assert sojourn(*plot, "--metric", "call.one_way_p95_ms").returncode == 0
