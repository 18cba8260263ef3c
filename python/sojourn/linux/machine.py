"""A virtual machine for one run. Its clock is virtual, and nothing of the host takes part in the run."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from sojourn import _core
from sojourn.files.workspace import scratch
from sojourn.linux import emulated, programs, user_mode
from sojourn.linux.kernel import Kernel, module_content
from sojourn.linux.programs import LinuxError


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
                return user_mode.run(kernel, initrd, monitor, radio or ())
            return emulated.run(kernel, initrd, seed, monitor)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise LinuxError(f"virtual machine: {where}{error.strerror}") from None


def initial_files(job_json: str, kernel: Kernel, modules: list[str], name: str = "job.json") -> bytes:
    """The initial file system: agent, job, and modules in order.

    Raises LinuxError if a program is not installed, or the kernel lacks a module.
    """
    archive = Archive()
    archive.add_device("/dev/console", 5, 1)
    archive.add_directories(["proc", "sys", "tmp", "run", "modules", "modules-late"])
    archive.add_file("/init", programs.require_agent().read_bytes(), executable=True)
    archive.add_file(f"/{name}", job_json.encode())
    early = kernel.in_order(modules)
    late = [] if kernel.user_mode else kernel.in_order(emulated.RESULT_MODULES)
    late = [path for path in late if path not in early]
    for folder, paths in (("modules", early), ("modules-late", late)):
        for number, path in enumerate(paths):
            name = path.name.split(".ko")[0]
            archive.add_file(f"/{folder}/{number:03}-{name}.ko", module_content(path))
    return archive.to_bytes()


class Archive:
    """An initial file system: a cpio archive in the "newc" format (Documentation/driver-api/early-userspace).

    Equal content yields equal bytes: there are no times, and root owns everything.
    """

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
