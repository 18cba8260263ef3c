"""The Linux backend against the same measurements as the simulator: runs ``linux/*.toml`` on it and prints a table.

``python validation/backend.py [--seeds N] [SCENARIO …]``: the median over the seeds, the range if there is more than
one, and Linux's figure; and whether Linux agrees with its own reference run within the tolerances that the simulator is
judged by. The backend must be able to run here, see ``sojourn doctor``.
Exit status: 0 if all was run; 2 if the input is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from comparison import Comparison, Departures, compare, linux_figures, our_figures

import sojourn as sj

HERE = Path(__file__).parent
COLUMNS = {
    "p50_ms": (2, "p50"),
    "p95_ms": (2, "p95"),
    "startup_peak_ms": (1, "start-up peak"),
    "goodput_mbps": (3, "goodput"),
    "drops_and_marks": (0, "drops + marks"),
}
"""The metrics that are printed, with their digits and headings."""


def main() -> int:
    """Runs and prints."""
    options = argparse.ArgumentParser(description="Compare the Linux backend with measurements of Linux.")
    options.add_argument("--seeds", type=int, default=1, help="runs per scenario")
    options.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    options.add_argument("scenarios", nargs="*", help="parts of the names of those to run; default: all")
    given = options.parse_args()
    if given.seeds < 1 or given.jobs < 1:
        options.error("--seeds and --jobs must be 1 or more")
    measured = json.loads((HERE / "linux" / "figures.json").read_text(encoding="utf-8"))
    names = [name for name in measured if not given.scenarios or any(part in name for part in given.scenarios)]
    if not names:
        options.error(f"scenarios: got {' '.join(given.scenarios)}; must be part of one of {', '.join(measured)}")
    headings = [text for _, heading in COLUMNS.values() for text in (f"{heading} here", f"{heading} there")]
    print("| " + " | ".join(["scenario", *headings, "verdict"]) + " |\n|" + " --- |" * (2 + len(headings)))
    verdicts = [row(name, measured[name], given.seeds, given.jobs) for name in names]
    print(f"\n{sum(verdicts)} of {len(verdicts)} scenarios within every tolerance")
    return 0


def row(name: str, measured: dict[str, object], seeds: int, jobs: int) -> bool:
    """Runs a scenario and prints its line of the table; true if it agrees."""
    window_s = tuple(measured["window_s"])
    overrides = {"experiment.repeat": seeds, "experiment.warmup": "0 s", "record.packets": True}
    try:
        runs = sj.run(HERE / "linux" / f"{name}.toml", set=overrides, backend="linux", jobs=jobs).runs
    except sj.ExperimentError as error:
        print(f"| {name} | not run: {error} |", flush=True)
        return False
    figures = [our_figures(one.summary, Departures.of(one), window_s) for one in runs]
    found = {one.metric.key: one for one in compare(linux_figures(measured), figures)}
    cells = [cell(found[key], digits) for key, (digits, _) in COLUMNS.items()]
    invalid = "".join(f" ({reason})" for one in runs for reason in one.summary.get("invalid", []))
    off = [f"{one.metric.title} off" for one in found.values() if one.within is False]
    verdict = ", ".join(off) or "within"
    print(f"| {name}{invalid} | " + " | ".join([*cells, verdict]) + " |", flush=True)
    return not off


def cell(one: Comparison, digits: int) -> str:
    """Ours, with the range if there is one, and Linux's."""
    ours = f"{one.median:.{digits}f}"
    if len(one.values) > 1:
        ours += f" ({min(one.values):.{digits}f} to {max(one.values):.{digits}f})"
    return f"{ours} | {one.linux:.{digits}f}"


if __name__ == "__main__":
    sys.exit(main())
