"""How far two backends agree."""

from __future__ import annotations

import copy
import json
import math
import random
from pathlib import Path

import pytest

import sojourn as sj
from sojourn.cli.report import write_report
from sojourn.page.sheet import as_table, plain
from sojourn.studies.agreement import backends as agreement
from sojourn.studies.tolerances import Tolerance, judge


def results(*queues: str) -> sj.Results:
    return sj.compare(*queues, rate="10 Mbit/s", rtt="20 ms", flows=2, duration="3 s", warmup="1 s")


def test_results_agree_with_themselves():
    one = results("codel")
    rows = agreement.compare(one, one)
    assert {row.metric for row in rows} >= {"sojourn_p50_ms", "goodput_bps", "sojourn_distance"}
    assert all(row.first == row.second or math.isnan(row.first) for row in rows)


def test_a_distance_is_the_largest_gap_between_distributions():
    (short,), (long,) = results("codel:target=1ms").arms, results("pfifo").arms
    assert agreement.distance(short, short, "down") == 0.0
    # CoDel's queue has emptied before pfifo's 1000 packets are ever that short.
    assert 0.9 < agreement.distance(short, long, "down") <= 1.0
    assert agreement.distance(long, short, "down") == agreement.distance(short, long, "down")


def test_both_backends_stand_side_by_side():
    one, other = results("codel"), results("pfifo")
    other.summary["backend"] = "linux"
    for run in other.runs:
        run.summary["label"] = "codel"
    named = {"sim": one, "linux": other}
    document = json.loads(agreement.as_json(named))
    assert document["backends"] == ["sim", "linux"]
    (median,) = (row for row in document["agreement"] if row["metric"] == "sojourn_p50_ms")
    assert median["linux"] > median["sim"]
    assert math.isclose(median["relative"], median["linux"] / median["sim"] - 1)
    assert [arm.label for arm in agreement.overlay(named).arms] == [
        "codel (sim)",
        "codel (linux)",
    ]


def test_groups_of_flows_are_compared_where_both_have_them():
    one, other = results("codel"), results("codel")
    other.summary["backend"] = "linux"
    other.runs[0].summary["groups"][0]["goodput_bps"] *= 2
    other.runs[0].summary["groups"][0]["rtt_ms"] = None
    rows = {row.metric: row for row in agreement.compare(one, other)}
    assert rows["bulk.goodput_bps"].relative == 1.0
    assert rows["bulk.goodput_bps"].direction == "down"
    assert "bulk.rtt_p50_ms" not in rows
    assert "bulk goodput Mbit/s" in plain(as_table(agreement.sheet({"sim": one, "linux": other})))


def alike(count: int, **differs: float) -> sj.Results:
    """Results of one run repeated ``count`` times, whose median sojourn time is ``differs`` more."""
    one = results("codel")
    runs = []
    for seed in range(count):
        run = copy.deepcopy(one.runs[0])
        run.summary["seed"] = seed
        for key, value in differs.items():
            run.summary["bottleneck"]["down"]["sojourn_ms"][key] += value
        runs.append(run)
    return sj.Results({**one.summary, "runs": [run.summary for run in runs]}, runs)


def test_an_unfair_share_differs():
    one, other = alike(6), alike(6)
    for run in other.runs:
        run.summary["jain_goodput"] = 0.75
    for run in one.runs:
        run.summary["jain_goodput"] = 1.0
    (row,) = (row for row in agreement.compare(one, other) if row.metric == "jain_goodput")
    assert row.judgement.verdict == "differs"
    named = {"old": one, "new": other}
    assert agreement.sentences(named)[0].startswith("new differs from old: 1 of ")
    text = plain(as_table(agreement.sheet(named)))
    assert "judged: p50, p95, goodput, drops, marks, Jain" in " ".join(text.split())


def test_what_only_one_of_them_has_seen_is_judged_and_what_none_has_is_not():
    one, other = alike(6), alike(6)
    for results_, drops in ((one, 0), (other, 50)):
        for run in results_.runs:
            run.summary["bottleneck"]["down"] |= {"dropped_aqm": drops, "dropped_overflow": 0, "marked": 0}
    judged = {row.metric: row.judgement for row in agreement.compare(one, other)}
    assert judged["dropped_packets"].verdict == "differs"
    assert judged["marked_packets"] is None


def test_one_repeat_decides_nothing():
    """A difference of 20 ms and one of 10 µs are the same to a judge who has never seen the scatter."""
    for other in (alike(1, p50=0.01), alike(1, p50=20.0)):
        judged = agreement.verdict_on(alike(1), other)
        assert judged.verdict == "not enough repeats to say"
        assert judged.repeats >= 4


def test_repeats_decide():
    assert agreement.verdict_on(alike(6), alike(6)).verdict == "agrees"
    assert agreement.verdict_on(alike(6), alike(6, p50=20.0)).verdict == "differs"


def recorded(which: str, repeats: int) -> sj.Results:
    """Results with the first figures of ``codel_target.json``."""
    record = json.loads((Path(__file__).parent / "codel_target.json").read_text())
    base = results("codel", "fq_codel")
    runs = []
    for seed in range(repeats):
        for run in base.runs:
            one = copy.deepcopy(run)
            down = one.summary["bottleneck"]["down"]
            p50, p95, goodput, aqm, overflow, marked, jain = record[which][one.summary["queue"]][seed]
            down["sojourn_ms"] |= {"p50": p50, "p95": p95}
            down |= {"dropped_aqm": aqm, "dropped_overflow": overflow, "marked": marked}
            one.summary.update(seed=seed, jain_goodput=jain)
            for flow in one.summary["flows"]:
                flow["goodput_bps"] = goodput / len(one.summary["flows"])
            runs.append(one)
    return sj.Results({**base.summary, "runs": [run.summary for run in runs]}, runs)


@pytest.mark.parametrize("repeats", [6, 9])
def test_the_simulator_does_not_differ_from_the_kernel(repeats):
    assert agreement.verdict_on(recorded("simulator", repeats), recorded("kernel", repeats)).verdict != "differs"


@pytest.mark.parametrize(("reference", "enough"), [("simulator", 6), ("kernel", 9)])
def test_a_millisecond_of_codels_target_differs(reference, enough):
    """A target of 6 instead of 5 ms, by as many repeats as the scatter requires."""
    other = "kernel, target 6 ms"
    verdicts = [agreement.verdict_on(recorded(reference, n), recorded(other, n)) for n in (enough - 1, enough)]
    assert [one.verdict for one in verdicts] == ["not enough repeats to say", "differs"]
    assert [(row.arm, row.metric) for row in verdicts[1].off] == [("codel", "sojourn_p50_ms")]


LIMIT = Tolerance(relative=0.0, absolute=1.0)


def test_a_verdict_needs_the_whole_interval_on_one_side_of_the_tolerance():
    """By hand, Mann and Whitney's table: of six and six at 95 % the sixth smallest of 36 differences is the end."""
    low = [10.0, 10.1, 10.2, 10.3, 10.4, 10.5]
    assert judge(low, [value + 0.5 for value in low], LIMIT, 1).verdict == "agrees"
    assert judge(low, [value + 3.0 for value in low], LIMIT, 1).verdict == "differs"
    both = judge(low, [value + 1.0 for value in low], LIMIT, 1)
    assert both.verdict == "not enough repeats to say"
    # The true difference is as likely beyond 0.6745 standard deviations from the end as nearer; the interval has 1.96.
    assert both.repeats == pytest.approx(6 * (1.96 / 0.6745) ** 2, abs=2)
    near = judge(low, [value + 0.8 for value in low], LIMIT, 1)
    assert near.verdict == "not enough repeats to say"
    # The differences are 0.3 to 1.3, the sixth of 36 is 0.5: the interval reaches 0.3 from its middle, 0.2 is wanted.
    assert near.difference.low == pytest.approx(0.5)
    assert near.repeats == math.ceil(6 * (0.3 / 0.2) ** 2 - 1e-9)


def test_repeats_are_estimated_within_a_factor_of_five():
    """Equal distributions whose scatter is 1.5 tolerances: about 40 repeats decide half of the time."""
    draw = random.Random(3)

    def judged(repeats):
        one, other = ([draw.gauss(20.0, 1.5) for _ in range(repeats)] for _ in range(2))
        return judge(one, other, LIMIT, 1)

    assert 10 <= sum(judged(40).verdict == "agrees" for _ in range(40)) <= 30
    estimates = [one.repeats for one in (judged(6) for _ in range(100)) if one.verdict == "not enough repeats to say"]
    assert sum(8 <= repeats <= 200 for repeats in estimates) >= 0.9 * len(estimates) > 80


def test_more_figures_need_more_certainty_before_one_of_them_differs():
    """Of five and five the surest verdict is wrong by 2 chances in comb(10, 5) = 252: too many for twenty figures."""
    low, high = [1.0, 2.0, 3.0, 4.0, 5.0], [11.0, 12.0, 13.0, 14.0, 15.0]
    assert judge(low, high, LIMIT, 1).verdict == "differs"
    several = judge(low, high, LIMIT, 20)
    assert (several.verdict, several.repeats) == ("not enough repeats to say", 6)


def test_a_difference_of_chance_seldom_differs():
    """Two samples of one distribution, which scatters by five tolerances: at most one in twenty may differ."""
    draw = random.Random(7)
    verdicts = []
    for _ in range(400):
        one, other = ([draw.gauss(20.0, 5.0) for _ in range(7)] for _ in range(2))
        verdicts.append(judge(one, other, LIMIT, 1).verdict)
    assert verdicts.count("differs") <= 20
    assert verdicts.count("agrees") <= 20
    assert verdicts.count("not enough repeats to say") >= 360


def test_the_versions_of_tcp_are_named_beside_the_verdict():
    one, other = results("pfifo"), results("pfifo")
    assert len(agreement.sentences({"sim": one, "again": other})) == 1
    other.summary["backend"] = "linux"
    other.runs[0].summary["kernel"] = "6.18.15"
    assert agreement.sentences({"sim": one, "linux": other})[1:] == ["TCP: sim as Linux 6.1, linux as Linux 6.18.15"]


def test_an_own_variant_is_named_beside_the_verdict():
    one, other = results("codel"), results("codel")
    other.summary["backend"] = "linux"
    hint = agreement.sentences({"sim": one, "linux": other})[-1]
    assert hint == 'in the simulator these follow their own documents: codel; variant = "linux" follows the kernel'
    one = results("codel:variant=linux")
    assert len(agreement.sentences({"sim": one, "linux": other})) == 1


def test_rtts_of_tcp_are_no_row_beside_a_smoothed_value():
    one, other = results("codel"), results("codel")
    metrics = lambda: {row.metric for row in agreement.compare(one, other)}  # noqa: E731
    assert "bulk.rtt_p95_ms" in metrics()
    other.summary["backend"] = "linux"
    assert "bulk.rtt_p95_ms" not in metrics()
    # A ping has every sample on both.
    for group in (run.summary["groups"][0] for of_backend in (one, other) for run in of_backend.runs):
        group["kind"] = "ping"
    assert "bulk.rtt_p95_ms" in metrics()


def test_an_agreement_has_a_page(tmp_path):
    named = {"sim": alike(6), "linux": alike(6, p50=20.0)}
    named["linux"].summary["backend"] = "linux"
    agreement.save(named, directory=tmp_path)
    page = write_report(tmp_path).read_text()
    assert "linux differs from sim: 1 of" in page
    assert page.count("<img src=") == len(named["sim"].directions)
