"""A virtual machine for one run. Its clock is virtual, and nothing of the host takes part in the run."""

from __future__ import annotations

from collections.abc import Sequence

from sojourn import _core
from sojourn.files.workspace import scratch
from sojourn.linux import emulated, programs, user_mode
from sojourn.linux.cpio import Archive
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
