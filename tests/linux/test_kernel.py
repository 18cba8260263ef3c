"""Kernels: finding them, and their modules in the order in which they load."""

from __future__ import annotations

import gzip
import hashlib
import lzma
from pathlib import Path

import pytest

from sojourn import ExperimentError
from sojourn.linux import LinuxError, kernel


def test_modules_come_after_what_they_need(fake_kernel: Path):
    found = kernel.locate(str(fake_kernel))
    assert found.release == "6.1.0-test"
    assert [path.name for path in found.in_order(["sch_htb", "sch_cake"])] == [
        "helper.ko", "other-one.ko", "sch_cake.ko",
    ]  # fmt: skip


def test_a_missing_discipline_is_told_with_the_way_out(fake_kernel: Path):
    with pytest.raises(LinuxError, match=r"6\.1\.0-test has no sch_dualpi2: the discipline dualpi2 .*--kernel"):
        kernel.locate(str(fake_kernel)).in_order(["sch_dualpi2"])


@pytest.mark.parametrize("given", ["/nowhere", "/etc/passwd:/etc"])
def test_what_is_no_kernel_is_refused(given: str):
    with pytest.raises(ExperimentError, match=r"--kernel: got .*must be a version like 6\.1, a directory with boot"):
        kernel.locate(given)


def test_an_image_and_its_modules_can_be_named_apart(fake_kernel: Path):
    modules = fake_kernel / "lib/modules/6.1.0-test"
    found = kernel.locate(f"{fake_kernel}/boot/vmlinuz-6.1.0-test:{modules}")
    assert found.modules == modules


def test_a_cached_kernel_counts_only_with_its_checksum(fake_kernel: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cache = kernel.cache_directory()
    cache.mkdir(parents=True)
    fake_kernel.rename(cache / "linux-image-6.1")
    (cache / "linux-image-6.1.deb").write_bytes(b"package")
    assert kernel.cached() is None
    (cache / "linux-image-6.1.sha256").write_text(f"{'0' * 64}  linux-image-6.1.deb\n")
    assert kernel.cached() is None
    (cache / "linux-image-6.1.sha256").write_text(f"{hashlib.sha256(b'package').hexdigest()}  linux-image-6.1.deb\n")
    found = kernel.cached()
    assert found is not None
    assert found.release == "6.1.0-test"


def test_compressed_modules_are_unpacked(tmp_path: Path):
    for suffix, packed in ((".ko", b"code"), (".ko.gz", gzip.compress(b"code")), (".ko.xz", lzma.compress(b"code"))):
        path = tmp_path / f"module{suffix}"
        path.write_bytes(packed)
        assert kernel.module_content(path) == b"code"
