"""``sojourn evaluate``: evaluates a discipline by RFC 7928, or a congestion control by test cases."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sojourn import ExperimentError
from sojourn.cli.options import Jobs, Json, KeptRuns, folder, kept_runs
from sojourn.cli.outcome import stop_reason
from sojourn.cli.output import show, writing
from sojourn.cli.progress import Display
from sojourn.files import storage
from sojourn.runs import user_aqm
from sojourn.store import Store
from sojourn.studies.suites import controls, evaluate, find, scorecard


def command(
    aqm: Annotated[
        str,
        typer.Argument(
            metavar="AQM|TCP|FILE.py",
            help="A discipline, parameters after a colon, or a Python file that registers one; a congestion control.",
        ),
    ],
    against: Annotated[str, typer.Option("--against", metavar="AQM,…", help="Others to show beside it.")] = "",
    suite: Annotated[str, typer.Option("--suite", metavar="NAME", help="The suite, or its folder.")] = "rfc7928",
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repeats, for a quick look.")] = False,
    out: Annotated[Path | None, folder("Directory for the scorecard, data, figures and a page.")] = None,
    jobs: Jobs = None,
    store: KeptRuns = None,
    json: Json = False,
) -> None:
    """Evaluate a discipline in the scenarios of RFC 7928, against drop-tail; a congestion control with --suite ccwg."""
    chosen = find(suite)
    if isinstance(chosen, controls.Suite):
        _judge([aqm, *_split(against)], chosen, quick=quick, out=out, jobs=jobs, store=kept_runs(store), as_json=json)
        return
    queue = _registered(aqm)
    others = _split(against)
    if against and not others:
        raise ExperimentError(f'--against: got "{against}"; must be disciplines, see sojourn list aqm')
    kept = kept_runs(store)
    figures: list[Path] = []
    with storage.reserved(out, scorecard.files_of(chosen)):
        with _display(kept) as display:
            evaluation = evaluate(queue, chosen, against=others, quick=quick, jobs=jobs, store=kept, report=display)
        if evaluation.stopped_by is not None:
            finished = f"{evaluation.finished} of {evaluation.runs} runs finished, {_kept_in(kept)}"
            raise stop_reason(evaluation.stopped_by, finished)
        lines = scorecard.scorecard(evaluation)
        if out is not None:
            with writing(out):
                figures = scorecard.save(evaluation, lines, out)
    if json:
        sys.stdout.write(scorecard.as_json(evaluation, lines, [str(figure) for figure in figures]))
        return
    show(scorecard.table(evaluation, lines))
    if out is not None:
        print(f"the page: {out / scorecard.PAGE}; data: {out / scorecard.DATA}; figures: {out}/*.png")


def _judge(
    given: list[str],
    suite: controls.Suite,
    *,
    quick: bool,
    out: Path | None,
    jobs: int | None,
    store: Store | None,
    as_json: bool,
) -> None:
    """Judges congestion controls by the test cases of a suite."""
    with storage.reserved(out, list(controls.FILES)), _display(store) as display:
        judged = controls.judge(given, suite, quick=quick, jobs=jobs, store=store, report=display)
        if judged.stopped_by is not None:
            raise stop_reason(judged.stopped_by, _kept_in(store))
        if out is not None:
            with writing(out):
                controls.save(judged, out)
    if as_json:
        sys.stdout.write(controls.as_json(judged))
        return
    show(controls.table(judged))
    if out is not None:
        print(f"the page: {out / controls.PAGE}")


def _display(store: Store | None) -> Display:
    """The progress of runs that only a store keeps."""
    return Display(then=" in the store") if store is not None else Display(keeps=False)


def _kept_in(store: Store | None) -> str:
    return "kept in the store" if store is not None else "nothing kept"


def _registered(given: str) -> str:
    """The discipline to evaluate. A file is executed first and must register exactly one discipline.

    Raises ExperimentError if the file cannot be executed, or does not register exactly one discipline.
    """
    path, colon, parameters = given.partition(":")
    if not path.endswith(".py"):
        return given
    names = user_aqm.load(Path(path))
    if len(names) != 1:
        registered = f"registers {', '.join(names)}" if names else "registers none"
        raise ExperimentError(
            f"{path}: {registered}; must register one discipline, or be given by --load with one's name"
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
