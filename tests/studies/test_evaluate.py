"""``sojourn evaluate``: a discipline by a suite of scenarios."""

from __future__ import annotations

import csv
import json
import math
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from conftest import ROOT, Cli, visible
from sojourn import _core
from sojourn.frame.statistics import Interval, mean_interval
from sojourn.studies.suites import Suite, evaluate, find
from sojourn.studies.suites.figures import FAMILIES, by_family, relative_map
from sojourn.studies.suites.scorecard import Line, compared, scorecard
from sojourn.studies.suites.suite import arms_of, plan

SUITE = """
title = "A short suite"
reference = "pfifo"
default = ["goodput_mbps", "delay_mean_ms", "delay_p95_ms", "marks"]

[quick]
"experiment.repeat" = "2"

[metrics.goodput_mbps]
from = "goodput_bps"
factor = 1e-6
unit = "Mbit/s"
better = "higher"

[metrics.delay_mean_ms]
from = "sojourn_ms"
unit = "ms"
better = "lower"

[metrics.delay_p95_ms]
from = "sojourn_ms"
statistic = "p95"
unit = "ms"
better = "lower"

[metrics.marks]
from = "marked_packets"
unit = "packets"

[metrics.ratio]
from = "goodput_bps"
traffic = 1
over_traffic = 0

[[scenario]]
section = "5.1"
name = "two flows"
weight = "must"
asks = "two flows"
decided = "short"
file = "two.toml"
metrics = ["ratio"]

[[scenario]]
section = "4.5"
name = "ECN"
weight = "should"
asks = "ECN"
decided = "short"
file = "two.toml"
needs = "ecn"

[[scenario.case]]
name = "on"
set = { "traffic.0.ecn" = "true", "traffic.1.ecn" = "true" }
queue = { ecn = true }

[[scenario]]
section = "8.3"
name = "knobs"
weight = "should"
asks = "a range of targets"
decided = "two"
file = "two.toml"
needs = "target"

[[scenario.case]]
name = "target 5 ms"
queue = { target = "5 ms" }

[[scenario.case]]
name = "target 40 ms"
queue = { target = "40 ms" }
"""
TWO = """
[experiment]
duration = "8 s"
warmup = "2 s"
repeat = 3
[link]
rate = "5 Mbit/s"
buffer = "1 bdp"
[[traffic]]
kind = "bulk"
rtt = "100 ms"
start = "0..1 s"
[[traffic]]
kind = "bulk"
rtt = "100 ms"
start = "0..1 s"
"""
MY_AQM = '''
import sojourn as sj

@sj.aqm("half")
class Half:
    """Drops above half of a buffer of 41 packets."""

    def enqueue(self, packet, queue, now):
        return "drop" if queue.packets > 20 else "pass"
'''


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A folder with a short suite."""
    folder = tmp_path / "short"
    folder.mkdir()
    (folder / "suite.toml").write_text(SUITE)
    (folder / "two.toml").write_text(TWO)
    return folder


def by_name(card: dict[str, object]) -> dict[str, dict[str, object]]:
    scenarios = card["scenarios"]
    assert isinstance(scenarios, list)
    return {one["name"]: one for one in scenarios}


def test_drop_tail_itself_is_drawn(sojourn: Cli, suite: Path, tmp_path: Path):
    done = sojourn("evaluate", "pfifo", "--suite", suite, "--quick", "--out", tmp_path / "out")
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0)
    assert "overview.png" in visible(tmp_path / "out")


def test_a_scorecard_as_json_has_every_scenario_with_intervals_and_drop_tails_values(
    sojourn: Cli, suite: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = sojourn("evaluate", "pie", "--against", "codel", "--suite", suite, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    card = json.loads(done.stdout)
    assert (card["suite"], card["aqm"], card["against"]) == ("short", "pie", ["codel"])
    found = by_name(card)
    assert list(found) == ["two flows", "ECN: on", "knobs: target 5 ms", "knobs: target 40 ms"]
    assert all(one["status"] == "done" for one in found.values())
    delay = found["two flows"]["metrics"]["delay_mean_ms"]  # type: ignore[index]
    assert delay["ci95"][0] <= delay["value"] <= delay["ci95"][1]
    assert 0.0 < delay["value"] < delay["reference"]
    assert delay["than_reference"] == "better"
    assert delay["against"]["codel"]["value"] != delay["value"]
    low, high = (
        found[f"knobs: target {target} ms"]["metrics"]["delay_mean_ms"]["value"]  # type: ignore[index]
        for target in (5, 40)
    )
    assert low < high
    assert json.loads((out / "scorecard.json").read_text()) == card
    assert visible(out) == {
        *("scorecard.json", "scorecard.md", "data.csv", "datapackage.json"),
        *("overview.png", "tradeoff-4.png", "tradeoff-5.png", "tradeoff-8.png"),
    }
    assert {Path(figure).name for figure in card["figures"]} == {
        "overview.png",
        *(f"tradeoff-{n}.png" for n in (4, 5, 8)),
    }
    rows = list(csv.DictReader((out / "data.csv").open()))
    values = [
        float(row["value"])
        for row in rows
        if (row["scenario"], row["queue"], row["metric"]) == ("two flows", "pie", "delay_mean_ms")
    ]
    assert len(values) == 3
    assert math.isclose(sum(values) / 3, delay["value"], rel_tol=1e-6)
    package = json.loads((out / "datapackage.json").read_text())
    assert [one["name"] for one in package["resources"][0]["schema"]["fields"]] == list(rows[0])
    assert {row["metric"] for row in rows} <= {one["name"] for one in package["metrics"]}


def test_the_table_shows_the_other_disciplines(sojourn: Cli, suite: Path) -> None:
    done = sojourn("evaluate", "pie", "--against", "codel", "--suite", suite)
    assert done.returncode == 0, done.stderr
    assert "In brackets pfifo, codel. + better than pfifo" in done.stdout
    assert re.search(r"[\d.]+ \([\d.]+,\s+[\d.]+\)", done.stdout)


def test_what_a_discipline_lacks_is_not_applicable_with_a_reason(sojourn: Cli, suite: Path) -> None:
    done = sojourn("evaluate", "bfifo", "--suite", suite, "--quick", "--json")
    assert done.returncode == 0, done.stderr
    found = by_name(json.loads(done.stdout))
    assert found["ECN: on"]["status"] == found["knobs: target 5 ms"]["status"] == "not applicable"
    assert found["ECN: on"]["reason"] == "bfifo marked no packet with ECN on"
    assert found["knobs: target 5 ms"]["reason"] == "bfifo has no target delay to set"
    assert found["ECN: on"]["metrics"] == {}


def test_a_discipline_of_ones_own_is_given_by_its_file(sojourn: Cli, suite: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MY_AQM)
    done = sojourn("evaluate", file, "--suite", suite, "--quick")
    assert done.returncode == 0, done.stderr
    assert "A short suite: half (" in done.stdout
    assert "Not applicable: 8.3 knobs: target 5 ms: half has no target delay to set" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    "given", [("evaluate", "mine.py", "--against", "codel"), ("--load", "mine.py", "evaluate", "half")]
)
def test_the_command_in_the_files_repeats_the_evaluation(
    sojourn: Cli, suite: Path, tmp_path: Path, given: tuple[str, ...]
) -> None:
    (tmp_path / "mine.py").write_text(MY_AQM)
    done = sojourn(*given, "--suite", suite, "--quick", "--out", tmp_path / "first")
    assert done.returncode == 0, done.stderr
    command = json.loads((tmp_path / "first" / "datapackage.json").read_text())["command"]
    assert f"    {command}\n" in (tmp_path / "first" / "scorecard.md").read_text()
    again = sojourn(*shlex.split(command)[1:], "--out", tmp_path / "again")
    assert again.returncode == 0, again.stderr
    for name in ("scorecard.md", "data.csv", "datapackage.json"):
        assert (tmp_path / "again" / name).read_text() == (tmp_path / "first" / name).read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("codle",), 'evaluate: in queue "codle": aqm: got "codle"; did you mean "codel"?'),
        (("pie:targte=5ms",), 'did you mean "target"?'),
        (("pie:",), 'evaluate: got queue "pie:"; must be a name or name:key=value'),
        (("pie", "--against", ","), '--against: got ","; must be disciplines'),
        (("pie", "--against", "fq_coddel"), 'did you mean "fq_codel"?'),
        (("pie", "--suite", "rfc7982"), '--suite: got "rfc7982"; must be one of ccwg, rfc7928'),
        (("nothere.py",), "nothere.py: No such file"),
    ],
)
def test_a_wrong_argument_is_one_line_and_status_2(sojourn: Cli, arguments: tuple[str, ...], says: str) -> None:
    done = sojourn("evaluate", *arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_file_that_a_suite_names_and_lacks_is_named(sojourn: Cli, suite: Path) -> None:
    (suite / "two.toml").unlink()
    done = sojourn("evaluate", "pie", "--suite", suite)
    assert done.returncode == 2
    assert done.stderr == f"{suite / 'two.toml'}: no such file; section 5.1 of the suite names it\n"


def test_a_file_without_a_discipline_is_refused(sojourn: Cli, tmp_path: Path) -> None:
    file = tmp_path / "none.py"
    file.write_text("x = 1\n")
    done = sojourn("evaluate", file)
    assert done.returncode == 2
    assert "registers none; must register one discipline" in done.stderr


def test_other_peoples_files_are_not_replaced(sojourn: Cli, suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "data.csv").write_text("mine\n")
    done = sojourn("evaluate", "pie", "--suite", suite, "--quick", "--out", out)
    assert done.returncode == 2
    assert "data.csv" in done.stderr
    assert done.stderr.count("\n") == 1
    assert (out / "data.csv").read_text() == "mine\n"
    assert visible(out) == {"data.csv"}


def test_an_interrupt_leaves_nothing_half_written(suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (suite / "two.toml").write_text(TWO.replace('"8 s"', '"100000 s"'))
    command = [sys.executable, "-m", "sojourn", "evaluate", "pie", "--suite", str(suite), "--out", str(out)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while "runs" not in (line := process.stderr.readline()):
            assert line or process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert "interrupted" in rest
    assert not out.exists()


def test_a_difference_counts_if_its_interval_leaves_out_zero() -> None:
    assert compared([1.0, 1.1, 0.9], "higher") == "better"
    assert compared([1.0, 1.1, 0.9], "lower") == "worse"
    assert compared([-1.0, 1.0, 0.2], "lower") == "same"
    assert compared([1.0, math.nan], "higher") == ""
    assert compared([1.0, 1.1, 0.9], "") == ""


def test_rfc_7928_has_every_section_of_the_document() -> None:
    sections = {one.section for one in find("rfc7928").content.scenario}
    assert sections == {
        *("4.4", "4.5", "4.6", "5.1.1", "5.1.2", "5.2", "5.3", "5.4", "6.1", "6.2", "7.2", "8.2.2", "8.2.3", "8.2.4"),
        *("8.2.5", "8.2.6", "8.3", "9.1", "9.2", "10.2", "11", "12"),
    }


def test_rfc_7928_can_be_planned_for_every_discipline() -> None:
    suite = find("rfc7928")
    for entry in json.loads(_core.disciplines_json()):
        planned = plan(arms_of(entry["name"], suite, ()), suite, quick=True)
        assert any(one.plan is not None for one in planned)
        assert all(one.plan is not None or one.reason for one in planned)


def test_intervals_end_where_no_value_can_be() -> None:
    metrics = find("rfc7928").content.metrics
    assert metrics["loss_percent"].bounds == (0.0, 100.0)
    assert metrics["jain"].bounds == metrics["loss_synchronization"].bounds == (0.0, 1.0)
    assert metrics["voip_mos"].bounds == (1.0, 4.5)
    assert metrics["voip_qoo"].bounds == (0.0, 100.0)
    assert metrics["delay_mean_ms"].bounds == metrics["second_to_first"].bounds == (0.0, math.inf)
    # A mean of 0.9 with a deviation of 0.14: Student's t for two values is 12.7.
    wide = mean_interval([0.8, 1.0])
    assert wide.high > 2.0
    assert wide.within(*metrics["jain"].bounds) == Interval(wide.middle, 0.0, 1.0, 2)


def test_no_interval_of_a_scorecard_is_outside_of_what_a_value_can_be(of_loads: dict[str, Line]) -> None:
    metrics = find("rfc7928").content.metrics
    for line in of_loads.values():
        for score in line.scores:
            low, high = metrics[score.name].bounds
            for one in (score.value, score.reference, *score.against.values()):
                assert math.isnan(one.middle) or low <= one.low <= one.high <= high, (line.name, score.name)


LOADS = ("8.2.2", "8.2.3", "8.2.4")


@pytest.fixture(scope="module")
def of_loads() -> dict[str, Line]:
    """The scorecard of some scenarios, shortened, PIE with CoDel and FQ-CoDel beside it; by section and by name."""
    whole = find("rfc7928")
    wanted = (*LOADS, "unresponsive sender beside TCP")
    chosen = tuple(one for one in whole.content.scenario if {one.section, one.name} & {*wanted})
    quick = {"experiment.repeat": "2", "experiment.duration": "30 s"}
    suite = Suite(whole.name, whole.folder, replace(whole.content, scenario=chosen, quick=quick))
    evaluation = evaluate("pie", suite, against=("codel", "fq_codel"), quick=True)
    assert evaluation.stopped_by is None
    return {key: line for line in scorecard(evaluation) for key in (line.section, line.name)}


def value(line: Line, metric: str, queue: str = "pie") -> float:
    score = next(one for one in line.scores if one.name == metric)
    return {"pie": score.value, "pfifo": score.reference, **score.against}[queue].middle


def test_pie_holds_its_target_at_every_load(of_loads: dict[str, Line]) -> None:
    # RFC 8033, section 4: the reference delay is 15 ms, and the controller holds the delay there whatever the load.
    for section in LOADS:
        assert value(of_loads[section], "delay_mean_ms") == pytest.approx(15.0, rel=0.25)


def test_codels_delay_rises_with_the_number_of_flows(of_loads: dict[str, Line]) -> None:
    # Khademi, Ros and Welzl 2013, section 3: median and 90th percentile of CoDel rise with the number of flows.
    medians = [value(of_loads[section], "delay_p50_ms", "codel") for section in LOADS]
    assert medians == sorted(medians)
    assert medians[0] < medians[-1]


def test_fq_codel_leaves_tcp_more_than_codel_does_beside_udp(of_loads: dict[str, Line]) -> None:
    # Sanz 2019: beside UDP, FQ-CoDel gives TCP lower latency and higher throughput than CoDel. UDP at 8 of 10 Mbit/s is
    # above its fair share.
    mixed = of_loads["unresponsive sender beside TCP: UDP at 8 Mbit/s"]
    assert value(mixed, "first_mbps", "fq_codel") > 1.5 * value(mixed, "first_mbps", "codel")


def test_heavy_load_fills_the_link_at_a_fraction_of_drop_tails_delay(of_loads: dict[str, Line]) -> None:
    # Khademi, Ros and Welzl 2013: at a high load every discipline reaches the largest goodput of the link.
    heavy = of_loads["8.2.4"]
    for queue in ("pie", "codel", "fq_codel"):
        assert value(heavy, "goodput_mbps", queue) > 0.97 * value(heavy, "goodput_mbps", "pfifo")
        assert value(heavy, "delay_mean_ms", queue) < 0.5 * value(heavy, "delay_mean_ms", "pfifo")


def test_the_map_has_every_arm_once_by_family_and_drop_tail_is_white():
    arms = ["mine", "pfifo", "cake", "codel:target=20ms", "pie"]
    assert by_family(arms) == [
        ("drop-tail", ["pfifo"]), ("PIE", ["pie"]), ("CoDel", ["codel:target=20ms"]), ("flow queueing", ["cake"]),
        ("other", ["mine"]),
    ]  # fmt: skip
    delay = np.array([[10.0, 1.0, 0.1, 0.01, np.nan]])
    goodput = np.array([[1.1, 1.0, 0.9, 0.5, np.nan]])
    drawn = relative_map(["5.1 sender"], arms, delay, goodput, "pfifo")
    colors = [np.ma.asarray(plot.collections[0].get_array()).ravel() for plot in drawn.axes[:2]]
    assert colors[0].filled(9.0).tolist() == pytest.approx([0.0, 9.0, 2.0, 1.0, -1.0])
    # Half of the goodput is beyond the last colour.
    assert colors[1].filled(9.0).tolist() == pytest.approx([0.0, 9.0, -0.3, -0.1, 0.1])
    names = [text.get_text() for text in drawn.axes[0].get_xticklabels()]
    assert names == ["pfifo", "pie", "codel:\ntarget=20ms", "cake", "mine"]


def test_every_discipline_has_a_family():
    known = {aqm for members in FAMILIES.values() for aqm in members}
    assert known == {page.stem for page in (ROOT / "docs" / "disciplines").glob("*.md")}
