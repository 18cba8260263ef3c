"""`sojourn report`: a page that needs nothing but itself, looked at in a real browser where there is one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import escape
from pathlib import Path

import pytest

import sojourn as sj
from browser import PHONE, titled
from conftest import EXPERIMENT, SOJOURN, Cli, wrong
from sojourn.store.section import context

# Put into a copy of the page; what it finds becomes the page's title.
PROBE = """<script>addEventListener("load", () => { document.title = JSON.stringify({
  images: [...document.images].map(image => image.naturalWidth),
  fetched: performance.getEntriesByType("resource").map(entry => entry.name).filter(name => !name.startsWith("data:")),
  overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  clipped: [...document.querySelectorAll(".wide")].filter(part => part.scrollWidth > part.clientWidth).length,
  headings: [...document.querySelectorAll("h1, h2")].map(heading => heading.textContent),
  shown: [...document.querySelectorAll(".claims tbody tr")].filter(row => row.offsetHeight > 0).map(row => row.id),
})})</script>"""


def seen_by_browser(page: Path, more: str = "") -> dict:
    """What a browser makes of the page; ``more`` is script that runs first."""
    copy = page.with_name("probed.html")
    copy.write_text(page.read_text(encoding="utf-8").replace("</body>", f"{more}{PROBE}</body>"), encoding="utf-8")
    return titled(copy)


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a small experiment with their report, made once."""
    folder = tmp_path_factory.mktemp("reported")
    (folder / "experiment.toml").write_text(EXPERIMENT, encoding="utf-8")
    for arguments in (["run", "experiment.toml", "--out", "out"], ["report", "out"]):
        result = subprocess.run([SOJOURN, *arguments], cwd=folder, capture_output=True, text=True, timeout=120)
        assert result.returncode == 0, result.stderr
    assert result.stdout == "out/report.html\n"
    return folder / "out"


@pytest.fixture
def page(reported: Path, tmp_path: Path) -> Path:
    """The report, in a copy that a test may change."""
    return Path(shutil.copytree(reported, tmp_path / "out")) / "report.html"


def test_a_browser_shows_all_of_it_and_fetches_nothing(page: Path):
    seen = seen_by_browser(page)
    assert seen["headings"] == [
        "two flows", "Overview", "Results", "Difference from pfifo, run by run on the same seeds", "Figures",
        "A flow of each group", "What was run",
    ]  # fmt: skip
    assert len(seen["images"]) == 6
    assert all(seen["images"])
    assert seen["fetched"] == []
    assert (seen["overflow"], seen["clipped"]) == (0, 0)


# A page of 390 px in a frame, as a browser's own window cannot be so narrow.


@pytest.mark.parametrize("what", ["experiment", "study"])
def test_a_phone_shows_it_without_scrolling_sideways(
    sojourn: Cli, request: pytest.FixtureRequest, tmp_path: Path, what: str
):
    if what == "study":
        assert sojourn("study", "run", request.getfixturevalue("study"), "--quick", "--out", "out").returncode == 0
        assert sojourn("report", "out").returncode == 0
    else:
        request.getfixturevalue("page")
    tells = """<script>addEventListener("load", () => { parent.document.title = JSON.stringify({
      width: innerWidth, overflow: document.documentElement.scrollWidth - innerWidth })})</script>"""
    text = (tmp_path / "out" / "report.html").read_text(encoding="utf-8").replace("</body>", f"{tells}</body>")
    framed = tmp_path / "phone.html"
    framed.write_text(PHONE.format(page=escape(text)), encoding="utf-8")
    assert titled(framed) == {"width": 390, "overflow": 0}


def test_a_phone_has_an_overview_of_its_own(page: Path, tmp_path: Path):
    tells = """<script>addEventListener("load", () => { const seen = document.querySelector("#overview img");
      parent.document.title = JSON.stringify({ shown: seen.width, drawn: seen.naturalWidth }) })</script>"""
    text = page.read_text(encoding="utf-8").replace("</body>", f"{tells}</body>")
    framed = tmp_path / "phone.html"
    framed.write_text(PHONE.format(page=escape(text)), encoding="utf-8")
    seen = titled(framed)
    # 96 pixels an inch: letters keep their 8 and 9 points.
    assert seen["drawn"] == 336
    assert seen["shown"] == seen["drawn"]


def test_a_sweep_is_summed_up_first_and_its_page_is_bounded(sojourn: Cli, tmp_path: Path):
    rates = [f"{rate} Mbit/s" for rate in range(1, 41)]
    more = f'\n[sweep]\n"link.rate" = {json.dumps(rates)}\n'
    short = (
        EXPERIMENT.replace("repeat = 2", "repeat = 1")
        .replace('"4 s"', '"1 s"')
        .replace('"1 s"\nrepeat', '"0 s"\nrepeat')
    )
    (tmp_path / "sweep.toml").write_text(short + more, encoding="utf-8")
    assert sojourn("run", "sweep.toml", "--out", "out", "--figures", "none").returncode == 0
    assert sojourn("report", "out").returncode == 0
    page = tmp_path / "out" / "report.html"
    assert page.stat().st_size < 2_000_000
    text = page.read_text(encoding="utf-8")
    order = [
        text.index(part)
        for part in ("<h2>Overview", 'id="over_rate_sojourn_p95_ms"', "<h2>Results", "<h3>link.rate 1 Mbit/s")
    ]
    assert order == sorted(order)
    assert "more cells of the sweep are left out" in text


def test_it_names_everything_that_was_run(page: Path):
    text = page.read_text(encoding="utf-8")
    summary = json.loads((page.parent / "summary.json").read_text(encoding="utf-8"))
    for part in ("10 Mbit/s", "100 packets", "cubic", "rfc8289", "two flows", "1–2", summary["sojourn"]):
        assert part in text, part
    assert re.search(r"\b[0-9a-f]{64}\b", text)


def test_it_shows_what_a_case_sets(tmp_path: Path):
    text = EXPERIMENT.replace("repeat = 2", "repeat = 1").replace('duration = "4 s"', 'duration = "2 s"')
    text += '[[case]]\nlabel = "slow"\n[[case]]\nlabel = "fast"\n'
    text += 'set = { "link.rate" = "50 Mbit/s", "queue.1.target" = "9 ms" }\n'
    sj.run_text(text).save(tmp_path / "out", plots=False)
    shown = context(tmp_path / "out")["settings"]
    assert shown["case: fast, where it differs from slow"] == {"link.rate": "50 Mbit/s", "queue.1.target": "9 ms"}


def test_it_counts_cases_and_the_queues_of_one_of_them(tmp_path: Path):
    text = """
experiment = { duration = "1 s", repeat = 2 }
link = { rate = "10 Mbit/s" }
queue = [{ aqm = "pfifo" }]
traffic = [{ kind = "bulk", rtt = "20 ms" }]
case = [{ label = "as it is" }, { label = "shaped", set = { "queue.0.aqm" = "codel" } }]
"""
    for more, counted in (
        ("", "4: 1 queue × 2 cases"),
        ('sweep = { "link.rate" = ["5 Mbit/s", "9 Mbit/s"] }', "8: 1 queue × 2 cases × 2 combinations of swept values"),
    ):
        sj.run_text(text + more).save(tmp_path / counted, plots=False)
        assert context(tmp_path / counted)["facts"]["runs"] == f"{counted}, 2 repeats each"


def test_the_same_results_give_the_same_page(sojourn: Cli, page: Path):
    first = page.read_bytes()
    sojourn("report", page.parent)
    assert page.read_bytes() == first


def test_names_cannot_become_markup(sojourn: Cli, tmp_path: Path):
    hostile = EXPERIMENT.replace('"two flows"', '"<script>alert(1)</script>"').replace("repeat = 2", "repeat = 1")
    (tmp_path / "hostile.toml").write_text(hostile, encoding="utf-8")
    sojourn("run", "hostile.toml", "--out", "out", "--figures", "none")
    sojourn("report", "out")
    text = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_a_sweep_and_recorded_series_are_in_it(sojourn: Cli, tmp_path: Path):
    more = '\n[record]\nseries = "500 ms"\n[sweep]\n"link.rate" = ["5 Mbit/s", "10 Mbit/s"]\n'
    (tmp_path / "sweep.toml").write_text(EXPERIMENT + more, encoding="utf-8")
    assert sojourn("run", "sweep.toml", "--out", "out", "--figures", "none").returncode == 0
    assert sojourn("report", "out").returncode == 0
    text = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    for part in ("<h3>link.rate 5 Mbit/s</h3>", "<h3>link.rate 10 Mbit/s</h3>", 'id="sojourn_over_time"'):
        assert part in text, part
    assert "5 Mbit/s, 10 Mbit/s" in text
    assert "swept" in text


def test_a_study_shows_every_claim_with_its_verdict(sojourn: Cli, study: Path, tmp_path: Path):
    assert sojourn("study", "run", study, "--quick", "--out", "out").returncode == 0
    result = sojourn("report", "out")
    assert result.returncode == 0, result.stderr
    page = tmp_path / "out" / "report.html"
    text = page.read_text(encoding="utf-8")
    assert "the full run reproduces it" in text
    for part in ("Two flows", "500 ms (±10%)", "needs a radio", "experiment.repeat = 1", "50%", "SHA-256"):
        assert part in text, part
    seen = seen_by_browser(page)
    assert seen["shown"] == ["shorter", "exact", "air"]
    assert len(seen["images"]) == 1 and 100 < seen["images"][0] < 800
    assert seen["fetched"] == []
    assert "What the paper leaves open" not in text
    chosen = seen_by_browser(page, '<script>document.getElementById("show-not-reproduced").click()</script>')
    assert chosen["shown"] == ["exact"]


def test_a_study_can_be_reported_from_where_it_was_moved_to(sojourn: Cli, study: Path, tmp_path: Path):
    sojourn("study", "run", study, "--quick", "--out", "out")
    (tmp_path / "out").rename(tmp_path / "elsewhere")
    assert sojourn("report", "elsewhere").returncode == 0
    assert "data:image/svg+xml" in (tmp_path / "elsewhere" / "report.html").read_text(encoding="utf-8")


def test_a_copy_without_hidden_files_keeps_its_tables(sojourn: Cli, experiment: Path, tmp_path: Path):
    text = experiment.read_text(encoding="utf-8") + '[record]\nseries = "100 ms"\n'
    experiment.write_text(text, encoding="utf-8")
    assert sojourn("run", experiment, "--out", "out", "--figures", "none").returncode == 0
    shutil.copytree(tmp_path / "out", tmp_path / "copy", ignore=shutil.ignore_patterns(".*"))
    assert sojourn("report", "copy").returncode == 0
    results = sj.load(tmp_path / "copy")
    assert results.queue_series() is not None and results.resolved_json is not None


@pytest.mark.parametrize(
    ("content", "told"), [("{", "not JSON"), ("[]", "damaged"), ("[" * 100_000, "nested too deeply")]
)
def test_an_experiment_file_that_is_damaged_is_one_line(sojourn: Cli, experiment: Path, tmp_path: Path, content, told):
    assert sojourn("run", experiment, "--out", "out", "--figures", "none").returncode == 0
    (tmp_path / "out" / "experiment.json").write_text(content, encoding="utf-8")
    wrong(sojourn("report", "out"), "out", told)
    if content != "[]":
        wrong(sojourn("export", "out", "--format", "events"), "experiment.json", "not JSON")


def test_a_directory_without_results_is_refused(sojourn: Cli, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    wrong(sojourn("report", "empty"), "empty", "no results", "summary.json", "claims.json")
    wrong(sojourn("report", "nowhere"), "nowhere", "directory")
    wrong(sojourn("report"), "DIR")


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"experiment": "x", "backend": "sim", "runs": [{}]}', "\xff"])
def test_damaged_results_are_refused(sojourn: Cli, tmp_path: Path, content: str):
    (tmp_path / "out").mkdir()
    for name in ("summary.json", "claims.json"):
        (tmp_path / "out" / name).write_text(content, encoding="latin-1")
        wrong(sojourn("report", "out"), "out", "damaged")
        (tmp_path / "out" / name).unlink()
    assert list((tmp_path / "out").iterdir()) == []
