"""``sojourn run``: runs an experiment file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sojourn import _core, storage
from sojourn.api import read_plan, run_plan
from sojourn.backends import Backend as AnyBackend
from sojourn.cli.options import Backend, Baseline, Jobs, Json, Kernel, On, Out, Set, Until, chosen, overrides
from sojourn.cli.outcome import FAILED, Stopped, announce_notes, refuse_invalid, stop_reason
from sojourn.cli.progress import Display
from sojourn.paired import check_baseline
from sojourn.precision import Precision
from sojourn.recording import Recording
from sojourn.results import Results, Run
from sojourn.storage import Staging
from sojourn.tables import plain, results_table


def command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The experiment, TOML.")],
    out: Out = None,
    backend: Backend = "sim",
    on: On = None,
    kernel: Kernel = None,
    set: Set = None,
    jobs: Jobs = None,
    baseline: Baseline = None,
    until: Until = None,
    json: Json = False,
) -> None:
    """Run an experiment file and show its results."""
    precision = None if until is None else Precision.parse(until)
    where = chosen(backend, on, kernel)
    plan = read_plan(file, overrides(set), backend=where)
    run_and_show(plan, backend=where, out=out, jobs=jobs, baseline=baseline, until=precision, json=json)


def run_and_show(
    plan: _core.Plan,
    *,
    backend: AnyBackend,
    out: Path | None,
    jobs: int | None,
    baseline: str | None,
    json: bool,
    until: Precision | None = None,
) -> None:
    """Runs a plan, writes what was asked for and prints the tables, or summary.json.

    Raises
    ------
    ExperimentError
        No queue is called like the baseline, or there are too few repeats for ``until``; nothing was run.
    Stopped
        A run failed, the user interrupted, or the results could not be written.
    OutputError
        ``out`` cannot be written to; nothing was run.
    """
    if baseline is not None:
        check_baseline(baseline, [label for _, _, _, label in plan.jobs])
    announce_notes(backend, plan)
    runner = partial(run_plan, plan, jobs=jobs, backend=backend, until=until)
    finished, stopped_by = _run(runner) if out is None else _run_and_save(out, runner)
    planned = finished.summary.get("planned_runs", len(finished.runs))
    kept = f"{len(finished.runs)} of {planned} runs finished"
    if out is not None and finished.runs:
        kept += f", kept in {out / 'summary.json'}"
    if finished.runs:
        _print(finished, baseline=baseline, json=json)
    if stopped_by is not None:
        raise stop_reason(stopped_by, kept)
    for line in finished.missed:
        print(line, file=sys.stderr)
    refuse_invalid(finished.runs)


Runner = Callable[..., tuple[Results, BaseException | None]]


def _run(runner: Runner, record: Callable[[Run], Run] | None = None) -> tuple[Results, BaseException | None]:
    with Display() as display:
        return runner(report=display, record=record)


def _run_and_save(out: Path, runner: Runner) -> tuple[Results, BaseException | None]:
    storage.prepare(out)
    try:
        with Staging(out) as staging:
            with Recording(staging) as recording:
                results, stopped_by = _run(runner, recording.add)
            if results.runs:
                stopped_by = _stage(results, staging, stopped_by)
        return results, stopped_by
    except OSError as error:
        raise Stopped(FAILED, storage.write_failed(out, error)) from None


def _stage(results: Results, staging: Staging, stopped_by: BaseException | None) -> BaseException | None:
    # An interrupted user waits for nothing but what cannot be made again.
    try:
        results.stage(staging, plots=stopped_by is None)
    except KeyboardInterrupt as interrupt:
        results.stage(staging, plots=False)
        return interrupt
    return stopped_by


def _print(results: Results, *, baseline: str | None, json: bool) -> None:
    if json:
        sys.stdout.write(results.to_json())
        sys.stdout.flush()
        return
    console = Console() if sys.stdout.isatty() else None
    tables = [results.table() if console is None else results_table(results, width=console.width)]
    if baseline is not None and any(run.label == baseline for run in results.runs):
        tables.append(results.paired(baseline))
    for table in tables:
        if console is None:
            print(plain(table))
        else:
            console.print(table)
    sys.stdout.flush()
