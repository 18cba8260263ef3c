"""User-Mode Linux in time-travel mode: a kernel that is a program on the host, with an infinitely fast processor.

The kernel's clock stands still while it computes, and jumps to its next timer when it is idle (``time-travel=inf-cpu``,
Documentation/virt/uml in the kernel's source). Its random numbers are fixed when it is built (see ``build``) until the
agent mixes in the run's seed; the calendar clock starts at a fixed date. Results leave by a folder of the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sojourn import _core
from sojourn.files.workspace import scratch
from sojourn.linux import guest
from sojourn.linux.kernel import Kernel

MEMORY_MIB = 1024
"""The guest's memory; what it does not touch is not taken from the host."""
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


def run(kernel: Kernel, initrd: Path, monitor: _core.Monitor, options: Sequence[str] = ()) -> bytes:
    """Runs a kernel and returns its recording. ``options``: more words for the kernel's command line.

    Raises LinuxError if it fails, hangs or is killed, Cancelled if the monitor was told to stop, and OSError if it
    cannot be started.
    """
    with scratch() as folder:
        (folder / INITRD).symlink_to(initrd.resolve())
        # Its console is a file. A pipe interrupts the guest at instants that the host decides; then it starts other
        # processes of its own, each of which draws random numbers.
        words = [*command(kernel, folder, _AGENT), *options]
        # It powers itself off, and so tells its processor time.
        return guest.recorded("User-Mode Linux", folder, words, monitor, PATIENCE_S)


def command(kernel: Kernel, results: Path, files: Sequence[str]) -> list[str]:
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
        "con=null",
        "con0=null,fd:1",
        "console=tty0",
        "quiet",
        "loglevel=2",
        "thash_entries=256",
        "panic=-1",
        # In the agent's environment: its C library then uses no state of the processor that kernels before 6.13 lose.
        "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX,-AVX2,-AVX_Fast_Unaligned_Load,-AVX512F,-AVX512BW,-AVX512VL",
    ]
