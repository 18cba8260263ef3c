"""The Linux backend against the same measurements as the simulator: runs ``linux/*.toml`` on it and prints a table.

``python validation/backend.py [--seeds N] [SCENARIO …]``: the median over the seeds, the range if there is more than
one, and Linux's figure; and whether Linux agrees with its own reference run within the tolerances that the simulator is
judged by. With several seeds the figures of each are kept in ``linux/again.json``, for ``make validate``. The backend
must be able to run here, see ``sojourn doctor``.

``--measure NAME …`` makes the reference of scenarios with traffic that iperf3 lacks: the run of the first seed becomes
Linux's figures in ``linux/figures.json``, those of the others its other runs in ``linux/again.json``. Sojourn times are
taken from the warm-up in the scenario's file on.
Exit status: 0 if all was run; 2 if the input is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from pathlib import Path

from comparison import AGAIN, Comparison, Departures, Figures, compare, linux_figures, our_figures, quantile

import sojourn as sj
from sojourn.linux import Linux

HERE = Path(__file__).parent
FIGURES = HERE / "linux" / "figures.json"
EMULATED = Linux(kernel="emulated")
"""Where all of the figures were measured."""
LEVELS = {
    "p1": 0.01,
    "p5": 0.05,
    "p10": 0.1,
    "p25": 0.25,
    "p50": 0.5,
    "p75": 0.75,
    "p90": 0.9,
    "p95": 0.95,
    "p99": 0.99,
}
"""The quantiles of a reference run that are kept."""
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
    options.add_argument("--measure", action="store_true", help="make references of the scenarios named")
    options.add_argument("scenarios", nargs="*", help="parts of the names of those to run; default: all")
    given = options.parse_args()
    if given.seeds < 1 or given.jobs < 1:
        options.error("--seeds and --jobs must be 1 or more")
    measured = json.loads(FIGURES.read_text(encoding="utf-8"))
    if given.measure:
        unknown = [name for name in given.scenarios if not (HERE / "linux" / f"{name}.toml").exists()]
        if unknown or not given.scenarios or given.seeds < 2:
            options.error("--measure needs names of linux/*.toml, and --seeds 2 or more")
        for name in given.scenarios:
            measure(name, given.seeds, given.jobs)
        return 0
    names = [name for name in measured if not given.scenarios or any(part in name for part in given.scenarios)]
    if not names:
        options.error(f"scenarios: got {' '.join(given.scenarios)}; must be part of one of {', '.join(measured)}")
    headings = [text for _, heading in COLUMNS.values() for text in (f"{heading} here", f"{heading} there")]
    print("| " + " | ".join(["scenario", *headings, "verdict"]) + " |\n|" + " --- |" * (2 + len(headings)))
    agreeing = 0
    for name in names:
        figures = run(name, tuple(measured[name]["window_s"]), given.seeds, given.jobs)
        agreeing += report(name, linux_figures(measured[name]), figures)
        if given.seeds > 1 and figures:
            keep(name, figures)
    print(f"\n{agreeing} of {len(names)} scenarios within every tolerance")
    return 0


def measure(name: str, seeds: int, jobs: int) -> None:
    """Makes a scenario's reference and Linux's other runs."""
    experiment = tomllib.loads((HERE / "linux" / f"{name}.toml").read_text(encoding="utf-8"))["experiment"]
    window_s = float(experiment["warmup"].removesuffix(" s")), float(experiment["duration"].removesuffix(" s"))
    runs = on_linux(name, seeds, jobs)
    keep_reference(name, runs[0], window_s)
    keep(name, [our_figures(one.summary, Departures.of(one), window_s) for one in runs[1:]])


def keep_reference(name: str, run: sj.Run, window_s: tuple[float, float]) -> None:
    """Puts a run among Linux's figures."""
    packets, summary = Departures.of(run), run.summary
    steady = packets.within(*window_s)
    queue, flows = summary["bottleneck"]["down"], summary["flows"]
    early = packets.within(0.0, window_s[0])
    measured = json.loads(FIGURES.read_text(encoding="utf-8"))
    measured[name] = {
        "further": True,
        "tc": f"{summary['queue']}, by the Linux backend",
        "window_s": window_s,
        "sojourn_ms": {
            "n": int(steady.size),
            "mean": round(float(steady.mean()), 3),
            **{key: round(quantile(steady, level), 3) for key, level in LEVELS.items()},
            "max": round(float(steady.max()), 3),
        },
        "startup_peak_ms": round(float(early.max()), 3),
        "received_bytes": sum(flow["received_bytes"] for flow in flows),
        "retransmits": sum(flow["retransmits"] for flow in flows),
        "timeouts": summary["timeouts"],
        "dropped": queue["dropped_aqm"] + queue["dropped_overflow"],
        "marked": queue["marked"],
        "ping_ms": None,
    }
    lines = (f"{json.dumps(id)}:{json.dumps(measured[id], separators=(',', ':'))}" for id in sorted(measured))
    FIGURES.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{name}: its reference is the run of seed {summary['seed']}", flush=True)


def on_linux(name: str, seeds: int, jobs: int) -> list[sj.Run]:
    """Runs a scenario on the backend, packet by packet; prints why a run is not to be trusted."""
    overrides = {"experiment.repeat": seeds, "experiment.warmup": "0 s", "record.packets": True}
    runs = sj.run(HERE / "linux" / f"{name}.toml", set=overrides, backend=EMULATED, jobs=jobs).runs
    for reason in (reason for one in runs for reason in one.summary.get("invalid", [])):
        print(f"| {name} | invalid: {reason} |", flush=True)
    return list(runs)


def run(name: str, window_s: tuple[float, float], seeds: int, jobs: int) -> list[Figures]:
    """Runs a scenario: its figures per seed; none if the backend cannot run it."""
    try:
        runs = on_linux(name, seeds, jobs)
    except sj.ExperimentError as error:
        print(f"| {name} | not run: {error} |", flush=True)
        return []
    return [our_figures(one.summary, Departures.of(one), window_s) for one in runs]


def report(name: str, reference: Figures, figures: list[Figures]) -> bool:
    """Prints a scenario's line of the table; true if it agrees."""
    found = {one.metric.key: one for one in compare([reference], figures)}
    cells = [cell(found[key], digits) if key in found else "|" for key, (digits, _) in COLUMNS.items()]
    off = [f"{one.metric.title} off" for one in found.values() if one.within is False]
    print(f"| {name} | " + " | ".join([*cells, ", ".join(off) or "within"]) + " |", flush=True)
    return bool(found) and not off


def keep(name: str, figures: list[Figures]) -> None:
    """Puts a scenario's figures beside those of the others."""
    kept = json.loads(AGAIN.read_text(encoding="utf-8")) if AGAIN.exists() else {}
    kept[name] = [
        {key: None if value is None else float(f"{value:.6g}") for key, value in one.items()} for one in figures
    ]
    AGAIN.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n", encoding="utf-8")


def cell(one: Comparison, digits: int) -> str:
    """Ours, with the range if there is one, and Linux's."""
    ours = f"{one.median:.{digits}f}"
    if len(one.values) > 1:
        ours += f" ({min(one.values):.{digits}f} to {max(one.values):.{digits}f})"
    return f"{ours} | {one.linux:.{digits}f}"


if __name__ == "__main__":
    sys.exit(main())
