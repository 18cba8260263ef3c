"""tools/with-rust: the machine's Rust where it is new enough, otherwise one fetched into the checkout."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
WANTED = re.search(r'^rust-version = "(.*)"', (CHECKOUT / "Cargo.toml").read_text(encoding="utf-8"), re.M)[1]
TOOLS = ("sh", "cat", "chmod", "cut", "dirname", "head", "mkdir", "rm", "sed", "sort")

FETCH = """\
#!/bin/sh
# Stands in for `python -m pip` and `python -m puccinialin --location FOLDER …`.
[ "$2" = pip ] && exit 0
mkdir -p "$4/cargo/bin"
for name in cargo rustc rustup; do
    printf '#!/bin/sh\\necho "%s FETCHED (of the checkout)"\\n' $name >"$4/cargo/bin/$name"
    chmod +x "$4/cargo/bin/$name"
done
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with nothing but what with-rust reads, and a PATH without Rust."""
    if not (CHECKOUT / "tools").is_dir():
        pytest.skip("not in a checkout")
    (tmp_path / "tools").mkdir()
    shutil.copy(CHECKOUT / "tools/with-rust", tmp_path / "tools")
    (tmp_path / "Cargo.toml").write_text(f'rust-version = "{WANTED}"\n')
    (tmp_path / "bin").mkdir()
    for name in TOOLS:
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or "missing")
    return tmp_path


def executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def with_rust(checkout: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [checkout / "tools/with-rust", "rustc", "--version"],
        env={"PATH": str(checkout / "bin")}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def machine_has(checkout: Path, version: str) -> None:
    for name in ("cargo", "rustc"):
        executable(checkout / "bin" / name, f'#!/bin/sh\necho "{name} {version} (of the machine)"\n')


def test_the_machines_rust_is_used_where_it_is_new_enough(checkout: Path):
    machine_has(checkout, WANTED + ".0")
    assert with_rust(checkout).stdout == f"rustc {WANTED}.0 (of the machine)\n"


@pytest.mark.parametrize("machines", [None, "1.63.0", "1.9.0"])
def test_otherwise_one_is_fetched_into_the_checkout_and_said(checkout: Path, machines: str | None):
    if machines is not None:
        machine_has(checkout, machines)
    executable(checkout / ".venv/bin/python", FETCH.replace("FETCHED", "1.999.0"))
    first, second = with_rust(checkout), with_rust(checkout)
    assert first.stdout.endswith("rustc 1.999.0 (of the checkout)\n")
    assert f"Rust {WANTED} or later is needed, {machines or 'none'} is here: fetching it into" in first.stderr
    assert second.stdout == "rustc 1.999.0 (of the checkout)\n"
    assert second.stderr == ""


def test_without_network_one_line_says_so(checkout: Path):
    executable(checkout / ".venv/bin/python", '#!/bin/sh\n[ "$2" = pip ] || exit 1\n')
    done = with_rust(checkout)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("Rust could not be fetched, see ")
