"""The kernel's own Wi-Fi queues against ours, decision by decision; writes docs/results/wifi-kernel.md.

``python validation/wifi_kernel.py [FOLDER]`` runs every scenario in a kernel that ``wifi_radio/build.py`` made
(FOLDER: another place of it), keeps what the kernel's queues decided as traces in ``crates/wifi/tests/data``, and
replays them through ``crates/wifi``. A test of that crate replays the same traces without a kernel. Then the kernel's
own simulated radio has the same load, and the simulator's cell.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import statistics
import struct
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pages
from wifi_log import ARRIVAL, DONE, FRAME, MS, RECORD, SUBFRAME, Record, S, of_log

import sojourn as sj
from sojourn import _core
from sojourn.linux import kernel as kernels
from sojourn.linux import machine

ROOT = Path(__file__).parents[1]
PAGE = pages.RESULTS / "wifi-kernel.md"
TRACES = ROOT / "crates" / "wifi" / "tests" / "data"
NOBODY = 255
TID_OF_CATEGORY = (6, 4, 0, 1)
"""A user priority of each of the kernel's access categories, voice first (IEEE 802.11-2020, table 10-1)."""
DSCP = {"background": (8, 17), "best effort": (0, 18), "video": (34, 40), "voice": (46, 48)}
"""A code point of each user priority: two of each category (RFC 8325 has none for user priority 2)."""
LEGACY = {
    2: "1",
    4: "2",
    11: "5.5",
    22: "11",
    12: "6",
    18: "9",
    24: "12",
    36: "18",
    48: "24",
    72: "36",
    96: "48",
    108: "54",
}
"""Legacy rates in units of 500 kbit/s, and in Mbit/s."""


@dataclass(frozen=True)
class Amsdu:
    """What limits A-MSDUs in the kernel; 0, or nothing: as mac80211 has it."""

    lengths: Sequence[int] = ()
    """By station: the longest that it takes. mac80211 has 3839 bytes of one with 802.11n."""
    by_rate: Sequence[int] = ()
    """By station: the longest by rate control. mac80211 has 4095 bytes, the most of an aggregate's frames."""
    packets: Sequence[int] = ()
    """By station: the most packets."""
    by_tid: Sequence[int] = ()
    """By user priority: the longest."""
    fragments: int = 0
    """The most packets of any, as each is one piece of memory."""

    def options(self) -> list[str]:
        """Parameters of the radio."""
        lists = {
            "amsdu_len": self.lengths,
            "amsdu_rate_len": self.by_rate,
            "amsdu_subframes": self.packets,
            "amsdu_tid_len": self.by_tid,
        }
        given = [f"sojourn_wifi.{name}={','.join(map(str, values))}" for name, values in lists.items() if values]
        return ["sojourn_wifi.amsdu=1", f"sojourn_wifi.fragments={self.fragments}", *given]

    def lines(self, stations: Sequence[dict[str, int]]) -> Iterator[str]:
        """What the head of a trace says of it."""

        def of(values: Sequence[int], station: int) -> int:
            return values[station] if station < len(values) else 0

        def limits(station: int) -> tuple[int, int]:
            if "mcs" not in stations[station]:
                return 0, 1
            longest = min(of(self.lengths, station) or 3839, of(self.by_rate, station) or 4095)
            most = [count for count in (of(self.packets, station), self.fragments) if count]
            return longest, min(most, default=1 << 16)

        yield "amsdu " + " ".join("{},{}".format(*limits(station)) for station in range(len(stations)))
        if self.by_tid:
            yield "amsdu-tid " + " ".join(str(of(self.by_tid, tid)) for tid in range(8))


@dataclass(frozen=True)
class Scenario:
    """A cell and its load. ``options``: parameters of the radio."""

    name: str
    about: str
    stations: Sequence[dict[str, int]]
    flows: Sequence[dict[str, Any]]
    duration_ns: int
    options: Sequence[str] = ()
    limit: int | None = None
    memory_limit: int | None = None
    amsdu: Amsdu | None = None

    def job(self) -> str:
        """What the agent is told."""
        return json.dumps(
            {
                "seed": 1,
                "log": "sojourn_wifi",
                "limit": self.limit,
                "memory_limit": self.memory_limit,
                "stations": self.stations,
                "flows": self.flows,
                "duration_ns": self.duration_ns,
            }
        )


def load(station: int, mbps: float, stop_ns: int, size: int = 1500, **more: Any) -> dict[str, Any]:
    """Datagrams at a constant rate. Flows start some ten microseconds apart, by their station."""
    burst = more.get("burst", 1)
    every_ns = round(size * 8 * burst / mbps * 1000)
    return {
        "station": station,
        "bytes": size,
        "every_ns": every_ns,
        "start_ns": 13_000 * station,
        "stop_ns": stop_ns,
        **more,
    }


FAST, SLOW = {"mcs": 7}, {"mcs": 0}
THREE = [FAST, FAST, SLOW]
SIZES, SHARES = (1500, 1500, 1200, 200), (0.5, 0.6, 0.3, 0.05)
"""By access category: bytes of a packet, and the share of a station's load."""


def to_each(mbps: Sequence[float], stop_ns: int, **more: Any) -> list[dict[str, Any]]:
    """A flow to each station."""
    return [load(station, one, stop_ns, **more) for station, one in enumerate(mbps)]


def half_with_ecn(stop_ns: int) -> list[dict[str, Any]]:
    """Two flows to each of three stations, one of them ECN-capable."""
    return [
        load(station, mbps, stop_ns, ecn=ecn) for station, mbps in enumerate((11, 11, 1.3)) for ecn in (False, True)
    ]


def four_to_each(stop_ns: int, **more: Any) -> list[dict[str, Any]]:
    """Four flows to each of three stations."""
    return [load(station, 6, stop_ns, start_ns=7_000 * flow, **more) for station in range(3) for flow in range(4)]


def in_bursts(stop_ns: int, **sparse: Any) -> list[dict[str, Any]]:
    """Bursts to each of three stations, and small packets."""
    bulk = [load(station, mbps, stop_ns, burst=burst) for station, (mbps, burst) in enumerate(BURSTS)]
    return bulk + to_each([0.1] * 3, stop_ns, size=200, **sparse)


BURSTS = (9, 20), (4, 7), (1.1, 5)
"""By station: Mbit/s, and the packets of a burst."""


def colliding(stations: int, each: int, mbps: float, stop_ns: int, size: int, *dscp: int) -> list[dict[str, Any]]:
    """So many flows to each station that some have the same queue; in turn with these code points."""
    return [
        load(
            station, mbps, stop_ns, size=size, start_ns=991 * (each * station + flow),
            **({"dscp": dscp[flow % len(dscp)]} if dscp else {}),
        )
        for station in range(stations)
        for flow in range(each)
    ]  # fmt: skip


def in_all_priorities(
    mbps: Sequence[float], stop_ns: int, sizes: Sequence[int] = SIZES, **more: Any
) -> list[dict[str, Any]]:
    """A flow of each user priority to each station; without ``more`` half of them are ECN-capable."""
    return [
        load(station, share * one, stop_ns, size=size, dscp=dscp, **(more or {"ecn": second == (station == 1)}))
        for station, one in enumerate(mbps)
        for dscps, size, share in zip(DSCP.values(), sizes, SHARES, strict=True)
        for second, dscp in enumerate(dscps)
    ]


def scenarios() -> Iterator[Scenario]:
    """All of them."""
    overload = to_each([25] * 3, S)
    yield Scenario("three", "two fast stations and a slow one, 25 Mbit/s to each", THREE, overload, S)
    turns = ["sojourn_wifi.fairness=0", "sojourn_wifi.aql=0"]
    yield Scenario("three-turns", "the same without airtime fairness and without AQL", THREE, overload, S, turns)
    deep = ["sojourn_wifi.fairness=0", "sojourn_wifi.ready=5", "sojourn_wifi.frames=16"]
    about = "the same without airtime fairness, with AQL and five transmissions in the device"
    yield Scenario("three-deep", about, THREE, to_each([25] * 3, S // 2), S // 2, deep)
    yield Scenario("three-no-aql", "the same without AQL", THREE, overload, S, ["sojourn_wifi.aql=0"])
    single = ["sojourn_wifi.frames=1", "sojourn_wifi.ready=1"]
    about = "the same with single frames, and one in the device"
    yield Scenario("three-frames", about, THREE, to_each([12] * 3, S), S, single)
    about = "moderate overload; half of the flows are ECN-capable"
    yield Scenario("codel", about, THREE, half_with_ecn(3 * S), 3 * S)
    about = "28 fast stations, one of 6.5 Mbit/s and one of 1 Mbit/s: bulk data and small packets to each"
    thirty = to_each([1.6] * 30, 2 * S) + to_each([0.08] * 30, 2 * S, size=100)
    yield Scenario("thirty", about, [*[FAST] * 28, SLOW, {"legacy": 2}], thirty, 2 * S)
    about = "bursts at light load: queues are empty most of the time"
    yield Scenario("bursts", about, THREE, in_bursts(3 * S), 3 * S)
    about = "room for 300 packets in all queues, four flows per station of equal packets"
    yield Scenario("limit", about, THREE, four_to_each(S), S, limit=300, memory_limit=64 << 20)
    about = "240 flows to 24 stations: some flows of two stations have the same queue"
    yield Scenario("collisions", about, [FAST] * 24, colliding(24, 10, 0.3, S, 700), S)
    rates = [*({"mcs": index} for index in range(16)), *({"legacy": rate} for rate in LEGACY)]
    light = [
        load(station, size / 30000, S, size=size) for station in range(len(rates)) for size in (64, 300, 900, 1500)
    ]
    yield Scenario("rates", "light load at every rate, packets of four sizes", rates, light, S)
    about = "overload in all four access categories of three stations"
    first = [(dscp, *of) for (dscp, _), *of in zip(DSCP.values(), SIZES, SHARES, strict=True)]
    categories = [
        load(station, share * mbps, S, size=size, dscp=dscp, ecn=dscp == 0)
        for station, mbps in enumerate((25, 25, 3))
        for dscp, size, share in first
    ]
    yield Scenario("categories", about, THREE, categories, S)
    about = "light load at every code point, each to a station of its own"
    every = [load(station, 0.2, S, size=500, dscp=station, burst=5) for station in range(64)]
    yield Scenario("code-points", about, [FAST] * 64, every, S)
    yield from of_user_priorities()
    yield from of_amsdus()


def of_user_priorities() -> Iterator[Scenario]:
    """Those in which both user priorities of a category compete."""
    best_effort, af21 = DSCP["best effort"]
    both = [
        load(station, mbps, S, dscp=dscp, start_ns=13_000 * station + 5_000 * (dscp == af21))
        for station, dscps, mbps in ((0, (best_effort, af21), 15), (1, (best_effort,), 25), (2, (best_effort, af21), 3))
        for dscp in dscps
    ]
    about = (
        "overload of three stations in best effort: DF and AF21 to the first and the slow one, DF alone to the second"
    )
    yield Scenario("priorities", about, THREE, both, S)
    about = "overload in all eight user priorities of three stations; half of the flows are ECN-capable"
    yield Scenario("priorities-all", about, THREE, in_all_priorities((15, 15, 2), S), S)
    about = "the same load with single frames, without AQL"
    single = ["sojourn_wifi.frames=1", "sojourn_wifi.aql=0"]
    yield Scenario("priorities-frames", about, THREE, in_all_priorities((6, 6, 1), S, burst=4), S, single)
    about = "240 flows to two stations, half of them in the other user priority: some flows of both have the same queue"
    flows = colliding(2, 120, 0.25, S // 2, 700, best_effort, af21)
    yield Scenario("priorities-collisions", about, [FAST] * 2, flows, S // 2)


def of_amsdus() -> Iterator[Scenario]:
    """Those in which the kernel merges packets into A-MSDUs as they enter."""
    about = "A-MSDUs of up to 3839 bytes, the kernel's default of 802.11n: overload of three stations"
    yield Scenario("amsdu", about, THREE, to_each([25] * 3, S // 2), S // 2, amsdu=Amsdu())
    about = "stations that take up to 7935 bytes, five packets, and 11454 bytes; "
    about += "300 flows of all sizes to the first, some in one queue"
    sizes = [load(0, 0.15, S // 4, size=60 + 37 * flow % 1441, start_ns=1_013 * flow) for flow in range(300)]
    sizes += [load(station, 1, S // 4, size=size) for station in (1, 2) for size in (60, 61, 62, 63, 200)]
    longest = Amsdu(lengths=(7935, 0, 11454), by_rate=(65535, 4095, 65535), packets=(0, 5, 0))
    yield Scenario("amsdu-sizes", about, THREE, sizes, S // 4, amsdu=longest)
    about = "moderate overload; half of the flows are ECN-capable"
    yield Scenario("amsdu-codel", about, THREE, half_with_ecn(2 * S), 2 * S, amsdu=Amsdu())
    about = "room for 150 frames in all queues, four flows per station"
    yield Scenario("amsdu-limit", about, THREE, four_to_each(S // 2, size=700), S // 2, limit=150, amsdu=Amsdu())
    about, flows = "1 MiB of memory in all queues", to_each([40] * 3, S // 2)
    yield Scenario("amsdu-memory", about, THREE, flows, S // 2, memory_limit=1 << 20, amsdu=Amsdu())
    about = "all eight user priorities of three stations, each with another limit"
    flows = in_all_priorities((15, 15, 2), S // 2, (1500, 700, 1200, 200))
    limits = Amsdu(by_tid=(0, 2000, 3048, 1600, 1, 3047, 600, 0), fragments=4)
    yield Scenario("amsdu-priorities", about, THREE, flows, S // 2, amsdu=limits)
    about = "240 flows to 24 stations: some flows of two stations have the same queue"
    flows = colliding(24, 10, 0.3, S // 4, 300)
    yield Scenario("amsdu-collisions", about, [FAST] * 24, flows, S // 4, amsdu=Amsdu())
    about = "bursts at light load, without AQL and airtime fairness; a station without 802.11n gets none"
    mixed, turns = [FAST, FAST, {"legacy": 108}], ["sojourn_wifi.fairness=0", "sojourn_wifi.aql=0"]
    yield Scenario("amsdu-bursts", about, mixed, in_bursts(S, burst=3), S, turns, amsdu=Amsdu())


def amsdu_at_random(draw: random.Random, stations: int) -> Amsdu | None:
    """A-MSDU in a third of the scenarios, at times with limits of stations and user priorities."""
    if draw.random() >= 1 / 3:
        return None

    def some(values: Sequence[int], count: int) -> list[int]:
        return [draw.choice(values) for _ in range(count)] if draw.random() < 0.5 else []

    return Amsdu(
        some((0, 3839, 7935, 11454), stations),
        some((0, 1, 500, 1600, 3200, 65535), stations),
        some((0, 4, 8, 32), stations),
        some((0, 1, 1000, 4000), 8),
        draw.choice((0, 0, 3, 16)),
    )


def at_random(seed: int) -> Scenario:
    """A scenario drawn from a seed: 1 to 60 stations at any rates and load, at times with other limits."""
    draw = random.Random(seed)
    stations = [
        {"mcs": draw.randrange(16)} if draw.random() < 0.8 else {"legacy": draw.choice(list(LEGACY))}
        for _ in range(draw.choice((1, 2, 3, 5, 10, 30, 60)))
    ]
    total_mbps, prioritized = draw.choice((5, 20, 60, 120)), draw.random() < 0.5
    code_points = [dscp for both in DSCP.values() for dscp in both] if prioritized else [0]
    flows = []
    for station in range(len(stations)):
        for _ in range(draw.choice((1, 1, 2, 4))):
            size, start_ns = draw.choice((60, 200, 700, 1500, 1500)), draw.randrange(S)
            mbps = max(0.02, total_mbps / len(stations) * draw.uniform(0.1, 2) * size / 1500)
            stop_ns = min(3 * S, start_ns + draw.randrange(1, 3 * S))
            burst, ecn = draw.choice((1, 1, 1, 8, 40)), draw.random() < 0.4
            dscp = draw.choice(code_points)
            flows.append(load(station, mbps, stop_ns, size=size, burst=burst, start_ns=start_ns, ecn=ecn, dscp=dscp))
    options = {
        f"sojourn_wifi.frames={draw.choice((1, 4, 16, 64))}": 0.3,
        f"sojourn_wifi.ready={draw.choice((1, 3, 4))}": 0.3,
        "sojourn_wifi.aql=0": 0.15,
        "sojourn_wifi.fairness=0": 0.15,
    }
    return Scenario(
        f"random-{seed}",
        "at random",
        stations,
        flows,
        3 * S,
        [option for option, share in options.items() if draw.random() < share],
        draw.choice((None, None, 200, 1000)),
        draw.choice((None, None, 1 << 20)),
        amsdu_at_random(draw, len(stations)),
    )


@dataclass
class Result:
    """What a scenario gave."""

    scenario: Scenario
    release: str
    radio: dict[str, int]
    """Counters of the radio, and sums of those of its stations."""
    records: list[Record]

    def count(self, kind: int) -> int:
        """Records of a kind."""
        return sum(record.kind == kind for record in self.records)


def run(scenario: Scenario, kernel: kernels.Kernel) -> Result:
    """Runs a scenario in the kernel."""
    amsdu = scenario.amsdu.options() if scenario.amsdu else []
    figures, log = in_kernel(scenario.job(), ["mac80211_hwsim.radios=0", *scenario.options, *amsdu], kernel)
    if figures["lost"] or figures["refused"]:
        raise SystemExit(f"{scenario.name}: {figures['lost']} records lost, {figures['refused']} datagrams refused")
    counters = {name: int(value) for name, value in re.findall(r"fq_(\w+) (\d+)", figures["radio"])}
    for station in range(len(scenario.stations)):
        for name, value in of_station(figures, station).items():
            counters[name] = counters.get(name, 0) + value
    return Result(scenario, figures["kernel"], counters, [Record(*values) for values in RECORD.iter_unpack(log)])


def in_kernel(job: str, options: list[str], kernel: kernels.Kernel) -> tuple[dict[str, Any], bytes]:
    """The figures and the log of a run."""
    answer = machine.run(job, 0, kernel, [], _core.Monitor(), radio=options)
    (length,) = struct.unpack_from("<Q", answer)
    return json.loads(answer[8 : 8 + length]), answer[8 + length :]


def of_station(figures: Mapping[str, Any], station: int) -> dict[str, int]:
    """Counters of a station's queues: debugfs has a row per TID."""
    counters: Counter[str] = Counter()
    columns = {"new": 4, "drops": 5, "marks": 6, "station_overlimits": 7, "station_collisions": 8, "sent": 10}
    for line in figures["stations"][station][0].splitlines()[1:]:
        values = line.split()
        counters.update({name: int(values[at]) for name, at in columns.items()})
    return dict(counters)


def trace(result: Result) -> str:
    """The trace of a run, as crates/wifi/src/queues/mac80211/kernel.rs reads it."""
    scenario = result.scenario
    rates = [f"mcs{rate['mcs']}" if "mcs" in rate else LEGACY[rate["legacy"]] for rate in scenario.stations]
    lines = [
        f"kernel {result.release}",
        f"stations {' '.join(rates)}",
        f"limit {result.radio['limit']}",
        f"memory {result.radio['memory_limit']}",
        f"aql {int('sojourn_wifi.aql=0' not in scenario.options)}",
        f"fairness {int('sojourn_wifi.fairness=0' not in scenario.options)}",
    ]
    lines += scenario.amsdu.lines(scenario.stations) if scenario.amsdu else []
    hashes = {record.port: record.hash for record in result.records if record.kind in (ARRIVAL, FRAME)}
    lines += [f"flow {port} {hash_}" for port, hash_ in sorted(hashes.items())]
    lines.append("")
    before = 0
    for record in result.records:
        values: tuple[int, ...]
        match record.kind:
            case 1:
                letter, values = "A", (record.station, record.port, record.number, record.bytes, record.ds)
            case 2:
                chosen = (record.station, record.tid)
                letter, values = "P", chosen if record.station != NOBODY else (0, TID_OF_CATEGORY[record.value])
            case 3:
                letter, values = "F", (record.port, record.number, record.ds & 3, record.bytes, record.value)
            case 4:
                letter, values = "E", ()
            case 5:
                letter, values = "R", ()
            case 10:
                letter, values = "M", (record.port, record.number, record.ds & 3)
            case _:
                letter, values = "D", (record.station, record.bytes, record.value, record.tid)
        lines.append(" ".join([letter, str(record.ns - before), *map(str, values)]))
        before = record.ns
    return "\n".join(lines) + "\n"


def keep(result: Result, folder: Path) -> None:
    """Writes a trace; the same trace gives the same bytes."""
    path = folder / f"{result.scenario.name}.txt.gz"
    path.write_bytes(gzip.compress(trace(result).encode(), mtime=0))


def replayed(folder: Path | None = None) -> dict[str, dict[str, int]]:
    """How crates/wifi did at each trace: its own, or those of a folder."""
    test = ["every_decision_is"] if folder is None else ["every_decision_of", "--ignored"]
    command = ["tools/with-rust", "cargo", "test", "--quiet", "-p", "sojourn-wifi", "--lib", "--", "--nocapture"]
    environment = os.environ | ({} if folder is None else {"SOJOURN_TRACES": str(folder)})
    said = subprocess.run(command + test, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    found = re.findall(r"([\w-]+)(?:\.txt)?: Outcome \{ (.*)", said.stdout)
    if not found:
        raise SystemExit(f"no replay: {said.stderr[-2000:]}")
    return {name: {key: int(value) for key, value in re.findall(r"(\w+): (\d+)", rest)} for name, rest in found}


RANDOM = range(100)
"""Seeds of the scenarios at random."""


def of_random_scenarios(kernel: kernels.Kernel) -> str:
    """A sentence about scenarios whose traces are not kept."""
    with tempfile.TemporaryDirectory() as folder:
        for seed in RANDOM:
            keep(run(at_random(seed), kernel), Path(folder))
        outcomes = replayed(Path(folder)).values()
    decisions, wrong = (sum(outcome[key] for outcome in outcomes) for key in ("decisions", "wrong"))
    apart = sum(outcome["wrong"] > 0 for outcome in outcomes)
    said = f"{len(outcomes)} scenarios drawn at random have {decisions} more decisions, of which {wrong} differ"
    return f"{said}, in {apart} of the scenarios." if wrong else f"{said}."


def decisions_table(results: Sequence[Result], outcomes: Mapping[str, Mapping[str, int]]) -> Iterator[list[str]]:
    """A row per scenario."""
    for result in results:
        outcome, name = outcomes[result.scenario.name], result.scenario.name
        # The kernel counts frames, where ours has their packets, too.
        backlog, ours = result.radio["backlog"], outcome["waiting_frames"]
        if backlog != ours:
            raise SystemExit(f"{name}: the kernel holds {backlog} frames, ours {ours}")
        lost = result.count(ARRIVAL) - result.count(FRAME) - result.count(SUBFRAME) - outcome["waiting"]
        codel = outcome["dropped_by_codel"]
        if result.scenario.amsdu is None and codel != result.radio["drops"]:
            raise SystemExit(f"{name}: CoDel dropped {result.radio['drops']} packets, ours {codel}")
        if lost != outcome["dropped"]:
            raise SystemExit(f"{name}: the kernel dropped {lost} packets, ours {outcome['dropped']}")
        cells = (
            outcome["arrivals"], outcome["decisions"], outcome["wrong"], outcome["wrong_estimates"],
            outcome["joined"], result.radio["marks"], codel, lost - codel,
        )  # fmt: skip
        yield [name, *map(str, cells)]


def hwsim_table(kernel: kernels.Kernel) -> Iterator[list[str]]:
    """The same load on the kernel's own simulated radio. Without 802.11n: Block Ack would wait for an answer."""
    three = next(scenario for scenario in scenarios() if scenario.name == "three")
    job = json.loads(three.job()) | {"log": None, "stations": [{"legacy": 108}, {"legacy": 108}, {"legacy": 12}]}
    figures, _ = in_kernel(json.dumps(job), ["mac80211_hwsim.radios=1"], kernel)
    for station, rate in enumerate(("54 Mbit/s", "54 Mbit/s", "6 Mbit/s")):
        counters = of_station(figures, station)
        airtime = re.search(r"TX: (\d+)", figures["stations"][station][1])
        assert airtime is not None
        spoilt = counters["drops"] + counters["marks"] + counters["station_overlimits"]
        yield [rate, "25", *map(str, (counters["sent"], counters["new"], spoilt, airtime[1]))]


LONG_S, WARMUP_S = 6, 2
SEEDS = range(1, 4)


def cell(name: str, keys: Mapping[str, object]) -> Sequence[sj.Run]:
    """Runs of a file of ``wifi/``."""
    times = {"experiment.duration": f"{LONG_S} s", "experiment.warmup": f"{WARMUP_S} s"}
    return sj.run(ROOT / "validation" / "wifi" / f"{name}.toml", set={**times, **keys}).runs


def simulators_shares() -> list[tuple[float, ...]]:
    """What the stations get from the simulator's cell with the same load."""
    cells = [run.summary["links"]["wifi"]["stations"] for run in cell("three", {"experiment.repeat": len(SEEDS)})]
    shares = []
    for name in cells[0]:
        stations = [of[name] for of in cells]
        total = [sum(one["airtime_share"] for one in of.values()) for of in cells]
        mean = statistics.fmean
        airtime = mean(one["airtime_share"] / all_ for one, all_ in zip(stations, total, strict=True))
        goodput_mbps = mean(one["goodput_bps"] for one in stations) / 1e6
        delays = (mean(one["latency_ms"][at] for one in stations) for at in ("p50", "p95"))
        shares.append((airtime, goodput_mbps, *delays))
    return shares


def shares_table(kernel: kernels.Kernel) -> Iterator[list[str]]:
    """The kernel and the simulator's cell beside each other."""
    three = next(scenario for scenario in scenarios() if scenario.name == "three")
    flows = [load(station, 25, LONG_S * S) for station in range(3)]
    logs = (
        run(replace(three, flows=flows, duration_ns=LONG_S * S, options=options), kernel).records
        for options in (["sojourn_wifi.edca=1", f"sojourn_wifi.seed={seed}"] for seed in SEEDS)
    )
    found = [of_log(records, warmup_s=WARMUP_S, long_s=LONG_S) for records in logs]
    kernels_own = [
        [
            statistics.fmean(getattr(one, name) for one in station)
            for name in ("airtime", "goodput_mbps", "p50_ms", "p95_ms")
        ]
        for station in zip(*found, strict=True)
    ]
    for name, theirs, ours in zip(
        ("65 Mbit/s", "65 Mbit/s", "6.5 Mbit/s"), kernels_own, simulators_shares(), strict=True
    ):
        pairs = zip(theirs, ours, strict=True)
        cells = [
            f"{each:{form}}" for pair, form in zip(pairs, (".3f", ".2f", ".0f", ".0f"), strict=True) for each in pair
        ]
        yield [name, *cells]


FULL = (("mcs15", 15), ("mcs0", 0), 8, 4), (("mcs15", 15), ("mcs3", 3), 64, 8)
"""Two stations, and the most frames and milliseconds of a transmission: the fast one's always have all frames."""


def full_aggregates_table(kernel: kernels.Kernel) -> Iterator[list[str]]:
    """Airtime of two stations, with and without airtime fairness, where the fast one's aggregates have all frames."""
    for (fast, fast_mcs), (slow, slow_mcs), frames, longest_ms in FULL:
        options = [f"sojourn_wifi.frames={frames}", f"sojourn_wifi.longest={longest_ms * MS}"]
        scenario = Scenario(
            "full",
            "two stations in overload",
            [{"mcs": fast_mcs}, {"mcs": slow_mcs}],
            [load(0, 150, LONG_S * S), load(1, 40, LONG_S * S)],
            LONG_S * S,
        )
        cells = []
        for more in ([], ["sojourn_wifi.fairness=0"]):
            result = run(replace(scenario, options=[*options, *more]), kernel)
            airtime, aggregates = transmissions(result)
            cells.append(f"{airtime[1] / airtime.total():.3f} : {airtime[2] / airtime.total():.3f}")
        mean = [statistics.fmean(aggregates[station]) for station in (1, 2)]
        cell = f"kernel, {fast} and {slow}, at most {frames} frames or {longest_ms} ms"
        yield [cell, f"{mean[0]:.1f}, {mean[1]:.1f}", *cells]
    yield simulators_full_aggregates()


def transmissions(result: Result) -> tuple[Counter[int], dict[int, list[int]]]:
    """The airtime in µs of each station after the warm-up, and the frames of its transmissions."""
    begin = result.records[0].ns + WARMUP_S * S
    airtime: Counter[int] = Counter()
    frames: dict[int, list[int]] = defaultdict(list)
    for record in result.records:
        if record.kind == DONE and record.ns >= begin:
            airtime[record.station] += record.value
            frames[record.station].append(record.bytes)
    return airtime, frames


def simulators_full_aggregates() -> list[str]:
    """The simulator's cell of 802.11ac at 80 MHz, whose fast station fills a window of 64 frames in a millisecond."""
    runs = [run.summary["links"]["wifi"]["stations"] for run in cell("full", {})]
    cells = []
    for stations in runs:
        fast, slow = (stations[name]["airtime_share"] for name in ("fast", "slow"))
        cells.append(f"{fast / (fast + slow):.3f} : {slow / (fast + slow):.3f}")
    frames = ", ".join(f"{runs[0][name]['aggregate_frames']:.1f}" for name in ("fast", "slow"))
    return ["simulator, 802.11ac at 80 MHz, 780 and 32.5 Mbit/s", frames, *cells]


def write(kernel: kernels.Kernel, results: Sequence[Result], outcomes: Mapping[str, Mapping[str, int]]) -> None:
    """Writes what was measured into docs/results/wifi-kernel.md."""
    arrivals, decisions, wrong = (
        sum(outcome[key] for outcome in outcomes.values()) for key in ("arrivals", "decisions", "wrong")
    )
    words = {
        r"^Linux (\S+) decided": results[0].release,
        r"decided for (\d+) packets": arrivals,
        r"in (\d+) scenarios which": len(results),
        r"decides (\d+) times": decisions,
        r"\*\*(\d+) decisions differ": wrong,
        r"^(\d+ scenarios drawn at random .*)$": of_random_scenarios(kernel),
    }
    named = [f"- `{result.scenario.name}`: {result.scenario.about}" for result in results]
    parts = [
        ("- `three`", "\n".join(named)),
        ("| scenario | packets", decisions_table(results, outcomes)),
        ("| station | airtime", shares_table(kernel)),
        ("| | frames", full_aggregates_table(kernel)),
        ("| station | offered", hwsim_table(kernel)),
    ]
    pages.put(PAGE, parts, words)


def main() -> None:
    """Runs, keeps, compares and writes."""
    made = sorted(one for one in (kernels.built_directory() / "wifi").glob("7.*") if one.is_dir())
    given = sys.argv[1] if len(sys.argv) > 1 else next(map(str, reversed(made)), None)
    if given is None:
        raise SystemExit("no kernel: python validation/wifi_radio/build.py")
    kernel = kernels.locate(given)
    results = [run(scenario, kernel) for scenario in scenarios()]
    TRACES.mkdir(parents=True, exist_ok=True)
    for result in results:
        keep(result, TRACES)
    write(kernel, results, replayed())


if __name__ == "__main__":
    main()
