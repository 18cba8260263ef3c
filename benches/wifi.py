"""Speed of a Wi-Fi cell beside ns-3, and cost of a frame by the number of stations; writes docs/results/wifi-speed.md.

``make bench`` builds what is needed and runs this; ``python3 benches/wifi.py [--rounds N] [--no-ns3]`` measures what is
built.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import ns3
from speed import OURS, ROOT, BenchError, Measured, machine, run_ns3, rust, spread, timed

RESULT = ROOT / "docs" / "results" / "wifi-speed.md"
STATIONS = 4
DURATION_S = 10
SEEDS = 10
"""Runs of Sojourn in one process; there are several, so that the resolution of the CPU time does not matter."""
CELLS = {
    "802.11g, 54 Mbit/s": ("g", 54, 4.0),
    "802.11n, 65 Mbit/s, aggregates": ("n", 65, 8.0),
}
"""Standard, rate and load per flow, both in Mbit/s. The load of two flows per station exceeds what the air carries."""
COUNTED = (1, 2, 4, 8, 16, 32, 50)
"""Numbers of stations for which instructions are counted. All stations are saturated."""
COUNTED_S = (20, 50)
"""Simulated seconds of two runs. The difference of their counts leaves out the start-up, when histograms grow."""


def main() -> int:
    """Measures and writes; exit status 1 if something needed is missing or failed."""
    options = argparse.ArgumentParser(description="Measure the speed of a Wi-Fi cell beside ns-3's.")
    options.add_argument("--rounds", type=int, default=3, help="interleaved rounds, 1 or more")
    options.add_argument("--no-ns3", action="store_true", help="leave ns-3 out")
    given = options.parse_args()
    if given.rounds < 1:
        options.error(f"--rounds: got {given.rounds}; must be 1 or more")
    try:
        with tempfile.TemporaryDirectory() as name:
            directory = Path(name)
            wanted = not given.no_ns3 and ns3.is_installed()
            program = ns3.build("ns3_wifi", directory) if wanted else None
            rows = [row(title, directory, program, given.rounds) for title in CELLS]
            counted = instructions(directory)
        RESULT.write_text(page(rows, counted), encoding="utf-8")
        print(f"written: {RESULT}")
    except (BenchError, ns3.BuildError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def row(title: str, directory: Path, program: Path | None, rounds: int) -> str:
    """A line of the table. Sojourn and ns-3 run in turn, so that other load on the machine affects both alike."""
    standard, rate, mbps = CELLS[title]
    file = directory / "cell.toml"
    file.write_text(cell(standard, rate, STATIONS, "both", mbps), encoding="utf-8")
    settings = {"standard": standard, "stations": STATIONS, "direction": "both", "rate": mbps, "dur": DURATION_S}
    ours, theirs = [], []
    for number in range(rounds):
        ours.append(run_ours(file, DURATION_S, SEEDS))
        if program is not None:
            run = run_ns3(program, settings, seed=number + 1)
            # Our ns-3 program counts packets from the second second on, but its CPU time is that of the whole run.
            theirs.append(replace(run, packets=run.packets * DURATION_S // (DURATION_S - 1)))
    goodputs = [f"{statistics.median(one.goodput_mbps for one in side):.3g}" for side in (ours, theirs) if side]
    if not theirs:
        return f"| {title} | {spread(ours, 1e6, 'M')} | – | – | {goodputs[0]} |"
    rates = [statistics.median(one.rate for one in side) for side in (ours, theirs)]
    print(
        f"{title}: {rates[0]:,.0f} packets per CPU second, ns-3 {rates[1]:,.0f}, ratio {rates[0] / rates[1]:.0f}",
        flush=True,
    )
    beside = f"{spread(theirs, 1e3, 'k')} | {rates[0] / rates[1]:.0f}"
    return f"| {title} | {spread(ours, 1e6, 'M')} | {beside} | {', '.join(goodputs)} |"


def cell(standard: str, rate: int, stations: int, direction: str, mbps: float) -> str:
    """An experiment file: a cell with a flow per station and direction."""
    names = [f"s{number}" for number in range(stations)]
    own = ", ".join(f'{name} = {{ rate = "{rate} Mbit/s" }}' for name in names)
    text = f"""
[experiment]
duration = "{DURATION_S} s"

[[link]]
name = "wifi"
kind = "wifi"
standard = "802.11{standard}"
from = "ap"
to = {json.dumps(names)}
queueing = "qdisc"
device_queue = "64 packets"
station = {{ {own} }}

[[queue]]
aqm = "pfifo"
limit = "136 packets"
"""
    for name in names:
        text += f"""
[[traffic]]
name = "{name}"
kind = "cbr"
from = "ap"
to = "{name}"
rtt = "1 ms"
packet = "1472 B"
rate = "{mbps} Mbit/s"
direction = "{direction}"
start = "0..1 ms"
"""
    return text


def run_ours(file: Path, seconds: int, seeds: int, wrapper: Sequence[str] = ()) -> Measured:
    """Runs Sojourn, all seeds in one process. Counts the packets that left the disciplines in both directions."""
    overrides = [f"experiment.repeat={seeds}", f"experiment.duration={seconds} s"]
    done = timed([*wrapper, str(OURS), str(file), *overrides])
    runs = [json.loads(line) for line in done.output.splitlines() if line.startswith("{")]
    packets = sum(run["links"]["wifi"][way]["delivered_packets"] for run in runs for way in ("down", "up"))
    goodput = statistics.mean(sum(flow["goodput_bps"] for flow in run["flows"]) for run in runs) / 1e6
    return Measured(packets, done.user_s, goodput, output=done.output)


def frames(run: Measured) -> int:
    """Frames on the air: the packets that left the disciplines, and retransmissions."""
    (result,) = [json.loads(line) for line in run.output.splitlines() if line.startswith("{")]
    return run.packets + sum(station["retries"] for station in result["links"]["wifi"]["stations"].values())


def instructions(directory: Path) -> dict[int, float]:
    """Instructions per frame, by the number of saturated stations; empty without valgrind."""
    if not shutil.which("valgrind"):
        print("valgrind is missing: instructions are not counted; on Debian: apt-get install valgrind", file=sys.stderr)
        return {}
    found = {}
    for stations in COUNTED:
        file = directory / "counted.toml"
        file.write_text(cell("g", 54, stations, "up", round(36 / stations, 3)), encoding="utf-8")
        counts = []
        for seconds in COUNTED_S:
            wrapper = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={directory}/out"]
            run = run_ours(file, seconds, 1, wrapper)
            collected = re.search(r"Collected : (\d+)", run.output)
            if collected is None:
                raise BenchError("valgrind did not say what it counted")
            counts.append((int(collected[1]), frames(run)))
        (few, few_frames), (many, many_frames) = counts
        found[stations] = (many - few) / (many_frames - few_frames)
        print(f"{stations} stations: {found[stations]:,.0f} instructions per frame", flush=True)
    return found


def page(rows: Sequence[str], counted: dict[int, float]) -> str:
    """docs/results/wifi-speed.md."""
    lines = [
        "# Speed of Wi-Fi",
        "",
        f"Written by `make bench` on {date.today().isoformat()}: {machine()}; {rust()}; {ns3.version()}.",
        "",
        f"A cell of {STATIONS} stations, UDP both ways, a little more than the air carries: packets that were sent per",
        "second of user CPU time of the whole process, one thread each; median of the rounds, least and greatest in",
        "brackets. The goal is 50 times ns-3, whose program is",
        "[ns3_wifi.cc](../../benches/ns3_wifi.cc); that both do the same is [compared](wifi-ns3.md).",
        "",
        "| cell | Sojourn, packets per CPU s | ns-3, packets per CPU s | ratio | goodput, Mbit/s: Sojourn, ns-3 |",
        "| --- | --: | --: | --: | --- |",
        *rows,
        "",
        "## Cost per frame by the number of stations",
        "",
        "Instructions per frame on the air, retransmissions counted, with everything included (arrivals, drops,",
        "contention, collisions, statistics), by callgrind: the difference of runs of "
        f"{COUNTED_S[0]} and {COUNTED_S[1]} simulated seconds.",
        "All stations of 802.11g always have something to send, 36 Mbit/s together. The goal is a cost that does not",
        "grow; it grows because each station's back-off is worked out again whenever the medium becomes idle.",
        "",
        "| stations | instructions per frame |",
        "| --: | --: |",
        *(f"| {stations} | {count:,.0f} |" for stations, count in counted.items()),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
