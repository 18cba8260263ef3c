"""A virtual machine for one run. Its clock is virtual, and nothing of the host takes part in the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sojourn import _core
from sojourn.files.workspace import scratch
from sojourn.linux import emulated, programs, user_mode
from sojourn.linux.cpio import Archive
from sojourn.linux.errors import LinuxError
from sojourn.linux.kernel import Kernel, module_content


def run(job_json: str, seed: int, kernel: Kernel, modules: list[str], monitor: _core.Monitor) -> bytes:
    """Boots a machine that carries out a job, and returns its recording.

    Parameters
    ----------
    job_json
        The job as the agent reads it.
    seed
        Seed of the guest's random numbers.
    modules
        The modules that the job needs.
    monitor
        Receives the progress of the run, and can cancel it.

    Raises
    ------
    LinuxError
        The machine cannot be started, fails, hangs or is killed.
    Cancelled
        The monitor was told to stop.
    """
    if not kernel.user_mode:
        programs.require(programs.QEMU)
    with _booting(lambda: initial_files(job_json, kernel, modules)) as initrd:
        if kernel.user_mode:
            return user_mode.run(kernel, initrd, monitor)
        return emulated.run(kernel, initrd, seed, monitor)


def run_wifi(job_json: str, kernel: Kernel, options: list[str], monitor: _core.Monitor) -> bytes:
    """Boots a kernel that was built with a radio, which carries out a job on its Wi-Fi queues.

    Parameters
    ----------
    job_json
        The job as the agent reads it.
    options
        Words for the kernel's command line: parameters of the radio.

    Raises
    ------
    LinuxError
        The machine cannot be started, fails, hangs or is killed.
    Cancelled
        The monitor was told to stop.
    """
    with _booting(lambda: initial_files(job_json, kernel, [], name="wifi.json")) as initrd:
        return user_mode.run(kernel, initrd, monitor, options)


@contextmanager
def _booting(files: Callable[[], bytes]) -> Iterator[Path]:
    """The file with a machine's initial file system; what the operating system refuses is an error of the machine."""
    try:
        with scratch() as folder:
            initrd = folder / "initrd"
            initrd.write_bytes(files())
            yield initrd
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
