"""Distribution against distribution: Linux's seeds on built kernels and ours; writes docs/results/distributions.md.

``python validation/distributions.py --measure VERSION [SCENARIO …]`` runs the scenarios of ``linux/`` and ``beyond/``
that have not been measured on the kernel that ``sojourn kernel build VERSION`` made, and keeps their figures by seed
in ``linux/kernels/RELEASE.json``. All get five seeds before one gets more; ``--within MINUTES`` begins no scenario that
would not be done by then, and a later call goes on. Without ``--measure`` it runs the simulator and writes the page.
Exit status: 0 if all ran, whatever the verdicts; 2 if the input is wrong.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import math
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from comparison import RECORDED, SCENARIOS_HELP, Figures, chosen, our_figures, rounded
from distributions_page import PAGE, STEPS, Scenario, page, settling, verdict_line

import sojourn as sj
from sojourn import _core
from sojourn.files import typed, whole
from sojourn.linux import Linux
from sojourn.linux.kernel import built, is_of, simulated

HERE = Path(__file__).parent
KEPT = HERE / "linux" / "kernels"
"""A file per kernel. By scenario and figure: Linux's values, an entry per seed."""
REASONS = HERE / "reasons.toml"
"""Why scenarios fail, by name."""
MADE = HERE.parent / "target" / "distributions"
"""Our figures that were made, for the next call."""
SEEDS = 120
"""Runs of a scenario in the simulator, twice as many where half of them do not settle its medians."""
AT_ONCE = 60
"""Runs whose packets are in memory together."""
OVERRIDES = {**RECORDED, "experiment.ties": "departures"}
"""The built kernels are User-Mode Linux, whose order at one instant is that of departures."""


class Given(NamedTuple):
    """A scenario: its file, and the seconds that its queue's figures cover."""

    path: Path
    window_s: tuple[float, float]
    beyond: bool
    """It was chosen to find faults, with a built kernel; no other reference knows it."""


def given() -> dict[str, Given]:
    """All scenarios, by name."""
    measured = json.loads((HERE / "linux" / "figures.json").read_text(encoding="utf-8"))
    found = {
        name: Given(HERE / "linux" / f"{name}.toml", (figures["window_s"][0], figures["window_s"][1]), False)
        for name, figures in measured.items()
    }
    for path in sorted((HERE / "beyond").glob("*.toml")):
        experiment = typed.read_toml(path)["experiment"]
        begin, end = (float(experiment[key].removesuffix(" s")) for key in ("warmup", "duration"))
        found[path.stem] = Given(path, (begin, end), True)
    return found


def main() -> int:
    """Runs, prints, writes."""
    options = argparse.ArgumentParser(description="Compare the distributions of Linux's figures and ours.")
    options.add_argument("--measure", metavar="VERSION", help="run the scenarios on this built kernel instead")
    options.add_argument(
        "--seeds", type=int, help=f"runs per scenario; default: on a kernel as many as settle it, else {SEEDS}"
    )
    options.add_argument("--within", metavar="MINUTES", type=float, help="of --measure: how long it may take")
    options.add_argument("scenarios", nargs="*", help=SCENARIOS_HELP)
    asked = options.parse_args()
    if asked.seeds is not None and asked.seeds < 2:
        options.error(f"--seeds: got {asked.seeds}; must be 2 or more")
    if asked.within is not None and (asked.measure is None or not asked.within > 0):
        options.error(f"--within: got {asked.within:g}; must be minutes, more than 0, and needs --measure")
    scenarios = given()
    wanted = {name: scenarios[name] for name in chosen(options, asked.scenarios, scenarios)}
    if asked.measure is not None:
        if not any(is_of(kernel.release, asked.measure) for kernel in built()):
            options.error(f"--measure: got {asked.measure}; is not built: sojourn kernel build {asked.measure}")
        measure(asked.measure, wanted, asked.seeds, math.inf if asked.within is None else asked.within)
        return 0
    kept = read()
    compared = []
    for name, scenario in wanted.items():
        linux = {kernel: of_kernel[name] for kernel, of_kernel in kept.items() if name in of_kernel}
        if not linux:
            print(f"{name}: not measured", flush=True)
            continue
        ours = {version: beside(name, scenario, version, asked.seeds) for version in set(map(simulated, linux))}
        by_kernel = {kernel: ours[simulated(kernel)] for kernel in linux}
        compared.append(Scenario(name, by_kernel, linux, scenario.beyond))
        print(verdict_line(compared[-1]), flush=True)
    if not asked.scenarios:
        text = page(compared, typed.read_toml(REASONS), of=len(wanted))
        PAGE.write_text(text, encoding="utf-8")
        print(f"written: {PAGE}")
    return 0


def beside(name: str, scenario: Given, version: str, seeds: int | None) -> list[Figures]:
    """Our figures beside Linux's, of ``seeds`` runs; None: ``SEEDS``, twice as many where half do not settle them."""
    rows = simulate(scenario, version, seeds or SEEDS)
    if seeds is None and settling(name, rows) > SEEDS // 2:
        return simulate(scenario, version, 2 * SEEDS)
    return rows


def simulate(scenario: Given, version: str, seeds: int) -> list[Figures]:
    """Our figures with the TCP of a version of Linux, an entry per seed. Those of an earlier call are kept."""
    made_by = hashlib.sha256(simulator() + scenario.path.read_bytes() + f"{scenario}".encode()).hexdigest()[:16]
    kept = MADE / f"{scenario.path.stem}-{version}-{made_by}.json"
    rows: list[Figures] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else []
    while len(rows) < seeds:
        further = {"experiment.repeat": min(AT_ONCE, seeds - len(rows)), "experiment.seed": 1 + len(rows)}
        runs = sj.run(scenario.path, set={**OVERRIDES, **further, "experiment.kernel": version}).runs
        rows += [rounded(our_figures(run, scenario.window_s)) for run in runs]
        whole.write(kept, json.dumps(rows).encode())
    return rows[:seeds]


@cache
def simulator() -> bytes:
    """What makes our figures, as a digest."""
    parts = (Path(_core.__file__), HERE / "comparison.py", Path(__file__))
    return hashlib.sha256(b"".join(part.read_bytes() for part in parts)).digest()


def measure(version: str, chosen: dict[str, Given], seeds: int | None, minutes: float) -> None:
    """Runs scenarios on a kernel, a run per processor at once, and keeps the figures of each when its seeds are done.

    ``seeds`` is how many a scenario shall have; None: as many as settle it. All have a step's seeds before one has the
    next step's.
    """
    ends = time.monotonic() + 60 * minutes
    release = next(kernel.release for kernel in built() if is_of(kernel.release, version))
    backend = Linux(kernel=release)
    took: dict[str, float] = {}
    """Seconds per run, by scenario."""
    impossible: set[str] = set()
    for step in STEPS if seeds is None else (seeds,):
        late = 0
        for name, scenario in chosen.items():
            if name in impossible:
                continue
            before = read().get(release, {}).get(name, [])
            if len(before) >= step or (seeds is None and is_settled(name, scenario, release, len(before))):
                continue
            runs = step - len(before)
            if time.monotonic() + runs * took.get(name, 0) > ends:
                late += 1
                continue
            began = time.monotonic()
            rows = before + measured(scenario, backend, runs, first=1 + len(before))
            if len(rows) == len(before):
                impossible.add(name)
                continue
            took[name] = (time.monotonic() - began) / runs
            keep(release, name, rows)
            invalid = sum("invalid" in row for row in rows)
            print(
                f"{name}: {len(rows)} runs, {runs * took[name]:.0f} s for the new ones, {invalid} invalid", flush=True
            )
        if late:
            print(
                f"{late} scenarios would take longer than {minutes:g} minutes: not measured with {step} seeds",
                flush=True,
            )


def is_settled(name: str, scenario: Given, release: str, seeds: int) -> bool:
    """Whether so many seeds settle a scenario; nothing of Linux is looked at."""
    return seeds >= STEPS[0] and seeds >= settling(name, simulate(scenario, simulated(release), SEEDS))


def measured(scenario: Given, backend: Linux, runs: int, *, first: int) -> list[dict[str, Any]]:
    """Linux's figures by seed, beginning with the seed ``first``; none if the scenario cannot run there."""
    further = {"experiment.repeat": runs, "experiment.seed": first}
    try:
        results = sj.run(scenario.path, set={**OVERRIDES, **further}, backend=backend)
    except (sj.ExperimentError, _core.RunError) as error:
        print(f"{scenario.path.stem}: not run: {error}", flush=True)
        return []
    return [
        {
            **rounded(our_figures(run, scenario.window_s)),
            **({"invalid": run.summary["invalid"]} if "invalid" in run.summary else {}),
        }
        for run in results.runs
    ]


def read(kept: Path = KEPT) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """What was kept: by kernel and scenario the figures of each seed."""
    return {path.stem: of_kernel(path) for path in sorted(kept.glob("*.json"))}


def of_kernel(path: Path) -> dict[str, list[dict[str, Any]]]:
    """What was kept of a kernel; nothing if the file is missing."""
    if not path.exists():
        return {}
    scenarios: dict[str, dict[str, list[Any]]] = json.loads(path.read_text(encoding="utf-8"))
    found = {}
    for name, columns in scenarios.items():
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        # A run that is to be trusted has no reasons why not.
        found[name] = [
            {key: value for key, value in row.items() if key != "invalid" or value is not None} for row in rows
        ]
    return found


def keep(release: str, name: str, rows: list[dict[str, Any]], kept: Path = KEPT) -> None:
    """Puts a scenario's figures beside those of the others. Several may do this at the same time."""
    kept.mkdir(exist_ok=True)
    with HERE.joinpath("linux", "figures.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = kept / f"{release}.json"
        write(path, of_kernel(path) | {name: rows})


def write(path: Path, scenarios: dict[str, list[dict[str, Any]]]) -> None:
    """Writes what is kept of a kernel, a line per figure with the values of all seeds."""
    lines = []
    for name, rows in sorted(scenarios.items()):
        keys = dict.fromkeys(key for row in rows for key in row)
        columns = (f'  "{key}": {json.dumps([row.get(key) for row in rows])}' for key in keys)
        lines.append(f' "{name}": {{\n' + ",\n".join(columns) + "\n }")
    whole.write(path, ("{\n" + ",\n".join(lines) + "\n}\n").encode())


if __name__ == "__main__":
    sys.exit(main())
