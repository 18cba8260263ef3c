"""A study on the real kernel, in virtual machines."""

from __future__ import annotations

import json
from pathlib import Path

from conftest import EXPERIMENT, Cli
from linux.conftest import needs_emulation

STUDY = """
title = "Two flows"
source = "this test"

[metrics.delay]
from = "sojourn_ms"
plus = "wire_ms"
unit = "ms"

[backend.linux]
set = { "link.device_queue" = "0 packets" }
quick = { "experiment.repeat" = "1" }
constants = { wire_ms = 1000 }
departures = ["no packet waits in a driver"]

[[experiment]]
id = "e"
parts = [{ file = "experiment.toml" }]
constants = { wire_ms = 0 }
"""

CLAIMS = """
[[claim]]
id = "shorter"
experiment = "e"
kind = "ordering"
check = "auto"
statement = "CoDel's queue is shorter, and above a second with what is added on Linux."
relation = "1000 < codel.delay.median < pfifo.delay.median"
"""


@needs_emulation
def test_a_study_runs_on_linux_with_what_its_recipe_changes_there(sojourn: Cli, tmp_path: Path):
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    (folder / "claims.toml").write_text(CLAIMS, encoding="utf-8")
    text = EXPERIMENT.replace("[link]\n", '[link]\ndevice_queue = "1 packets"\n')
    (folder / "experiment.toml").write_text(text, encoding="utf-8")
    result = sojourn("study", "run", folder, "--backend", "linux", "--kernel", "emulated", "--quick", "--out", "out")
    assert result.returncode == 0, result.stderr
    assert "2 runs on linux, about 1 min; --quick and --figure F run fewer" in result.stderr
    assert "On linux: no packet waits in a driver." in result.stdout
    document = json.loads((tmp_path / "out" / "claims.json").read_text(encoding="utf-8"))
    assert (document["backend"], document["runs"]) == ("linux", 2)
    assert document["departures"] == ["no packet waits in a driver"]
    assert [claim["verdict"] for claim in document["claims"]] == ["reproduced"]
    kept = json.loads((tmp_path / "out" / "measured.json").read_text(encoding="utf-8"))
    (kernel,) = kept["kernels"]
    assert kernel[0].isdigit()
