"""TCP over the kernel's own Wi-Fi queues, beside the simulator: the section "TCP" of docs/results/wifi-kernel.md.

``python validation/wifi_tcp.py [FOLDER]`` takes the newest kernel that ``wifi_radio/build.py`` made (FOLDER: another
place of one). Its stations answer: the radio hands them what was on the air, and puts on the air what they send. All
contend for the medium by EDCA, here as there.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pages
from comparison import over_seeds
from wifi_kernel import PAGE, in_kernel
from wifi_log import MS, RECORD, Figures, Record, S, Try, of_log, of_tries

import sojourn as sj
from sojourn.frame.series import OUTCOMES
from sojourn.linux import kernel as kernels

SEEDS = range(1, 10)
MANY = range(1, 101)
"""Seeds of the case whose figures vary most."""
DRAWS = 2000
"""Of a bootstrap."""
LONG_S, WARMUP_S = 14, 4
WIRE_MS = 10
"""One-way delay of the wire between the server and the access point."""
RATES = {7: "65 Mbit/s", 0: "6.5 Mbit/s"}
ALONE, THREE = (7,), (7, 7, 0)
CONTROLS = {"cubic": "CUBIC", "reno": "Reno"}
TCP_OF = {"7.2": "7.3"}
"""The simulator's version of TCP for a kernel, where it has none of its own: 7.2.13 has the TCP of 7.3.0-rc7."""
OPENS_AHEAD = 2
"""Round trips of the wire before its start at which a connection opens."""


class Case(NamedTuple):
    """A cell and its traffic: a connection per station."""

    control: str
    cell: tuple[int, ...]
    """The stations' rates, as indices of 802.11n."""
    up: bool = False
    """Whether the stations send."""


CASES = (
    Case("cubic", ALONE),
    Case("cubic", THREE),
    Case("reno", ALONE),
    Case("reno", THREE),
    Case("cubic", ALONE, up=True),
    Case("cubic", THREE, up=True),
)


def starts(case: Case, seed: int) -> list[int]:
    """When each station's connection starts, in ns: the same on both sides."""
    draw = random.Random(seed)
    return [S // 10 + draw.randrange(S // 10) for _ in case.cell]


def opens(case: Case, seed: int) -> int:
    """When the first packet is at a queue of Wi-Fi, in ns: the SYN of a station, or the server's after the wire."""
    ahead = 2 * OPENS_AHEAD * WIRE_MS - (0 if case.up else WIRE_MS)
    return min(starts(case, seed)) - ahead * MS


def job(case: Case, seed: int) -> str:
    """What the agent is told."""
    begin = enumerate(starts(case, seed))
    flow = {"congestion_control": case.control, "up": case.up}
    return json.dumps(
        {
            "seed": seed,
            "log": "sojourn_wifi",
            "stations": [{"mcs": rate} for rate in case.cell],
            "connections": [{"station": at, "start_ns": start, **flow} for at, start in begin],
            "wire_ns": WIRE_MS * MS,
            "duration_ns": LONG_S * S,
        }
    )


def kernels_figures(case: Case, seed: int, kernel: kernels.Kernel, gro: bool) -> list[Figures]:
    """The figures of each station in the kernel."""
    radio = {"edca": 1, "seed": seed, "peers": len(case.cell), "gro": int(gro)}
    options = ["mac80211_hwsim.radios=0", *(f"sojourn_wifi.{name}={value}" for name, value in radio.items())]
    figures, log = in_kernel(job(case, seed), options, kernel)
    if figures["lost"]:
        raise SystemExit(f"{figures['lost']} records lost")
    records = [Record(*values) for values in RECORD.iter_unpack(log)]
    return of_log(records, case.up, warmup_s=WARMUP_S, long_s=LONG_S, began_s=opens(case, seed) / S)


COLLIDED = OUTCOMES.index("collision")
"""In ``medium.parquet``."""


def tries_of_simulator(run: sj.Run) -> Iterator[Try]:
    """All in a recorded medium."""
    table = run.medium()
    assert table is not None
    columns = ("start_ns", "station", "sender", "end_ns", "frames", "outcome")
    for start, station, sender, end, frames, outcome in zip(
        *(table[name].to_pylist() for name in columns), strict=True
    ):
        yield Try(start, station, sender > 0, end - start, frames, outcome == COLLIDED)


def document(case: Case, seed: int, version: str) -> str:
    """The experiment of the simulator. What a station sends waits in a FIFO, as the radio's stations have it."""
    names = [f"s{at + 1}" for at in range(len(case.cell))]
    stations = ", ".join(f'{name} = {{ rate = "{RATES[rate]}" }}' for name, rate in zip(names, case.cell, strict=True))
    flows = "".join(
        f'[[traffic]]\nname = "{name}"\nkind = "bulk"\ntcp = "{case.control}"\nfrom = "server"\nto = "{name}"\n'
        f'direction = "{"up" if case.up else "down"}"\nrtt = "{2 * WIRE_MS} ms"\nstart = "{start} ns"\n'
        for name, start in zip(names, starts(case, seed), strict=True)
    )
    of_tcp = TCP_OF.get(version, version)
    return (
        f'[experiment]\nduration = "{LONG_S} s"\nwarmup = "{WARMUP_S} s"\nseed = {seed}\nkernel = "{of_tcp}"\n'
        f'[[link]]\nname = "wire"\nfrom = "server"\nto = "ap"\nrate = "10 Gbit/s"\ndelay = "{WIRE_MS} ms"\n'
        'queue = { aqm = "pfifo", limit = "100000 packets" }\n'
        f'[[link]]\nname = "wifi"\nkind = "wifi"\nstandard = "802.11n"\nkernel = "{version}"\nfrom = "ap"\n'
        'up = { queue = { aqm = "pfifo", limit = "1000 packets" } }\n'
        f"to = {json.dumps(names)}\nstation = {{ {stations} }}\n"
        f'[[queue]]\naqm = "fq_codel"\n{flows}[record]\npackets = true\nmedium = true\n'
    )


def simulators_figures(case: Case, seed: int, version: str) -> list[Figures]:
    """The figures of each station in the simulator's cell."""
    (run,) = sj.run_text(document(case, seed, version)).runs
    table = run.packets()
    assert table is not None
    columns = [table[name].to_pylist() for name in ("link", "direction", "flow", "time_ns")]
    data: Counter[int] = Counter()
    acknowledgements: Counter[int] = Counter()
    for link, direction, flow, time_ns in zip(*columns, strict=True):
        if link == 1 and time_ns >= WARMUP_S * S:
            if (direction == 1) != case.up:
                acknowledgements[flow] += 1
            else:
                data[flow] += 1
    stations: Mapping[str, Any] = run.summary["links"]["wifi"]["stations"]
    way = "up" if case.up else "down"
    on_air = of_tries(tries_of_simulator(run), case.up, WARMUP_S * S, LONG_S * S)
    return [
        Figures(
            one[way]["goodput_bps"] / 1e6,
            data[flow] / acknowledgements[flow],
            on_air[flow].frames,
            one[way]["latency_ms"]["p50"],
            one[way]["latency_ms"]["p95"],
            on_air[flow].airtime,
            on_air[flow].collided,
        )
        for flow, one in enumerate(stations[f"s{at + 1}"] for at in range(len(case.cell)))
    ]


DIGITS = (2, 2, 1, 1, 1, 3, 3)
"""Of each figure after the point."""


def table(sides: Mapping[str, Mapping[Case, Sequence[Sequence[Figures]]]]) -> Iterator[list[str]]:
    """A row per case, station and side; of each the figures of all seeds."""
    for case in CASES:
        for station, rate in enumerate(case.cell):
            where = f"{station + 1} of {len(case.cell)}" if len(case.cell) > 1 else "alone"
            for side, found in sides.items():
                cells = [f"{CONTROLS[case.control]} {'up' if case.up else 'down'}", f"{where}, {RATES[rate]}", side]
                columns = zip(*(run[station] for run in found[case]), strict=True)
                shown = (
                    over_seeds(values, f"{{:.{digits}f}}".format)
                    for values, digits in zip(columns, DIGITS, strict=True)
                )
                yield [*cells, *shown]


def difference(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Of the medians, in percent of theirs, with the bootstrap's interval of 95 %."""
    draw = random.Random(1)

    def percent(first: Sequence[float], second: Sequence[float]) -> float:
        return 100 * (statistics.median(first) / statistics.median(second) - 1)

    drawn = (percent(draw.choices(ours, k=len(ours)), draw.choices(theirs, k=len(theirs))) for _ in range(DRAWS))
    interval = statistics.quantiles(drawn, n=40)
    return f"{percent(ours, theirs):+.1f} ({interval[0]:+.1f} to {interval[-1]:+.1f})".replace("-", "−")


def differences(case: Case, kernel: kernels.Kernel, version: str) -> Iterator[list[str]]:
    """A row per station, over many seeds: the simulator's figures beside the kernel's."""
    theirs = [kernels_figures(case, seed, kernel, gro=False) for seed in MANY]
    ours = [simulators_figures(case, seed, version) for seed in MANY]
    for station, rate in enumerate(case.cell):
        values = [zip(*(run[station] for run in runs), strict=True) for runs in (ours, theirs)]
        cells = [difference(*pair) for pair in zip(*values, strict=True)]
        yield [f"{station + 1} of {len(case.cell)}, {RATES[rate]}", *cells]


def main() -> None:
    """Runs both sides and writes the section."""
    made = sorted((kernels.built_directory() / "wifi").glob("*/linux"))
    given = sys.argv[1] if len(sys.argv) > 1 else next((str(path.parent) for path in reversed(made)), None)
    if given is None:
        raise SystemExit("no kernel: python validation/wifi_radio/build.py 6.12")
    kernel = kernels.locate(given)
    version = ".".join(kernel.release.split(".")[:2])
    sides = {
        side: {case: [kernels_figures(case, seed, kernel, gro) for seed in SEEDS] for case in CASES}
        for side, gro in (("kernel, GRO", True), ("kernel, no GRO", False))
    }
    sides["simulator"] = {case: [simulators_figures(case, seed, version) for seed in SEEDS] for case in CASES}
    words = {
        r"with Linux (\S+) and, in the simulator": kernel.release,
        r"TCP of `kernel = \"(\S+)\"`": TCP_OF.get(version, version),
        r"queues of `kernel = \"(\S+)\"`": version,
        r"medians of (\d+) seeds, with": len(SEEDS),
        r"Over (\d+) seeds the simulator's": len(MANY),
    }
    parts = [("| TCP |", table(sides)), ("| station | goodput", differences(CASES[-1], kernel, version))]
    pages.put(PAGE, parts, words)


if __name__ == "__main__":
    main()
