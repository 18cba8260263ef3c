"""A virtual machine for one run: QEMU's software emulation, its clock driven by executed instructions.

Nothing of the host affects the run: guest time advances by a nanosecond per instruction and skips idle spans, the
guest's random numbers derive from the run's seed, the calendar clock starts at a fixed date, and no device depends on
the host's timing. A disk would: therefore the results leave by a serial port, after the run.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import NoReturn

from sojourn import _core
from sojourn.linux import programs
from sojourn.linux.cpio import Archive
from sojourn.linux.errors import LinuxError
from sojourn.linux.kernel import Kernel, module_content

PATIENCE_S = 300.0
"""Wall time in seconds without output after which a guest counts as hung; a second of its time takes a few at most."""
POLL_S = 0.2
MEMORY_MIB = 1024
"""The guest's memory; the host allocates only what the guest uses."""
MACHINE = "q35,sata=off,smbus=off,smm=off"
_TAKING_TURNS = "rr=record,rrfile=/dev/null"
"""While QEMU records, its main thread and the processor's take turns. Otherwise, if the main thread wakes just as the
guest halts, it advances the clock from its value before the guest's last instructions. The record itself is not
used."""
_RESULT_MODULES = ("virtio_pci", "virtio_console")
"""Modules for the serial port of the results."""

_APPEND = " ".join(
    [
        "console=ttyS0",
        "quiet",
        "loglevel=2",
        # The clock is exact: it needs no watchdog or calibration, and there is no other clock to fall back to.
        "tsc=reliable",
        "nokaslr",
        "mitigations=off",
        # Reading TCP_INFO walks through the whole table of connections, once per host.
        "thash_entries=256",
        "random.trust_cpu=on",
        # A guest that hangs in the kernel for 20 s of its own time, or panics, ends.
        "softlockup_panic=1",
        "panic=-1",
    ]
)


def run(told: str, seed: int, kernel: Kernel, modules: list[str], monitor: _core.Monitor) -> bytes:
    """Boots a machine that runs a job, and returns its recording.

    Parameters
    ----------
    told
        The job in the agent's format.
    seed
        Seed of the guest's random numbers.
    modules
        The modules that the job needs.
    monitor
        Receives the progress of the run, and can stop it.

    Raises
    ------
    LinuxError
        The machine cannot be started, fails, hangs or is killed.
    Cancelled
        The monitor was cancelled.
    """
    qemu = programs.require(programs.QEMU)
    try:
        with tempfile.TemporaryDirectory(prefix="sojourn-vm-") as temporary:
            initrd = Path(temporary) / "initrd"
            initrd.write_bytes(initial_files(told, kernel, modules))
            return _run_qemu(_command(qemu, kernel, initrd, seed), monitor)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise LinuxError(f"virtual machine: {where}{error.strerror}") from None


def initial_files(told: str, kernel: Kernel, modules: list[str]) -> bytes:
    """The initial file system: agent, job, tools with their libraries, and modules in order.

    Raises
    ------
    LinuxError
        A program is not installed, or the kernel lacks a module.
    """
    archive = Archive()
    archive.add_device("/dev/console", 5, 1)
    archive.add_directories(["proc", "sys", "tmp", "run", "modules", "modules-late"])
    archive.add_file("/init", programs.require_agent().read_bytes(), executable=True)
    archive.add_file("/job.json", told.encode())
    for tool in programs.TOOLS:
        path = programs.require(tool)
        archive.add_file(f"/sbin/{tool}", path.read_bytes(), executable=True)
        for library in programs.libraries(path):
            archive.add_file(str(library), library.read_bytes(), executable=True)
    early = kernel.in_order(modules)
    late = [path for path in kernel.in_order(_RESULT_MODULES) if path not in early]
    for folder, paths in (("modules", early), ("modules-late", late)):
        for number, path in enumerate(paths):
            name = path.name.split(".ko")[0]
            archive.add_file(f"/{folder}/{number:03}-{name}.ko", module_content(path))
    return archive.to_bytes()


def _command(qemu: Path, kernel: Kernel, initrd: Path, seed: int) -> list[str]:
    return [
        str(qemu),
        *("-no-user-config", "-nodefaults", "-display", "none", "-no-reboot"),
        *("-machine", MACHINE, "-cpu", "qemu64", "-smp", "1", "-m", str(MEMORY_MIB)),
        *("-accel", "tcg,thread=single,tb-size=256", "-icount", f"shift=0,sleep=off,{_TAKING_TURNS}"),
        *("-rtc", "base=2024-01-01T00:00:00,clock=vm", "-seed", str(seed % (1 << 64))),
        *("-kernel", str(kernel.image), "-initrd", str(initrd), "-append", _APPEND),
        *("-serial", "stdio", "-device", "virtio-serial-pci", "-device", "virtserialport,chardev=results"),
    ]


def _run_qemu(command: list[str], monitor: _core.Monitor) -> bytes:
    results, of_qemu = os.pipe()
    try:
        process = subprocess.Popen(
            programs.ending_with_us([*command, "-chardev", f"file,id=results,path=/dev/fd/{of_qemu}"]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[of_qemu],
            # Ctrl-C is handled by this process.
            start_new_session=True,
        )
    except OSError:
        os.close(results)
        raise
    finally:
        os.close(of_qemu)
    with process, os.fdopen(results, "rb", buffering=0) as pipe:
        try:
            console = Console(monitor)
            recording = _follow(process, pipe.fileno(), console, monitor)
            if len(recording) != console.recorded:
                _explain(process.wait(), console)
            return recording
        finally:
            process.kill()


def _follow(process: subprocess.Popen[bytes], results: int, console: Console, monitor: _core.Monitor) -> bytes:
    """Reads the guest's console and its recording, until the recording is complete or the guest has ended."""
    assert process.stdout is not None
    recording = bytearray()
    waited_s = 0.0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout.fileno(), selectors.EVENT_READ, console.take)
        selector.register(results, selectors.EVENT_READ, recording.extend)
        while selector.get_map() and len(recording) != console.recorded:
            if monitor.cancelled:
                raise _core.Cancelled("cancelled")
            ready = selector.select(POLL_S)
            waited_s = 0.0 if ready else waited_s + POLL_S
            if waited_s > PATIENCE_S:
                raise LinuxError(
                    f"the guest hangs: no sign of life for {PATIENCE_S:.0f} s, after {console.seconds} s of its time"
                )
            for key, _ in ready:
                said = os.read(key.fd, 1 << 16)
                if said:
                    key.data(said)
                else:
                    selector.unregister(key.fd)
    return bytes(recording)


class Console:
    """The guest's console. Lines that begin with ``@`` come from the agent, others from the kernel or QEMU."""

    def __init__(self, monitor: _core.Monitor) -> None:
        self.seconds = 0
        """Guest time of the run so far."""
        self.recorded: int | None = None
        """Length of the recording, once the guest has sent it."""
        self.failure: str | None = None
        self.last_words = ""
        """The last line that does not come from the agent."""
        self._monitor = monitor
        self._rest = b""

    def take(self, said: bytes) -> None:
        """Processes new output."""
        *lines, self._rest = (self._rest + said).split(b"\n")
        for line in lines:
            self._line(line.decode(errors="replace").strip())

    def _line(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "@second":
            self.seconds = int(rest)
            self._monitor.report(float(rest))
        elif word == "@done":
            self.recorded = int(rest)
        elif word == "@failed":
            self.failure = rest
        elif line:
            self.last_words = line


def _explain(status: int, console: Console) -> NoReturn:
    """Raises the error for a guest that ended without a complete recording."""
    if console.failure is not None:
        raise LinuxError(console.failure)
    after = f"after {console.seconds} s of the guest's time"
    if status < 0:
        raise LinuxError(f"QEMU was killed by {signal.Signals(-status).name} {after}")
    why = f": {console.last_words}" if console.last_words else ""
    raise LinuxError(f"QEMU ended early with status {status} {after}{why}")
