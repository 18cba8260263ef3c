"""`sojourn study run` on a small study of our own, and the data of the published ones."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest

from conftest import ROOT, STUDY, Cli, wrong
from sojourn import _core
from sojourn.runs.plan import read_plan
from sojourn.studies import available, find, kept, run_study
from sojourn.studies.figures import draw
from sojourn.studies.runner import plan_study
from sojourn.studies.verdict import judge


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
    assert sorted(Path(figure).name for figure in document["figures"]) == ["fig1.png", "fig1.svg"]
    assert all((tmp_path / figure).exists() for figure in document["figures"])


def test_a_figure_whose_runs_and_recipe_are_the_same_is_kept(sojourn: Cli, study: Path, tmp_path: Path):
    out = tmp_path / "out"

    def drawn(*options: str) -> dict[str, int]:
        assert sojourn("study", "run", study, "--out", "out", *options).returncode == 0
        return {path.name: path.stat().st_mtime_ns for path in out.glob("fig1.*")}

    first = drawn()
    assert set(first) == {"fig1.png", "fig1.svg"}
    assert drawn() == first
    # Another format: the others are still right.
    more = drawn("--figures", "pdf")
    assert {name: more[name] for name in first} == first
    # Another recipe, other runs, a file that the user has removed: each is drawn again, and leaves nothing old.
    recipe = study / "study.toml"
    recipe.write_text(recipe.read_text(encoding="utf-8").replace('title = "Delay"', 'title = "Wait"'), encoding="utf-8")
    second = drawn()
    assert set(second) == {"fig1.png", "fig1.svg"}
    assert all(second[name] != first[name] for name in second)
    third = drawn("--quick")
    assert all(third[name] != second[name] for name in third)
    (out / "fig1.svg").unlink()
    assert set(drawn("--quick")) == {"fig1.png", "fig1.svg"}


def test_several_studies_are_run_by_one_command(sojourn: Cli, study: Path, tmp_path: Path):
    other = tmp_path / "other"
    shutil.copytree(study, other)
    result = sojourn("study", "run", study, other, "--quick", "--out", "out", "--json")
    assert result.returncode == 0, result.stderr
    assert [one["study"] for one in json.loads(result.stdout)] == ["small", "other"]
    assert (tmp_path / "out" / "small" / "measured.json").exists()
    assert (tmp_path / "out" / "other" / "fig1.png").exists()
    document = json.loads(sojourn("study", "run", study, study, "--quick", "--json").stdout)
    assert document["study"] == "small"
    said = sojourn("study", "run", "--all", "--dry-run")
    assert said.returncode == 0 and "jain2017:" in said.stdout
    wrong(sojourn("study", "run"), "--all", "khademi2013")
    wrong(sojourn("study", "run", "--all", study), "--all")
    wrong(sojourn("study", "run", study, other, "--figure", "fig1"), "--figure")


def test_quick_runs_what_the_recipe_says(sojourn: Cli, study: Path):
    document = json.loads(sojourn("study", "run", study, "--quick", "--json").stdout)
    assert (document["runs"], document["quick"]) == (4, True)


CONCLUDES = 'summary = "It always holds."\n'
ASKS = """
[[question]]
asks = "How deep is it?"
location = "sec 9"
experiment = "e"
answer = "It is deep in the end."
"""


def test_a_quick_page_does_not_say_what_only_the_full_run_shows(sojourn: Cli, study: Path, tmp_path: Path):
    recipe = study / "study.toml"
    recipe.write_text(CONCLUDES + recipe.read_text(encoding="utf-8") + ASKS, encoding="utf-8")
    for option, is_said in ((), True), (("--quick",), False):
        assert sojourn("study", "run", study, "--out", "out", *option).returncode == 0
        assert sojourn("report", "out").returncode == 0
        page = (tmp_path / "out" / "claims.md").read_text(encoding="utf-8")
        assert ("It always holds." in page) == is_said
        assert ("those of its full run" in page) != is_said
        for text in (page, (tmp_path / "out" / "report.html").read_text(encoding="utf-8")):
            assert ("It is deep in the end." in text) == is_said


@pytest.mark.parametrize(
    ("full", "cause", "told"),
    [("reproduced", "fewer runs", "reproduced by the full run; here 1 repeat; "),
     ("not reproduced", "unexplained", "0 of 2 within the tolerance"),
     (None, "fewer runs", "the verdict of the full run is not known; ")],
)  # fmt: skip
def test_a_quick_run_does_not_invent_causes(sojourn: Cli, study: Path, full, cause, told):
    if full is not None:
        known = {
            "made": "2026-11-26",
            "command": "make studies",
            "verdicts": {"exact": full, "shorter": "not reproduced"},
        }
        (study / "verdicts.json").write_text(json.dumps(known), encoding="utf-8")
    claims = json.loads(sojourn("study", "run", study, "--quick", "--json").stdout)["claims"]
    shorter, exact, _ = claims
    assert (exact["verdict"], exact["cause"]) == ("not reproduced", cause)
    assert exact["reason"].startswith(told)
    assert shorter["reason"].startswith("not reproduced by the full run" if full else "must hold in all")
    assert json.loads(sojourn("study", "run", study, "--json").stdout)["claims"][1]["cause"] == "unexplained"


def test_a_dry_run_says_what_would_run_and_how_long(sojourn: Cli, study: Path, tmp_path: Path):
    said = sojourn("study", "run", study, "--quick", "--dry-run")
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("experiment e: 4 runs\n4 runs: about ")
    document = json.loads(sojourn("study", "run", study, "--dry-run", "--json").stdout)
    assert (document["experiments"], document["runs"]) == ({"e": 8}, 8)
    assert document["estimate_s"] < 60.0 and document["estimate_mb"] > 100.0
    assert not (tmp_path / "results").exists()
    wrong(sojourn("study", "run", study, "--dry-run", "--figure", "9"), "--figure", "fig1")


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


@pytest.mark.parametrize(
    ("file", "old", "new", "parts"),
    [("study.toml", 'name = "fig1"', "name = 3", ("figure.0: name", "got 3", "a text")),
     ("study.toml", 'x = "flows"', "x =", ("not TOML",)),
     ("study.toml", 'x = "flows"', 'x = "flws"', ("figure.0: x", '"flws"', "flows")),
     ("study.toml", 'kind = "box"', 'kind = "bx"', ("figure.0: kind", "box, series")),
     ("study.toml", 'kind = "box"', 'kind = "series"\nwhere = 3', ("figure.0: where", "got 3", "a table")),
     ("study.toml", 'kind = "box"', 'kind = "box"\nwhere = { flws = 1 }', ("figure.0: where", '"flws"', "flows")),
     ("study.toml", 'kind = "box"', 'kind = "packets"', ("figure.0: metric", "sojourn_ms", "packet_sojourn_ms")),
     ("study.toml", 'metric = "queue_delay"', 'metric = "delay"', ("figure.0: metric", "goodput")),
     ("study.toml", 'id = "e"', "", ("experiment.0: id: missing",)),
     ("study.toml", 'factor = 1e-6', 'factor = "a"', ("metrics.goodput: factor",)),
     ("study.toml", 'parts = [{', 'parts = [3, {', ("experiment.0.parts.0", "a table")),
     ("study.toml", 'title = "Delay"', 'titel = "Delay"', ("figure.0: titel: unknown key", "title")),
     ("study.toml", 'title = "Delay"', "", ("figure.0: title: missing; must be a text",)),
     ("study.toml", 'title = "Delay"', 'title = "Delay"\nbelow = "up"', ("figure.0: below", '"up"', "a list")),
     ("study.toml", '[metrics.goodput]', '[metrics.goodput]\nlabel = 3', ("metrics.goodput: label: got 3", "a text")),
     ("claims.toml", 'id = "shorter"', "", ("claim ?: id: missing; must be a text",)),
     ("claims.toml", 'id = "shorter"', "id =", ("not TOML",)),
     ("claims.toml", 'experiment = "e"', "experiment = 3", ("claim shorter: experiment", "got 3")),
     ("claims.toml", 'kind = "ordering"', 'kind = "order"', ("claim shorter: kind", "ordering")),
     ("claims.toml", 'kind = "ordering"', 'kind = "ordering"\nmin = 3', ("claim shorter: max: missing",))],
)  # fmt: skip
def test_a_mistake_in_a_study_is_told_before_anything_is_run(sojourn: Cli, study: Path, file, old, new, parts):
    path = study / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    wrong(sojourn("study", "run", study, "--out", "out"), f"/small/{file}: ", *parts)
    assert not (study.parent / "out").exists()


READING = '\n[[reading]]\nclaim = "shorter"\nbecause = ""\n{}\n'
METRIC = "\n[metrics.more]\n{}\n"


@pytest.mark.parametrize(
    ("more", "parts"),
    [(READING.format('relation = "codel.queue_dleay.median < 1"'), ("reading of shorter", "'queue_dleay'", "goodput")),
     (READING.format('relation = "codle.queue_delay.median < 1"'), ("reading of shorter", "'codle'", "codel, pfifo")),
     (READING.format('relation = "codel.queue_delay.medain < 1"'), ("reading of shorter", "'medain'", "median")),
     (READING.format('relation = "codel.queue_delay.mean[flws=1] < 1"'), ("shorter", "'flws'", "flows")),
     (READING.format('relation = "increasing(codel.queue_delay.mean, flws)"'), ("shorter", "'flws'", "flows")),
     (READING.format('relation = "codel.queue_delay.mean <"'), ("shorter", "cannot read")),
     (READING.format('measure = "codel.queue_delay + 1 s +"'), ("shorter", "cannot read")),
     (READING.format('only_where = "flws > 1"'), ("shorter", "'flws'", "flows")),
     (READING.format("condition = { flws = 1 }"), ("shorter", "'flws'")),
     (READING.format("condition = { flows = 3 }"), ("shorter", "no file has a run")),
     (READING.format('schemes = ["codle"]'), ("shorter", '"codle"', "codel, pfifo")),
     (READING.format('experiments = ["f"]'), ("shorter", '"f"', "e, radio")),
     (READING.format('relatoin = "1 < 2"'), ("reading.0: relatoin: unknown key",)),
     (READING.format('cause = "luck"'), ("reading.0: cause", '"luck"', "set-up")),
     (READING.format("") + READING.format(""), ("reading.1: claim: shorter has a reading already",)),
     (READING.format("").replace("shorter", "shorterr"), ("reading: claim", '"shorterr"', "air, exact, shorter")),
     (METRIC.format('from = "queue_series"\ncolumn = "backlog"'), ("metrics.more: column", "backlog_packets")),
     (METRIC.format('from = "queue_series"'), ("metrics.more: column: missing",)),
     (METRIC.format('from = "dropped_packets"\ndirection = "left"'), ("metrics.more: direction", "down, up")),
     (METRIC.format('from = "dropped_packets"\ncolumn = "packets"'), ("metrics.more: column: unknown key",)),
     (METRIC.format('from = "sojourn_ms"\nat_least = 3\ntell = "frist"'), ("metrics.more: tell", "first")),
     (METRIC.format('from = "sojourn_ms"\ntell = "first"'), ("metrics.more: at_least: missing",)),
     (METRIC.format('from = "sojourn_ms"\ndirection = "both"'), ("metrics.more: direction", "down, up")),
     (METRIC.format('from = "sojourn_ms"\nlink = "modem"'), ("metrics.more: link", '"modem"')),
     (METRIC.format('from = "goodput_bps"\nstation = "far"'), ("metrics.more: from", "airtime_share")),
     (METRIC.format('from = "goodput_bps"\ntraffic = 1'), ("metrics.more: traffic: got 1; must be 0 to 0",)),
     (METRIC.format('from = "goodput_bps"\nplus = "rtt"'), ("metrics.more: plus", '"rtt"', "flows")),
     (METRIC.format('from = "dropped_packets"\n[labels]\ncodle = "CoDel"'), ("labels", '"codle"', "codel, pfifo"))],
)  # fmt: skip
def test_a_misspelt_name_in_a_recipe_is_told_before_anything_is_run(study: Path, more, parts):
    path = study / "study.toml"
    path.write_text(path.read_text(encoding="utf-8") + more, encoding="utf-8")
    with pytest.raises(_core.ExperimentError) as refused:
        run_study(find(str(study)), figure="1", announce=lambda *_: pytest.fail("it was run"))
    for part in ("/small/study.toml: ", *parts):
        assert part in str(refused.value)


@pytest.mark.parametrize(
    ("file", "old", "new", "parts"),
    [("study.toml", "traffic.0.flows", "traffic.0.flws", ("experiment e: axes.flows", '"traffic.0.flws"')),
     ("claims.toml", "codel.queue_delay", "codel.queue_dleay", ("shorter", "'queue_dleay'"))],
)  # fmt: skip
def test_a_misspelt_key_or_metric_is_told(sojourn: Cli, study: Path, file, old, new, parts):
    path = study / file
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    wrong(sojourn("study", "run", study), *parts)


def test_a_study_without_claims_is_told_before_anything_is_run(sojourn: Cli, study: Path):
    (study / "claims.toml").unlink()
    wrong(sojourn("study", "run", study, "--out", "out"), "/small/claims.toml: No such file")


def test_claims_are_judged_the_same_on_what_was_kept_of_the_runs(sojourn: Cli, study: Path, tmp_path: Path):
    result = sojourn("study", "run", study, "--out", "out", "--json")
    claims = {claim["id"]: claim for claim in json.loads(result.stdout)["claims"]}
    recipe = find(str(study))
    found = kept.read(tmp_path / "out" / kept.FILE, recipe)
    assert (found.backend, found.runs, found.kernels) == ("sim", 8, ())
    again = {judgement.id: judgement.as_json() for judgement in judge(recipe, found.grids)}
    assert again == claims
    # One number, and a distribution; a percentile that is not kept is not made up.
    cell = found.grids["e"].cells[0]

    def values(metric: str, statistic: str) -> tuple[float, ...]:
        of_repeats = found.grids["e"].of_repeats(cell.label, metric, statistic, cell.set)
        assert len(of_repeats) == len(cell.runs) > 0
        return of_repeats

    assert all(value > 0 for value in values("queue_delay", "p90"))
    assert all(map(math.isnan, values("queue_delay", "p91")))
    assert all(value > 1.0 for value in values("goodput", "value"))


def test_what_was_kept_is_read_as_it_was_kept_whatever_the_recipe_pools_now():
    def mean(values: object, *, pooled: bool) -> float:
        (value,) = kept.KeptMeasure("m", pooled).of_repeats([kept.KeptRun(1, {"m": values})], "mean", {})
        return value

    assert mean({"values": [1.0, 2.0]}, pooled=True) == mean({"values": [1.0, 2.0]}, pooled=False) == 1.5
    assert mean(3.0, pooled=False) == 3.0
    assert math.isnan(mean(3.0, pooled=True))


def test_what_a_backend_lacks_is_refused_unless_the_recipe_says_what_to_run_instead(sojourn: Cli, study: Path):
    path = study / "experiment.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("[link]\n", '[link]\ndevice_queue = "1 packets"\n'), encoding="utf-8")
    result = sojourn("study", "run", study, "--backend", "linux")
    assert result.returncode == 2
    assert "experiment.toml:8: link.device_queue" in result.stderr
    recipe = study / "study.toml"
    recipe.write_text(
        STUDY + '[backend.linux]\nset = { "link.device_queue" = "0 packets" }\ndepartures = "no driver"\n'
    )
    (_, _, plan), *_ = plan_study(find(str(study)), backend=Compiles())
    assert len(plan.jobs) == 8
    assert find(str(study)).on("linux").departures == ("no driver",)


class Compiles:
    """The Linux backend as far as it goes without a kernel."""

    name = "linux"

    def check(self, plan):
        _core.linux_modules(plan)

    def run(self, spec, monitor):
        raise NotImplementedError


def test_every_experiment_of_khademi2013_can_run_on_linux():
    assert len(plan_study(find("khademi2013"), backend=Compiles())) == 9


def test_the_light_load_of_khademi2013_runs_on_linux_as_it_is():
    plan = read_plan(find("khademi2013").folder / "light.toml", backend=Compiles())
    jobs = [json.loads(_core.linux_job(spec, "sj")) for spec in plan]
    for arm, job in zip(["codel", "pie", "red", "fq_codel"], jobs, strict=True):
        added = [step["action"]["Add"] for step in job["setup"] if "Add" in step["action"]]
        assert arm in [scheduler["kind"] for scheduler in added if scheduler["handle"] == 0x100000]


def test_the_page_of_khademi2013_has_the_verdicts_on_what_was_kept_of_linux():
    folder = ROOT / "docs" / "results" / "studies"
    recipe = find("khademi2013")
    found = kept.read(folder / "khademi2013-linux.json", recipe)
    assert (found.backend, found.runs) == ("linux", 151)
    rows = {
        row.split(" | ")[0].removeprefix("| "): row
        for row in (folder / "khademi2013.md").read_text(encoding="utf-8").splitlines()
    }
    judgements = judge(recipe, found.grids)
    assert sum(judgement.verdict in ("reproduced", "not reproduced") for judgement in judgements) > 60
    for judgement in judgements:
        there = f"{judgement.verdict}: {judgement.measured}" if judgement.measured else judgement.verdict
        assert f" | {there} | " in rows[judgement.id]


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


def test_packets_are_drawn_as_large_as_they_are():
    # A window of 25 packets of 1500 bytes at 12 Mbit/s meets a link of 1.2 Mbit/s.
    recipe = find("nichols2012")
    results = run_study(recipe, figure="1")
    spec = next(figure for figure in recipe.figures if figure.name == "fig1")
    axes = draw(spec, recipe, results.grids).axes[0]
    arriving, leaving = (
        [bar for bar in axes.patches if bar.get_height() * sign > 0 and 0.19 < bar.get_x() < 0.3] for sign in (1, -1)
    )
    # Before the window comes the acknowledgement of the SYN-ACK.
    for packets in (arriving, leaving):
        acknowledgement = packets.pop(0)
        assert abs(acknowledgement.get_width() * acknowledgement.get_height()) < 0.001
    assert len(arriving) == 25
    assert {round(bar.get_height(), 3) for bar in arriving} == {12.0}
    assert {round(bar.get_height(), 3) for bar in leaving} == {-1.2}
    for bar in arriving + leaving:
        assert abs(bar.get_width() * bar.get_height()) == pytest.approx(0.012)
    # The second packet came 1 ms after the first and left 10 ms after it.
    assert arriving[1].get_x() - arriving[0].get_x() == pytest.approx(0.001)
    assert leaving[1].get_x() - leaving[0].get_x() == pytest.approx(0.010)


def test_a_figure_shows_the_schemes_and_places_that_it_is_told(study: Path):
    path = study / "study.toml"
    path.write_text(path.read_text(encoding="utf-8") + 'schemes = ["codel"]\nwhere = { flows = [2] }\n')
    recipe = find(str(study))
    (spec,) = recipe.figures
    results = run_study(recipe, quick=True)
    drawn = draw(spec, recipe, results.grids)
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == ["codel", "published"]
    assert [label.get_text() for label in drawn.axes[0].get_xticklabels()] == ["2"]
