"""validation/same_results.py names what a change of the code changed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT

TOOL = ROOT / "validation" / "same_results.py"


def compare(tmp_path: Path, before: object, after: object) -> subprocess.CompletedProcess[str]:
    for name, document in (("before", before), ("after", after)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one.json").write_text(json.dumps(document), encoding="utf-8")
    return subprocess.run(
        [sys.executable, TOOL, "compare", tmp_path / "before", tmp_path / "after"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def test_a_changed_value_is_named_by_its_place(tmp_path: Path):
    done = compare(tmp_path, [{"flows": [{"sent_bytes": 1}]}], [{"flows": [{"sent_bytes": 2}]}])
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "one.json: 0.flows.0.sent_bytes: 1 -> 2",
        "one.json: 1 values differ",
        "1 values differ",
    ]


@pytest.mark.parametrize("after", [[], [{"flows": []}]])
def test_what_is_no_longer_there_is_a_difference(tmp_path: Path, after: object):
    assert compare(tmp_path, [{"flows": [{"sent_bytes": 1}]}], after).returncode == 1


def test_a_new_key_is_told_and_no_difference(tmp_path: Path):
    done = compare(tmp_path, [{"seed": 1}], [{"seed": 1, "groups": []}])
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["new: groups (1 times)", "0 values differ"]
