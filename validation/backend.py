"""The Linux backend against the same measurements as the simulator: runs ``linux/*.toml`` on it and prints a table.

``python validation/backend.py [--seeds N] [SCENARIO …]``: the median over the seeds, the range if there is more than
one, and Linux's figure; and whether Linux agrees with its own reference run within the tolerances that the simulator is
judged by. With several seeds the figures of each are kept in ``linux/again.json``, for ``make validate``. The backend
must be able to run here, see ``sojourn doctor``.

Exit status: 0 if all was run; 2 if the input is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import pages
from comparison import (
    AGAIN,
    METRICS,
    RECORDED,
    SCENARIOS_HELP,
    Comparison,
    Figures,
    chosen,
    compare,
    linux_figures,
    our_figures,
    over_seeds,
    rounded,
    verdict,
)

import sojourn as sj
from sojourn.files import whole
from sojourn.linux import Linux

HERE = Path(__file__).parent
FIGURES = HERE / "linux" / "figures.json"
EMULATED = Linux(kernel="emulated")
"""Where all of the figures were measured."""
DIGITS = {"p50_ms": 2, "p95_ms": 2, "startup_peak_ms": 1, "goodput_mbps": 3, "drops_and_marks": 0}
"""Decimals of the metrics that are printed."""


def main() -> int:
    """Runs and prints."""
    options = argparse.ArgumentParser(description="Compare the Linux backend with measurements of Linux.")
    options.add_argument("--seeds", type=int, default=1, help="runs per scenario")
    options.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    options.add_argument("scenarios", nargs="*", help=SCENARIOS_HELP)
    given = options.parse_args()
    if given.seeds < 1 or given.jobs < 1:
        options.error("--seeds and --jobs must be 1 or more")
    measured = json.loads(FIGURES.read_text(encoding="utf-8"))
    names = chosen(options, given.scenarios, measured)
    heads = {metric.key: metric.short for metric in METRICS}
    headings = [f"{heads[key]} {where}" for key in DIGITS for where in ("here", "there")]
    print(pages.table(["scenario", *headings, "verdict"], ()))
    agreeing = 0
    for name in names:
        figures = run(name, tuple(measured[name]["window_s"]), given.seeds, given.jobs)
        agreeing += report(name, linux_figures(measured[name]), figures)
        if given.seeds > 1 and figures:
            keep(name, figures)
    print(f"\n{agreeing} of {len(names)} scenarios within every tolerance")
    return 0


def run(name: str, window_s: tuple[float, float], seeds: int, jobs: int) -> list[Figures]:
    """Runs a scenario: its figures per seed; none if it cannot be run. Prints why a run is not to be trusted."""
    file = HERE / "linux" / f"{name}.toml"
    try:
        runs = sj.run(file, set={**RECORDED, "experiment.repeat": seeds}, backend=EMULATED, jobs=jobs).runs
    except sj.ExperimentError as error:
        print(f"| {name} | not run: {error} |", flush=True)
        return []
    for reason in (reason for one in runs for reason in one.summary.get("invalid", [])):
        print(f"| {name} | invalid: {reason} |", flush=True)
    return [our_figures(one, window_s) for one in runs]


def report(name: str, reference: Figures, figures: list[Figures]) -> bool:
    """Prints a scenario's line of the table; true if it agrees."""
    found = {one.metric.key: one for one in compare([reference], figures)}
    cells = [cell(found[key], digits) if key in found else "|" for key, digits in DIGITS.items()]
    judged = verdict(found.values())
    print(pages.row([name, *cells, judged]), flush=True)
    return bool(found) and judged == "within"


def keep(name: str, figures: list[Figures]) -> None:
    """Puts a scenario's figures beside those of the others."""
    kept = json.loads(AGAIN.read_text(encoding="utf-8")) if AGAIN.exists() else {}
    kept[name] = list(map(rounded, figures))
    whole.write(AGAIN, f"{json.dumps(dict(sorted(kept.items())), indent=1)}\n".encode())


def cell(one: Comparison, digits: int) -> str:
    """Ours, with the range if there is one, and Linux's."""
    show = f"{{:.{digits}f}}".format
    ours = over_seeds(one.values, show, " to ") if len(one.values) > 1 else show(one.median)
    return f"{ours} | {show(one.linux)}"


if __name__ == "__main__":
    sys.exit(main())
