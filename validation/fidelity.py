"""The simulator against Linux: runs ``linux/*.toml`` and writes docs/results/fidelity.{md,csv,-*.png}.

``python validation/fidelity.py [--seeds N] [SCENARIO …]``; with scenarios named, it only prints their verdicts.
Exit status: 0 if all was run, whatever the verdicts; 2 if the input is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

import pages
import panels
from comparison import (
    AGAIN,
    RECORDED,
    SCENARIOS_HELP,
    Departures,
    Figures,
    chosen,
    compare,
    linux_figures,
    our_figures,
    read_figures,
)
from fidelity_page import PAGE, ScenarioResult, page, table, tally, verdict_line

import sojourn as sj
from sojourn.runs.replays import ReplayResult

HERE = Path(__file__).parent
RECORDINGS = HERE.parent / "crates" / "aqm" / "tests" / "data"
CODEL_RECORDINGS = ("codel-udp12m", "codel-cubic4")
LEAST_SEEDS = 5


def main() -> int:
    """Runs, prints, writes."""
    options = argparse.ArgumentParser(description="Compare the simulator with Linux.")
    options.add_argument("--seeds", type=int, default=15, help=f"runs per scenario, {LEAST_SEEDS} or more")
    options.add_argument("scenarios", nargs="*", help=SCENARIOS_HELP)
    given = options.parse_args()
    if given.seeds < LEAST_SEEDS:
        options.error(f"--seeds: got {given.seeds}; must be {LEAST_SEEDS} or more")
    measured = json.loads((HERE / "linux" / "figures.json").read_text(encoding="utf-8"))
    names = chosen(options, given.scenarios, measured)
    ns3 = read_figures(HERE / "ns3-dev.csv")
    again = json.loads(AGAIN.read_text(encoding="utf-8")) if AGAIN.exists() else {}
    outcomes, drawn = [], []
    for name in names:
        there = measured[name]
        outcome = ScenarioResult(
            name, there["tc"], ns3=ns3.get(name), again=again.get(name, ()), further=there.get("further", False)
        )
        try:
            recordings, figures = run(name, tuple(there["window_s"]), given.seeds)
        except sj.ExperimentError as error:
            outcomes.append(replace(outcome, not_run=str(error).removeprefix(f"{HERE}/")))
        else:
            comparisons = compare([linux_figures(there)], figures)
            outcomes.append(replace(outcome, comparisons=comparisons))
            if not outcome.further:
                drawn.append(panels.Recorded(name, there, recordings))
        print(verdict_line(outcomes[-1]), flush=True)
    print(tally(outcomes))

    if not given.scenarios:
        panels.cdf(drawn, pages.RESULTS / "fidelity-cdf.png")
        panels.start(drawn, pages.RESULTS / "fidelity-start.png")
        (pages.RESULTS / "fidelity.csv").write_text(table(outcomes), encoding="utf-8")
        text = page(outcomes, replays(), seeds=given.seeds, version=sj.__version__)
        PAGE.write_text(text, encoding="utf-8")
        print(f"written: {PAGE}")
    return 0


def run(name: str, window_s: tuple[float, float], seeds: int) -> tuple[tuple[Departures, ...], list[Figures]]:
    """Runs a scenario under each seed. Raises ExperimentError if this version cannot run it."""
    runs = sj.run(HERE / "linux" / f"{name}.toml", set={**RECORDED, "experiment.repeat": seeds}).runs
    return tuple(map(Departures.of, runs)), [our_figures(one, window_s) for one in runs]


def replays() -> dict[str, ReplayResult]:
    """Recorded queues of Linux's CoDel through ours."""
    of_linux = {"variant": "linux"}
    return {name: sj.replay(RECORDINGS / f"{name}.txt.gz", aqm="codel", set=of_linux) for name in CODEL_RECORDINGS}


if __name__ == "__main__":
    sys.exit(main())
