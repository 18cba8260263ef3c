"""Variants of a study, and the page that sets every miss beside them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import Cli
from sojourn import _core
from sojourn.cli import study as cli
from sojourn.frame.results import Run
from sojourn.studies import find, report, run_study
from sojourn.studies.grid import Cell, Grid
from sojourn.studies.variants import Tried, Variant, explained, keys_in
from sojourn.studies.verdict import Judgement, Verdict

VARIANT = """
[[variant]]
name = "a tail of two packets"
because = "the buffer is not said"
set = { "queue.pfifo.limit" = "2 packets" }
claims = "exact"
"""


def add(study: Path, text: str) -> None:
    path = study / "study.toml"
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


def test_every_miss_stands_beside_every_variant(sojourn: Cli, study: Path, tmp_path: Path):
    add(study, VARIANT)
    result = sojourn("study", "run", study, "--variants", "--quick", "--out", "out")
    assert result.returncode == 0, result.stderr
    assert "not reproduced, fewer runs: exact" in result.stdout
    document = json.loads((tmp_path / "out" / "variants.json").read_text(encoding="utf-8"))
    (tried,) = document["variants"]
    assert (tried["name"], tried["runs"], tried["turned"], tried["judged"]) == ("a tail of two packets", 4, [], 2)
    # Two packets of queue are less than what CoDel lets stand.
    assert tried["lost"] == ["shorter"]
    text = (tmp_path / "out" / "claims.md").read_text(encoding="utf-8")
    assert "The variant does not reproduce it." in text
    assert "| 1 | a tail of two packets |" in text


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [("queue.pfifo.limit", "queue.pie.limit", ('variant "a tail of two packets": set', '"queue.pie.limit"')),
     ('"exact"', '"exactly"', ("claims", '"exactly"', "exact")),
     ("because", "reason", ("variant.0: reason: unknown key", "because")),
     ('"2 packets"', "2", ("variant.0.set", "got 2", "a text"))],
)  # fmt: skip
def test_a_mistake_in_a_variant_is_told_before_anything_is_run(study: Path, old, new, parts):
    add(study, VARIANT.replace(old, new))
    with pytest.raises(_core.ExperimentError) as refused:
        run_study(find(str(study)), announce=lambda *_: pytest.fail("it was run"))
    for part in parts:
        assert part in str(refused.value)


def test_a_setting_that_an_experiment_refuses_is_told_before_anything_is_run(
    study: Path, monkeypatch: pytest.MonkeyPatch
):
    add(study, VARIANT.replace('"queue.pfifo.limit" = "2 packets"', '"experiment.warmup" = "9000 s"'))
    monkeypatch.setattr("sojourn.cli.study.run_study", lambda *_, **__: pytest.fail("it was run"))
    with pytest.raises(_core.ExperimentError, match="must be below"):
        cli.run([str(study)], variants=True)


def test_a_study_without_variants_says_so(sojourn: Cli, study: Path):
    result = sojourn("study", "run", study, "--variants")
    assert result.returncode == 2
    assert "--variants: the study small has none" in result.stderr


def test_a_key_of_a_kind_is_one_of_every_entry_of_that_kind():
    file = {"queue": [{"aqm": "pie"}, {"aqm": "codel"}, {"aqm": "pie"}]}
    variant = Variant("v", "", {"queue.pie.target": "5 ms", "link.rate": "1 Mbit/s", "queue.1.limit": "9 packets"})
    assert variant.overrides(file) == {
        "queue.0.target": "5 ms", "queue.2.target": "5 ms", "link.rate": "1 Mbit/s", "queue.1.limit": "9 packets",
    }  # fmt: skip


def test_a_key_of_a_kind_is_one_of_the_queues_of_links_too():
    up = {"queue": [{"aqm": "pie"}], "link": {"up": {"queue": {"aqm": "pie"}}}}
    assert keys_in(up, "queue.pie.target") == ["queue.0.target", "link.up.queue.target"]
    assert keys_in(up, "queue.sfq.quantum") == []
    links = [{"name": "air", "up": {"queue": {"aqm": "sfq"}}}, {"name": "wire", "queue": {"aqm": "sfq"}}]
    assert keys_in({"queue": [], "link": links}, "queue.sfq.quantum") == [
        "link.air.up.queue.quantum",
        "link.wire.queue.quantum",
    ]


def test_traffic_is_selected_by_kind_or_name():
    file = {"traffic": [{"kind": "bulk"}, {"kind": "bulk", "name": "guest"}]}
    assert keys_in(file, "traffic.guest.flows") == ["traffic.1.flows"]
    assert keys_in(file, "traffic.bulk.flows") == ["traffic.0.flows", "traffic.1.flows"]


def test_a_key_of_a_link_is_one_where_that_link_is():
    wired, radio = {"link": {"rate": "1 Mbit/s"}}, {"link": [{"name": "wifi"}, {"name": "wire"}]}
    assert keys_in(wired, "link.device_queue") == ["link.device_queue"]
    assert keys_in(wired, "link.up.rate") == ["link.up.rate"]
    assert keys_in(wired, "link.wifi.width") == []
    assert keys_in(radio, "link.device_queue") == []
    assert keys_in(radio, "link.wifi.width") == ["link.wifi.width"]
    assert keys_in(radio, "link.cable.width") == []


def test_an_experiment_that_a_variant_does_not_change_is_not_run_again():
    files = {"link": {}}, {"link": [{"name": "wifi"}]}
    air = Variant("v", "", {"link.wifi.width": "40 MHz", "experiment.repeat": "3"})
    assert [air.changes(file) for file in files] == [False, True]
    start = Variant("v", "", {"experiment.warmup": "1 s"})
    assert [start.changes(file) for file in files] == [True, True]


def claim(id_: str, verdict: Verdict, measured: str = "1 ms", location: str = "sec 1, Fig 3(a)", cause: str = ""):
    return Judgement(id_, "It is so.", location, "2 ms", measured, verdict, "because", cause=cause)


YES, NO = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED


def test_a_miss_tells_which_variants_turn_it():
    miss = claim("a", NO)
    tried = [Tried(Variant("wide", "", {}), 3, {"a": claim("a", YES, "2 ms")}, {"a": miss}),
             Tried(Variant("deep", "", {}), 3, {"a": claim("a", NO)}, {"a": miss})]  # fmt: skip
    assert explained(miss, tried) == 'Reproduced with "wide" (2 ms), not with the 1 other.'
    assert explained(miss, tried[1:]) == "The variant does not reproduce it."
    assert explained(miss, []) == ""


def test_misses_are_grouped_by_cause_and_claims_by_figure():
    judgements = [claim("a", NO, cause="model"), claim("b", YES), claim("c", NO, location="sec 9", cause="set-up")]
    assert [(cause, [one.id for one in own]) for cause, own in report.by_cause(judgements).items()] == [
        ("set-up", ["c"]),
        ("model", ["a"]),
    ]
    lines = report.by_exhibit(judgements, lambda exhibit: f"picture of {exhibit}", ["Fig 3", "Fig 7"])
    assert [line for line in lines if line.startswith("### ")] == ["### Fig 3", "### sec 9", "### Fig 7"]
    assert "picture of Fig 7" in lines
    assert report.summary(judgements)[0] == "1 of the 3 claims that could be compared are reproduced."
    once = [replace(one, judged=1, runs_per_place=1) for one in judgements]
    assert report.summary(once)[1] == "3 rest on one place that was run once, as in the paper."
    assert report.summary(once, quick=True)[1] == "3 rest on one place that was run once."


def test_repeats_in_which_nothing_is_random_are_told():
    def run(seed: int, goodput: float) -> Run:
        summary = {
            "label": "a",
            "seed": seed,
            "wall_s": 0.1 * seed,
            "events": seed,
            "flows": [{"goodput_bps": goodput}],
        }
        return Run(summary, lambda _: None)  # type: ignore[arg-type]

    fixed = Cell("a", {"flows": 1.0}, (run(1, 5.0), run(2, 5.0)))
    varied = Cell("b", {"flows": 1.0}, (run(1, 5.0), run(2, 6.0)))
    once = Cell("c", {"flows": 1.0}, (run(1, 5.0),))
    grid = Grid([fixed, varied, once], {})
    told = "Nothing is random in 1 of the 2 cells of e (a): their repeats are one run."
    assert report.alike({"e": grid, "the same again": grid}) == [told]
    assert report.alike({"e": Grid([varied, once], {})}) == []


def test_what_fewer_repeats_alone_change_is_not_put_down_to_the_variant():
    base = [claim("a", NO), claim("b", YES)]
    control = {"a": claim("a", YES), "b": claim("b", NO)}
    tried = Tried(Variant("wide", "", {}), 3, {"a": claim("a", YES), "b": claim("b", NO)}, control)
    assert (tried.turned(base), tried.lost(base)) == ([], [])
    assert explained(base[0], [tried]) == "With as few repeats as the variants have, the set-up reproduces it too."
