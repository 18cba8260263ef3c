"""Speed of the simulator beside ns-3: data packets per CPU second; writes docs/results/speed.md.

``make bench`` builds what is needed and runs this; ``python3 benches/speed.py [--rounds N] [--no-ns3] [SCENARIO …]``
measures what is built. ns-3 comes from the distribution (Debian: libns3-dev). Without it, only Sojourn is measured.
``--counts`` renews only the page's sections on instructions and memory, to which other load does not matter.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from pathlib import Path

import instructions
import ns3

HERE = Path(__file__).parent
ROOT = HERE.parent
OURS = instructions.PROGRAM
PROFILED = next(ROOT.glob("target/profile/use/*/release/examples/run_file"), None)
"""The same, built with a profile; counted if it is there."""
RESULT = ROOT / "docs" / "results" / "speed.md"


@dataclass(frozen=True)
class Scenario:
    """An experiment file, and the same scenario as options of our ns-3 program."""

    name: str
    title: str
    seeds: int
    """Runs of Sojourn in one process; there are several, so that the resolution of the CPU time does not matter."""
    ns3: Mapping[str, object] | None
    """The options of our ns-3 program; None: only Sojourn runs it."""
    ns3_rounds: int = 3
    """The most rounds with ns-3, which needs a minute for some scenarios."""

    @property
    def file(self) -> Path:
        """The experiment."""
        return HERE / "scenarios" / f"{self.name}.toml"


SCENARIOS = (
    Scenario(
        "reno10-pie",
        "10 Reno flows, 10 Mbit/s, 100 ms, PIE, 300 s",
        10,
        {"n": 10, "tcp": "reno", "rate": "10Mbps", "rtt": 100, "qd": "pie", "q": 1000, "dur": 300},
    ),
    Scenario(
        "cubic10-codel",
        "10 CUBIC flows, 100 Mbit/s, 100 ms, CoDel, 60 s",
        5,
        {"n": 10, "tcp": "cubic", "rate": "100Mbps", "rtt": 100, "qd": "codel", "q": 1000, "dur": 60},
    ),
    Scenario(
        "cubic100-fq_codel",
        "100 CUBIC flows, 1 Gbit/s, 20 ms, FQ-CoDel, 10 s",
        3,
        {"n": 100, "tcp": "cubic", "rate": "1Gbps", "rtt": 20, "qd": "fq_codel", "q": 10240, "dur": 10},
        ns3_rounds=2,
    ),
    Scenario(
        "cubic1-bdp",
        "1 CUBIC flow, 400 Mbit/s, 100 ms, drop-tail of one BDP, 10 s",
        7,
        # ns-3's device queue holds one packet of the limit.
        {"n": 1, "tcp": "cubic", "rate": "400Mbps", "rtt": 100, "qd": "pfifo", "q": 3301, "dur": 10},
        ns3_rounds=2,
    ),
    Scenario("reno1-bdp", "1 Reno flow, 400 Mbit/s, 100 ms, drop-tail of one BDP, 10 s", 7, None),
    Scenario(
        "cubic10-bdp",
        "10 CUBIC flows, 10 Mbit/s, 100 ms, drop-tail of one BDP, 300 s",
        10,
        {"n": 10, "tcp": "cubic", "rate": "10Mbps", "rtt": 100, "qd": "pfifo", "q": 82, "dur": 300},
    ),
)
LARGE_WINDOWS, SMALL_WINDOW = ("cubic1-bdp", "reno1-bdp"), "cubic10-bdp"
COUNTED = ("reno10-pie", "cubic10-bdp")
"""Scenarios whose instructions stand beside other simulators'."""
IN_A_ROW = {1: "cubic10-1link", 5: "cubic10-5links", 20: "cubic10-20links"}
"""Scenarios by their links in a row. The first link is the bottleneck."""
MEMORY_S = (60, 600)
MANY, MANY_FLOWS = "cubic10000-pfifo", (1_000, 10_000, 100_000, 1_000_000)
"""A scenario, run for two seconds with so many flows; its queue holds eight packets of each."""
MOST_PER_GROUP = 100_000
"""Flows in one [[traffic]]."""
BYTES_PER_FLOW = 8192
"""What is free before so many flows are run."""


class BenchError(Exception):
    """Something that is needed is missing or failed; one line."""


@dataclass(frozen=True)
class Measured:
    """What a process simulated, and the CPU time that it took."""

    packets: int
    """Packets that left the bottleneck towards the receivers."""
    user_s: float
    goodput_mbps: float
    retransmits: float = 0
    """Retransmitted segments per run; only for Sojourn."""
    output: str = field(repr=False, default="")

    @property
    def rate(self) -> float:
        """Packets per CPU second."""
        return self.packets / self.user_s


def main() -> int:
    """Measures and writes; exit status 1 if something needed is missing or failed."""
    options = argparse.ArgumentParser(description="Measure the simulator's speed beside ns-3's.")
    options.add_argument("--rounds", type=int, default=3, help="interleaved rounds, 1 or more")
    options.add_argument("--no-ns3", action="store_true", help="leave ns-3 out")
    options.add_argument("--counts", action="store_true", help="instructions and memory only")
    options.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="default: all, and docs/results/speed.md")
    given = options.parse_args()
    known = {scenario.name: scenario for scenario in SCENARIOS}
    if unknown := [name for name in given.scenarios if name not in known]:
        options.error(f"SCENARIO: got {unknown[0]}; must be one of {', '.join(known)}")
    if given.rounds < 1:
        options.error(f"--rounds: got {given.rounds}; must be 1 or more")
    if given.counts and given.scenarios:
        options.error("--counts takes no SCENARIO")
    if given.counts and not RESULT.exists():
        options.error(f"--counts: {RESULT} is missing; run this without it first")
    chosen = [known[name] for name in given.scenarios] or list(SCENARIOS)
    try:
        if given.counts:
            before, _, _ = RESULT.read_text(encoding="utf-8").partition(COUNTS_BEGIN)
            RESULT.write_text(before + counts_sections(*counted_instructions(), memory()), encoding="utf-8")
            print(f"renewed: {RESULT}")
            return 0
        with tempfile.TemporaryDirectory() as directory:
            wanted = not given.no_ns3 and ns3.is_installed()
            program = ns3.build("ns3_dumbbell", Path(directory)) if wanted else None
            speeds = [compare(scenario, program, given.rounds) for scenario in chosen]
        if not given.scenarios:
            RESULT.parent.mkdir(parents=True, exist_ok=True)
            RESULT.write_text(page(speeds, *counted_instructions(), memory()), encoding="utf-8")
            print(f"written: {RESULT}")
    except (BenchError, instructions.CountError, ns3.BuildError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


@dataclass(frozen=True)
class Speed:
    """A scenario's measurements, one per round."""

    scenario: Scenario
    ours: tuple[Measured, ...]
    ns3: tuple[Measured, ...]

    @property
    def our_rate(self) -> float:
        """Median packets per CPU second."""
        return statistics.median(one.rate for one in self.ours)

    @property
    def ns3_rate(self) -> float | None:
        """The same for ns-3; None if it was left out."""
        return statistics.median(one.rate for one in self.ns3) if self.ns3 else None


def compare(scenario: Scenario, program: Path | None, rounds: int) -> Speed:
    """Measures Sojourn and ns-3 in turn, so that other load on the machine affects both alike."""
    ours, theirs = [], []
    for number in range(rounds):
        ours.append(run_ours(scenario))
        if program is not None and scenario.ns3 is not None and number < scenario.ns3_rounds:
            # Flows start within the first second, as in our scenarios.
            theirs.append(run_ns3(program, {**scenario.ns3, "jitter": 1}, seed=number + 1))
    speed = Speed(scenario, tuple(ours), tuple(theirs))
    beside = f", ns-3 {speed.ns3_rate:,.0f}, ratio {speed.our_rate / speed.ns3_rate:.0f}" if speed.ns3_rate else ""
    print(f"{scenario.name}: {speed.our_rate:,.0f} packets per CPU second{beside}", flush=True)
    return speed


def run_ours(scenario: Scenario, *overrides: str, wrapper: Sequence[str] = (), seeds: int | None = None) -> Measured:
    """Runs Sojourn on a scenario, all seeds in one process."""
    repeat = scenario.seeds if seeds is None else seeds
    done = timed([*wrapper, str(OURS), str(scenario.file), f"experiment.repeat={repeat}", *overrides])
    runs = [json.loads(line) for line in done.output.splitlines() if line.startswith("{")]
    packets = sum(run["bottleneck"]["down"]["delivered_packets"] for run in runs)
    goodput = statistics.mean(sum(flow["goodput_bps"] for flow in run["flows"]) for run in runs) / 1e6
    retransmits = statistics.mean(sum(flow["retransmits"] for flow in run["flows"]) for run in runs)
    return Measured(packets, done.user_s, goodput, retransmits, done.output)


def run_ns3(program: Path, settings: Mapping[str, object], *, seed: int) -> Measured:
    """Runs the ns-3 program with these options."""
    options = [f"--{key}={value}" for key, value in {**settings, "seed": seed}.items()]
    done = timed([str(program), *options])
    figures = json.loads(done.output)
    return Measured(figures["packets"], done.user_s, figures["goodput_mbps"])


def timed(command: Sequence[str]) -> Measured:
    """Runs a command and measures its CPU time and output. The caller fills in the packets."""
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        except FileNotFoundError:
            raise BenchError(f"{command[0]} is missing; make bench builds it") from None
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if process.returncode:
        last = (text.strip().splitlines() or ["no message"])[-1]
        raise BenchError(f"{' '.join(command)}: exit status {process.returncode}: {last}")
    return Measured(0, usage.ru_utime, 0.0, output=text)


def counted_instructions() -> tuple[dict[str, float], dict[str, float]]:
    """Instructions per data packet, by scenario: of the program, and of that with a profile. Empty without valgrind."""
    if not shutil.which("valgrind"):
        print("valgrind is missing: instructions are not counted; on Debian: apt-get install valgrind", file=sys.stderr)
        return {}, {}
    scenarios = [*instructions.COUNTED_S, instructions.WHOLE]
    found = instructions.count(scenarios)
    for name, count in found.items():
        print(f"{name}: {count:,.0f} instructions", flush=True)
    return found, instructions.count(scenarios, PROFILED) if PROFILED else {}


@dataclass(frozen=True)
class Peaks:
    """Peak memory in KiB, by simulated seconds and by flows; there with CPU time."""

    by_s: dict[int, int]
    by_flows: dict[int, tuple[int, float]]


def memory() -> Peaks:
    """What runs take at most; empty without /proc."""
    small = next(one for one in SCENARIOS if one.name == SMALL_WINDOW)
    by_s = {seconds: peak_of(small.file, f"experiment.duration={seconds} s")[0] for seconds in MEMORY_S}
    free = int((re.search(r"MemAvailable:\s+(\d+) kB", read("/proc/meminfo")) or [0, 0])[1]) * 1024
    head, group = (HERE / "scenarios" / f"{MANY}.toml").read_text(encoding="utf-8").split("[[traffic]]")
    by_flows = {}
    with tempfile.TemporaryDirectory() as directory:
        for flows in (flows for flows in MANY_FLOWS if flows * BYTES_PER_FLOW < free):
            groups = math.ceil(flows / MOST_PER_GROUP)
            file = Path(directory) / f"{flows}.toml"
            file.write_text(head + groups * f"[[traffic]]{group}", encoding="utf-8")
            each = [f"traffic.{number}.flows={flows // groups}" for number in range(groups)]
            run = (*each, f"queue.0.limit={8 * flows} packets", "experiment.duration=2 s")
            by_flows[flows] = peak_of(file, *run)
            print(f"{flows:,} flows: {by_flows[flows][0] / 1024:,.0f} MiB", flush=True)
    return Peaks({seconds: kib for seconds, kib in by_s.items() if kib}, by_flows if free else {})


def peak_of(file: Path, *overrides: str) -> tuple[int, float]:
    """Peak resident memory of a run in KiB, 0 without /proc, and its CPU time in seconds."""
    command = [str(OURS), str(file), "experiment.repeat=1", *overrides]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak = 0
    # The usage that wait4 tells would include the memory of this interpreter, which the process has before its exec.
    while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
        if found := re.search(r"VmHWM:\s+(\d+) kB", read(f"/proc/{process.pid}/status")):
            peak = int(found[1])
        time.sleep(0.001)
    process.returncode = os.waitstatus_to_exitcode(ended[1])
    if process.returncode:
        raise BenchError(f"{' '.join(command)}: exit status {process.returncode}")
    return peak, ended[2].ru_utime


def read(path: str) -> str:
    """A file of /proc; empty without it, and once its process has ended."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def page(speeds: Sequence[Speed], counted: Mapping[str, float], profiled: Mapping[str, float], peaks: Peaks) -> str:
    """docs/results/speed.md."""
    lines = [
        "# Speed",
        "",
        f"Written by `make bench` on {date.today().isoformat()}: {machine()}; {rust()}; {ns3.version()}.",
        "",
        "Packets that left the bottleneck towards the receivers per second of user CPU time of the whole process. "
        "One thread each; median of",
        f"{len(speeds[0].ours)} rounds, ours and ns-3's in turn (the slowest of ns-3's: 2 rounds). In brackets the "
        "least and the greatest: other",
        "programs ran on the machine.",
        "",
        "| scenario | Sojourn, packets per CPU s | ns-3, packets per CPU s | ratio | goodput, Mbit/s: Sojourn, ns-3 |",
        "| --- | --: | --: | --: | --- |",
    ]
    for speed in speeds:
        theirs, ratio, goodput = "–", "–", "–"
        if speed.ns3_rate:
            theirs, ratio = spread(speed.ns3, 1e3, "k"), f"{speed.our_rate / speed.ns3_rate:.0f}"
            goodput = f"{statistics.median(one.goodput_mbps for one in speed.ns3):.4g}"
        ours = f"{statistics.median(one.goodput_mbps for one in speed.ours):.4g}"
        lines.append(
            f"| {speed.scenario.title} | {spread(speed.ours, 1e6, 'M')} | {theirs} | {ratio} | {ours}, {goodput} |"
        )
    lines += [
        "",
        "ns-3's program is `benches/ns3_dumbbell.cc`: three nodes, so that it has as few events as it can, real "
        "headers, SACK, delayed ACKs.",
        "ns-3 3.37's CUBIC falls into loss storms; the scenario with Reno is the fairest ratio.",
        "",
        "## Cost of a large window",
        "",
        "What a data packet costs beside one of ten CUBIC flows at 10 Mbit/s, in CPU time (goal: at most 1.5 times):",
        "",
        "| scenario | cost | retransmitted segments per run |",
        "| --- | --: | --: |",
        *large_window_lines(speeds),
        "",
    ]
    return "\n".join(lines) + "\n" + counts_sections(counted, profiled, peaks)


COUNTS_BEGIN = "## Instructions\n"


def counts_sections(counted: Mapping[str, float], profiled: Mapping[str, float], peaks: Peaks) -> str:
    """The sections that do not depend on what else the machine does."""
    lines = [
        COUNTS_BEGIN,
        *instruction_lines(counted, profiled),
        "",
        "## Memory",
        "",
        f"Peak resident memory of 10 CUBIC flows at 10 Mbit/s: {memory_line(peaks)}.",
        "",
        *many_flows_lines(peaks),
    ]
    return "\n".join(lines)


def large_window_lines(speeds: Sequence[Speed]) -> list[str]:
    """A row per scenario with a large window."""
    by_name = {speed.scenario.name: speed for speed in speeds}
    small = by_name[SMALL_WINDOW].our_rate
    return [
        f"| {one.scenario.title} | {small / one.our_rate:.2f} | {one.ours[0].retransmits:.0f} |"
        for one in (by_name[name] for name in LARGE_WINDOWS)
    ]


def spread(measured: Sequence[Measured], factor: float, suffix: str) -> str:
    """The median rate, with the least and the greatest in brackets."""
    rates = [one.rate / factor for one in measured]
    return f"{statistics.median(rates):.3g} {suffix} ({min(rates):.3g}–{max(rates):.3g})"


def instruction_lines(counted: Mapping[str, float], profiled: Mapping[str, float]) -> list[str]:
    """The section on instructions. The other simulators' were counted in the same way in July 2026."""
    lines = [
        "Per data packet, everything included (its acknowledgement, timers, statistics), by callgrind: the",
        f"difference of two runs of different length. Sojourn's were counted on {date.today().isoformat()} ({rust()}),",
        "the others' once, in the same way.",
        "",
        "| simulator | TCP | queue | instructions per data packet |",
        "| --- | --- | --- | --: |",
    ]
    what = {"reno10-pie": ("Reno, SACK", "PIE"), "cubic10-bdp": ("CUBIC, SACK", "drop-tail")}
    lines += [f"| Sojourn | {' | '.join(what[name])} | {counted[name]:,.0f} |" for name in COUNTED if name in counted]
    return [
        *lines,
        "| htsim | NewReno without SACK | drop-tail | 2,600 |",
        "| ns-2.35 | Linux's CUBIC, SACK | drop-tail | 6,200 |",
        "| ns-3.37 | Reno, SACK | drop-tail | 160,000 |",
        "| ns-3.37 | Reno, SACK | PIE | 164,000 |",
        *scenario_lines(counted, profiled),
        *further_link_lines(counted),
    ]


def scenario_lines(counted: Mapping[str, float], profiled: Mapping[str, float]) -> list[str]:
    """Every scenario's count, without a profile and with one, if it was counted."""
    of_profile = "A build with a profile knows what runs often, as those of `make profiled` and of a release."
    columns = [counted, profiled] if profiled else [counted]
    rows = ([f"`{name}`", *(f"{column[name]:,.0f}" for column in columns)] for name in counted)
    head = ["scenario", "instructions per data packet", "with a profile"][: 1 + len(columns)]
    return [
        "",
        f"By scenario, the files of `benches/scenarios`; `{instructions.WHOLE}` is a whole run of one second.",
        *([of_profile] if profiled else []),
        "",
        f"| {' | '.join(head)} |",
        f"| --- |{' --: |' * (len(head) - 1)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def further_link_lines(counted: Mapping[str, float]) -> list[str]:
    """The cost of each further link in a row."""
    if not all(name in counted for name in IN_A_ROW.values()):
        return []
    costs = [(links, counted[name]) for links, name in sorted(IN_A_ROW.items())]
    (few, less), (many, more) = costs[:2]
    verdict = "met" if (more - less) / (many - few) <= 0.15 * less else "**missed**"
    lines = [
        "",
        f"What each further link in a row adds to a packet (goal up to {many} links: at most 15 %, {verdict}). The "
        "first link is the bottleneck.",
        "Each is a `[[link]]` with a delay of its own, unlike the link of the table above.",
        "",
        "| links in a row | instructions per data packet | each further link | share of a packet over one link |",
        "| --: | --: | --: | --: |",
        f"| {few} | {less:,.0f} | – | – |",
    ]
    for (few, before), (many, after) in pairwise(costs):
        each = (after - before) / (many - few)
        lines.append(f"| {many} | {after:,.0f} | {each:,.0f} | {each / less:.0%} |")
    return lines


def memory_line(peaks: Peaks) -> str:
    """The peaks by simulated seconds."""
    return ", ".join(f"{kib / 1024:.1f} MiB in {seconds} s" for seconds, kib in peaks.by_s.items()) or "not told here"


def many_flows_lines(peaks: Peaks) -> list[str]:
    """The table of runs with many flows."""
    if not peaks.by_flows:
        return []
    return [
        f"Many flows: the first two seconds of `{MANY}` with other numbers of flows, each of which starts within the",
        "first second, and a queue of eight packets per flow; one thread, one run. Memory is in huge pages if the",
        f"kernel has some ({huge_pages()} here): so many small pages take up to a third of the time to find.",
        "",
        "| flows | peak resident memory, MiB | KiB per flow | CPU time, s |",
        "| --: | --: | --: | --: |",
        *(
            f"| {flows:,} | {kib / 1024:,.0f} | {kib / flows:.1f} | {user_s:.2g} |"
            for flows, (kib, user_s) in peaks.by_flows.items()
        ),
        "",
    ]


def huge_pages() -> str:
    """When the kernel gives huge pages: always, madvise, never."""
    found = re.search(r"\[(\w+)\]", read("/sys/kernel/mm/transparent_hugepage/enabled"))
    return f"`{found[1]}`" if found else "unknown"


def machine() -> str:
    """Processor and system."""
    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = re.search(r"model name\s*: (.+)", info)
    return f"{os.cpu_count()} × {model[1] if model else platform.processor()}, {platform.system()} {platform.release()}"


def rust() -> str:
    """The compiler."""
    shown = (
        subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout if shutil.which("rustc") else ""
    )
    return " ".join(shown.split()[:2]) or "rustc unknown"


if __name__ == "__main__":
    sys.exit(main())
