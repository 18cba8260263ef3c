"""Packages for others: what can be checked of them without building them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ACTION = ROOT / "packaging" / "action.py"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

DIFFERENCES = """"label","baseline","link","direction","metric","difference","low","high","seeds","clear"
"codel","pfifo","","down","sojourn_p95_ms",7.5,3.75,47.25,6,1
"cake","pfifo","","down","sojourn_p95_ms",-90,-95,-80,6,1
"codel","pfifo","","down","goodput_bps",-500000,-600000,-400000,6,1
"""


@pytest.mark.parametrize(
    ("metric", "threshold", "status", "worse"),
    [
        ("sojourn_p95_ms", "5", 0, []),
        ("sojourn_p95_ms", "3", 1, ["codel"]),
        ("goodput_bps", "-300000", 1, ["codel"]),
        ("goodput_bps", "-450000", 0, []),
        ("mos", "1", 2, []),
    ],
)
def test_the_action_fails_where_the_whole_interval_is_beyond_the_threshold(metric, threshold, status, worse, tmp_path):
    (tmp_path / "differences.csv").write_text(DIFFERENCES)
    (tmp_path / "table.txt").write_text("the table\n")
    command = [sys.executable, ACTION, tmp_path, metric, threshold, tmp_path / "table.txt"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (status, "")
    assert re.findall(r"^\| (\w+) .*\*\*worse\*\*", done.stdout, re.M) == worse
    assert ("```text\nthe table\n```" in done.stdout) == (status < 2)


def test_editors_find_the_schema_on_the_site():
    entry = json.loads((ROOT / "packaging" / "schemastore.json").read_text())
    (site,) = re.findall(r"^site_url: (\S+)$", (ROOT / "mkdocs.yml").read_text(), re.M)
    (file,) = re.findall(r'"(\S+\.schema\.json)", content=_core', (ROOT / "docs" / "site.py").read_text())
    assert entry["url"] == site + file


def requirement(text: str) -> str:
    return re.split(r"[ >=<~\[]", text.strip())[0].lower()


def test_recipes_name_what_the_package_needs():
    needed = {requirement(text) for text in PROJECT["dependencies"]}
    recipe = (ROOT / "packaging" / "conda-forge" / "recipe.yaml").read_text()
    run = recipe.split("  run:\n")[1].split("  run_constraints:")[0]
    assert {requirement(line.strip(" -")) for line in run.splitlines() if line.strip()} == needed | {"python"}
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert f'version: "{version}"' in recipe
    nix = re.search(r"dependencies = with pkgs.python3Packages; \[(.*)\]", (ROOT / "flake.nix").read_text())
    assert nix is not None
    assert set(nix[1].split()) == needed | {"duckdb", "jinja2", "matplotlib", "pyarrow"}


def test_every_published_crate_has_a_readme_of_its_own():
    told = (ROOT / "docs" / "release.md").read_text(encoding="utf-8")
    for manifest in sorted((ROOT / "crates").glob("*/Cargo.toml")):
        package = tomllib.loads(manifest.read_text())["package"]
        row = re.search(r"^\| crates.io \|.*$", told, re.MULTILINE)
        assert row is not None
        assert (f"`{package['name']}`" in row[0]) == package.get("publish", True)
        if package.get("publish", True):
            readme = manifest.parent / package["readme"]
            assert readme.read_text().startswith(f"# {package['name']}\n"), manifest
