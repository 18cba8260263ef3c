"""Cells of Wi-Fi: the simulator against ns-3; writes docs/results/wifi-ns3.md.

``python validation/wifi_ns3.py`` runs every cell with both: 802.11g and 802.11n; 1, 2, 4 and 8 stations; UDP down, up
and both ways. Goodput is compared in saturation, delay at 60 % of that load. ns-3's side is ``benches/ns3_wifi.cc``,
built against the distribution's ns-3; without it nothing is compared, and the exit status is 0. Some cells of 802.11n
are also compared at less load. ``--loads`` prints only that table.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import comparison
import pages
from comparison import Comparison, Metric, over_seeds

import sojourn as sj
from sojourn.frame.swept import as_file
from sojourn.studies.tolerances import Tolerance

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benches"))
import ns3  # noqa: E402 (of the folder with the program)

PAGE = pages.RESULTS / "wifi-ns3.md"
SEEDS = (1, 2, 3)
DURATION_S, WARMUP_S = 4, 1
PAYLOAD = 1472
OFFERED_MBPS = {"g": 45.0, "n": 80.0}
"""Of a direction, in saturation: half as much again as the air carries."""
RATE_MBPS = {"g": 54, "n": 65}
LIGHT = 0.6
"""Of the goodput in saturation, for delay."""
TOLERANCE = 0.1
GOODPUT = Metric("goodput_mbps", "goodput in saturation", "Mbit/s", Tolerance(TOLERANCE, 0.0))
DELAY = Metric("delay_mean_ms", "mean delay at 60 % load", "ms", Tolerance(TOLERANCE, 0.0))
LOADS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
"""Of the goodput in saturation, for the delay by load."""

Figures = Mapping[str, Mapping[str, float]]
"""By direction: ``goodput_mbps`` and ``delay_mean_ms``."""


Compared = tuple["Cell", str, Comparison]
"""A figure of a cell and a direction."""


@dataclass(frozen=True)
class Cell:
    """An access point and its stations, with a flow each way that is asked for."""

    standard: str
    stations: int
    direction: str

    @property
    def directions(self) -> tuple[str, ...]:
        """The ways with traffic."""
        return ("down", "up") if self.direction == "both" else (self.direction,)

    @property
    def saturating_mbps(self) -> float:
        """Of each flow."""
        return OFFERED_MBPS[self.standard] / self.stations

    @property
    def title(self) -> str:
        """``802.11g, 2 stations, both``."""
        return f"802.11{self.standard} | {self.stations} | {self.direction}"


CELLS = [
    Cell(standard, stations, direction)
    for standard in ("g", "n")
    for stations in (1, 2, 4, 8)
    for direction in ("down", "up", "both")
]


BY_LOAD = [Cell("n", 1, "down"), Cell("n", 4, "down"), Cell("n", 4, "up"), Cell("n", 8, "up")]


def main() -> int:
    """Runs and writes."""
    if not ns3.is_installed():
        return 0
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(os.cpu_count()) as pool:
        program = ns3.build("ns3_wifi", Path(directory))
        loads = list(pool.map(lambda cell: by_load(cell, program), BY_LOAD))
        if "--loads" in sys.argv[1:]:
            print("\n".join(map(pages.row, loads)))
            return 0
        lines = list(pool.map(lambda cell: compare(cell, program), CELLS))
    judged = [one for found in lines for one in found]
    PAGE.write_text(page(judged, loads), encoding="utf-8")
    return 0


def compare(cell: Cell, program: Path) -> list[Compared]:
    """Goodput in saturation and delay below it."""
    full = [[side(cell, cell.saturating_mbps, seed) for seed in SEEDS] for side in (of_ns3(program), of_ours)]
    carried = statistics.median(sum(one[way]["goodput_mbps"] for way in cell.directions) for one in full[1])
    light = LIGHT * carried / cell.stations / len(cell.directions)
    part = [[side(cell, light, seed) for seed in SEEDS] for side in (of_ns3(program), of_ours)]
    found = [
        (cell, way, one)
        for metric, sides in ((GOODPUT, full), (DELAY, part))
        for way in cell.directions
        for one in comparison.compare(*([run[way] for run in runs] for runs in sides), [metric])
    ]
    for _, way, one in found:
        print(cell.title, way, one.metric.title, one.values, one.reference, mark(one), flush=True)
    return found


def by_load(cell: Cell, program: Path) -> list[str]:
    """A row: how much longer packets take here than in ns-3 at each load, with ns-3's mean delay."""
    carried = of_ours(cell, cell.saturating_mbps, SEEDS[0])[cell.direction]["goodput_mbps"]
    cells = []
    for load in LOADS:
        mbps = load * carried / cell.stations
        ours, theirs = (
            1e3 * statistics.median(side(cell, mbps, seed)[cell.direction]["delay_mean_ms"] for seed in SEEDS)
            for side in (of_ours, of_ns3(program))
        )
        cells.append(f"{ours - theirs:+.0f} of {theirs:.0f}")
    return [f"{cell.stations} {cell.direction}", *cells]


def of_ours(cell: Cell, mbps: float, seed: int) -> Figures:
    """Of the simulator: flows of so many Mbit/s."""
    experiment = {
        "experiment": {"duration": f"{DURATION_S} s", "warmup": f"{WARMUP_S} s", "seed": seed},
        "queue": [{"aqm": "pfifo", "limit": "136 packets"}],
        "link": [link(cell)],
        "traffic": list(traffic(cell, mbps)),
    }
    (run,) = sj.run_text(as_file(experiment)).runs
    return {way: figures(run.summary["flows"], way) for way in cell.directions}


def link(cell: Cell) -> dict[str, object]:
    """The cell: all stations at one rate. The device ring and the queue above hold as much as ns-3's MAC."""
    names = [f"s{number}" for number in range(cell.stations)]
    return {
        "name": "wifi", "kind": "wifi", "standard": f"802.11{cell.standard}", "from": "ap", "to": names,
        "queueing": "qdisc", "device_queue": "64 packets",
        "station": {name: {"rate": f"{RATE_MBPS[cell.standard]} Mbit/s"} for name in names},
    }  # fmt: skip


def traffic(cell: Cell, mbps: float) -> Iterator[dict[str, object]]:
    """A flow per station each way, which begins at a random phase.

    Rates differ by up to 2 % each way, so that phases drift and a run sees all of them: the delay of flows with exactly
    the same rate depends on how they happen to begin.
    """
    flows = [(number, way) for number in range(cell.stations) for way in cell.directions]
    for place, (number, way) in enumerate(flows):
        rate = mbps * (1 + 0.04 * ((place + 0.5) / len(flows) - 0.5))
        yield {
            "name": f"{way}{number}", "kind": "cbr", "jitter": "0 s", "from": "ap", "to": f"s{number}", "rtt": "1 ms",
            "packet": f"{PAYLOAD} B", "rate": f"{rate:.6f} Mbit/s", "direction": way,
            "start": f"0..{PAYLOAD * 8 / rate / 1e3:.6f} ms",
        }  # fmt: skip


def figures(flows: list[sj.schema.Flow], way: str) -> dict[str, float]:
    """Of the flows of a direction."""
    own = [flow for flow in flows if flow["direction"] == way]
    delays = [(flow["one_way_ms"]["n"], flow["one_way_ms"]["mean"] or 0.0) for flow in own]
    return {
        "goodput_mbps": sum(flow["goodput_bps"] for flow in own) / 1e6,
        "delay_mean_ms": sum(count * mean for count, mean in delays) / sum(count for count, _ in delays),
    }


def of_ns3(program: Path):  # type: ignore[no-untyped-def]
    """The same of ns-3."""

    def run(cell: Cell, mbps: float, seed: int) -> Figures:
        options = {"standard": cell.standard, "stations": cell.stations, "direction": cell.direction,
                   "rate": mbps, "dur": DURATION_S, "seed": seed}  # fmt: skip
        done = subprocess.run(
            [str(program), *(f"--{key}={value}" for key, value in options.items())], capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(f"{program.name}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
        return json.loads(done.stdout)

    return run


def page(found: list[Compared], loads: list[list[str]]) -> str:
    """The page; ``loads`` are the rows of the delay by load."""
    rows = [
        [
            cell.title,
            f"{one.metric.title}, {way}, {one.metric.unit}",
            *(over_seeds(values, "{:.3g}".format) for values in (one.reference, one.values)),
            mark(one),
        ]
        for cell, way, one in found
    ]
    all_ = [one.within for _, _, one in found]
    goodput, delay = ([one.within for *_, one in found if one.metric is metric] for metric in (GOODPUT, DELAY))
    told = (
        f"**{sum(all_)} of {len(all_)} figures within {TOLERANCE:.0%}: {sum(goodput)} of {len(goodput)} of goodput, "
        f"{sum(delay)} of {len(delay)} of\ndelay.**"
    )
    words = {
        r"Medians of (\d+) seeds": len(SEEDS),
        r"seeds of (\d+) s,": DURATION_S - WARMUP_S,
        r"brackets\. (.+), by \[our": ns3.version(),
    }
    parts = [("**", told), ("| standard", rows), ("| stations", loads)]
    return pages.replaced(PAGE.read_text(encoding="utf-8"), parts, words)


def mark(one: Comparison) -> str:
    """Our error in percent; bold beyond the tolerance."""
    text = f"{100 * (one.error(one.median) or 0.0):+.1f} %"
    return text if one.within else f"**{text}**"


if __name__ == "__main__":
    sys.exit(main())
