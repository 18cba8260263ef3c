"""``sojourn advise`` for six lines, and its recommendations beside a grid of settings nearby: docs/results/advise.md.

The grid has every discipline at the recommended share of the rate and five points of percent above and below, each way
by itself, on other seeds. It is run twice: on the line as stated, and on a line of 3 % less than stated.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import pages

from sojourn.lines import formats, household
from sojourn.lines.advice import Advice, advise
from sojourn.lines.household import DISCIPLINES, Home, Setting

STEADY = {"dsl": (16e6, 1e6), "vdsl": (100e6, 40e6), "docsis": (300e6, 20e6), "fibre": (1e9, 1e9)}
DOING = ("calls", "game", "download", "upload")
SEEDS, FIRST_SEED = 3, 101
STEP, MOST = 5, 99
SLOWER = 0.97
VARIATION_S = 15
"""How long a satellite's path lasts (arXiv 2605.27717)."""


def lte(folder: Path) -> dict[str, Path]:
    """A trace in mahimahi's format for each direction, made up: the rate moves by up to 30 % each half second."""
    made = {}
    for way, mbit in (("file", 24.0), ("up", 8.0)):
        draw = random.Random(way)
        rate, owed, lines = mbit, 0.0, []
        for ms in range(1, 20_001):
            if ms % 500 == 0:
                rate = min(max(rate * draw.uniform(0.7, 1.4), mbit / 4), mbit * 2)
            owed += rate * 1000 / (1500 * 8)
            lines += [ms] * int(owed)
            owed %= 1
        made[way] = folder / f"lte-{way}"
        made[way].write_text("".join(f"{ms}\n" for ms in [*lines, 20_000]))
    return made


def starlink(folder: Path) -> dict[str, Path]:
    """A log of cake-autorate, made up in the range of what is published: rates and delays change every 15 s."""
    lines = ["DATA_HEADER; PROC_TIME_US; DL_OWD_BASELINE; UL_OWD_BASELINE; CAKE_DL_RATE_KBPS; CAKE_UL_RATE_KBPS"]
    draw = random.Random("starlink")
    for second in range(30):
        down, up, owd = ((160, 15, 14), (90, 11, 27))[second // VARIATION_S]
        own = draw.uniform(0.85, 1.1)
        rates = f"{round(down * own * 1000)}; {round(up * own * 1000)}"
        lines.append(f"DATA; {second * 1_000_000}; {owd * 1000}; {owd * 1000}; {rates}")
    file = folder / "starlink.log"
    file.write_text("".join(f"{line}\n" for line in lines))
    return {"file": file}


def homes(folder: Path) -> dict[str, Home]:
    """The six lines, with a modem's queue of 250 ms."""
    usual = {"doing": DOING, "buffer_ms": 250.0, "rtt_ms": 30.0, "folder": folder}
    found = {
        line: household.home(line, down_bps=down, up_bps=up, **usual)  # type: ignore[arg-type]
        for line, (down, up) in STEADY.items()
    }
    for line, made in (("lte", lte(folder)), ("starlink", starlink(folder))):
        recorded = formats.read(made["file"], up=made.get("up"), beside=folder)
        found[line] = household.home(line, down_bps=None, up_bps=None, recorded=recorded, **usual)  # type: ignore[arg-type]
    return found


def nearby(home: Home, chosen: Setting) -> list[Setting]:
    """Doing nothing, the recommended setting, and those around it."""
    own = [100 * kbps * 1000 / bps for kbps, bps in ((chosen.down_kbps, home.down_bps), (chosen.up_kbps, home.up_bps))]
    down, up = (sorted({min(MOST, round(share) + step) for step in (-STEP, 0, STEP)}) for share in own)
    grid = [household.shaped(home, name, each, other) for name in DISCIPLINES for each in down for other in up]
    return [Setting(household.AS_IT_IS), chosen, *(one for one in grid if one.label != chosen.label)]


def slower(home: Home) -> Home:
    """The same line with less than its rate."""
    return replace(home, down_bps=home.down_bps * SLOWER, up_bps=home.up_bps * SLOWER)


def row(name: str, found: Advice, spent_s: float, grids: list[Advice]) -> list[str]:
    """A row of the table."""
    cells = [name, found.home.title.partition(":")[0], found.chosen.label, f"{spent_s:.0f} s"]
    cells += [f"{found.cost(found.tried[0]):.0f} → {found.cost(found.chosen):.0f}"]
    for grid in grids:
        costs = {one.label: grid.cost(one) for one in grid.tried}
        others = [cost for label, cost in costs.items() if label != found.chosen.label]
        best = min(grid.tried, key=grid.cost)
        cells.append(
            f"{costs[found.chosen.label]:.0f}; best {costs[best.label]:.0f} ({best.label}), "
            f"median {median(others):.0f}, "
            f"worst {max(cost for label, cost in costs.items() if label != household.AS_IT_IS):.0f}, "
            f"nothing {costs[household.AS_IT_IS]:.0f}"
        )
    return [*cells, *["–"] * (2 - len(grids))]


def main() -> None:
    """Writes the page; names of lines as arguments run only these, and print."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "advice.toml"
        for name, home in homes(Path(folder)).items():
            if sys.argv[1:] and name not in sys.argv[1:]:
                continue
            began = time.process_time()
            found = advise(home, file=file)
            spent = time.process_time() - began
            grids = []
            if found.helps:
                around = nearby(home, found.chosen)
                lines = [home] if home.recorded else [home, slower(home)]
                grids += [advise(line, tried=around, file=file, seed=FIRST_SEED, repeat=SEEDS) for line in lines]
            rows.append(row(name, found, spent, grids))
            print(pages.row(rows[-1]), flush=True)
    if not sys.argv[1:]:
        pages.put(pages.RESULTS / "advise.md", [("| line |", rows)])


if __name__ == "__main__":
    main()
