"""``sojourn agree``: runs the same file on two backends, or on several kernels, and compares the results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sojourn import _core, storage
from sojourn.api import read_plan, run_plan
from sojourn.backends import Backend, Simulator
from sojourn.cli.options import Jobs, Json, Kernels, On, Out, Set, linux, overrides
from sojourn.cli.outcome import FAILED, Stopped, announce_notes, refuse_invalid, stop_reason
from sojourn.cli.progress import Display
from sojourn.cli.shown import show
from sojourn.linux import Linux
from sojourn.linux.kernel import simulated
from sojourn.manifest import Manifest
from sojourn.results import Results
from sojourn.saving import files_of

DIFFERENT = 1
"""Status if a kernel does not agree with the first."""
UNDECIDED = 125
"""Status if runs failed or are invalid. ``git bisect run`` skips a commit with it."""


def command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The experiment, TOML.")],
    out: Out = None,
    on: On = None,
    kernel: Kernels = None,
    set: Set = None,
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Run an experiment file on the simulator and on Linux, and compare the results.

    The simulator has the TCP of the kernel's version (experiment.kernel), unless --set gives another.
    A discipline follows its own documents unless the file has variant = "linux".
    With --kernel twice or more, compare the kernels with the first; the simulator is shown beside them. Exit status: 0
    if the kernels agree (with one: if the runs were made), 1 if not, 125 if a run failed or is invalid, 2 if the input
    is wrong.
    """
    from sojourn.linux import agreement

    kernels = kernel or []
    backends = _backends(on, kernels)
    replaced = overrides(set)
    plan = read_plan(file, replaced)
    if out is not None:
        storage.prepare(out, agreement.files())
        for folder in (out / name for name in backends):
            Manifest.read(folder).refuse_foreign(files_of(plan, folder))
    try:
        # Check all backends before anything is run.
        like = [*_like(backends), *replaced]
        plans = {name: read_plan(file, like, backend=backend) for name, backend in backends.items()}
        named = {name: _run(name, backend, plans[name], jobs) for name, backend in backends.items()}
        if out is not None:
            try:
                agreement.save(named, directory=out)
            except OSError as error:
                raise Stopped(FAILED, storage.write_failed(out, error)) from None
        if json:
            sys.stdout.write(agreement.as_json(named))
        else:
            show(agreement.table(named))
            for name in list(named)[1:]:
                print(agreement.verdict(named, name))
        refuse_invalid([run for name, results in named.items() if name != Simulator.name for run in results.runs])
    except (Stopped, _core.RunError) as error:
        status = error.status if isinstance(error, Stopped) else FAILED
        if len(kernels) > 1 and status == FAILED:
            raise Stopped(UNDECIDED, str(error)) from None
        raise
    if any(agreement.differences(named)[name] for name in list(named)[1 : len(kernels)]):
        raise Stopped(DIFFERENT, "the kernels do not agree")


def _backends(on: str | None, kernels: list[str]) -> dict[str, Backend]:
    """The backends by name. The first is the reference, with which the others are compared."""
    if len(kernels) < 2:
        return {Simulator.name: Simulator(), "linux": linux(on, kernels[0] if kernels else None)}
    backends: dict[str, Backend] = {}
    for kernel in kernels:
        name = _name(kernel)
        if name in (*backends, Simulator.name):
            raise _core.ExperimentError(
                f'--kernel: got "{kernel}"; must have another name than "{name}", which is taken'
            )
        backends[name] = linux(on, kernel)
    return backends | {Simulator.name: Simulator()}


def _like(backends: dict[str, Backend]) -> list[tuple[str, str]]:
    """The setting that makes the simulator follow the first kernel, with which it is compared."""
    kernel = next(backend for backend in backends.values() if isinstance(backend, Linux))
    return [("experiment.kernel", f'"{simulated(kernel.release)}"')]


def _name(kernel: str) -> str:
    """The name of a kernel in the output: its version, or the name of its folder."""
    return Path(kernel.partition(":")[0]).resolve().name


def _run(name: str, backend: Backend, plan: _core.Plan, jobs: int | None) -> Results:
    announce_notes(backend, plan)
    with Display(f"runs on {name}") as display:
        results, stopped_by = run_plan(plan, jobs=jobs, backend=backend, report=display)
    if stopped_by is not None:
        raise stop_reason(stopped_by, f"{len(results.runs)} of {len(plan.jobs)} runs finished on {name}")
    return results
