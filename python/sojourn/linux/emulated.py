"""An emulated machine: QEMU's software emulation, its clock driven by executed instructions.

Nothing of the host takes part in the run: guest time advances by a nanosecond per instruction and skips idle spans,
the guest's random numbers come from the run's seed, the calendar clock starts at a fixed date, and no device answers at
a time that depends on the host. A disk would, so the results leave by a serial port, after the run.
"""

from __future__ import annotations

from pathlib import Path

from sojourn import _core
from sojourn.linux import guest, programs
from sojourn.linux.kernel import Kernel

MEMORY_MIB = 1024
"""The guest's memory; the host allocates only what the guest uses."""
MACHINE = "q35,sata=off,smbus=off,smm=off"
_TAKING_TURNS = "rr=record,rrfile=/dev/null"
"""While QEMU records, its main thread and the processor's take turns. Otherwise, if the main thread wakes just as the
guest halts, it advances the clock from its value before the guest's last instructions. The record itself is not
used."""
RESULT_MODULES = ("virtio_pci", "virtio_console")
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


def run(kernel: Kernel, initrd: Path, seed: int, monitor: _core.Monitor) -> bytes:
    """Boots a machine and returns its recording. It is kept beside the initial file system, with the console.

    Raises LinuxError if the machine fails, hangs or is killed, or QEMU is not installed, Cancelled if the monitor was
    told to stop, and OSError if it cannot be started.
    """
    folder = initrd.parent
    command = _command(programs.require(programs.QEMU), kernel, initrd, seed)
    recording = str(folder / "recording").replace(",", ",,")  # QEMU ends values at commas
    command += ["-chardev", f"file,id=results,path={recording}"]
    return guest.recorded("QEMU", folder, command, monitor)


def _command(qemu: Path, kernel: Kernel, initrd: Path, seed: int) -> list[str]:
    return [
        str(qemu.absolute()),
        *("-no-user-config", "-nodefaults", "-display", "none", "-no-reboot"),
        *("-machine", MACHINE, "-cpu", "qemu64", "-smp", "1", "-m", str(MEMORY_MIB)),
        *("-accel", "tcg,thread=single,tb-size=256", "-icount", f"shift=0,sleep=off,{_TAKING_TURNS}"),
        *("-rtc", "base=2024-01-01T00:00:00,clock=vm", "-seed", str(seed % (1 << 64))),
        *("-kernel", str(kernel.image.absolute()), "-initrd", str(initrd), "-append", _APPEND),
        *("-serial", "stdio", "-device", "virtio-serial-pci", "-device", "virtserialport,chardev=results"),
    ]
