"""Nothing of the user's is lost: what an output folder holds, where files may go, what is read."""

from __future__ import annotations

import json
import os
import re
from functools import partial
from pathlib import Path

import pytest

import sojourn as sj
from conftest import EXPERIMENT, Cli, visible, wrong
from sojourn.frame.arrow import for_csv
from sojourn.runs import user_aqm
from sojourn.runs.plan import read_plan
from sojourn.store.saving import files_of


def test_a_run_leaves_the_users_files_alone(sojourn: Cli, experiment: Path, tmp_path: Path):
    mine = ("capture_eth0.pcapng", "report.html", "packets.parquet", "notes.txt")
    (tmp_path / "m").mkdir()
    for name in mine:
        (tmp_path / "m" / name).write_text("x", encoding="utf-8")
    result = sojourn("run", experiment, "--out", "m", "--figures", "none")
    assert result.returncode == 0, result.stderr
    assert {(tmp_path / "m" / name).read_text(encoding="utf-8") for name in mine} == {"x"}
    assert sj.load(tmp_path / "m").packets() is None
    wrong(sojourn("report", "m"), "m: report.html")
    wrong(sojourn("run", experiment, "--out", "m", "--set", "record.packets=true"), "m: packets.parquet")
    assert {(tmp_path / "m" / name).read_text(encoding="utf-8") for name in mine} == {"x"}


def test_a_file_in_the_way_is_refused_before_anything_is_run(
    sojourn: Cli, experiment: Path, study: Path, tmp_path: Path
):
    (tmp_path / "out").mkdir()
    for name in ("summary.json", "claims.md"):
        (tmp_path / "out" / name).write_text("mine", encoding="utf-8")
    wrong(sojourn("run", experiment, "--out", "out"), "out: summary.json was there before")
    wrong(sojourn("study", "run", study, "--out", "out"), "out: claims.md was there before")
    assert visible(tmp_path / "out") == {"summary.json", "claims.md"}


def test_all_that_an_experiment_writes_is_looked_for_before(sojourn: Cli, tmp_path: Path):
    more = (
        '\n[record]\npackets = true\nseries = "500 ms"\nrtt = true\npcap = true\n'
        '[sweep]\n"link.rate" = ["5 Mbit/s", "10 Mbit/s"]\n'
    )
    text = EXPERIMENT.replace("repeat = 2", "repeat = 1").replace("[link]", '[link]\nup = { rate = "5 Mbit/s" }') + more
    (tmp_path / "e.toml").write_text(text, encoding="utf-8")
    assert sojourn("run", "e.toml", "--out", "out", "--figures", "png").returncode == 0
    plan = read_plan(str(tmp_path / "e.toml"), [])
    assert visible(tmp_path / "out") <= set(files_of(plan, tmp_path / "out"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "over_rate_goodput_bps.png").write_text("x", encoding="utf-8")
    wrong(sojourn("run", "e.toml", "--out", "mine"), "mine: over_rate_goodput_bps.png")


@pytest.mark.parametrize("name", ["agreement.json", "agreement_cdf.png", "sim/summary.json", "linux/overview.png"])
def test_agree_refuses_a_file_in_the_way_before_anything_is_run(
    sojourn: Cli, experiment: Path, tmp_path: Path, name: str
):
    mine = tmp_path / "out" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("mine", encoding="utf-8")
    # Whatever runs comes to a kernel that does not exist.
    result = sojourn("agree", experiment, "--out", "out", "--kernel", tmp_path / "none")
    wrong(result, f"{mine.parent.relative_to(tmp_path)}: {mine.name} was there before")
    assert mine.read_text(encoding="utf-8") == "mine"
    assert visible(mine.parent) == {mine.name}


@pytest.mark.parametrize("name", ["../escaped", "/tmp/escaped", "a/b", "", ".hidden", "..", "x" * 101])
def test_a_figure_of_a_study_stays_in_its_folder(sojourn: Cli, study: Path, name: str):
    recipe = (study / "study.toml").read_text(encoding="utf-8")
    (study / "study.toml").write_text(recipe.replace('name = "fig1"', f'name = "{name}"'), encoding="utf-8")
    wrong(sojourn("study", "run", study, "--out", "out"), "figure.0: name")


TABLE = """
[[table]]
name = "{}"
title = "Delays"
experiment = "e"
rows = "flows"
values = [{{ heading = "delay", metric = "queue_delay", statistic = "median" }}]
"""


@pytest.mark.parametrize(
    ("names", "where"), [(["../escaped"], "table.0: name"), (["a/b"], "table.0: name"), (["t", "T"], "table.1: name")]
)
def test_a_table_of_a_study_stays_in_its_folder_and_has_a_file_of_its_own(
    sojourn: Cli, study: Path, names: list[str], where: str
):
    recipe = (study / "study.toml").read_text(encoding="utf-8")
    (study / "study.toml").write_text(recipe + "".join(map(TABLE.format, names)), encoding="utf-8")
    wrong(sojourn("study", "run", study, "--out", "out"), where)


def test_a_part_of_a_study_lies_in_its_folder_and_no_other_file_is_shown(sojourn: Cli, study: Path, tmp_path: Path):
    (tmp_path / "secret.toml").write_text("password = hunter2", encoding="utf-8")
    (study / "link.toml").symlink_to(tmp_path / "secret.toml")
    recipe = (study / "study.toml").read_text(encoding="utf-8")
    for name in ("../secret.toml", str(tmp_path / "secret.toml"), "link.toml"):
        text = recipe.replace('file = "experiment.toml"', f'file = "{name}"')
        (study / "study.toml").write_text(text, encoding="utf-8")
        result = sojourn("study", "run", study, "--out", "out")
        wrong(result, "parts", name)
        assert "hunter2" not in result.stderr


def test_inputs_are_bounded(sojourn: Cli, tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(5_000_000_000)
    wrong(sojourn("run", "pipe"), "pipe: is a pipe or a device; must be a regular file")
    for file in (Path("/dev/zero"), tmp_path / "pipe", tmp_path / "large", tmp_path):
        for read in (sj.run, partial(sj.replay, aqm="pie"), user_aqm.load):
            with pytest.raises(sj.ExperimentError, match=re.escape(str(file))):
                read(file)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "summary.json").symlink_to("/dev/zero")
    with pytest.raises(sj.ExperimentError, match="regular file"):
        sj.load(tmp_path / "out")


def test_what_cannot_be_loaded_says_why(tmp_path: Path):
    with pytest.raises(sj.ExperimentError, match="no such folder") as missing:
        sj.load(tmp_path / "nowhere")
    assert isinstance(missing.value, FileNotFoundError)
    (tmp_path / "summary.json").write_text(json.dumps({"format": 2, "runs": []}), encoding="utf-8")
    with pytest.raises(sj.ExperimentError, match="newer than this version of sojourn reads"):
        sj.load(tmp_path)


def test_no_cell_is_a_formula_to_a_spreadsheet():
    import pyarrow as pa

    labels = ["=1+1", "+1", "-1", "@x", "codel", None]
    table = for_csv(pa.table({"label": labels, "n": [1, 2, 3, 4, 5, -6]}))
    assert table["label"].to_pylist() == ["'=1+1", "'+1", "'-1", "'@x", "codel", None]
    assert table["n"].to_pylist() == [1, 2, 3, 4, 5, -6]


def test_claims_are_text_in_markdown(sojourn: Cli, study: Path, tmp_path: Path):
    claims = (study / "claims.toml").read_text(encoding="utf-8")
    text = "<script>alert(1)</script> [a](javascript:b) | c"
    (study / "claims.toml").write_text(claims.replace("CoDel's queue is shorter.", text), encoding="utf-8")
    assert sojourn("study", "run", study, "--quick", "--out", "out").returncode == 0
    page = (tmp_path / "out" / "claims.md").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "](javascript" not in page.replace("\\](", "")
    assert "&lt;script>" in page
