"""Advice for a line at home: its experiment, its judgement, the command and the page's example."""

from __future__ import annotations

import json
import sys
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

import sojourn as sj
from conftest import ROOT, wrong
from sojourn import _core
from sojourn._core import ExperimentError
from sojourn.frame.statistics import FEWEST
from sojourn.lines import course, formats, household, typed
from sojourn.lines.advice import Advice, advise
from sojourn.lines.household import LINES, Home, Setting, experiment, settings

FILES = Path(__file__).parent / "files"
USUAL = {"doing": ["calls", "upload"], "buffer_ms": 250.0, "rtt_ms": 30.0}


def home(line: str = "dsl", down: float | None = 16e6, up: float | None = 1e6, **other) -> Home:
    return household.home(line, down_bps=down, up_bps=up, **(USUAL | other))


@pytest.fixture(scope="module")
def found() -> Advice:
    of = home()
    shaped = [
        household.shaped(of, name, share, share) for name, share in (("cake", 90), ("fq_codel", 90), ("cake", 110))
    ]
    return advise(of, tried=[Setting("as it is"), *shaped])


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("doing", [["calls"], list(household.ACTIVITIES)], ids=["one", "all"])
def test_every_line_and_activity_makes_an_experiment(line, doing):
    recorded = formats.read(FILES / "cake-autorate.primary.log") if LINES[line].varies else None
    of = home(line, doing=doing, recorded=recorded)
    tried = list(dict.fromkeys([*settings(of), *household.each_way(of, "cake"), *household.each_way(of, "fq_pie")]))
    plan = _core.Plan.read_text(experiment(of, tried), "advice.toml", [])
    assert len(plan) == len(tried) * FEWEST == 20 * FEWEST


def test_the_modems_queue_is_in_the_way_in_every_case(found):
    for run in found.results.runs:
        up = run.summary["links"]["line"]["up"]
        assert up["delivered_packets"] > 0
        if run.summary["set"]["case"] in ("as it is", "CAKE at 110 %"):
            # 250 ms of bytes, which ATM's cells make longer: 1540 bytes are 33 cells, 1749 bytes.
            assert 250 < up["sojourn_ms"]["max"] < 250 * 53 / 48 * 1.05


def test_gains_are_those_of_the_runs(found):
    delay = next(gain for gain in found.gains() if gain.activity == "calls")
    by_case = {"as it is": [], found.chosen.label: []}
    for run in found.results.runs:
        if run.summary["set"]["case"] in by_case:
            both = [group["one_way_ms"]["p99"] for group in run.summary["groups"] if group["name"] == "calls"]
            by_case[run.summary["set"]["case"]].append(max(both))
    old, new = by_case.values()
    assert (delay.before.middle, delay.after.middle) == (median(old), median(new))
    assert delay.difference.middle == median(b - a for a, b in zip(old, new, strict=True))
    assert delay.difference.is_clear
    assert found.helps


def test_nothing_helps_where_nothing_fills_the_queue():
    of = home("docsis", 50e6, 10e6, doing=["calls"])
    found = advise(replace(of), tried=[Setting("as it is"), household.shaped(of, "cake", 90, 90)])
    assert not found.helps
    assert found.chosen.label == "as it is"


def test_the_least_cost_is_chosen(found):
    one = {one.label: found.cost(one) for one in found.tried}
    assert one[found.chosen.label] <= min(one.values()) + 2.0
    # Upload alone: doing nothing has the most goodput, and costs next to nothing.
    alone = Advice(replace(found.home, doing=("upload",)), found.tried, found.experiment, found.results)
    assert not alone.helps
    assert alone.cost(alone.tried[0]) < 2.0


def test_a_meetings_delay_costs_as_much_as_a_calls(found):
    text = json.dumps([run.summary for run in found.results.runs]).replace('"calls"', '"meeting"')
    runs = [replace(run, summary=of) for run, of in zip(found.results.runs, json.loads(text), strict=True)]
    results = sj.Results(found.results.summary, runs)
    calls, meeting = (
        Advice(replace(found.home, doing=(activity,)), found.tried, found.experiment, of).costs
        for activity, of in (("calls", found.results), ("meeting", results))
    )
    assert meeting == calls


def test_the_picture_has_the_numbers_of_the_table(found):
    drawn = found.picture()
    texts = {text.get_text() for axes in drawn.axes for text in axes.texts}
    assert f"{next(iter(found.gains())).before.middle:.1f}" in texts
    assert [axes.get_title(loc="left").partition(":")[0] for axes in drawn.axes] == ["calls", "upload"]


def test_what_to_type_counts_bytes_as_the_line_does():
    # 16 Mbit/s and 1 Mbit/s at 90 %; HTB counts beyond Ethernet's 14 bytes.
    of = home("vdsl")
    cake, pie = household.shaped(of, "cake", 90, 90), household.shaped(of, "fq_pie", 90, 90)
    assert typed.tc(LINES["vdsl"], cake)[0].startswith(
        "tc qdisc replace dev eth1 root cake bandwidth 900kbit pppoe-ptm"
    )
    assert "htb rate 886kbit overhead 16" in typed.tc(LINES["vdsl"], pie)[1]  # 900 × 64 / 65
    assert typed.tc(LINES["dsl"], pie)[1].endswith("htb rate 900kbit overhead 26 linklayer atm")
    assert "\toption eqdisc_opts 'nat pppoe-ptm'" in typed.sqm(LINES["vdsl"], cake)
    assert {"\toption overhead '26'", "\toption linklayer 'atm'"} <= set(typed.sqm(LINES["dsl"], pie))
    assert "\toption upload '886'" in typed.sqm(LINES["vdsl"], pie)
    assert "\toption download '14400'" in typed.sqm(LINES["docsis"], cake)
    text = experiment(of, [Setting("as it is"), pie])
    assert '"link.router.up.rate" = "886 kbit/s"' in text


def test_a_meeting_is_measured_when_its_rate_has_grown():
    of = home("vdsl", 50e6, 10e6, doing=["meeting", "upload"])
    found = advise(of, tried=[Setting("as it is"), household.shaped(of, "cake", 95, 95)], repeat=2)
    rate = next(gain for gain in found.gains(found.tried[1]) if gain.indicator.words == "media rate")
    assert rate.after.low > 1.5  # Mbit/s; at most 2.5, and 0.3 at first
    assert found.experiment.count("start = ") == found.experiment.count('start = "30..31 s"') == 1  # that of the upload
    steps = course.Course("two rates", 20.0, [(0.0, 1e6), (10.0, 2e6)], [(0.0, 1e6)])
    rates = [("0 s", "1000 kbit/s"), ("40 s", "2000 kbit/s")]
    assert steps.keys(30.0) == {"rate": rates, "up.rate": "1000 kbit/s"}


REFUSED = [
    ({"line": "cable"}, '--line: got "cable"; must be one of dsl, vdsl'),
    ({"doing": ["call"]}, '--doing: got "call"; must be one of calls, meeting, game'),
    ({"doing": []}, "--doing: got nothing"),
    ({"line": "lte"}, "--trace: missing"),
    ({"down": None}, "--down: missing"),
    ({"up": 5e9}, "--up: got 5000 Mbit/s; must be from 0.1 to 2500 Mbit/s"),
    ({"buffer_ms": 0.5}, "--modem-buffer: got 0.5 ms"),
    ({"rtt_ms": 1e6}, "--rtt: got 1000 s; must be from 1 ms to 10 s"),
    ({"doing": ["calls", "calls"]}, '--doing: got "calls" twice'),
]


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_what_is_not_accepted_gets_one_line(given, message):
    with pytest.raises(ExperimentError) as error:
        home(**given)
    assert message in str(error.value)


def test_a_recording_gives_the_rates(tmp_path):
    trace = tmp_path / "trace"
    trace.write_text("".join(f"{ms}\n" for ms in range(1, 1001)))  # 1514 bytes per millisecond
    recorded = formats.read(trace, up=trace, beside=tmp_path)
    of = home("lte", None, None, recorded=recorded, folder=tmp_path)
    assert (of.down_bps, of.up_bps) == (12_112_000.0, 12_112_000.0)
    steps = formats.read(FILES / "speedtest-cli.csv")
    assert course.mean_bps(steps.up, steps.seconds, tmp_path) == pytest.approx(18088335.03)


def test_the_command_refuses_in_one_line(sojourn):
    wrong(sojourn("advise", "--line", "dsl", "--down", "16", "--up", "1mbit"), '--down: got "16"; must be a rate')
    wrong(sojourn("advise", "--line", "dsl", "--down", "16mbit", "--up", "1mbit", "-o", "home"), "must end with .toml")
    wrong(sojourn("advise", "--line", "lte", "--trace-up", "x"), "--trace-up: needs --trace")


def test_the_command_keeps_the_experiment_and_a_picture(sojourn, tmp_path):
    options = ("--line", "dsl", "--down", "2mbit", "--up", "500kbit", "--doing", "game", "-o", "home.toml")
    done = sojourn("advise", *options)
    assert done.returncode == 0, done.stderr
    assert "Nothing helps" in done.stdout
    assert (tmp_path / "home.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "home.toml").read_text().startswith("# sojourn advise --line dsl")
    again = json.loads(sojourn("run", "home.toml", "--set", "experiment.repeat=1", "--json").stdout)
    assert again["runs"][0]["set"] == {"case": "as it is"}
    wrong(sojourn("advise", *options), '--out: got "home.toml"; must be a new file: home.toml exists')


def test_the_example_of_the_page_is_what_the_command_prints():
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        import generate
    finally:
        sys.path.pop(0)
    assert generate.ADVICE.read_text(encoding="utf-8") == generate.advice(), "run make docs"


def test_every_activity_is_measured():
    of = home("vdsl", 20e6, 5e6, doing=list(household.ACTIVITIES))
    found = advise(of, tried=[Setting("as it is"), household.shaped(of, "cake", 90, 90)], repeat=2)
    assert {gain.activity for gain in found.gains(found.tried[1])} == set(household.ACTIVITIES)
    for gain in found.gains(found.tried[1]):
        assert (gain.before.n, gain.after.n) == (2, 2), gain


def test_on_a_slow_line_no_setting_is_chosen_that_loses_the_call():
    """Each activity has a server of its own, so CAKE's hosts do not take a call's share for one with eight uploads."""
    of = home(down=6e6, up=0.6e6, doing=["calls", "game", "download", "upload"])
    found = advise(of, tried=[Setting("as it is"), household.shaped(of, "cake", 85, 95)])
    assert found.helps
    of_calls = {gain.indicator.words: gain for gain in found.gains() if gain.activity == "calls"}
    assert of_calls["lost"].after.middle < 0.1 < of_calls["lost"].before.middle
    assert of_calls["opinion score"].after.low > 4.2


def test_what_is_lost_of_a_call_costs_more_than_delay_saves(found):
    loses = Advice(found.home, found.tried, found.experiment, found.results)
    loses._runs = deepcopy(loses._runs)
    worse = found.tried[1].label
    for run in loses._runs[worse]:
        for flow in run["flows"]:
            flow["dropped_packets"] += flow["bottleneck_packets"] if flow["name"] == "calls" else 0
    assert found.chosen.label == worse
    assert loses.chosen.label != worse
