"""How far two backends agree."""

from __future__ import annotations

import json
import math

import sojourn as sj
from sojourn.linux import agreement
from sojourn.tables import plain


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
    assert "bulk goodput Mbit/s" in plain(agreement.table({"sim": one, "linux": other}))


def test_an_unfair_share_does_not_agree():
    one, other = results("codel"), results("codel")
    one.runs[0].summary["jain_goodput"], other.runs[0].summary["jain_goodput"] = 1.0, 0.75
    (row,) = (row for row in agreement.compare(one, other) if row.metric == "jain_goodput")
    assert row.within is False
    assert agreement.verdict({"old": one, "new": other}, "new").startswith("new does not agree with old")
    assert "judged: p50, p95, goodput, drops, marks, Jain" in " ".join(
        plain(agreement.table({"old": one, "new": other})).split()
    )
