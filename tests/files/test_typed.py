"""Files as types: whatever stands in a place where something else belongs is one line that names it."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import sojourn as sj
from conftest import CLAIMS, EXPERIMENT, STUDY
from sojourn import schema
from sojourn.files import typed
from sojourn.studies.claims import Claim
from sojourn.studies.recipe import Recipe, _of_file

MORE = """
[backend.linux]
set = { "experiment.repeat" = "2" }
without = ["e"]
[[reading]]
claim = "shorter"
because = "so"
cells = [{ flows = 1 }]
[[variant]]
name = "v"
because = "so"
set = { "link.rate" = "1 Mbit/s" }
[metrics.sum]
from = "goodput_bps"
plus = { rtt = 2 }
"""
JUNK: list[Any] = [3, 1.5, "x", True, None, 2**70, [], [3], ["a", 3], {}, {"a": 3}, {"a": {"b": [{}]}}]


def places(data: Any, at: tuple = ()) -> Iterator[tuple]:
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield (*at, key)
        yield from places(value, (*at, key))


def damaged(data: Any) -> Iterator[Any]:
    """The data with something else in each place, or nothing, or with a key more."""
    for *way, key in places(data):
        for junk in [*JUNK, "gone", "more"]:
            made = part = copy.deepcopy(data)
            for step in way:
                part = part[step]
            if junk == "gone":
                del part[key]
            elif junk == "more" and isinstance(part[key], dict):
                part[key]["unheard_of"] = 3
            else:
                part[key] = junk
            yield made


def recipe(data: Any) -> Recipe:
    return typed.convert(data, Recipe, "study", partial(_of_file, Path.cwd()))


def claim(data: Any) -> Claim:
    return typed.convert(data, Claim, "claim x")


def summary(data: Any) -> schema.Summary:
    return typed.convert(data, schema.Summary)


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (recipe, tomllib.loads(STUDY + MORE)),
        (claim, tomllib.loads(CLAIMS)["claim"][1]),
        (summary, sj.run_text(EXPERIMENT, set={"experiment.repeat": 1, "experiment.duration": "2 s"}).summary),
    ],
    ids=["recipe", "claim", "summary"],
)
def test_what_does_not_fit_is_one_line_in_our_words(read, data: Any):
    read(data)
    refused = 0
    for made in damaged(data):
        try:
            read(made)
        except ValueError as error:
            refused += 1
            line = str(error)
            assert "\n" not in line
            # Neither msgspec's way to name a place nor its names of types.
            assert "`" not in line and "$" not in line
            assert any(word in line for word in ("must be", "unknown key", "missing", "out of range", "twice")), line
    assert refused > 100


@pytest.mark.parametrize(
    ("place", "value", "told"),
    [
        (("metrics", "sum", "unti"), "ms", "metrics.sum: unti: unknown key; accepted: from, unit, label"),
        (("backend", "linux", "set", "a"), 3, "backend.linux.set.a: got 3; must be a text"),
        (("reading", 0, "claim"), 3, "reading.0: claim: got 3; must be a text or a list of texts"),
        (("variant",), [{"name": "v", "because": "", "set": {}}] * 2, 'study: variant.1: name: got "v" twice'),
        (("title",), ["a"], "study: title: got ['a']; must be a text"),
    ],
)
def test_the_place_and_what_is_accepted_are_named(place: tuple, value: Any, told: str):
    data = part = tomllib.loads(STUDY + MORE)
    *way, key = place
    for step in way:
        part = part[step]
    part[key] = value
    with pytest.raises(ValueError) as refused:
        recipe(data)
    assert str(refused.value).startswith(told)


def test_a_misspelt_name_is_told_the_right_one():
    with pytest.raises(
        sj.ExperimentError, match=r'^--line: got "dls"; must be one of dsl, vdsl; did you mean "dsl"\?$'
    ):
        typed.must_be("dls", ("dsl", "vdsl"), "--line")
    with pytest.raises(sj.ExperimentError, match=r"must be one of dsl, vdsl$"):
        typed.must_be("lte", ("dsl", "vdsl"), "--line")
