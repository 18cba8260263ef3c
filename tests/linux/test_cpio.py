"""Initial file systems."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from sojourn.linux.machine import Archive


def example() -> Archive:
    archive = Archive()
    archive.add_file("/lib/x86/libc.so", b"odd", executable=True)
    archive.add_file("/lib/x86/libc.so", b"again")
    archive.add_directories(["proc"])
    return archive


def test_the_same_content_gives_the_same_bytes():
    assert example().to_bytes() == example().to_bytes()


def test_entries_are_aligned_and_the_last_is_the_trailer():
    content = example().to_bytes()
    assert len(content) % 4 == 0
    assert content.startswith(b"070701")
    assert content.rstrip(b"\0").endswith(b"TRAILER!!!")


@pytest.mark.skipif(shutil.which("cpio") is None, reason="cpio is not installed")
def test_cpio_reads_it(tmp_path: Path):
    subprocess.run(["cpio", "-id", "--quiet"], cwd=tmp_path, input=example().to_bytes(), check=True)
    library = tmp_path / "lib/x86/libc.so"
    assert library.read_bytes() == b"odd"
    assert library.stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "proc").is_dir()
