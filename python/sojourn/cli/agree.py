"""``sojourn agree``: runs the same file on two backends and compares the results."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sojourn import storage
from sojourn.api import read_plan, run_plan
from sojourn.backends import Backend, Simulator
from sojourn.cli.options import Jobs, Json, Kernel, On, Out, Set, linux, overrides
from sojourn.cli.outcome import FAILED, Stopped, announce_notes, refuse_invalid, stop_reason
from sojourn.cli.progress import Display
from sojourn.cli.shown import show
from sojourn.manifest import Manifest
from sojourn.results import Results
from sojourn.saving import files_of


def command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The experiment, TOML.")],
    out: Out = None,
    on: On = None,
    kernel: Kernel = None,
    set: Set = None,
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Run an experiment file on the simulator and on Linux, and compare the results."""
    from sojourn.linux import agreement

    replaced = overrides(set)
    backends = Simulator(), linux(on, kernel)
    if out is not None:
        storage.prepare(out, agreement.files())
        plan = read_plan(file, replaced)
        for backend in backends:
            folder = out / backend.name
            Manifest.read(folder).refuse_foreign(files_of(plan, folder))
    both = _run(file, backends[0], replaced, jobs), _run(file, backends[1], replaced, jobs)
    if out is not None:
        try:
            agreement.save(*both, directory=out)
        except OSError as error:
            raise Stopped(FAILED, storage.write_failed(out, error)) from None
    if json:
        sys.stdout.write(agreement.as_json(*both))
    else:
        show(agreement.table(*both))
    refuse_invalid(both[1].runs)


def _run(file: str, backend: Backend, replaced: list[tuple[str, str]], jobs: int | None) -> Results:
    plan = read_plan(file, replaced, backend=backend)
    announce_notes(backend, plan)
    with Display(f"runs on {backend.name}") as display:
        results, stopped_by = run_plan(plan, jobs=jobs, backend=backend, report=display)
    if stopped_by is not None:
        raise stop_reason(stopped_by, f"{len(results.runs)} of {len(plan.jobs)} runs finished on {backend.name}")
    return results
