"""Instructions per data packet of each scenario, against those in ``instructions.toml``.

``make instructions`` builds what is needed and runs this; ``python3 benches/instructions.py [SCENARIO …]`` counts what
is built. Exit status 1 if a packet costs over 1 % more than the file says. ``--write`` renews the file: a change that
makes packets dearer does so, and says why. Other load on the machine does not matter, but the compiler does.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
PROGRAM = HERE.parent / "target" / "release" / "examples" / "run_file"
RECORD = HERE / "instructions.toml"
COUNTED_S = {
    "reno10-pie": (30, 90),
    "cubic10-bdp": (30, 90),
    "cubic10-codel": (5, 12),
    "cubic100-fq_codel": (2, 3),
    "cubic1-bdp": (3, 6),
    "reno1-bdp": (3, 6),
    "cubic1-gbit": (3, 4.5),
    "cubic10-1link": (30, 90),
    "cubic10-5links": (30, 90),
    "cubic10-20links": (20, 40),
    "wifi4-cubic": (4, 14),
    "cubic1000-pie": (15, 20),
    "cubic10000-pfifo": (2, 2.6),
}
"""Simulated seconds of two runs of a scenario. The difference of their counts leaves the start-up out."""
WHOLE = "cubic1-second"
"""The scenario of which a whole run is counted."""
BOUND = 1.01


class CountError(Exception):
    """Something that is needed is missing or failed; one line."""


def main() -> int:
    """Counts and compares; exit status 1 if a packet has become dearer, or something needed is missing or failed."""
    options = argparse.ArgumentParser(description="Count instructions per data packet.")
    options.add_argument("--write", action="store_true", help="renew instructions.toml")
    options.add_argument("--program", type=Path, default=PROGRAM, help="another build of run_file")
    options.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="default: all")
    given = options.parse_args()
    known = (*COUNTED_S, WHOLE)
    if unknown := [name for name in given.scenarios if name not in known]:
        options.error(f"SCENARIO: got {unknown[0]}; must be one of {', '.join(known)}")
    if given.write and given.scenarios:
        options.error("--write takes no SCENARIO")
    try:
        if given.write:
            write(count(known, given.program))
            return 0
        record = tomllib.loads(RECORD.read_text(encoding="utf-8"))
        if record["rustc"] != rustc():
            raise CountError(f"{RECORD.name} was counted with rustc {record['rustc']}, and this is {rustc()}")
        return compare(count(given.scenarios or known, given.program), record["instructions"])
    except CountError as error:
        print(error, file=sys.stderr)
        return 1


def compare(found: Mapping[str, float], recorded: Mapping[str, float]) -> int:
    """Prints each count beside the recorded one; the exit status."""
    dearer = 0
    for name, count in found.items():
        before = recorded.get(name)
        if before is None:
            raise CountError(f"{RECORD.name}: {name} is missing; --write renews the file")
        is_dearer = count > BOUND * before
        dearer += is_dearer
        print(f"{name:18} {count:12,.0f} {count / before - 1:+8.1%}{'  dearer' if is_dearer else ''}")
    return 1 if dearer else 0


def write(found: Mapping[str, float]) -> None:
    """Renews the file."""
    lines = [
        "# Instructions per data packet by scenario, of a whole run of cubic1-second; make instructions compares.",
        f'rustc = "{rustc()}"',
        "",
        "[instructions]",
        *(f"{name} = {count:.0f}" for name, count in found.items()),
    ]
    RECORD.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"written: {RECORD}")


def count(scenarios: Sequence[str], program: Path = PROGRAM) -> dict[str, float]:
    """Instructions per data packet by scenario, everything included: its acknowledgement, timers, statistics."""
    if not shutil.which("valgrind"):
        raise CountError("valgrind is missing; on Debian: apt-get install valgrind")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(scenarios, pool.map(lambda name: count_one(name, program), scenarios), strict=True))


def count_one(name: str, program: Path) -> float:
    """The same of one scenario."""
    if name == WHOLE:
        return run(name, 1, program)[0]
    (few, few_packets), (many, many_packets) = (run(name, seconds, program) for seconds in COUNTED_S[name])
    return (many - few) / (many_packets - few_packets)


def run(name: str, seconds: float, program: Path) -> tuple[int, int]:
    """Instructions of a run, and data packets that left the bottleneck."""
    file = HERE / "scenarios" / f"{name}.toml"
    options = ["experiment.repeat=1", f"experiment.duration={seconds} s"]
    counter = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    try:
        done = subprocess.run([*counter, str(program), str(file), *options], capture_output=True, text=True)
    except OSError as error:
        raise CountError(f"{counter[0]}: {error.strerror}") from None
    counted = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or counted is None:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise CountError(f"{name}: exit status {done.returncode}: {last}")
    return int(counted[1]), json.loads(done.stdout)["bottleneck"]["down"]["delivered_packets"]


def rustc() -> str:
    """The compiler's version."""
    shown = (
        subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout if shutil.which("rustc") else ""
    )
    return (shown.split() or ["", "unknown"])[1]


if __name__ == "__main__":
    sys.exit(main())
