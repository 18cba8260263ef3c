"""What is left when runs on real packets end badly; writes its part of docs/results/real-packets.md.

``python validation/killed.py [--times N]``: runs are killed at random instants, their interface is removed, their disk
is full, their memory is short. After each, this looks for processes, namespaces, interfaces and temporary files. Needs
root. Exit status: 0 if nothing is left, 1 otherwise.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pages

SOJOURN = [sys.executable, "-m", "sojourn"]
FILE = """
experiment = { duration = "1 s", repeat = 4 }
link = { rate = "20 Mbit/s", delay = "2 ms" }
queue = [{ aqm = "fq_codel" }]
traffic = [{ kind = "bulk", flows = 2, rtt = "10 ms" }]
"""
LONGEST_S = 6.0
"""Runs are killed within this time of their start."""
MEMORY_MB = range(16, 88, 8)
"""Limits of memory: from less than the command needs to more than a run does."""
GROUPS = Path("/sys/fs/cgroup")
SETTLE_S = 20.0
"""The kernel gets this time to remove what has ended."""


def main() -> int:
    """Runs, and replaces the page's table."""
    options = argparse.ArgumentParser(description="Look for what killed runs leave behind.")
    options.add_argument("--times", type=int, default=50, help="runs that are killed")
    times: int = options.parse_args().times
    draws = random.Random(1)
    done: Counter[tuple[str, str]] = Counter()
    faults = 0
    for number in range(times):
        # The command, the agent outside of its namespaces, the agent inside of them.
        whom, shell = ("command", "agent", "agent inside")[number % 3], number % 2 == 1
        what, left, slowest = killed(whom, shell, LONGEST_S * draws.random())
        faults += bool(left)
        done[whom, what] += 1
        print(f"{number}: {whom} of {'shell' if shell else 'run'}: {what}; left: {left or 'nothing'}; {slowest:.2f} s")
    rows = [(f"{whom} killed by SIGKILL", str(count), what) for (whom, what), count in sorted(done.items())]
    for name, found in (("interface removed", interface_removed()), ("disk full", disk_full())):
        print(f"{name}: {found}")
        rows.append((name, "1", found))
        faults += "left:" in found
    for what, count in sorted(Counter(map(out_of_memory, MEMORY_MB)).items()):
        print(f"out of memory: {what}")
        rows.append((f"{MEMORY_MB.start} to {MEMORY_MB[-1]} MB of memory", str(count), what))
        faults += "left:" in what
    pages.put(pages.RESULTS / "real-packets.md", [("| what happened", rows)])
    return 1 if faults else 0


def killed(whom: str, shell: bool, after_s: float) -> tuple[str, list[str], float]:
    """Kills a run; what became of its results, what is left of it, and how long that took."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        environment = {**os.environ, "TMPDIR": temporary}
        file, out = folder / "file.toml", folder / "out"
        file.write_text(FILE, encoding="utf-8")
        words = ["shell", str(file), "--", "sleep", "1000"]
        command = [*SOJOURN, *(words if shell else ["run", str(file), "--backend", "datapath", "--out", str(out)])]
        before = leftovers(folder)
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
            time.sleep(after_s)
            agents = [pid for pid, words in processes(folder) if "sojourn-agent" in words and "apart" in words]
            inside = [pid for pid, words in processes(folder) if words.startswith("/proc/self/exe inside")]
            target = {"command": [run.pid], "agent": agents, "agent inside": inside}[whom][:1]
            with contextlib.suppress(ProcessLookupError):
                # Before there is an agent, the command is told to end.
                os.kill(target[0], signal.SIGKILL) if target else run.terminate()
            began = time.monotonic()
            run.wait()
        while (left := [one for one in leftovers(folder) if one not in before]) and time.monotonic() < began + SETTLE_S:
            time.sleep(0.02)
        took = time.monotonic() - began
        if not target:
            return "ended before there was an agent", left, took
        if shell:
            again = subprocess.run([*command[:5], "true"], env=environment, capture_output=True, check=False)
            what = "the next start works" if again.returncode == 0 else f"left unusable: {again.stderr.decode()}"
        else:
            again = subprocess.run([*command, "--resume"], env=environment, capture_output=True, check=False)
            finished = (out / "summary.json").exists() and again.returncode in (0, 1)
            what = "resumed to the end" if finished else f"left unusable: {again.stderr.decode()}"
        left += [path.name for path in folder.glob("sojourn-*")]
        return what, left, took


def out_of_memory(megabytes: int) -> str:
    """A run in a control group (cgroups(7)) with so much memory. If it is too little, the kernel kills a process."""
    second = (GROUPS / "cgroup.controllers").exists()
    group = (GROUPS if second else GROUPS / "memory") / f"sojourn-{os.getpid()}"
    group.mkdir()
    try:
        limit = group / ("memory.max" if second else "memory.limit_in_bytes")
        limit.write_text(str(megabytes * 1_000_000), encoding="utf-8")
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            environment = {**os.environ, "TMPDIR": temporary}
            file, out = folder / "file.toml", folder / "out"
            file.write_text(FILE, encoding="utf-8")
            command = [*SOJOURN, "run", str(file), "--backend", "datapath", "--out", str(out), "--figures", "none"]
            before = leftovers(folder)
            limited = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh", *command]
            done = subprocess.run(limited, env=environment, capture_output=True, timeout=120, check=False)
            until = time.monotonic() + SETTLE_S
            while (left := [one for one in leftovers(folder) if one not in before]) and time.monotonic() < until:
                time.sleep(0.02)
            if left:
                return f"left: {left}"
            if done.returncode in (0, 1) and (out / "summary.json").exists():
                return "runs to the end"
            again = subprocess.run([*command, "--resume"], env=environment, capture_output=True, check=False)
            left = [path.name for path in folder.glob("sojourn-*")]
            finished = (out / "summary.json").exists() and again.returncode in (0, 1)
            return "killed; resumed to the end" if finished and not left else f"left: {left} {again.stderr.decode()}"
    finally:
        group.rmdir()


def processes(folder: Path) -> list[tuple[int, str]]:
    """Processes that were started from below a folder, with their command lines."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
            if str(folder) in words or f"TMPDIR={folder}\0" in (process / "environ").read_text(errors="replace"):
                found.append((int(process.name), words))
    return found


def leftovers(folder: Path) -> list[str]:
    """Processes of a run, and namespaces, interfaces and mounts of this machine."""
    found = [words for _, words in processes(folder)]
    for known in (Path("/sys/class/net"), Path("/run/netns")):
        found += [str(path) for path in (known.iterdir() if known.is_dir() else [])]
    listed = subprocess.run(["lsns", "-n", "-t", "net", "-o", "NS"], capture_output=True, text=True, check=False)
    found += [f"namespace {one}" for one in listed.stdout.split()]
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    return found + [line for line in mounts if "sojourn" in line]


def interface_removed() -> str:
    """A program that removes its own device."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "file.toml").write_text(FILE, encoding="utf-8")
        before = leftovers(folder)
        command = [*SOJOURN, "shell", str(folder / "file.toml"), "--", "sh", "-c", "ip link del sojourn0; sleep 1000"]
        environment = {**os.environ, "TMPDIR": temporary}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        return told(done, [one for one in leftovers(folder) if one not in before])


def disk_full() -> str:
    """A folder for temporary files that has room for the agent and little more."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "file.toml").write_text(FILE, encoding="utf-8")
        (folder / "small").mkdir()
        before = leftovers(folder)
        command = [*SOJOURN, "run", str(folder / "file.toml"), "--backend", "datapath"]
        agent = Path(sys.prefix).glob("lib/python*/site-packages/sojourn/linux/sojourn-agent")
        size = next(agent).stat().st_size // 1024 + 24
        script = f"mount -t tmpfs -o size={size}k none {folder}/small && TMPDIR={folder}/small exec {' '.join(command)}"
        apart = ["unshare", "-m", "sh", "-c", script]
        done = subprocess.run(apart, capture_output=True, text=True, timeout=120, check=False)
        return told(done, [one for one in leftovers(folder) if one not in before])


def told(done: subprocess.CompletedProcess[str], left: list[str]) -> str:
    """What a run that failed has said, and what is left of it."""
    line = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""
    return f"status {done.returncode}, `{line}`" + (f"; left: {left}" if left else "; nothing left")


if __name__ == "__main__":
    raise SystemExit(main())
