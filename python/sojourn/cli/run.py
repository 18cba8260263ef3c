"""``sojourn run``: runs an experiment file."""

from __future__ import annotations

import json as json_
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

from rich.table import Table

from sojourn import _core
from sojourn.cli import estimate, options, outcome
from sojourn.cli.outcome import FAILED, Stopped
from sojourn.cli.output import show, width
from sojourn.cli.parameters import argument
from sojourn.cli.progress import Display
from sojourn.files import storage
from sojourn.frame.pairs import check_compared
from sojourn.frame.results import Results
from sojourn.page.pairs import paired_groups_sheet, paired_sheet
from sojourn.page.sheet import as_table, fitting, shortened
from sojourn.page.tables import groups_sheet, groups_table, inner_sheet, overview_sheet, results_table, stations_sheet
from sojourn.runs.costs import refuse_too_large
from sojourn.runs.executors import executor_of
from sojourn.runs.plan import read_plan
from sojourn.runs.precision import Precision, Rounds
from sojourn.store.runner import AS_THEY_ARE, Finished, Runner
from sojourn.store.saving import Saved, Unsaved, left_out_text, run_into


def command(
    file: Annotated[str, argument("The experiment, TOML.", "FILE")],
    out: options.Out = None,
    figures: options.Figures = options.BY_DEFAULT,
    backend: options.Backend = "sim",
    on: options.On = None,
    kernel: options.Kernel = None,
    set: options.Set = None,
    jobs: options.Jobs = None,
    executor: options.Executor = "threads",
    baseline: options.Baseline = None,
    until: options.Until = None,
    store: options.KeptRuns = None,
    resume: options.Resume = False,
    dry_run: options.DryRun = False,
    json: options.Json = False,
) -> None:
    """Run an experiment file and show its results."""
    if resume and out is None:
        raise _core.ExperimentError("--resume: needs --out, the directory that the run went to")
    formats = options.formats_of(figures)
    precision = None if until is None else Precision.parse(until)
    where = options.chosen(backend, on, kernel)
    make = executor_of(executor)
    plan = read_plan(file, options.overrides(set), backend=where)
    if baseline is not None:
        _check_baseline(baseline, plan)
    if dry_run:
        found = estimate.estimate(plan, where, jobs=jobs, out=out if resume else None, formats=formats)
        print(json_.dumps(found) if json else estimate.sentence(found))
        return
    rounds = None if precision is None else Rounds(plan, precision)
    runner = Runner(where, make, jobs, options.kept_runs(store))
    run_and_show(plan, runner, out=out, figures=formats, baseline=baseline, rounds=rounds, resume=resume, json=json)


def _check_baseline(baseline: str, plan: _core.Plan) -> None:
    arms = {(cell, label): index for index, (cell, _, _, label) in enumerate(plan.jobs)}
    check_compared(baseline, ((json_.loads(plan[index].set_json), label) for (_, label), index in arms.items()))


def run_and_show(
    plan: _core.Plan,
    runner: Runner,
    *,
    out: Path | None,
    figures: Sequence[str],
    baseline: str | None,
    json: bool,
    rounds: Rounds | None = None,
    resume: bool = False,
) -> None:
    """Runs a plan, saves its results and prints the tables, or summary.json; Stopped says what went wrong."""
    if baseline is not None:
        _check_baseline(baseline, plan)
    outcome.announce_notes(runner.backend, plan)
    if runner.backend.name == "sim":
        refuse_too_large(estimate.first_seeds(plan), runner.workers(len(plan.jobs)))
    if len(plan.jobs) >= LARGE_RUNS:
        found = estimate.estimate(plan, runner.backend, jobs=runner.jobs)
        print(estimate.sentence(found), file=sys.stderr, flush=True)
    if out is not None:
        outcome.announce_lacking(figures)
    elif runner.store is None:
        outcome.announce_unkept(plan)

    def make(finished: Finished = AS_THEY_ARE) -> tuple[Results, BaseException | None]:
        display = Display() if out is None else Display(then=f", writing {out}", again="leaves them for --resume")
        # Keep the output of a user's discipline off standard output.
        with display, redirect_stdout(sys.stderr):
            return replace(runner, report=display).run_plan(plan, finished, rounds=rounds)

    if out is None:
        saved = Saved(*make())
    else:
        say = partial(print, file=sys.stderr)
        try:
            saved = run_into(
                out, plan, runner.backend, make, resume=resume, figures=figures, baseline=baseline, say=say
            )
        except Unsaved as unsaved:
            raise _not_saved(out, unsaved) from None
    finished = saved.results
    planned = finished.summary.get("planned_runs", len(finished.runs))
    kept = f"{len(finished.runs)} of {planned} runs finished"
    if out is not None and finished.runs:
        kept += f", kept in {out / 'summary.json'}"
        # The cause of a RunError is an exception in a user's algorithm: once its file is mended, the runs are others.
        if saved.stopped_by is not None and saved.stopped_by.__cause__ is None:
            kept += "; --resume continues from there"
    if finished.runs:
        _print(finished, baseline=baseline, json=json, out=out, short=saved.stopped_by is not None)
    if saved.stopped_by is not None:
        raise outcome.stop_reason(saved.stopped_by, kept)
    if saved.left_out:
        raise Stopped(FAILED, f"{out}: left out {left_out_text(saved.left_out)}; {kept}")
    for line in finished.missed:
        print(line, file=sys.stderr)
    outcome.refuse_invalid(finished.runs)


def _not_saved(out: Path, unsaved: Unsaved) -> Stopped:
    kept = f"{unsaved.resumable} finished runs are kept for --resume" if unsaved.resumable else "no run is kept"
    if isinstance(unsaved.cause, KeyboardInterrupt):
        return Stopped(outcome.INTERRUPTED, f"interrupted before the results were written; {kept}")
    why = storage.write_failed(out, unsaved.cause) if isinstance(unsaved.cause, OSError) else unsaved.cause
    return Stopped(FAILED, f"{why}; {kept}")


LARGE_RUNS = 20_000  # from this many runs on, the estimate is announced before they start
SHORT = 12  # most queues and cells in the table of an interrupted run
SCREEN = 20  # most queues and cells in the table of a finished experiment; beyond that, one row per queue
INNER_ROWS = 8  # most rows of inner queues; beyond that, they are only in summary.csv


def _print(results: Results, *, baseline: str | None, json: bool, out: Path | None, short: bool) -> None:
    if json:
        sys.stdout.write(results.to_json())
        sys.stdout.flush()
        return
    most, whole = SHORT if short else SCREEN, results
    more = max(0, len(results.arms) - most)
    if more:
        results = results.of_runs([run for arm in results.arms[:most] for run in arm.runs])
    wide = width()
    tables, left_out = tables_of(results, wide, short=short)
    if baseline is not None:
        all_in = f"all are in {out / 'differences.csv'}" if out is not None else "--out DIR writes all"
        if (of_queues := paired_sheet(whole, baseline)).rows:
            tables.append(as_table(shortened(of_queues, most, all_in)))
        if (of_groups := paired_groups_sheet(whole, baseline)) is not None and of_groups.rows:
            tables += filter(None, [groups_table(shortened(of_groups, most, all_in), wide)])
    for table in tables:
        show(table)
    where = f"all are in {out / 'summary.csv'}" if out is not None else "--out DIR writes all, --json prints them"
    if more:
        print(f"and {more} more: {where}")
    elif left_out:
        print(f"Drops, utilization, RTTs and other measurements: {where}")
    sys.stdout.flush()


def tables_of(results: Results, wide: int, *, short: bool) -> tuple[list[Table], bool]:
    """The tables to print, and whether they omit figures."""
    whole = results_table(results, width=wide)
    if short:
        return [whole], False
    of_groups = groups_table(groups_sheet(results), wide)
    glance = fitting(overview_sheet(results), wide)
    rows = whole.row_count + (0 if of_groups is None else of_groups.row_count)
    if glance is not None and rows > SCREEN:
        return [glance], True
    on_air = fitting(stations_sheet(results), wide, SCREEN)
    inner = fitting(inner_sheet(results), wide, INNER_ROWS)
    return [table for table in (whole, of_groups, on_air, inner) if table is not None], False
