"""Estimates an experiment's time and memory from trials of a few of its runs."""

from __future__ import annotations

import json as json_
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict

from sojourn import _core
from sojourn.backends import Backend
from sojourn.executors import default_workers
from sojourn.footprint import queued_bytes
from sojourn.journal import LeftBehind
from sojourn.keys import plan_key
from sojourn.linux import Linux
from sojourn.trial import trial

LARGE_RUNS = 20_000
"""From this many runs on, the estimate is announced before they start."""
SAMPLES = 3
"""Number of trial runs."""
SAMPLE_S = 0.5
"""Duration of each trial."""
LIKELY_SUMMARY_KB = 4.0
"""Assumed size of a run's summary if no trial finished."""
BASE_MB = 120.0
"""Memory of the process with a small experiment."""
PLAN_KB = 7.0
"""Memory of a pending run, with its key and its part of experiment.json."""
MOST_LOOKS = 200
"""Most runs whose queues are looked at."""
SUMMARY_FACTOR = 5.0
"""Memory of a run's summary, as a multiple of its JSON's length."""


class Estimate(TypedDict):
    """The output of ``--dry-run --json``."""

    runs: int
    stored: int
    """Runs that ``--resume`` skips, because they are finished."""
    estimate_s: float
    """Wall time of the remaining runs, without figures."""
    estimate_mb: float
    """Memory of the process, without recorded tables."""


def estimate(plan: _core.Plan, backend: Backend, *, jobs: int | None, out: Path | None = None) -> Estimate:
    """Estimates from short trials of a few runs; ``out`` is the directory that ``--resume`` would continue."""
    stored = 0
    if out is not None and out.is_dir():
        left = LeftBehind(out)
        stored = left.runs_of(plan_key(plan, backend))
        left.close(remove=False)
    return _sum([_effort(plan, backend, SAMPLES, stored)], jobs, stored)


def estimate_all(plans: Sequence[_core.Plan], backend: Backend, *, jobs: int | None) -> Estimate:
    """The joint estimate of several experiments, from a trial run of each."""
    return _sum([_effort(plan, backend, 1) for plan in plans], jobs)


class _Effort(NamedTuple):
    """The cost of an experiment."""

    runs: int
    wall_s: float
    """Wall time on one thread."""
    megabytes: float
    """Memory of its runs once they are finished."""
    queued_mb: float
    """Memory of the packets in the queues of a run."""


def _effort(plan: _core.Plan, backend: Backend, samples: int, stored: int = 0) -> _Effort:
    runs = len(plan.jobs)
    simulated_s = sum(spec.duration_s for spec in plan) * (runs - stored) / runs
    if isinstance(backend, Linux):
        wall_s, summary_kb = backend.wall_s(simulated_s, runs - stored), None
    else:
        places = sorted({round(place * (runs - 1) / max(1, samples - 1)) for place in range(samples)})
        pace, summary_kb = trial((plan[place] for place in places), backend, SAMPLE_S)
        wall_s = simulated_s / pace
    megabytes = runs * (PLAN_KB + SUMMARY_FACTOR * (summary_kb or LIKELY_SUMMARY_KB)) / 1000
    queued_mb = max(map(queued_bytes, first_seeds(plan)), default=0.0) / 1e6
    return _Effort(runs, wall_s, megabytes, queued_mb)


def first_seeds(plan: _core.Plan) -> Iterator[_core.RunSpec]:
    """A run of every queue and combination; of very many, some."""
    first = plan.jobs[0][2] if plan.jobs else 0
    places = [place for place, (_, _, seed, _) in enumerate(plan.jobs) if seed == first]
    for place in places[:: max(1, len(places) // MOST_LOOKS)]:
        yield plan[place]


def _sum(efforts: Sequence[_Effort], jobs: int | None, stored: int = 0) -> Estimate:
    runs = sum(one.runs for one in efforts)
    wall_s = sum(one.wall_s for one in efforts) / min(jobs or default_workers(), max(1, runs))
    at_once = min(jobs or default_workers(), max(1, runs))
    megabytes = BASE_MB + sum(one.megabytes for one in efforts)
    megabytes += at_once * max((one.queued_mb for one in efforts), default=0.0)
    return {
        "runs": runs,
        "stored": stored,
        "estimate_s": round(wall_s, 1),
        "estimate_mb": round(megabytes, 1),
    }


def show(plan: _core.Plan, backend: Backend, *, jobs: int | None, out: Path | None, json: bool) -> None:
    """Prints an estimate."""
    found = estimate(plan, backend, jobs=jobs, out=out)
    print(json_.dumps(found) if json else sentence(found))


def announce_large(plan: _core.Plan, backend: Backend, *, jobs: int | None) -> None:
    """Prints the estimate of a large experiment on standard error."""
    if len(plan.jobs) >= LARGE_RUNS:
        print(sentence(estimate(plan, backend, jobs=jobs)), file=sys.stderr, flush=True)


def sentence(found: Estimate) -> str:
    """An estimate in words."""
    stored = f", {found['stored']} of them finished" if found["stored"] else ""
    return (
        f"{found['runs']} runs{stored}: about {_time(found['estimate_s'])} and {found['estimate_mb']:.0f} MB of memory"
    )


def _time(seconds: float) -> str:
    if seconds < 120.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200.0 else f"{seconds / 3600:.1f} h"
