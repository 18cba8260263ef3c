"""Speed and size of every queue discipline: writes docs/results/aqm-speed.md.

Nanoseconds come from `cargo bench` and depend on the machine. Instructions come from callgrind, as the difference
between a long and a short run, and do not depend on the machine. Needs cargo and valgrind.
"""

from __future__ import annotations

import platform
import re
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "results" / "aqm-speed.md"
PACKETS = (10_000, 30_000)
FLOWS = (1, 1000)
GOALS_NS = {("pfifo", 1): 15, ("codel", 1): 25, ("pie", 1): 25, ("fq_codel", 1000): 60}

HEAD = """\
# Speed of the disciplines

Enqueue and dequeue of one packet together, at steady state, with the queue kept at 50 packets of one flow or at four
packets of each of 1000 flows; written by `make bench` (`benches/aqm.py`). Nanoseconds are the least of 50 runs of
20 000 packets: on a machine with other work they can be half as much again.

- calm: sojourn times below 4 ms, so that algorithms that go by delay only watch; red refuses part of it
- busy: sojourn times above 100 ms, so that every algorithm acts all the time; what it drops is replaced at once, and
  the cost of that counts
- instructions: by callgrind, calm, the same on every run
- state: bytes allocated for an empty discipline with its defaults once a packet has passed, and for each queue more
  where there are several; further packets come on top, each with a link of 8 bytes
"""


def output(*command: str) -> str:
    """The output of a command."""
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def nanoseconds() -> dict[str, list[float]]:
    """Per discipline: calm and busy, each with 1 flow and with 1000."""
    rows = output("cargo", "bench", "--quiet", "-p", "sojourn-aqm", "--bench", "disciplines").splitlines()[1:]
    return {row.split()[0]: [float(cell) for cell in row.split()[1:]] for row in rows}


def instructions(steady: str, name: str, flows: int) -> float:
    """Instructions per packet at steady state."""
    counts = []
    with tempfile.TemporaryDirectory() as directory:
        for packets in PACKETS:
            counted = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={directory}/out"]
            command = [*counted, steady, "run", name, "calm", str(flows), str(packets)]
            result = subprocess.run(command, check=True, capture_output=True, text=True)
            found = re.search(r"Collected : (\d+)", result.stderr)
            assert found, result.stderr
            counts.append(int(found.group(1)))
    return (counts[1] - counts[0]) / (PACKETS[1] - PACKETS[0])


def machine() -> str:
    """The processor's name and the compiler's."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return f"{cpu.group(1) if cpu else platform.machine()}, {output('rustc', '--version').strip()}"


def page() -> str:
    """The whole page."""
    output("cargo", "build", "--quiet", "--release", "-p", "sojourn-aqm", "--example", "steady")
    steady = str(ROOT / "target" / "release" / "examples" / "steady")
    ns = nanoseconds()
    state = {row.split()[0]: row.split()[1:] for row in output(steady, "state").splitlines()}
    lines = [HEAD, f"Measured on: {machine()}.", ""]
    lines += [
        "| discipline | calm, 1 flow, ns | calm, 1000 flows, ns | busy, 1 flow, ns | busy, 1000 flows, ns "
        "| instructions, 1 flow | instructions, 1000 flows | state, B | per queue, B |",
        "| --- " + "| ---: " * 8 + "|",
    ]
    for name, times in ns.items():
        counts = [instructions(steady, name, flows) for flows in FLOWS]
        cells = [*(f"{time:.1f}" for time in times), *(f"{count:.0f}" for count in counts), *state[name]]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", "| goal | at most, ns | measured, ns |", "| --- | ---: | ---: |"]
    for (name, flows), goal in GOALS_NS.items():
        lines.append(f"| {name}, calm, flows: {flows} | {goal} | {ns[name][FLOWS.index(flows)]:.1f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))
