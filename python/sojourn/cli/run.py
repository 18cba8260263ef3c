"""``sojourn run``: runs an experiment file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sojourn import _core, storage
from sojourn.api import read_plan, run_plan
from sojourn.cli.options import Backend, Jobs, Json, Out, Set, overrides
from sojourn.cli.outcome import FAILED, Stopped, stop_reason
from sojourn.cli.progress import Display
from sojourn.results import Results
from sojourn.tables import plain


def command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The experiment, TOML.")],
    out: Out = None,
    backend: Backend = "sim",
    set: Set = None,
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Run an experiment file and show its results."""
    run_and_show(read_plan(file, overrides(set), backend=backend), backend=backend, out=out, jobs=jobs, json=json)


def run_and_show(plan: _core.Plan, *, backend: str, out: Path | None, jobs: int | None, json: bool) -> None:
    """Runs a plan, writes what was asked for and prints the table, or summary.json.

    Raises
    ------
    Stopped
        A run failed, the user interrupted, or the results could not be written.
    OutputError
        ``out`` cannot be written to; nothing was run.
    """
    if out is not None:
        storage.prepare(out)
    with Display() as display:
        results, stopped_by = run_plan(plan, jobs=jobs, backend=backend, report=display)
    finished = f"{len(results.runs)} of {len(plan.jobs)} runs finished"
    if out is not None and results.runs:
        # An interrupted user waits for nothing but what cannot be made again.
        _save(results, out, plots=stopped_by is None)
        finished += f", kept in {out / 'summary.json'}"
    if results.runs:
        _print(results, json=json)
    if stopped_by is not None:
        raise stop_reason(stopped_by, finished)


def _save(results: Results, out: Path, *, plots: bool) -> None:
    try:
        try:
            results.save(out, plots=plots)
        except KeyboardInterrupt:
            # Figures can be drawn again, runs not.
            results.save(out, plots=False)
            raise
    except OSError as error:
        raise Stopped(FAILED, storage.write_failed(out, error)) from None


def _print(results: Results, *, json: bool) -> None:
    if json:
        sys.stdout.write(results.to_json())
    elif sys.stdout.isatty():
        Console().print(results.table())
    else:
        print(plain(results.table()))
    sys.stdout.flush()
