"""``sojourn evaluate``: evaluates a discipline by RFC 7928, or a congestion control by test cases."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from sojourn import ExperimentError
from sojourn.cli.options import Jobs, Json, KeptRuns, kept_runs, names_of
from sojourn.cli.outcome import stop_reason
from sojourn.cli.output import show, writing
from sojourn.cli.parameters import argument, flag, folder, option
from sojourn.cli.progress import Display
from sojourn.files import storage
from sojourn.page.sheet import as_table
from sojourn.runs import user_aqm
from sojourn.store.runner import Runner
from sojourn.studies.suites import controls, evaluate, find, scorecard


def command(
    context: typer.Context,
    aqm: Annotated[
        str,
        argument(
            "A discipline, parameters after a colon; a congestion control; or a Python file that registers one.",
            "AQM|TCP|FILE.py",
        ),
    ],
    against: Annotated[str, option("Others to show beside it.", "AQM,…")] = "",
    suite: Annotated[str, option("The suite, or its folder.", "NAME")] = "rfc7928",
    quick: Annotated[bool, flag("Fewer repeats, for a quick look.", "--quick")] = False,
    out: Annotated[Path | None, folder("Directory for the scorecard, data, figures and a page.")] = None,
    jobs: Jobs = None,
    store: KeptRuns = None,
    json: Json = False,
) -> None:
    """Evaluate a discipline in the scenarios of RFC 7928, against drop-tail; a congestion control with --suite ccwg."""
    chosen = find(suite)
    others = _split(against)
    again = _again(context.find_root().params["load"] or (), aqm, suite, others, quick=quick)
    keeps = store is not None
    display = Display(then=" in the store") if keeps else Display(keeps=False)
    kept_in = "kept in the store" if keeps else "nothing kept"
    runner = Runner(jobs=jobs, store=kept_runs(store), report=display)
    tested = _registered(aqm)
    if isinstance(chosen, controls.ControlSuite):
        with storage.reserved(out, list(controls.FILES)), display:
            judged = controls.judge([tested, *others], chosen, runner, quick=quick)
            if judged.stopped_by is not None:
                raise stop_reason(judged.stopped_by, kept_in)
            if out is not None:
                with writing(out):
                    controls.save(judged, out, again)
        if json:
            sys.stdout.write(controls.as_json(judged))
            return
        show(as_table(controls.sheet(judged)))
        if out is not None:
            print(f"the page: {out / controls.PAGE}")
        return
    if wrong := [one for one in (tested, *others) if one in names_of("tcp")]:
        raise ExperimentError(f'evaluate: got "{wrong[0]}", a congestion control; must be with --suite ccwg')
    if against and not others:
        raise ExperimentError(f'--against: got "{against}"; must be disciplines, see sojourn list aqm')
    figures: list[Path] = []
    with storage.reserved(out, scorecard.files_of(chosen)):
        with display:
            evaluation = evaluate(tested, chosen, against=others, quick=quick, runner=runner)
        if evaluation.stopped_by is not None:
            finished = f"{evaluation.finished} of {evaluation.runs} runs finished, {kept_in}"
            raise stop_reason(evaluation.stopped_by, finished)
        lines = scorecard.scorecard(evaluation)
        if out is not None:
            with writing(out):
                figures = scorecard.save(evaluation, lines, out, again)
    if json:
        sys.stdout.write(scorecard.as_json(evaluation, lines, [str(figure) for figure in figures]))
        return
    show(as_table(scorecard.sheet(evaluation, lines)))
    if out is not None:
        print(f"the page: {out / scorecard.PAGE}; data: {out / scorecard.DATA}; figures: {out}/*.png")


def _again(loaded: Sequence[Path], tested: str, suite: str, others: Sequence[str], *, quick: bool) -> str:
    """The command that repeats an evaluation, with the files as they were given."""
    words = ["sojourn", *(word for file in loaded for word in ("--load", str(file)))]
    words += ["evaluate", tested, "--suite", suite]
    words += ["--against", ",".join(others)] if others else []
    return shlex.join([*words, "--quick"] if quick else words)


def _registered(given: str) -> str:
    """What to evaluate; of a file, which is executed, the only one that it registers."""
    path, colon, parameters = given.partition(":")
    if not path.endswith(".py"):
        return given
    names = user_aqm.load(Path(path))
    if len(names) != 1:
        registered = f"registers {', '.join(names)}" if names else "registers none"
        raise ExperimentError(
            f"{path}: {registered}; must register one discipline or congestion control, "
            "or be given by --load with one's name"
        )
    return names[0] + colon + parameters


def _split(given: str) -> list[str]:
    """Splits disciplines at commas. A part with ``=`` but no colon is a parameter of the discipline before it."""
    found: list[str] = []
    for part in filter(None, (part.strip() for part in given.split(","))):
        if found and ":" in found[-1] and "=" in part and ":" not in part:
            found[-1] += f",{part}"
        else:
            found.append(part)
    return found
