"""What goes wrong ends in one clear line, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import SOJOURN
from linux.conftest import EXPERIMENT
from sojourn import ExperimentError, _core
from sojourn.linux import Linux, LinuxError, guest, programs


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def run(kernel: Path, monitor: _core.Monitor | None = None, text: str = EXPERIMENT) -> None:
    plan = _core.Plan.read_text(text, "short", [])
    Linux(kernel=str(kernel)).run(plan[0], monitor or _core.Monitor())


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo '@second 3'; kill -9 $$", "QEMU was killed by SIGKILL after 3 s of the guest's time"),
        ("echo 'Kernel panic - not syncing: VFS'; exit 0", "ended early with status 0 .*: Kernel panic - not syncing"),
        ("echo 'qemu: no such machine' >&2; exit 1", "ended early with status 1 .*: qemu: no such machine"),
        ("echo '@failed tc: Specified qdisc kind is unknown.'", "^tc: Specified qdisc kind is unknown.$"),
        ("echo '@failed the guest hangs: not done after 130 s of its time'", "^the guest hangs"),
        ("echo '@done 100'; exit 0", "ended early"),
    ],
    ids=["killed", "panic", "refused", "failed", "hung in its own time", "lost its recording"],
)
def test_a_machine_that_ends_early(fake_qemu, fake_kernel, temporary, script, message):
    fake_qemu(script)
    with pytest.raises(LinuxError, match=message):
        run(fake_kernel)
    assert list(temporary.iterdir()) == []


def test_a_machine_that_says_nothing_more(fake_qemu, fake_kernel, temporary, monkeypatch):
    monkeypatch.setattr(guest, "PATIENCE_S", 0.5)
    fake_qemu("echo '@second 2'; exec sleep 600")
    with pytest.raises(LinuxError, match=r"the guest hangs: .* after 2 s of its time"):
        run(fake_kernel)
    assert list(temporary.iterdir()) == []


def test_a_run_that_is_cancelled(fake_qemu, fake_kernel, temporary):
    fake_qemu("exec sleep 600")
    monitor = _core.Monitor()
    monitor.cancel()
    with pytest.raises(_core.Cancelled):
        run(fake_kernel, monitor)
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(programs.ending_with_us([]) == [], reason="needs a setpriv(1) with --pdeathsig")
def test_a_machine_ends_when_its_caller_is_killed(fake_qemu, fake_kernel, tmp_path):
    told = tmp_path / "qemu.pid"
    fake_qemu(f"echo $$ > {told}; exec sleep 600")
    experiment = tmp_path / "short.toml"
    experiment.write_text(EXPERIMENT, encoding="utf-8")
    command = [SOJOURN, "run", experiment, "--backend", "linux", "--kernel", fake_kernel]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as caller:
        until(lambda: told.exists() and told.read_text().strip())
        caller.kill()
    machine_of_it = Path("/proc", told.read_text().strip())
    until(lambda: not machine_of_it.exists())


def until(condition: Callable[[], object], *, patience_s: float = 60.0) -> None:
    limit = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.1)


def test_a_recording_that_is_damaged(fake_qemu, fake_kernel):
    # The results' descriptor is in the last argument.
    fake_qemu('for last; do :; done; printf SOJOURN1damaged > "${last##*path=}"; echo "@done 15"; sleep 1')
    with pytest.raises(_core.RunError, match="the recording is incomplete"):
        run(fake_kernel)


def test_a_full_disk(fake_qemu, fake_kernel, monkeypatch):
    fake_qemu("exit 0")

    def full(self: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(LinuxError, match=r"initrd: No space left on device"):
        run(fake_kernel)


def test_no_qemu(fake_kernel, tmp_path, monkeypatch):
    agent = tmp_path / "agent"
    agent.write_bytes(b"agent")
    monkeypatch.setenv("SOJOURN_AGENT", str(agent))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sojourn.linux.programs._ADMINISTRATION", "")
    with pytest.raises(LinuxError, match="qemu-system-x86_64 is not installed; on Debian: apt-get install qemu"):
        run(fake_kernel)


def test_a_kernel_without_the_discipline(fake_kernel):
    plan = _core.Plan.read_text(EXPERIMENT.replace('"codel"', '"pie"'), "short", [])
    with pytest.raises(LinuxError, match="has no sch_pie: the discipline pie needs another kernel"):
        Linux(kernel=str(fake_kernel)).check(plan)


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        (
            'aqm = "codel"',
            'aqm = "blue"',
            ("short:11: queue.0.aqm", 'got "blue"', "fq_codel", "runs on: sim, datapath"),
        ),
        ('buffer = "100 packets"', 'buffer = "150 kB"', ("short:8: link.buffer", "must be in packets")),
        ('aqm = "codel"', 'aqm = "codel"\nce_exclude = true', ("short:12: queue.0.ce_exclude", "must be false")),
    ],
    ids=["discipline", "limit", "key"],
)
def test_what_linux_lacks_is_refused_at_its_line(fake_kernel, old, new, parts):
    plan = _core.Plan.read_text(EXPERIMENT.replace(old, new), "short", [])
    with pytest.raises(ExperimentError) as refusal:
        Linux(kernel=str(fake_kernel)).check(plan)
    for part in parts:
        assert part in str(refusal.value)
