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
from fidelity_page import Replay, ScenarioResult, page, table, tally, verdict_line

import sojourn as sj

HERE = Path(__file__).parent
RESULTS = HERE.parent / "docs" / "results"
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
        outcome = ScenarioResult(
            name,
            measured[name]["tc"],
            ns3=ns3.get(name),
            again=again.get(name, ()),
            further=measured[name].get("further", False),
        )
        try:
            recordings, figures = run(name, tuple(measured[name]["window_s"]), given.seeds)
        except sj.ExperimentError as error:
            outcomes.append(replace(outcome, not_run=str(error).removeprefix(f"{HERE}/")))
        else:
            comparisons = compare([linux_figures(measured[name])], figures)
            outcomes.append(replace(outcome, comparisons=comparisons))
            if not outcome.further:
                drawn.append(panels.Recorded(name, measured[name], recordings))
        print(verdict_line(outcomes[-1]), flush=True)
    print(tally(outcomes))

    if not given.scenarios:
        RESULTS.mkdir(parents=True, exist_ok=True)
        panels.cdf(drawn, RESULTS / "fidelity-cdf.png")
        panels.start(drawn, RESULTS / "fidelity-start.png")
        (RESULTS / "fidelity.csv").write_text(table(outcomes), encoding="utf-8")
        text = page(outcomes, replays(), seeds=given.seeds, version=sj.__version__)
        (RESULTS / "fidelity.md").write_text(text, encoding="utf-8")
        print(f"written: {RESULTS / 'fidelity.md'}")
    return 0


def run(name: str, window_s: tuple[float, float], seeds: int) -> tuple[tuple[Departures, ...], list[Figures]]:
    """Runs a scenario under each seed. Raises ExperimentError if this version cannot run it."""
    runs = sj.run(HERE / "linux" / f"{name}.toml", set={**RECORDED, "experiment.repeat": seeds}).runs
    return tuple(map(Departures.of, runs)), [our_figures(one, window_s) for one in runs]


def replays() -> list[Replay]:
    """Recorded queues of Linux's CoDel through ours."""
    found = []
    for name in CODEL_RECORDINGS:
        outcome = sj.replay(RECORDINGS / f"{name}.txt.gz", aqm="codel", set={"variant": "linux"})
        found.append(Replay(name, "codel", outcome["dropped_recorded"], outcome["dropped_ours"], outcome["agree"]))
    return found


if __name__ == "__main__":
    sys.exit(main())
