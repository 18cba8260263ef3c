"""Shell completion: what the tab key offers, asked of the shells themselves where they are installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import SOJOURN

ASK = {
    # The function that bash would call, with the words as it would set them. After it, bash offers files.
    "bash": 'eval "$(sojourn completion bash)"; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); '
    "_sojourn_completion sojourn; "
    'if [ ${{#COMPREPLY[@]}} = 0 ] && [[ "$(complete -p sojourn)" = *"-o default"* ]]; then '
    'compgen -f -- "${{COMP_WORDS[COMP_CWORD]}}"; else printf "%s\\n" "${{COMPREPLY[@]}}"; fi',
    # zsh's completion needs a terminal; what the function hands to it does not.
    "zsh": 'compdef() {{ :; }}; _arguments() {{ print -r -- "$@"; }}; '
    '_files() {{ print -l -- ${{words[CURRENT]}}*(N); }}; '
    'eval "$(sojourn completion zsh)"; words=({words}); CURRENT=${{#words}}; _sojourn_completion; true',
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
    if result.stdout.startswith("*: :(("):
        # What zsh's _arguments gets: names in quotes, each with a colon and its help, if it has some.
        return set(re.findall(r'[( ]"([^"]+)"', result.stdout))
    return {line.split("\t")[0] for line in result.stdout.splitlines() if line}


@pytest.fixture(params=["bash", "zsh", "fish"])
def shell(request: pytest.FixtureRequest) -> str:
    return request.param


def test_commands_options_names(shell: str, tmp_path: Path):
    assert offered(shell, "re", cwd=tmp_path) == {"replay", "report"}
    assert {"--baseline", "--backend"} <= offered(shell, "run", "x.toml", "--ba", cwd=tmp_path)
    assert offered(shell, "compare", "--rtt", "10ms", "fq_", cwd=tmp_path) == {"fq_codel", "fq_nocodel", "fq_pie"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run", "--backend", "li"], ["linux"]),
        (["run", "--on", ""], ["vm", "host"]),
        (["export", "out", "--format", ""], ["csv", "events", "flent", "latex", "mahimahi", "parquet"]),
        (["export", "out", "--width", "c"], ["column"]),
        (["replay", "x", "--aqm", "fq_c"], ["fq_codel"]),
        (["compare", "--tcp", "pra"], ["prague"]),
        (["plot", "--kind", "par"], ["pareto"]),
        (["study", "run", "kh"], ["khademi2013"]),
        (["kernel", "b"], ["build"]),
        (["run", "--json", ""], []),  # files, which the shell knows
    ],
)
def test_what_options_and_commands_take(words: list[str], expected: list[str]):
    asked = {"COMP_WORDS": f"sojourn {' '.join(words)}", "COMP_CWORD": str(len(words))}
    environment = {**os.environ, **asked, "_SOJOURN_COMPLETE": "complete_bash"}
    result = subprocess.run([SOJOURN], capture_output=True, text=True, timeout=60, env=environment, check=True)
    assert result.stdout.split() == expected


def test_files(shell: str, tmp_path: Path):
    (tmp_path / "my experiment.toml").touch()
    found = offered(shell, "run", "my", cwd=tmp_path)
    assert {name.replace("\\", "") for name in found} == {"my experiment.toml"}
