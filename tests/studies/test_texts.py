"""Measured numbers in a recipe's texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_verdicts import Fake

from conftest import Cli, wrong
from sojourn.studies import texts
from sojourn.studies.grid import Cell, Grid
from sojourn.studies.measures import Single
from sojourn.studies.relation import RelationError

DERIVED = {"double": "2 * each.delay"}


def grid() -> Grid:
    cells = {("a", 4): 1.25, ("b", 4): 2.0, ("a", 16): 1250.0, ("b", 16): 4.0}
    found = [Cell(scheme, {"flows": float(flows)}, (Single(value),)) for (scheme, flows), value in cells.items()]
    return Grid(found, {"delay": Fake("sojourn_ms", "ms", "")}, constants={"rtt": 100.0})


@pytest.mark.parametrize(
    ("text", "filled"),
    [("no number", "no number"),
     ("{a.delay[flows=4]} ms", "1.25 ms"),
     ("{a.delay[flows=4]:.1f} ms", "1.3 ms"),
     ("{100 * a.delay[flows=4] / b.delay[flows=4]:.0f} %", "63 %"),
     ("{b.delay / 4:.0%}", "50% to 100%"),
     ("{b.delay}, {mean(b.delay, flows)}", "2 to 4, 3"),
     ("{a.double[flows=16]}", "2500"),
     ("{a.delay + 3 ms}", "4.25 to 1253"),
     ("{a.delay / 1 s}", "1.25 to 1250"),
     ("{a.delay[flows=5]}", "(not run)")],
)  # fmt: skip
def test_formulas_in_a_text_become_what_was_measured(text, filled):
    texts.check(text, grid(), DERIVED)
    assert texts.fill(text, [(grid(), grid())], DERIVED) == filled


def test_a_text_is_about_the_places_of_its_claim_and_may_name_others():
    everything = grid()
    few = everything.where(lambda cell: cell.set["flows"] == 4.0)
    filled = texts.fill("{b.delay} and at 16 flows {b.delay[flows=16]}", [(few, everything)], {})
    assert filled == "2 and at 16 flows 4"


def test_a_formula_may_be_about_another_experiment():
    long = Grid([Cell("a", {}, (Single(7.0),))], grid().measures)
    others = {"long": long}
    text = "{a.delay[flows=4]:.2f}, long {a.delay @ long:.1f}, never {a.delay @ radio}"
    texts.check(text, grid(), {}, others)
    assert texts.experiments_named(text) == {"long", "radio"}
    assert texts.fill(text, [(grid(), grid())], {}, others={"long": long}) == "1.25, long 7.0, never (not run)"
    with pytest.raises(RelationError, match="no scheme 'b'"):
        texts.check("{b.delay @ long}", grid(), {}, others)


def test_nothing_is_not_less_than_nothing():
    assert texts.fill("{(a.delay[flows=4] - 1.26) / 10:.1f}", [(grid(), grid())], {}) == "0.0"


@pytest.mark.parametrize(
    ("text", "part"),
    [("{a.delay", "brace"),
     ("a.delay}", "brace"),
     ("{a.delay:x}", "format"),
     ("{}", "cannot read"),
     ("{a.delay +}", "cannot read"),
     ("{a.delay > 1}", "must be a number"),
     ("{1 s + 3 ms}", "1 s and 3 ms have different units"),
     ("{a.delay + 0.003 s}", "0.003 s: a.delay is in ms"),
     ("{2 * (a.double - b.delay.p90 - 1 kB)}", "1 kB: b.delay.p90 is in ms"),
     ("{increasing(a.delay, flows)}", "must be a number"),
     ("{c.delay}", "no scheme 'c'; must be one of a, b"),
     ("{a.dealy}", "no metric 'dealy'; must be one of delay"),
     ("{a.delay.medain}", "no statistic 'medain'"),
     ("{a.delay[depth=4]}", "no axis 'depth'; must be one of flows, rtt"),
     ("{mean(a.delay, depth)}", "no axis or metric 'depth'")],
)  # fmt: skip
def test_a_wrong_formula_in_a_text_says_what_is_accepted(text, part):
    with pytest.raises(RelationError, match=part):
        texts.check(text, grid(), DERIVED)


READING = '\n[[reading]]\nclaim = "shorter"\nbecause = "{}"\n'
QUESTION = '\n[[question]]\nasks = "How long?"\nlocation = "Section 9"\nexperiment = "e"\nanswer = "{}"\n'


def add(folder: Path, text: str) -> None:
    path = folder / "study.toml"
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


def test_reasons_and_answers_hold_what_was_measured(sojourn: Cli, study: Path, tmp_path: Path):
    delay = "{codel.queue_delay.median[flows=1]:.0f} ms"
    add(study, READING.replace("{}", delay) + QUESTION.replace("{}", delay))
    result = sojourn("study", "run", study, "--out", "out", "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    reason = next(claim["reason"] for claim in document["claims"] if claim["id"] == "shorter")
    measured = reason.removeprefix("must hold in all; ")
    assert measured.endswith(" ms")
    assert 0 < float(measured.removesuffix(" ms")) < 100
    assert document["questions"] == [{"question": "How long?", "location": "Section 9", "answer": measured}]
    page = (tmp_path / "out" / "claims.md").read_text(encoding="utf-8")
    assert f"**How long?** (Section 9)\n\n{measured}\n" in page


@pytest.mark.parametrize(
    ("text", "parts"),
    [(READING.replace("{}", "{codel.queue_delay"), ("reading of shorter: because", "brace")),
     (READING.replace("{}", "{codle.queue_delay}"), ("reading of shorter: because", "'codle'", "codel, pfifo")),
     (QUESTION.replace("{}", "{codel.delay}"), ("question.0: answer", "'delay'", "goodput, queue_delay")),
     (READING.replace("{}", "{codel.queue_delay @ f}"), ("reading of shorter: because", '"f"', "e, radio")),
     ("\n[backend.linux]\nwithout = 'f'\n", ("backend.linux: without", '"f"', "e, radio")),
     (QUESTION.replace('"e"', '"f"'), ("question.0: experiment", '"f"', "e, radio"))],
)  # fmt: skip
def test_a_mistake_in_a_text_is_told_before_anything_is_run(sojourn: Cli, study: Path, text, parts):
    add(study, text)
    wrong(sojourn("study", "run", study), "/small/study.toml: ", *parts)
