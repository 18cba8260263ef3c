"""The first process of a virtual machine in which ``--on host`` is tried: it runs the cases of /cases.json.

For each case it prints a line ``@case NAME {"status": …, "out": …, "err": …, "left": […]}``: how the command ended, and
what it left behind of namespaces, tracing, temporary files, processes and settings.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import time
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
MOUNTS = [
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("tracefs", "/sys/kernel/tracing"),
]
SETTINGS = ["net/core/rmem_max", "net/core/wmem_max"]
NOBODY = 65534
PATIENCE_S = 240.0
POWER_OFF = 0x4321FEDC


def main() -> None:
    for kind, place in MOUNTS:
        Path(place).mkdir(parents=True, exist_ok=True)
        if LIBC.mount(kind.encode(), place.encode(), kind.encode(), 0, None) != 0:
            raise OSError(ctypes.get_errno(), f"mounting {place}")
    for link in ("/tmp", "/dev/null"):
        Path(link).chmod(0o1777 if link == "/tmp" else 0o666)
    os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME="/tmp", COLUMNS="200")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    Path("/tmp/work").mkdir()
    os.chdir("/tmp/work")
    given = json.loads(Path("/cases.json").read_text())
    for name, text in given["files"].items():
        Path(name).write_text(text)
    before = state()
    for case in given["cases"]:
        answer = carry_out(case)
        left = sorted(state() - before)
        print("@case", case["name"], json.dumps(answer | {"left": left}), flush=True)


def carry_out(case: dict) -> dict:
    began = time.monotonic()
    process = subprocess.Popen(
        case["command"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        user=case.get("user"), start_new_session=True,
    )  # fmt: skip
    if "signal" in case:
        strike(process, case)
    try:
        out, err = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        err += "not over after its patience"
    # What outlives the command for a moment, and is over by itself.
    settled = time.monotonic() + case.get("settle_s", 0.0)
    while time.monotonic() < settled and agents():
        time.sleep(0.2)
    took_s = round(time.monotonic() - began, 1)
    return {"status": process.returncode, "out": out, "err": err, "took_s": took_s}


def strike(process: subprocess.Popen, case: dict) -> None:
    """Sends a signal while a run is under way: once its network stands and traffic passes."""
    limit = time.monotonic() + PATIENCE_S
    while time.monotonic() < limit and not (tracing() and agents()):
        time.sleep(0.1)
    time.sleep(case["after_s"])
    target = agents()[0] if case.get("at") == "agent" else process.pid
    os.kill(target, getattr(signal, case["signal"]))


def agents() -> list[int]:
    return [number for number, name in processes() if name == "sojourn-agent"]


def processes() -> list[tuple[int, str]]:
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit() and place.name != "1":
            try:
                # Threads of the kernel have no command line.
                if (place / "cmdline").read_bytes():
                    found.append((int(place.name), (place / "comm").read_text().strip()))
            except OSError:
                continue
    return found


def tracing() -> list[str]:
    return names("/sys/kernel/tracing/instances")


def names(folder: str) -> list[str]:
    place = Path(folder)
    return [entry.name for entry in place.iterdir()] if place.exists() else []


def state() -> set[str]:
    found = {f"namespace {name}" for name in names("/run/netns")}
    found |= {f"tracing {name}" for name in tracing()}
    found |= {f"temporary {name}" for name in names("/tmp")}
    found |= {f"process {name}" for _, name in processes()}
    found |= {f"device {name}" for name in names("/sys/class/net")}
    return found | {f"{key} = {Path('/proc/sys', key).read_text().strip()}" for key in SETTINGS}


try:
    main()
    print("@end", flush=True)
except BaseException as error:  # whatever it is, the machine has to end
    print(f"@broken {error!r}", flush=True)
finally:
    time.sleep(0.5)
    LIBC.reboot(POWER_OFF)
