"""Networks of several links: the simulator against a real kernel; writes docs/results/networks.md.

``python validation/networks.py`` runs the files of ``networks/`` in the simulator, with the TCP of the kernel, and
compares the results with those of the kernel, in ``networks/linux.json``: by network, queue and seed. Both sides have
the same seeds; medians over them are compared, with the tolerances of ``comparison.py``. ``--measure NAME …`` first
runs the kernel that ``sojourn kernel build`` made with the seeds that are missing, and keeps each run as it ends. To
measure a network again, delete its part of linux.json. Exit status: 0 if all was run, whatever the verdicts.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Iterator
from pathlib import Path

import pages
from comparison import METRICS, Comparison, Metric, over_seeds

import sojourn as sj
from sojourn._core import Monitor
from sojourn.files import whole
from sojourn.frame.statistics import three_digits
from sojourn.frame.swept import setting_text
from sojourn.linux import Linux
from sojourn.runs.backends import Backend, backend_of
from sojourn.runs.execution import as_run

HERE = Path(__file__).parent / "networks"
LINUX = HERE / "linux.json"
PAGE = pages.RESULTS / "networks.md"
SEEDS = 30
KERNEL = "6.1"
"""Linux's side: a kernel that was built, in virtual time."""
JUDGED = {
    metric.key: metric for metric in METRICS if metric.key in ("p50_ms", "p95_ms", "goodput_mbps", "drops_and_marks")
}

Networks = dict[str, dict[str, dict[str, "Figures"]]]
"""By the name of the network, the title of the queue, and the seed."""
Figures = dict[str, float]
"""Of a run: ``west p50_ms`` … of each queue, ``long mbps``, ``long rtt_ms`` of each group, ``goodput_mbps`` of all."""


def main() -> int:
    """Measures if asked to, runs and writes."""
    options = argparse.ArgumentParser(description="Compare networks of several links with Linux.")
    options.add_argument("--measure", metavar="NAME", nargs="+", default=[], help="run the kernel on what it lacks")
    options.add_argument("--seeds", metavar="N", type=int, default=SEEDS, help="of --measure: seeds 1 to N")
    given = options.parse_args()
    files = {file.stem: file for file in sorted(HERE.glob("*.toml"))}
    if unknown := set(given.measure) - set(files):
        options.error(f"no such network: {', '.join(sorted(unknown))}; there are {', '.join(files)}")
    linux: Networks = json.loads(LINUX.read_text(encoding="utf-8"))
    for name in given.measure:
        for arm, seed, figures in runs(files[name], Linux(kernel=KERNEL), range(1, given.seeds + 1), but=linux):
            linux.setdefault(name, {}).setdefault(arm, {})[seed] = figures
            whole.write(LINUX, f"{json.dumps(linux, indent=1, sort_keys=True)}\n".encode())
    ours: Networks = {}
    for name, arms in linux.items():
        seeds = {int(seed) for measured in arms.values() for seed in measured}
        for arm, seed, figures in runs(files[name], backend_of("sim"), seeds, but={}):
            if seed in arms.get(arm, {}):
                ours.setdefault(name, {}).setdefault(arm, {})[seed] = figures
    PAGE.write_text(page(linux, ours), encoding="utf-8")
    return 0


def runs(file: Path, backend: Backend, seeds: Collection[int], but: Networks) -> Iterator[tuple[str, str, Figures]]:
    """The queue, the seed and the figures of every run that is not in ``but``, one run after another."""
    like = {"experiment.kernel": KERNEL, "experiment.ties": "departures"}
    plan = sj.plan(file, set={**like, "experiment.repeat": max(seeds)})
    for spec in sorted(plan, key=lambda spec: spec.seed):
        arm = ", ".join(filter(None, [spec.label, setting_text(json.loads(spec.set_json))]))
        if spec.seed not in seeds or str(spec.seed) in but.get(file.stem, {}).get(arm, {}):
            continue
        run = as_run(backend.run(spec, Monitor()))
        for reason in run.summary.get("invalid", []):
            raise SystemExit(f"{file.stem}: {arm}, seed {spec.seed}: the run is not to be trusted: {reason}")
        yield arm, str(spec.seed), figures_of(run)


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


def rows(linux: list[Figures], ours: list[Figures]) -> Iterator[tuple[str, str, str, bool | None]]:
    """Of an arm: a figure's name, both sides over the seeds, and the verdict; None if it is shown only."""
    for key in linux[0]:
        metric = JUDGED.get(key.rpartition(" ")[2], Metric(key, key, ""))
        one = Comparison(metric, *(tuple(run[key] for run in side) for side in (linux, ours)))
        yield key, over_seeds(one.reference, three_digits), over_seeds(one.values, three_digits), one.within


def page(linux: Networks, ours: Networks) -> str:
    """The page."""
    tables, judged, within = [""], 0, 0
    for name, arms in linux.items():
        tables.append(f"## {name}\n\n[{name}.toml](../../validation/networks/{name}.toml)\n")
        for arm, there in arms.items():
            tables.append(f"### {arm}\n\n{len(there)} seeds.\n")
            lines = []
            for key, left, right, agrees in rows(list(there.values()), list(ours[name][arm].values())):
                word = "" if agrees is None else "within" if agrees else "**beyond**"
                judged += agrees is not None
                within += agrees is True
                lines.append([key, left, right, word])
            tables.append(pages.table(["figure", "Linux", "simulator", "verdict"], lines) + "\n")
    head, _, _ = PAGE.read_text(encoding="utf-8").partition("\n## ")
    tolerances = [[metric.title, metric.tolerated] for metric in JUDGED.values()]
    told = f"**{within} of {judged} figures within their tolerance.**"
    return pages.replaced(head, [("**", told), ("| figure", tolerances)]) + "\n".join(tables)


if __name__ == "__main__":
    raise SystemExit(main())
