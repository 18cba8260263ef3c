"""`sojourn study run` on a small study of our own, and the data of the published ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import EXPERIMENT, Cli
from sojourn.api import read_plan
from sojourn.studies import available

STUDY = """
title = "Two flows"
source = "this test"
quick = { "experiment.repeat" = "1" }

[metrics.queue_delay]
from = "sojourn_ms"
unit = "ms"
label = "queueing delay"

[[experiment]]
id = "e"
parts = [{ file = "experiment.toml" }]
axes = { flows = "traffic.0.flows" }

[[experiment]]
id = "radio"
unavailable = "needs a radio"

[[figure]]
name = "fig1"
title = "Delay"
kind = "box"
experiment = "e"
metric = "queue_delay"
x = "flows"
"""

CLAIMS = """
[[claim]]
id = "shorter"
experiment = "e"
kind = "ordering"
check = "auto"
statement = "CoDel's queue is shorter."
relation = "codel.queue_delay.median < pfifo.queue_delay.median"

[[claim]]
id = "exact"
experiment = "e"
kind = "number"
check = "auto"
statement = "CoDel's median is 500 ms."
metric = "queue_delay"
statistic = "median"
unit = "ms"
qdisc = "codel"
value = 500
tol_rel = 0.1

[[claim]]
id = "air"
experiment = "radio"
kind = "ordering"
check = "auto"
statement = "So it is by radio."
relation = "codel.queue_delay.median < pfifo.queue_delay.median"
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    (folder / "claims.toml").write_text(CLAIMS, encoding="utf-8")
    sweep = '\n[sweep]\n"traffic.0.flows" = [1, 2]\n'
    (folder / "experiment.toml").write_text(EXPERIMENT + sweep, encoding="utf-8")
    return folder


def test_every_claim_is_judged_once(sojourn: Cli, study: Path, tmp_path: Path):
    result = sojourn("study", "run", study, "--out", "out", "--json")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["study"] == "small"
    assert {claim["id"]: claim["verdict"] for claim in document["claims"]} == {
        "shorter": "reproduced", "exact": "not reproduced", "air": "not run",
    }  # fmt: skip
    assert document["claims"][0]["measured"] == "holds in 2 of 2"
    assert document["claims"][2]["reason"] == "needs a radio"
    assert document["runs"] == 8
    assert sorted(Path(figure).name for figure in document["figures"]) == ["fig1.pdf", "fig1.png", "fig1.svg"]
    assert all((tmp_path / figure).exists() for figure in document["figures"])


def test_quick_runs_what_the_recipe_says(sojourn: Cli, study: Path):
    document = json.loads(sojourn("study", "run", study, "--quick", "--json").stdout)
    assert (document["runs"], document["quick"]) == (4, True)


def test_the_table_shows_published_and_measured(sojourn: Cli, study: Path, tmp_path: Path):
    result = sojourn("study", "run", study, "--out", "out")
    assert "500 ms (±10%)" in result.stdout
    assert "3 claims: 1 reproduced, 1 not reproduced, 1 not run" in result.stdout
    assert "claims.md" in result.stdout
    assert "needs a radio" in (tmp_path / "out" / "claims.md").read_text(encoding="utf-8")


def test_an_experiment_file_of_a_study_that_is_wrong_is_named(sojourn: Cli, study: Path):
    path = study / "experiment.toml"
    path.write_text(path.read_text(encoding="utf-8").replace('"codel"', '"codle"'), encoding="utf-8")
    result = sojourn("study", "run", study)
    assert result.returncode == 2
    assert "experiment.toml:15: queue.1.aqm" in result.stderr


def test_khademi2013_prints_every_claim_of_the_paper_once(sojourn: Cli):
    result = sojourn("study", "run", "khademi2013", "--figure", "2", "--quick", "--json")
    assert result.returncode == 0, result.stderr
    claims = json.loads(result.stdout)["claims"]
    assert len(claims) == len({claim["id"] for claim in claims}) == 82
    judged = {claim["id"] for claim in claims if claim["verdict"] in ("reproduced", "not reproduced")}
    assert judged == {claim["id"] for claim in claims if claim["id"].startswith("k13-single")}


@pytest.mark.parametrize("study", available(), ids=lambda study: study.name)
def test_every_experiment_file_of_a_study_is_accepted(study):
    for experiment in study.experiments:
        for part in experiment.parts:
            assert read_plan(part.file).jobs
