"""A virtual machine for one run: its clock is virtual, and nothing of the host takes part in the run.

User-Mode Linux in time-travel mode is a kernel that is a program on the host, with an infinitely fast processor: the
kernel's clock stands still while it computes, and jumps to its next timer when it is idle (``time-travel=inf-cpu``,
Documentation/virt/uml in the kernel's source). Its random numbers are fixed when it is built (see ``build``) until the
agent mixes in the run's seed; the calendar clock starts at a fixed date. Results leave by a folder of the host.

The emulated machine is QEMU's software emulation, its clock driven by executed instructions: guest time advances by a
nanosecond per instruction and skips idle spans, the guest's random numbers come from the run's seed, the calendar clock
starts at a fixed date, and no device answers at a time that depends on the host. A disk would, so the results leave by
a serial port, after the run.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from sojourn import _core
from sojourn.files.workspace import scratch
from sojourn.linux import guest, programs
from sojourn.linux.kernel import Kernel, module_content
from sojourn.linux.programs import LinuxError

MEMORY_MIB = 1024
"""A guest's memory; what it does not touch is not taken from the host."""
START_NS = 1_704_067_200 * 10**9
"""The calendar clock at the start: 2024-01-01."""
PATIENCE_S = 10.0
"""Wall time that a guest gets to power itself off, once its recording is there."""
INITRD = "initrd"
"""The name of the agent's file system in the folder of results."""
_AGENT = (f"initrd={INITRD}", "hostfs=/proc/self/cwd")
"""The agent's file systems. The folder's name is the same in every run; newer kernels do not take a relative one."""
_IN_MEMORY = Path("/dev/shm")
"""Where the guest's memory is kept, as a file: on a disk it would be written there."""
MACHINE = "q35,sata=off,smbus=off,smm=off"
_TAKING_TURNS = "rr=record,rrfile=/dev/null"
"""While QEMU records, its main thread and the processor's take turns. Otherwise, if the main thread wakes just as the
guest halts, it advances the clock from its value before the guest's last instructions. The record itself is not
used."""
RESULT_MODULES = ("virtio_pci", "virtio_console")
"""Modules for the serial port of the results."""

_APPEND = " ".join(
    [
        *("console=ttyS0", "quiet", "loglevel=2"),
        # The clock is exact: it needs no watchdog or calibration, and there is no other clock to fall back to.
        *("tsc=reliable", "nokaslr", "mitigations=off"),
        # Reading TCP_INFO walks through the whole table of connections, once per host.
        *("thash_entries=256", "random.trust_cpu=on"),
        # A guest that hangs in the kernel for 20 s of its own time, or panics, ends.
        *("softlockup_panic=1", "panic=-1"),
    ]
)


def run(
    job_json: str,
    seed: int,
    kernel: Kernel,
    modules: list[str],
    monitor: _core.Monitor,
    *,
    radio: Sequence[str] | None = None,
) -> bytes:
    """Boots a machine that carries out a job, as the agent reads it, and returns its recording.

    ``seed`` is that of the guest's random numbers, ``modules`` are those that the job needs. With ``radio``, words for
    the kernel's command line, the kernel was built with a radio, and the job is one on its Wi-Fi queues. Raises
    LinuxError if the machine cannot be started, fails, hangs or is killed, and Cancelled if the monitor was told to
    stop.
    """
    if not kernel.user_mode:
        programs.require(programs.QEMU)
    name = "job.json" if radio is None else "wifi.json"
    try:
        with scratch() as folder:
            initrd = folder / "initrd"
            initrd.write_bytes(initial_files(job_json, kernel, modules, name))
            if kernel.user_mode:
                return _user_mode(kernel, initrd, monitor, radio or ())
            return _emulated(kernel, initrd, seed, monitor)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise LinuxError(f"virtual machine: {where}{error.strerror}") from None


def _user_mode(kernel: Kernel, initrd: Path, monitor: _core.Monitor, options: Sequence[str]) -> bytes:
    """Runs a kernel and returns its recording. ``options``: more words for the kernel's command line."""
    with scratch() as folder:
        (folder / INITRD).symlink_to(initrd.resolve())
        # Its console is a file. A pipe interrupts the guest at instants that the host decides; then it starts other
        # processes of its own, each of which draws random numbers.
        words = [*user_mode_command(kernel, folder, _AGENT), *options]
        # It powers itself off, and so tells its processor time.
        return guest.recorded("User-Mode Linux", folder, words, monitor, PATIENCE_S)


def user_mode_command(kernel: Kernel, results: Path, files: Sequence[str]) -> list[str]:
    """The words that start a guest in its folder of results; ``files`` are those for its file systems.

    Those for the kernel are the same in every run: its generator of random numbers mixes them in.
    """
    return [
        "env",
        f"TMPDIR={_IN_MEMORY if _IN_MEMORY.is_dir() else results}",
        str(kernel.image.resolve()),
        f"mem={MEMORY_MIB}M",
        "time-travel=inf-cpu",
        # Run processes without ptrace if the kernel (6.16 and later) and the host can: a run takes half of the time.
        "seccomp=auto",
        f"time-travel-start={START_NS}",
        *files,
        # Its control folder, which would be below HOME: there may be none, and a killed machine leaves it.
        "uml_dir=./",
        *("con=null", "con0=null,fd:1", "console=tty0", "quiet", "loglevel=2", "thash_entries=256", "panic=-1"),
        # In the agent's environment: its C library then uses no state of the processor that kernels before 6.13 lose.
        "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX,-AVX2,-AVX_Fast_Unaligned_Load,-AVX512F,-AVX512BW,-AVX512VL",
    ]


def _emulated(kernel: Kernel, initrd: Path, seed: int, monitor: _core.Monitor) -> bytes:
    """Boots a machine and returns its recording. It is kept beside the initial file system, with the console."""
    folder = initrd.parent
    recording = str(folder / "recording").replace(",", ",,")  # QEMU ends values at commas
    command = [
        str(programs.require(programs.QEMU).absolute()),
        *("-no-user-config", "-nodefaults", "-display", "none", "-no-reboot"),
        *("-machine", MACHINE, "-cpu", "qemu64", "-smp", "1", "-m", str(MEMORY_MIB)),
        *("-accel", "tcg,thread=single,tb-size=256", "-icount", f"shift=0,sleep=off,{_TAKING_TURNS}"),
        *("-rtc", "base=2024-01-01T00:00:00,clock=vm", "-seed", str(seed % (1 << 64))),
        *("-kernel", str(kernel.image.absolute()), "-initrd", str(initrd), "-append", _APPEND),
        *("-serial", "stdio", "-device", "virtio-serial-pci", "-device", "virtserialport,chardev=results"),
        *("-chardev", f"file,id=results,path={recording}"),
    ]
    return guest.recorded("QEMU", folder, command, monitor)


def initial_files(job_json: str, kernel: Kernel, modules: list[str], name: str = "job.json") -> bytes:
    """The initial file system: agent, job, and modules in order. Raises LinuxError if one is missing."""
    archive = Archive()
    archive.add_device("/dev/console", 5, 1)
    archive.add_directories(["proc", "sys", "tmp", "run", "modules", "modules-late"])
    archive.add_file("/init", programs.require_agent().read_bytes(), executable=True)
    archive.add_file(f"/{name}", job_json.encode())
    early = kernel.in_order(modules)
    late = [] if kernel.user_mode else kernel.in_order(RESULT_MODULES)
    late = [path for path in late if path not in early]
    for folder, paths in (("modules", early), ("modules-late", late)):
        for number, path in enumerate(paths):
            name = path.name.split(".ko")[0]
            archive.add_file(f"/{folder}/{number:03}-{name}.ko", module_content(path))
    return archive.to_bytes()


class Archive:
    """A cpio archive ("newc", Documentation/driver-api/early-userspace), the same for equal content."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._seen: set[PurePosixPath] = set()

    def add_file(self, path: str, content: bytes, *, executable: bool = False) -> None:
        """Adds a regular file and its missing parent directories. An existing file is kept."""
        target = PurePosixPath(path.lstrip("/"))
        if target not in self._seen:
            self.add_directories([target.parent])
            self._add(target, stat.S_IFREG | (0o755 if executable else 0o644), content)

    def add_directories(self, paths: Iterable[PurePosixPath | str]) -> None:
        """Adds directories and their parents."""
        for path in map(PurePosixPath, paths):
            for directory in (*reversed(path.parents), path):
                if directory != PurePosixPath(".") and directory not in self._seen:
                    self._add(directory, stat.S_IFDIR | 0o755)

    def add_device(self, path: str, major: int, minor: int) -> None:
        """Adds a character device."""
        target = PurePosixPath(path.lstrip("/"))
        self.add_directories([target.parent])
        self._add(target, stat.S_IFCHR | 0o600, device=(major, minor))

    def to_bytes(self) -> bytes:
        """The whole archive."""
        return b"".join([*self._parts, _entry(0, "TRAILER!!!", 0, b"", (0, 0))])

    def _add(self, path: PurePosixPath, mode: int, content: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        self._seen.add(path)
        self._parts.append(_entry(len(self._seen), str(path), mode, content, device))


def _entry(number: int, path: str, mode: int, content: bytes, device: tuple[int, int]) -> bytes:
    name = path.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(name), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
    return _padded(head) + _padded(content)


def _padded(part: bytes) -> bytes:
    return part + b"\0" * (-len(part) % 4)
