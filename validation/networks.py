"""Networks of several links: the simulator against a real kernel; writes docs/results/networks.md.

``python validation/networks.py`` runs the files of ``networks/`` and compares them with what the kernel did, in
``networks/linux.json``. ``--measure [NAME …]`` runs the kernel first (on the Linux backend, see ``sojourn doctor``) and
replaces what is there. Both sides have as many seeds; medians over them are compared, by ``comparison.py``.
Exit status: 0 if all was run, whatever the verdicts.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator
from pathlib import Path

from comparison import METRICS

import sojourn as sj

HERE = Path(__file__).parent / "networks"
LINUX = HERE / "linux.json"
PAGE = Path(__file__).parents[1] / "docs" / "results" / "networks.md"
SEEDS = 5
JUDGED = {
    metric.key: metric for metric in METRICS if metric.key in ("p50_ms", "p95_ms", "goodput_mbps", "drops_and_marks")
}

Figures = dict[str, float]
"""Of a run: ``west p50_ms`` … of each queue, ``long mbps``, ``long rtt_ms`` of each group, ``goodput_mbps`` of all."""


def main() -> int:
    """Measures if asked to, runs and writes."""
    options = argparse.ArgumentParser(description="Compare networks of several links with Linux.")
    options.add_argument("--measure", action="store_true", help="run the kernel and keep what it did")
    options.add_argument("networks", nargs="*", help="the names of those to measure; default: all")
    given = options.parse_args()
    files = sorted(HERE.glob("*.toml"))
    unknown = set(given.networks) - {file.stem for file in files}
    if unknown or (given.networks and not given.measure):
        options.error("names are of networks/*.toml, for --measure")
    if given.measure:
        measured = json.loads(LINUX.read_text(encoding="utf-8")) if LINUX.exists() else {}
        for file in files:
            if given.networks and file.stem not in given.networks:
                continue
            measured[file.stem] = run(file, "linux", SEEDS)
            LINUX.write_text(json.dumps(measured, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    linux = json.loads(LINUX.read_text(encoding="utf-8"))
    # As many seeds as the kernel had.
    ours = {
        file.stem: run(file, "sim", min(map(len, linux[file.stem].values()))) for file in files if file.stem in linux
    }
    PAGE.write_text(page(linux, ours), encoding="utf-8")
    return 0


def run(file: Path, backend: str, seeds: int) -> dict[str, list[Figures]]:
    """The figures of every arm, a set per seed."""
    arms = sj.run(file, backend=backend, set={"experiment.repeat": seeds}).arms
    for reason in (reason for arm in arms for one in arm.runs for reason in one.summary.get("invalid", [])):
        raise SystemExit(f"{file.stem}: a run is not to be trusted: {reason}")
    return {arm.title: [figures_of(one) for one in arm.runs] for arm in arms}


def figures_of(run: sj.Run) -> Figures:
    """What is compared of a run."""
    summary, found = run.summary, dict[str, float]()
    for name, link in summary["links"].items():
        queue = link["down"]
        found[f"{name} p50_ms"] = queue["sojourn_ms"]["p50"]
        found[f"{name} p95_ms"] = queue["sojourn_ms"]["p95"]
        found[f"{name} drops_and_marks"] = queue["dropped_aqm"] + queue["dropped_overflow"] + queue["marked"]
    for group in summary["groups"]:
        found[f"{group['name']} mbps"] = group["goodput_bps"] / 1e6
        if group.get("rtt_ms", {}).get("n"):
            found[f"{group['name']} rtt_ms"] = group["rtt_ms"]["p50"]
    found["goodput_mbps"] = sum(flow["goodput_bps"] for flow in summary["flows"]) / 1e6
    return {key: round(value, 4) for key, value in found.items()}


def verdict(key: str, linux: float, ours: float) -> bool | None:
    """Whether two medians agree; None if the figure is shown only."""
    metric = JUDGED.get(key.rpartition(" ")[2])
    return None if metric is None else abs(ours - linux) <= metric.tolerance(linux)


def rows(linux: list[Figures], ours: list[Figures]) -> Iterator[tuple[str, str, str, bool | None]]:
    """Of an arm: a figure's name, both sides over the seeds, and the verdict."""
    for key in linux[0]:
        sides = [[one[key] for one in side] for side in (linux, ours)]
        medians = [statistics.median(side) for side in sides]
        there, here = (
            f"{number(middle)} ({number(min(side))}–{number(max(side))})"
            for middle, side in zip(medians, sides, strict=True)
        )
        yield key, there, here, verdict(key, *medians)


def number(value: float) -> str:
    """Three significant digits."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def page(linux: dict[str, dict[str, list[Figures]]], ours: dict[str, dict[str, list[Figures]]]) -> str:
    """The page."""
    tables, judged, within = [], 0, 0
    for name, arms in linux.items():
        seeds = min(map(len, arms.values()))
        tables.append(f"## {name}\n\n[{name}.toml](../../validation/networks/{name}.toml), {seeds} seeds\n")
        for arm, there in arms.items():
            tables.append(f"### {arm}\n\n| figure | Linux | simulator | verdict |\n| --- | --- | --- | --- |")
            for key, left, right, agrees in rows(there, ours[name][arm]):
                word = "" if agrees is None else "within" if agrees else "**beyond**"
                judged += agrees is not None
                within += agrees is True
                tables.append(f"| {key} | {left} | {right} | {word} |")
            tables.append("")
    tolerances = "\n".join(
        f"| {metric.title} | {tolerance(metric.relative, metric.absolute, metric.unit)} |" for metric in JUDGED.values()
    )
    return HEAD.format(within=within, judged=judged, tolerances=tolerances) + "\n".join(tables)


def tolerance(relative: float | None, absolute: float, unit: str) -> str:
    """In words."""
    share = f"{100 * (relative or 0):g} %"
    return f"{share} or {absolute:g} {unit}" if absolute else share


HEAD = """\
# Several links: the simulator against Linux

Written by `python validation/networks.py`; the kernel's side was measured by the same with `--measure`, on Linux 6.1 in
virtual time. Medians over the seeds, least to greatest in brackets. The tolerances are those of a
[single queue](fidelity.md); the goodput of a group of flows and its RTT are shown, not judged.

**{within} of {judged} figures within their tolerance.**

| figure | tolerance |
| --- | --- |
{tolerances}

"""


if __name__ == "__main__":
    raise SystemExit(main())
