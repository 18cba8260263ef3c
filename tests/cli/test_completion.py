"""Shell completion: what the tab key offers, asked of the shells themselves where they are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.main import get_command

from conftest import SOJOURN
from sojourn.cli.app import HELPER, app
from sojourn.cli.completion import FILES, candidates

ASK = {
    # The function that bash would call, with the words as it would set them.
    "bash": 'eval "$(sojourn completion bash)"; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); '
    'compopt() {{ :; }}; _sojourn; printf "%s\\n" "${{COMPREPLY[@]}}"',
    # zsh's completion needs a terminal; what the function hands to it does not.
    "zsh": 'compdef() {{ :; }}; compadd() {{ shift; print -l -- "$@"; }}; '
    '_files() {{ print -l -- ${{words[CURRENT]}}*(N); }}; '
    'eval "$(sojourn completion zsh)"; words=({words}); CURRENT=${{#words}}; _sojourn; true',
    "fish": 'sojourn completion fish | source; complete -C "{line}"',
}  # fmt: skip


def offered(shell: str, *words: str, cwd: Path) -> set[str]:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell}")
    quoted = " ".join(f"'{word}'" for word in ("sojourn", *words))
    script = ASK[shell].format(words=quoted, line=" ".join(("sojourn", *words)))
    environment = {**os.environ, "PATH": f"{SOJOURN.parent}:{os.environ['PATH']}", "HOME": str(cwd)}
    bare = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    result = subprocess.run(
        [program, *bare, "-c", script], capture_output=True, text=True, timeout=120, cwd=cwd, env=environment
    )
    assert result.returncode == 0, result.stderr
    return {line.split("\t")[0] for line in result.stdout.splitlines() if line}


@pytest.fixture(params=["bash", "zsh", "fish"])
def shell(request: pytest.FixtureRequest) -> str:
    return request.param


def test_commands_options_names(shell: str, tmp_path: Path):
    assert offered(shell, "re", cwd=tmp_path) == {"replay", "report"}
    assert {"--baseline", "--backend"} <= offered(shell, "run", "x.toml", "--ba", cwd=tmp_path)
    assert offered(shell, "compare", "--rtt", "10ms", "fq_", cwd=tmp_path) == {"fq_codel", "fq_nocodel", "fq_pie"}


def test_what_options_and_commands_take():
    root = get_command(app)
    assert {"run", "compare", "report"} <= set(candidates(root, [], ""))
    assert HELPER not in candidates(root, [], "")
    assert candidates(root, ["run", "--backend"], "li") == ["linux"]
    assert candidates(root, ["export", "out", "--format"], "") == [
        "csv",
        "events",
        "flent",
        "latex",
        "mahimahi",
        "parquet",
    ]
    assert candidates(root, ["study", "run"], "kh") == ["khademi2013", FILES]
    assert candidates(root, ["run", "--json"], "") == [FILES]


def test_files(shell: str, tmp_path: Path):
    (tmp_path / "my experiment.toml").touch()
    found = offered(shell, "run", "my", cwd=tmp_path)
    assert {name.replace("\\", "") for name in found} == {"my experiment.toml"}
