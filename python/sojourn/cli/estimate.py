"""Estimates an experiment's time and memory from trials of a few of its runs."""

from __future__ import annotations

import json as json_
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict

from sojourn import _core, linux
from sojourn.figure.filenames import FORMATS, MOST_ARMS
from sojourn.frame.swept import links_in
from sojourn.runs.backends import Backend
from sojourn.runs.costs import FLOW_BYTES, FLOW_SUMMARY_BYTES, flows_of, is_python, queued_bytes, recording, trial
from sojourn.runs.executors import default_workers
from sojourn.store.journal import LeftBehind, plan_key

SAMPLES = 3
MOST_SAMPLES = 8
SAMPLE_S = 0.4
BASE_SUMMARY_KB = 2.0  # size of a run's summary without its flows
BASE_MB = 60.0  # memory of the process with a small experiment; measured, as the following
TABLES_MB, FIGURES_MB = 45.0, 105.0  # memory of the libraries that write tables, and of those that draw figures
PLAN_KB = 7.0  # memory of a pending run, with its key and its part of experiment.json
MOST_LOOKS = 200  # most runs whose queues are looked at
KEPT_FACTOR, SUMMARY_FACTOR = 6.0, 15.0
"""Memory of a run's summary, as a multiple of its JSON's length: until it is written, and when it is."""
WRITTEN_FACTOR = 1.6  # length of a run's summary in summary.json, which is indented, as a multiple of that in one line
SUMMARY_MB_S = 0.18  # reading and writing a megabyte of summaries, which only one thread does
MEASURED_KB = 2.5  # a run's part of a study's claims.json and measured.json
START_S = 1.6  # start and end of the process, with --out
FIGURE_S, FORMAT_S = 0.2, 0.12  # drawing a figure, and saving it in one format
FIGURE_BYTES = 60_000.0  # a figure on disk, in one format
PER_ARM = 6  # figures drawn by default, each way, with a line or mark per queue and combination of swept values


class Estimate(TypedDict):
    """The output of ``--dry-run --json``: for an idle machine like this one."""

    runs: int
    stored: int
    """Runs that ``--resume`` skips, because they are finished."""
    estimate_s: float
    """Wall time of the remaining runs, without figures."""
    figures_s: float
    """Wall time of the figures that ``--out`` saves."""
    estimate_mb: float
    """Memory of the process, with ``--out``."""
    disk_mb: float
    """Disk space of the results, with ``--out``."""


def estimate(
    plan: _core.Plan, backend: Backend, *, jobs: int | None, out: Path | None = None, formats: Sequence[str] = FORMATS
) -> Estimate:
    """Estimates from short trials of a few runs; ``out`` is the directory that ``--resume`` would continue."""
    stored = 0
    if out is not None and out.is_dir():
        left = LeftBehind(out)
        stored = left.runs_of(plan_key(plan, backend))
        left.close(remove=False)
    return _sum([_effort(plan, backend, SAMPLES, stored)], jobs, _figures(plan), formats, stored)


def estimate_study(
    plans: Sequence[_core.Plan],
    variants: Sequence[Sequence[_core.Plan]],
    backend: Backend,
    *,
    jobs: int | None,
    figures: int,
    formats: Sequence[str] = FORMATS,
) -> Estimate:
    """The estimate of a study: its runs and those of one variant at a time are kept until claims are judged."""
    efforts = [[_effort(plan, backend, 1, 0) for plan in own] for own in (plans, *variants)]
    kept_mb = [sum(one.kept_mb for one in own) for own in efforts]
    together = [one._replace(megabytes=0.0, disk_mb=0.0) for own in efforts for one in own]
    together[: len(plans)] = [one._replace(disk_mb=one.runs * MEASURED_KB / 1000) for one in together[: len(plans)]]
    at_most_mb = kept_mb[0] + max(kept_mb[1:], default=0.0)
    return _sum(together, jobs, figures, formats, kept_mb=at_most_mb)


class _Effort(NamedTuple):
    """The cost of an experiment."""

    runs: int
    wall_s: float
    """Wall time of what can be made in parallel, on one thread."""
    alone_s: float
    """The part of it that Python makes, one run at a time."""
    summaries_s: float
    megabytes: float
    """Memory of its runs once they are finished."""
    kept_mb: float
    """The same, with all that they record, if nothing is written."""
    at_once_mb: list[float]
    """Memory of runs while they are made."""
    disk_mb: float


def _effort(plan: _core.Plan, backend: Backend, samples: int, stored: int) -> _Effort:
    runs = len(plan.jobs)
    looks = [plan[index] for index in range(0, runs, max(1, runs // MOST_LOOKS))]
    left = (runs - stored) / len(looks)
    alone_s = 0.0
    measured: dict[str, float] = {}
    if isinstance(backend, linux.Linux | linux.Datapath):
        simulated_s = sum(spec.duration_s for spec in looks) * left
        wall_s, summary_kb = backend.wall_s(simulated_s, runs - stored), None
    else:
        tried = trial(_samples(plan, samples), SAMPLE_S)
        summary_kb, measured = tried.summary_kb, tried.memory
        wall_s = sum(map(tried.cpu_s, looks)) * left
        alone_s = sum(tried.cpu_s(spec) for spec in looks if is_python(spec)) * left
    summary_kb = summary_kb or BASE_SUMMARY_KB + FLOW_SUMMARY_BYTES * sum(map(flows_of, looks)) / len(looks) / 1000
    recordings = [recording(spec) for spec in looks]
    queued = max(map(queued_bytes, first_seeds(plan)), default=0.0)
    # A queue allocates its state with its first packet, which only the trials show: a tree may have a thousand CAKEs.
    at_once = [
        (queued + max(FLOW_BYTES * flows_of(spec), measured.get(spec.queue, 0.0)) + own.memory) / 1e6
        for spec, own in zip(looks, recordings, strict=True)
    ]
    disk = runs * (1000 * WRITTEN_FACTOR * summary_kb + sum(one.disk for one in recordings) / len(looks))
    kept_kb = PLAN_KB + KEPT_FACTOR * summary_kb + sum(one.kept for one in recordings) / len(looks) / 1000
    summaries_s = (runs - stored) * summary_kb / 1000 * SUMMARY_MB_S
    megabytes = runs * (PLAN_KB + SUMMARY_FACTOR * summary_kb) / 1000
    return _Effort(runs, wall_s, alone_s, summaries_s, megabytes, runs * kept_kb / 1000, at_once, disk / 1e6)


def _samples(plan: _core.Plan, samples: int) -> list[_core.RunSpec]:
    """Runs from the beginning to the end of a plan, and one of each arm, if there are few."""
    last = len(plan.jobs) - 1
    spread = [round(index * last / max(1, samples - 1)) for index in range(samples)]
    of_arm: dict[str, int] = {}
    for index, (_, _, _, label) in enumerate(plan.jobs):
        of_arm.setdefault(label, index)
    first = list(of_arm.values()) if samples > 1 else []
    return [plan[index] for index in dict.fromkeys([*spread, *first])][:MOST_SAMPLES]


def _figures(plan: _core.Plan) -> int:
    """About how many figures are drawn by default."""
    cells = len({cell for cell, _, _, _ in plan.jobs})
    arms = len({(cell, label) for cell, _, _, label in plan.jobs})
    keys = len(json_.loads(plan[0].set_json)) if plan.jobs else 0
    links = links_in(json_.loads(plan[0].document)["experiment"]) if plan.jobs else []
    ways = 2 if any(isinstance(link.get("up"), dict) for link in links) else 1
    return (2 * keys * ways if cells > 1 else 1) + (PER_ARM * ways if arms <= MOST_ARMS else 0)


def first_seeds(plan: _core.Plan) -> Iterator[_core.RunSpec]:
    """A run of every queue and combination; of very many, some."""
    first = plan.jobs[0][2] if plan.jobs else 0
    indices = [index for index, (_, _, seed, _) in enumerate(plan.jobs) if seed == first]
    for index in indices[:: max(1, len(indices) // MOST_LOOKS)]:
        yield plan[index]


def _sum(
    efforts: Sequence[_Effort],
    jobs: int | None,
    figures: int,
    formats: Sequence[str],
    stored: int = 0,
    kept_mb: float = 0.0,
) -> Estimate:
    figures = figures if formats else 0
    runs = sum(one.runs for one in efforts)
    at_once = min(jobs or default_workers(), max(1, runs))
    processors = min(at_once, default_workers())
    wall_s = max(sum(one.wall_s for one in efforts) / processors, sum(one.alone_s for one in efforts))
    wall_s += sum(one.summaries_s for one in efforts)
    megabytes = BASE_MB + TABLES_MB + (FIGURES_MB if figures else 0.0) + kept_mb
    megabytes += sum(one.megabytes for one in efforts)
    megabytes += sum(sorted((mb for one in efforts for mb in one.at_once_mb), reverse=True)[:at_once])
    return {
        "runs": runs,
        "stored": stored,
        "estimate_s": round(START_S + wall_s if runs > stored else 0.0, 1),
        "figures_s": round(figures * (FIGURE_S + FORMAT_S * len(formats)), 1),
        "estimate_mb": round(megabytes, 1),
        "disk_mb": round(sum(one.disk_mb for one in efforts) + figures * FIGURE_BYTES * len(formats) / 1e6, 2),
    }


def sentence(found: Estimate) -> str:
    """An estimate in words."""
    stored = f", {found['stored']} of them finished" if found["stored"] else ""
    figures = f", {in_time(found['figures_s'])} more for figures" if found["figures_s"] else ""
    return (
        f"{in_runs(found['runs'])}{stored}: about {in_time(found['estimate_s'])}{figures} on this machine if it is "
        f"idle, {in_bytes(found['estimate_mb'])} of memory and with --out {in_bytes(found['disk_mb'])} on disk"
    )


def in_runs(runs: int) -> str:
    """``1 run``, ``2 runs``."""
    return f"{runs} run{'' if runs == 1 else 's'}"


def in_time(seconds: float) -> str:
    """A time in the unit that people use for it."""
    for unit, least_s, digits in (("days", 172_800.0, 0), ("h", 7200.0, 1), ("min", 120.0, 0)):
        if seconds >= least_s:
            return f"{seconds / {'days': 86_400.0, 'h': 3600.0, 'min': 60.0}[unit]:,.{digits}f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 1.0 else "1 s"


def in_bytes(megabytes: float) -> str:
    """A size in the unit that people use for it."""
    for unit, of_unit in (("PB", 1e9), ("TB", 1e6), ("GB", 1e3)):
        if megabytes >= of_unit:
            return f"{megabytes / of_unit:.3g} {unit}"
    return f"{megabytes:.0f} MB" if megabytes >= 10.0 else f"{max(megabytes, 0.1):.1f} MB"
