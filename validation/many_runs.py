"""Sweeps and studies with a store: costs, and what is left of killed workers; writes docs/results/many-runs.md.

``python validation/many_runs.py`` takes about twenty minutes on two processors. With names of measurements, such as
``studies progress``, only those are made, and the page keeps its other rows. Exit status: 0 if no promise was broken.
"""

from __future__ import annotations

import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pages

from sojourn import _core
from sojourn.runs.execution import Progress
from sojourn.store import Store
from sojourn.store.claims import LEASE_S
from sojourn.store.planning import batch_of
from sojourn.store.plans import RunList, StoredPlan
from sojourn.store.runner import Runner
from sojourn.studies import available
from sojourn.studies.runner import plan_study

PAGE = pages.RESULTS / "many-runs.md"
EXPERIMENT = """
experiment = {{ duration = "{duration}", repeat = {seeds} }}
link = {{ rate = "{rate}" }}
queue = [{{ aqm = "codel" }}, {{ aqm = "pie" }}]
traffic = [{{ kind = "bulk", flows = 2, rtt = "20 ms" }}, {{ kind = "web", rtt = "30 ms" }}]
[sweep]
"traffic.0.flows" = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
"""
KILLS = 100
BATCH_RUNS = 2


@dataclass(frozen=True)
class Finding:
    """A row of the page."""

    what: str
    measured: str
    target: str
    met: bool


def main(names: Sequence[str]) -> int:
    """Measures and writes."""
    every = {measure.__name__: measure for measure in (planning, overhead, asked_again, progress, kills, studies)}
    found: list[Finding] = []
    with tempfile.TemporaryDirectory(prefix="sojourn-") as folder:
        for name in names or every:
            for finding in every[name](Path(folder) / name):
                print(finding, flush=True)
                found.append(finding)
    new = {one.what: [one.what, one.measured, one.target, "met" if one.met else "**missed**"] for one in found}
    rows = {**(_rows_of_page() if names else {}), **new}
    pages.put(PAGE, [("| what", rows.values())])
    return 0 if all(one.met for one in found) else 1


def _rows_of_page() -> dict[str, list[str]]:
    """The rows of the page by what they are about."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = lines[lines.index("| --- | --- | --- | --- |") + 1 :]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in rows]
    return {one[0]: one for one in cells}


def written(folder: Path, *, seeds: int, duration: str, rate: str = "4 Mbit/s") -> Path:
    """An experiment file with 20 runs per seed."""
    folder.mkdir()
    file = folder / "grid.toml"
    file.write_text(EXPERIMENT.format(seeds=seeds, duration=duration, rate=rate), encoding="utf-8")
    return file


def planning(folder: Path) -> Iterator[Finding]:
    """A million runs into a store."""
    file = written(folder, seeds=50_000, duration="1 s")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    took_s = timed("sweep", file, "--store", folder / "store", "--plan")
    after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    runs = Store(folder / "store").plans()[0].meta.runs
    yield Finding(f"planning {runs:,} runs", f"{took_s:.1f} s", "5 s", took_s < 5.0)
    megabytes = max(before, after) / 1000
    yield Finding("memory of it", f"{megabytes:.0f} MB", "1000 MB", megabytes < 1000.0)


def overhead(folder: Path) -> Iterator[Finding]:
    """What a sweep takes of the processor besides its runs: short ones, so that it shows."""
    file = written(folder, seeds=100, duration="100 ms")
    sweep = _core.Sweep.read_file(str(file), [])
    besides_ms = []
    for turn in range(9):
        began = time.process_time()
        for place in range(len(sweep)):
            sweep[place].run(_core.Monitor())
        bare_s = time.process_time() - began
        plan = Store.make(folder / f"store{turn}").add(file, [], sweep, 1000)
        began = time.process_time()
        Runner(jobs=1).fill(Store(plan.store), plan)
        besides_ms.append(1000 * (time.process_time() - began - bare_s) / len(sweep))
    # The first turn loads libraries.
    middle, least, most = (measure(besides_ms[1:]) for measure in (statistics.median, min, max))
    told = f"{middle:.2f} ms a run ({least:.2f} to {most:.2f}): {2 * middle:.1f} % of 50 ms"
    yield Finding("scheduling and storing", told, "1 % of runs of 50 ms", middle < 0.5)


def asked_again(folder: Path) -> Iterator[Finding]:
    """A finished sweep of 100 000 runs."""
    file = written(folder, seeds=5_000, duration="100 ms")
    first_s = timed("sweep", file, "--store", folder / "store")
    size_mb = sum(path.stat().st_size for path in (folder / "store").rglob("*.parquet")) / 1e6
    yield Finding("100,000 runs of 100 ms simulated", f"{first_s:.0f} s, {size_mb:.0f} MB", "", met=True)
    again_s = timed("sweep", file, "--store", folder / "store")
    yield Finding("asked for again", f"{again_s:.1f} s", "5 s", again_s < 5.0)
    sql = "select aqm, quantile_cont(sojourn_p95_ms, 0.5) from runs group by aqm"
    query_s = timed("query", "--store", folder / "store", sql)
    yield Finding("a query over them", f"{query_s:.1f} s", "5 s", query_s < 5.0)


def kills(folder: Path) -> Iterator[Finding]:
    """Workers killed at random times, with two runs at a time each."""
    # Enough runs that some are missing after each kill: the worker that makes the last one also merges the files.
    file = written(folder, seeds=100, duration="200 s", rate="40 Mbit/s")
    sweep = _core.Sweep.read_file(str(file), [])
    plans = [Store.make(folder / name).add(file, [], sweep, BATCH_RUNS) for name in ("undisturbed", "disturbed")]
    undisturbed, disturbed = plans
    began = time.monotonic()
    Runner(jobs=2).fill(Store(undisturbed.store), undisturbed)
    batch_s = (time.monotonic() - began) * 2 / undisturbed.batches
    chance = random.Random(7928)
    lost = twice = most = 0
    finished: set[str] = set()
    done = 0
    while done < KILLS and disturbed.missing():
        worker = start("worker", "--store", folder / "disturbed", "--jobs", "2")
        time.sleep(0.5 + 2.0 * chance.random())
        worker.kill()
        worker.wait()
        done += 1
        there = {part.path.name for part in disturbed.parts()}
        lost += len(finished - there)
        finished = there
        most = max(most, len(disturbed.claims.held()))
        twice += duplicates(disturbed)
    if disturbed.missing():
        timed("worker", "--store", folder / "disturbed", "--jobs", "2")
    same = contents(undisturbed) == contents(disturbed)
    yield Finding("workers killed while runs were missing", str(done), str(KILLS), done == KILLS)
    yield Finding("finished batches lost", str(lost), "0", lost == 0)
    yield Finding("runs with rows in two files", str(twice), "0", twice == 0)
    # Each of the two threads loses at most the batch that it was making.
    redone_s = 2 * batch_s
    yield Finding("work redone after a kill, at most", f"{redone_s:.1f} s of a processor", "10 s", redone_s < 10.0)
    yield Finding("claims of the dead at a time, at most", f"{most}; each lapses after {LEASE_S:.0f} s", "", met=True)
    yield Finding("the same bytes as undisturbed", "yes" if same else "no", "yes", same)


def studies(folder: Path) -> Iterator[Finding]:
    """All published studies in full, by one command: into an empty store, then from it."""
    folder.mkdir()
    store = folder / "store"

    def run(out: str) -> tuple[float, str]:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall_s = timed("study", "run", "--all", "--store", store, "--out", folder / out)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return wall_s, f"{wall_s:.0f} s ({processor_s:.0f} s of processor), load {os.getloadavg()[1]:.0f}"

    bare_s = 0.0
    for study in available():
        for _, _, plan in plan_study(study):
            began = time.process_time()
            for spec in plan:
                spec.run(_core.Monitor())
            bare_s += time.process_time() - began
    wall_s, told = run("first")
    yield Finding("all studies in full, empty store", told, "240 s", wall_s < 240.0)
    yield Finding("their runs alone, without store, claims and figures", f"{bare_s:.0f} s of processor", "", met=True)
    wall_s, told = run("first")
    yield Finding("all studies again, full store, figures kept", told, "20 s", wall_s < 20.0)
    wall_s, told = run("second")
    yield Finding("all studies again, full store, into another folder", told, "20 s", wall_s < 20.0)


def progress(folder: Path) -> Iterator[Finding]:
    """The time left, as told after a tenth of the work, in processor time: other programs must not count."""
    folder.mkdir()
    off = []
    for study in available():
        specs = [spec for _, _, plan in plan_study(study, quick=True) for spec in plan]
        listing = RunList.of(study.name, specs)
        plan = Store.make(folder / study.name).add_list(listing, batch_of(listing))
        at: list[tuple[float, float]] = []
        began = time.process_time()

        def report(now: Progress, at: list[tuple[float, float]] = at, began: float = began) -> None:
            if now.fraction >= 0.1 and not at:
                at.append((now.fraction, time.process_time() - began))

        Runner(jobs=2, report=report).fill(Store(plan.store), plan)
        took_s = time.process_time() - began
        if at and took_s > 10.0:
            fraction, after_s = at[0]
            told_s = after_s * (1.0 - fraction) / fraction
            off.append((study.name, told_s / (took_s - after_s) - 1.0))
    told = ", ".join(f"{name} {share:+.0%}" for name, share in off)
    yield Finding(
        "time left after a tenth of the work",
        f"{told} of what it took",
        "within 20 %",
        all(abs(o) <= 0.2 for _, o in off),
    )


def duplicates(plan: StoredPlan) -> int:
    """Runs that stand in two files."""
    names = [path.name for path in plan.results.glob("*.parquet")]
    return len(names) - len({name[:17] for name in names})


def contents(plan: StoredPlan) -> dict[str, bytes]:
    """The files with a plan's rows, by name."""
    return {path.name: path.read_bytes() for path in plan.results.glob("*.parquet")}


def start(*words: str | Path) -> subprocess.Popen[bytes]:
    """Starts a command."""
    command = [sys.executable, "-m", "sojourn", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def timed(*words: str | Path) -> float:
    """Runs a command and returns its seconds."""
    began = time.monotonic()
    if start(*words).wait() != 0:
        raise SystemExit(f"sojourn {' '.join(map(str, words))} failed")
    return time.monotonic() - began


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
