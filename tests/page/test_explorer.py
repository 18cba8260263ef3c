"""`sojourn explore`: a page that opens from disk, used in a real browser as a reader would."""

from __future__ import annotations

import csv
import io
import subprocess
from html import escape
from pathlib import Path
from typing import Any

import pytest

from browser import PHONE, titled
from conftest import SOJOURN, SWEEP, Cli
from sojourn.frame.registry import short
from sojourn.frame.statistics import three_digits
from sojourn.store.cells import Grid

# Waits for the page, does what the test says, and puts what it returns into the title.
DRIVER = """<script>(async () => {
  const until = async (found) => { while (!found()) await new Promise((go) => setTimeout(go, 20)); };
  const set = (name, value) => { const list = document.querySelector(`[name=${name}]`); list.value = value;
    list.dispatchEvent(new Event("change")); };
  const panels = () => [...document.querySelectorAll(".panel h3")].map((title) => title.textContent);
  await until(() => document.documentElement.dataset.ready || document.querySelector("#note.warning"));
  try { document.title = JSON.stringify(await (async () => { SCRIPT })()); }
  catch (error) { document.title = JSON.stringify({ error: String(error) }); }
})()</script>"""


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store and its explorer."""
    folder = tmp_path_factory.mktemp("explored")
    (folder / "grid.toml").write_text(SWEEP)
    for arguments in (
        ["sweep", "grid.toml", "--store", "store"],
        ["explore", "--store", "store", "--out", "page.html"],
    ):
        made = subprocess.run([SOJOURN, *arguments], cwd=folder, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture(scope="module")
def grid(explored: Path) -> Grid:
    return Grid(explored / "store")


def driven(explored: Path, folder: Path, script: str) -> Any:
    """What a script returns that uses the page in a browser 1280 pixels wide."""
    page = (explored / "page.html").read_text(encoding="utf-8")
    driven = folder / "driven.html"
    driven.write_text(page.replace("</body>", DRIVER.replace("SCRIPT", script) + "</body>"), encoding="utf-8")
    return titled(driven, "--virtual-time-budget=20000")


def test_the_page_needs_only_itself_and_is_small(explored: Path, tmp_path: Path):
    assert (explored / "page.html").stat().st_size < 3_000_000
    seen = driven(
        explored,
        tmp_path,
        """const fetched = performance.getEntriesByType("resource").map((entry) => entry.name);
        return { fetched: fetched.filter((name) => !/^(data|blob):/.test(name)),
          overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
          heading: document.querySelector("h1").textContent,
          facts: document.querySelector(".facts").textContent.slice(0, 20),
          panels: panels(), drawn: document.querySelectorAll(".drawn .heatmaplayer").length }""",
    )
    assert seen == {
        "fetched": [],
        "overflow": 0,
        "heading": "grid",
        "facts": "72 runs in 24 cells.",
        "panels": ["pfifo, tcp reno", "CoDel, tcp reno", "pfifo, tcp cubic", "CoDel, tcp cubic"],
        "drawn": 4,
    }


def test_a_filter_leaves_the_cells_that_it_chooses(explored: Path, tmp_path: Path, grid: Grid):
    seen = driven(
        explored,
        tmp_path,
        """set("metric", "goodput_bps");
        const before = document.querySelectorAll("#cells tbody tr").length;
        document.querySelector("details[data-key='traffic.0.tcp'] .values input").click();
        document.querySelector("details[data-key='label'] .values input").click();
        const hover = document.querySelector(".drawn").data[0].hovertext[1][2];
        return { before, after: document.querySelectorAll("#cells tbody tr").length, panels: panels(), hover,
          note: document.querySelector("#note").textContent,
          row: [...document.querySelectorAll("#cells tbody tr:last-child td")].map((cell) => cell.textContent) }""",
    )
    cell = next(
        cell for cell in range(len(grid))
        if [int(index) for index in grid.codes[cell]] == [1, 2, 1, 1]
    )  # fmt: skip
    found = grid.intervals(grid.column("goodput_bps"))
    middle, low, high = (short(float(f"{one[cell]:.4g}")) for one in (found.middle, found.low, found.high))
    assert (seen["before"], seen["after"], seen["panels"]) == (24, 6, [""])
    assert seen["note"] == "only CoDel, tcp cubic"
    assert seen["hover"] == f"CoDel, rate 20 Mbit/s, 3 flows, tcp cubic<br>{middle} Mbit/s [{low}–{high}], 3 runs"
    assert seen["row"] == ["CoDel", "20 Mbit/s", "3", "cubic", f"{middle} [{low}–{high}]", "3"]


def test_other_axes_lines_and_fronts_are_drawn(explored: Path, tmp_path: Path):
    seen = driven(
        explored,
        tmp_path,
        """document.querySelector("[value=lines]").click();
        const lines = document.querySelector(".drawn").data.map((trace) => [trace.name, trace.x]);
        set("x", "traffic.0.flows"); set("each", "traffic.0.tcp");
        const other = { panels: panels(), names: document.querySelector(".drawn").data.map((trace) => trace.name) };
        document.querySelector("[value=pareto]").click();
        const drawn = document.querySelectorAll(".drawn"), front = drawn[0].data[0];
        set("gain", "utilization");
        const title = document.querySelector(".drawn").layout.yaxis.title.text;
        for (const metric of metrics) metric.middle = metric.middle.map(() => 1);
        set("gain", "goodput_bps");
        const sizes = document.querySelector(".drawn").data.slice(1).map((trace) => trace.marker.size[0]);
        return { lines, sizes, other, pareto: drawn.length,
          falls: front.x.every((x, at) => !at || x >= front.x[at - 1]),
          title, warning: document.querySelector("#note").className }""",
    )
    assert seen["lines"] == [["pfifo", [1, 2, 20]], ["CoDel", [1, 2, 20]]]
    assert seen["other"] == {
        "panels": [
            f"{label}, rate {rate}" for rate in ("1000 kbit/s", "2 Mbit/s", "20 Mbit/s") for label in ("pfifo", "CoDel")
        ],
        "names": ["reno", "cubic"],
    }
    assert seen["sizes"] == [19, 11], "a mark at the same point is seen around the other"
    assert (seen["pareto"], seen["falls"], seen["title"], seen["warning"]) == (12, True, "utilization [%]", "")


def test_the_table_sorts_and_the_csv_file_has_every_figure(explored: Path, tmp_path: Path, grid: Grid):
    seen = driven(
        explored,
        tmp_path,
        """const headings = () => [...document.querySelectorAll("#cells th button")];
        const heading = () => headings().find((button) => button.textContent.startsWith("p95"));
        heading().click(); heading().click();
        const cells = [...document.querySelectorAll("#cells tbody tr td:nth-child(5)")];
        const values = cells.map((cell) => parseFloat(cell.textContent));
        let saved; URL.createObjectURL = (blob) => { saved = blob; return "#"; };
        keys.push({ ...keys[0], key: "words", texts: keys[0].texts.map(() => "=1+1") });
        document.querySelector("#csv").click();
        return { values, csv: await saved.text(), sort: document.querySelector("th[aria-sort]").ariaSort }""",
    )
    assert seen["sort"] == "descending"
    assert seen["values"] == sorted(seen["values"], reverse=True)
    rows = list(csv.DictReader(io.StringIO(seen["csv"])))
    assert len(rows) == len(grid)
    goodput = grid.intervals(grid.column("goodput_bps"))
    assert sorted(float(row["goodput_bps"]) for row in rows) == pytest.approx(sorted(goodput.middle * 1e6), rel=1e-6)
    # What people read is rounded once, as in figures and tables.
    p95_ms = grid.intervals(grid.column("sojourn_p95_ms")).middle
    assert seen["values"] == sorted((float(three_digits(value)) for value in p95_ms), reverse=True)
    assert {row["goodput_bps.runs"] for row in rows} == {"3"}
    assert all(float(row["goodput_bps.low"]) <= float(row["goodput_bps.high"]) for row in rows)
    assert set(grid.metrics) <= set(rows[0])
    assert {row["words"] for row in rows} == {"'=1+1"}, "a spreadsheet would calculate it"


def test_a_phone_shows_it_and_its_filters(explored: Path, tmp_path: Path):
    page = (explored / "page.html").read_text(encoding="utf-8")
    script = """document.querySelector("details[data-key='label'] summary").click();
      document.querySelector("details[data-key='label'] .values input").click();
      const ends = [...document.querySelectorAll(".drawn .main-svg")].map((one) => one.getBoundingClientRect().right);
      return { width: innerWidth, overflow: document.documentElement.scrollWidth - innerWidth, panels: panels(),
        open: document.querySelector("details[data-key='label']").open,
        wide: Math.max(...ends) <= innerWidth }"""
    tell = DRIVER.replace("document.title =", "parent.document.title =").replace("SCRIPT", script)
    framed = tmp_path / "phone.html"
    framed.write_text(PHONE.format(page=escape(page.replace("</body>", tell + "</body>"))), encoding="utf-8")
    seen = titled(framed, "--virtual-time-budget=20000")
    assert seen == {"width": 390, "overflow": 0, "panels": ["tcp reno", "tcp cubic"], "open": True, "wide": True}


def test_mistakes_are_told_in_a_line(sojourn: Cli, explored: Path):
    for arguments, told in (
        (["--out", "page.pdf"], '--out: got "page.pdf"; must end with .html\n'),
        (
            ["--out", "a.html", "--metrics", "goodput_bp"],
            '--metrics: got "goodput_bp"; must be one of the store\'s columns, such as ',
        ),
        (["--out", "a.html", "--where", "seed = 0"], f"{explored / 'store'} has no such runs\n"),
    ):
        failed = sojourn("explore", "--store", explored / "store", *arguments)
        assert failed.returncode == 2
        assert failed.stderr.startswith(told)
        assert len(failed.stderr.splitlines()) == 1


def test_the_same_store_gives_the_same_page(sojourn: Cli, explored: Path, tmp_path: Path):
    assert sojourn("explore", "--store", explored / "store", "--out", "again.html").returncode == 0
    assert (tmp_path / "again.html").read_bytes() == (explored / "page.html").read_bytes()
