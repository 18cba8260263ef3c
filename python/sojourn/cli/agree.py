"""``sojourn agree``: runs the same file on several backends or kernels, and compares the results."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

from sojourn import _core
from sojourn.cli.options import Jobs, Json, Kernels, On, Out, Set, chosen, on_linux, overrides
from sojourn.cli.outcome import FAILED, Stopped, announce_notes, refuse_invalid, stop_reason
from sojourn.cli.output import show, writing
from sojourn.cli.parameters import argument, flag, option
from sojourn.cli.progress import Display
from sojourn.files import storage
from sojourn.files.manifest import Manifest
from sojourn.frame.results import Results, Run
from sojourn.linux import Datapath, Linux
from sojourn.page.sheet import as_table
from sojourn.runs.backends import BACKENDS, Backend, Simulator, backend_of
from sojourn.runs.plan import read_plan
from sojourn.store.runner import Finished, Runner
from sojourn.store.saving import files_of
from sojourn.studies.agreement import backends as agreement
from sojourn.studies.agreement import courses
from sojourn.studies.tolerances import Equivalence

DIFFERENT = 1  # status if a kernel differs from the first
UNDECIDED = 125
"""Status if too few repeats were made to say, or runs failed or are invalid. ``git bisect run`` skips such a commit."""
MOST_REPEATS = 200
FIRST_STEP = 4  # added to twice the repeats so far: the most that are tried next


def command(
    file: Annotated[str, argument("The experiment, TOML.", "FILE")],
    out: Out = None,
    backend: Annotated[str, option("Where to run it, with commas: sim, linux, datapath.", "NAMES")] = "sim,linux",
    on: On = None,
    kernel: Kernels = None,
    set: Set = None,
    jobs: Jobs = None,
    json: Json = False,
    until: Annotated[
        str | None,
        option(
            f"Repeat until there is a verdict, at most {MOST_REPEATS} times, first experiment.repeat times.", "decided"
        ),
    ] = None,
    packets: Annotated[bool, flag("Name the first packet that differs in every run.", "--packets")] = False,
) -> None:
    """Run an experiment file on the simulator and on Linux, and judge whether the results agree.

    The first of several backends is the reference, with which the others are compared.
    The simulator has the TCP of the kernel's version (experiment.kernel), unless --set gives another. Beside a built
    kernel, packets leave a queue before others arrive there at the same instant (experiment.ties).
    A discipline follows its own documents unless the file has variant = "linux".
    The verdict rests on the scatter of both over the seeds: agrees, differs, or not enough repeats to say.
    With --kernel twice or more, compare the kernels with the first; the simulator is shown beside them. Exit status: 0
    if the kernels agree (with one: if the runs were made), 1 if they differ, 125 if there are too few repeats to say,
    or a run failed or is invalid, 2 if the input is wrong.
    """
    if until not in (None, "decided"):
        raise _core.ExperimentError(f'--until: got "{until}"; must be decided')

    kernels = kernel or []
    backends = _backends(backend, on, kernels)
    replaced = [*overrides(set), *([("record.packets", "true")] if packets else [])]
    plan = read_plan(file, replaced)
    with ExitStack() as stack:
        if out is not None:
            stack.enter_context(storage.reserved(out, agreement.files()))
            for folder in (out / name for name in backends):
                Manifest.read(folder).refuse_foreign(files_of(plan, folder))
        stack.enter_context(_told_of_kernels(kernels))
        # The simulator follows the first kernel, with which it is compared.
        first = next(one for one in backends.values() if isinstance(one, Linux | Datapath))
        like = [*((key, f'"{value}"') for key, value in first.followed.items()), *replaced]
        # Check all backends before anything is run.
        plans = {name: read_plan(file, like, backend=backend) for name, backend in backends.items()}
        for name, one in backends.items():
            announce_notes(one, plans[name])
        kept: dict[str, dict[str, Run]] = {name: {} for name in backends}
        look = 1
        while True:
            named = {name: _run(name, backend, plans[name], jobs, kept[name]) for name, backend in backends.items()}
            judged = agreement.verdicts(named, look)
            of_kernels = list(judged)[: len(kernels) - 1 if len(kernels) > 1 else None]
            more = _more(named, [judged[name] for name in of_kernels]) if until is not None else None
            if more is None:
                break
            look += 1
            print(f"no verdict yet: {more} repeats", file=sys.stderr)
            again = [*like, ("experiment.repeat", str(more))]
            plans = {name: read_plan(file, again, backend=backend) for name, backend in backends.items()}
        if out is not None:
            with writing(out):
                agreement.save(named, directory=out, look=look, packets=packets)
        if json:
            sys.stdout.write(agreement.as_json(named, look, packets=packets))
        else:
            show(as_table(agreement.sheet(named, look)))
            for line in agreement.sentences(named, look):
                print(line)
            for line in courses.sentences(named) if packets else ():
                print(line)
        refuse_invalid([run for name, results in named.items() if name != Simulator.name for run in results.runs])
    if len(kernels) > 1:
        verdicts = {judged[name].verdict for name in of_kernels}
        if Equivalence.DIFFERS in verdicts:
            raise Stopped(DIFFERENT, "the kernels differ")
        if Equivalence.UNDECIDED in verdicts:
            raise Stopped(UNDECIDED, "not enough repeats to say whether the kernels agree")


@contextmanager
def _told_of_kernels(kernels: list[str]) -> Iterator[None]:
    """Of several kernels nothing can be said if a run failed or is invalid."""
    try:
        yield
    except (Stopped, _core.RunError) as error:
        if len(kernels) > 1 and (not isinstance(error, Stopped) or error.status == FAILED):
            raise Stopped(UNDECIDED, str(error)) from None
        raise


def _more(named: dict[str, Results], judged: list[agreement.ResultVerdict]) -> int | None:
    """The number of repeats to try next; None if there is a verdict on every kernel, or the most were made."""
    done = min(len({run.seed for run in results.runs}) for results in named.values())
    open_ones = [one for one in judged if one.verdict is Equivalence.UNDECIDED]
    if not open_ones or done >= MOST_REPEATS:
        return None
    estimated = [MOST_REPEATS if one.repeats is None else one.repeats for one in open_ones]
    return min(max(*estimated, done + 1), 2 * done + FIRST_STEP, MOST_REPEATS)


def _backends(given: str, on: str | None, kernels: list[str]) -> dict[str, Backend]:
    """The backends by name, the reference first: of several kernels the first, in the place of Linux."""
    names = given.split(",")
    if len(names) < 2 or len(set(names)) < len(names) or not set(names) <= set(BACKENDS):
        raise _core.ExperimentError(
            f'--backend: got "{given}"; must be two or more of {", ".join(BACKENDS)}, with commas'
        )
    if Linux.name not in names:
        # It refuses the options for Linux.
        chosen(names[0], on, next(iter(kernels), None))
    if len(kernels) < 2:
        return {name: on_linux(on, *kernels) if name == Linux.name else backend_of(name) for name in names}
    backends: dict[str, Backend] = {}
    for kernel in kernels:
        # Its version, or the name of its folder.
        name = Path(kernel.partition(":")[0]).resolve().name
        if name in (*backends, *BACKENDS):
            raise _core.ExperimentError(
                f'--kernel: got "{kernel}"; must have another name than "{name}", which is taken'
            )
        backends[name] = on_linux(on, kernel)
    return backends | {name: backend_of(name) for name in names if name != Linux.name}


def _run(name: str, backend: Backend, plan: _core.Plan, jobs: int | None, kept: dict[str, Run]) -> Results:
    """The results on a backend. ``kept`` has the runs that were made before, for fewer repeats, and gets the others."""
    keys = [spec.hash for spec in plan]
    stored = {index: kept[key] for index, key in enumerate(keys) if key in kept}
    with Display(f"runs on {name}") as display:
        runner = Runner(backend, jobs=jobs, report=display)
        finished = Finished(known=stored, made=lambda index, run: kept.__setitem__(keys[index], run))
        results, stopped_by = runner.run_plan(plan, finished)
    if stopped_by is not None:
        raise stop_reason(stopped_by, f"{len(results.runs)} of {len(plan.jobs)} runs finished on {name}")
    return results
