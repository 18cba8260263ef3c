"""``sojourn study``: re-runs published studies."""

from __future__ import annotations

import json as json_
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from sojourn import ExperimentError
from sojourn.cli import estimate, options
from sojourn.cli.names import command as list_names
from sojourn.cli.outcome import Stopped, refuse_invalid, stop_reason
from sojourn.cli.output import show, writing
from sojourn.cli.parameters import argument, flag, folder, option
from sojourn.cli.progress import Display
from sojourn.files import storage
from sojourn.linux import Linux
from sojourn.page.sheet import as_table
from sojourn.runs.executors import default_workers
from sojourn.store.runner import Runner
from sojourn.studies import available, find, report, run_study, runner
from sojourn.studies.recipe import Study
from sojourn.studies.runner import StudyResults
from sojourn.studies.variants import Tried

app = typer.Typer(
    help="Published studies, re-run and compared with what was published.", no_args_is_help=False, add_completion=False
)


@app.command("list")
def list_(json: options.Json = False) -> None:
    """List the studies."""
    list_names("studies", json)


DEFAULT_FORMATS = "png,svg"
"""PDF takes as long as the two others together, because every figure contains its own selection of the font."""


@app.command("run")
def run(
    names: Annotated[
        list[str] | None,
        argument(
            "Studies by name, or their folders.",
            "NAME…",
            show_default=False,
            among=lambda: [study.name for study in available()],
        ),
    ] = None,
    all_: Annotated[bool, flag("Every study of sojourn study list.", "--all")] = False,
    figure: Annotated[str | None, option("Execute only the runs of this figure.", "F")] = None,
    quick: Annotated[bool, flag("Fewer or shorter runs, for a quick look.", "--quick")] = False,
    out: Annotated[
        Path | None,
        folder("Directory for figures and claims, of several studies DIR/NAME; default: results/NAME."),
    ] = None,
    figures: options.Figures = DEFAULT_FORMATS,
    variants: Annotated[
        bool, flag("Also run the recipe's variants, and compare them with each miss.", "--variants")
    ] = False,
    backend: options.Backend = "sim",
    on: options.On = None,
    kernel: options.Kernel = None,
    jobs: options.Jobs = None,
    store: options.KeptRuns = None,
    dry_run: options.DryRun = False,
    json: options.Json = False,
) -> None:
    """Run studies and compare their results with the published ones."""
    where = options.chosen(backend, on, kernel)
    formats = options.formats_of(figures)
    studies = _studies(names or [], every=all_)
    several = all_ or len(studies) > 1
    if several and figure is not None:
        raise ExperimentError("--figure: is of one study; omit it, or name one study")
    for study in studies:
        runner.choose_figures(study, figure)
        runner.check_claims(study)
    if variants and (figure is not None or isinstance(where, Linux)):
        raise ExperimentError("--variants: runs the whole study on the simulator; omit --figure and --backend")
    if variants and not any(study.variants for study in studies):
        named = f"the study {studies[0].name} has none" if len(studies) == 1 else "none of the studies has one"
        raise ExperimentError(f"--variants: {named}")
    for study in studies if variants else ():
        runner.plan_variants(study, quick=quick)
    asked = _Options(Runner(where, jobs=jobs), formats, figure, quick, variants, json)
    if dry_run:
        plans = []
        for study in studies:
            if several and not json:
                print(f"{study.name}:")
            plans.append(_plan(study, asked))
        if json:
            print(json_.dumps(plans if several else plans[0]))
        return
    asked = asked._replace(runner=replace(asked.runner, store=options.kept_runs(store)))
    folders = [(out / study.name if several else out) if out else Path("results") / study.name for study in studies]
    documents: list[str] = []
    invalid: list[Stopped] = []
    with ExitStack() as stack:
        for study, folder in zip(studies, folders, strict=True):
            stack.enter_context(storage.reserved(folder, report.files_of(study)))
        for study, folder in zip(studies, folders, strict=True):
            results, document = _run_one(study, folder, asked)
            documents.append(document)
            try:
                refuse_invalid(results.runs)
            except Stopped as stopped:
                invalid.append(stopped)
    if json:
        sys.stdout.write(f"[{','.join(documents)}]\n" if several else documents[0])
    if invalid:
        raise invalid[0]


class _Options(NamedTuple):
    """What is asked for, of every study."""

    runner: Runner
    formats: tuple[str, ...]
    figure: str | None
    quick: bool
    variants: bool
    json: bool


def _studies(names: Sequence[str], *, every: bool) -> list[Study]:
    """The studies that the command names, each once, and no two that would write to the same folder."""
    if every and names:
        raise ExperimentError(f"--all: runs every study; omit it, or {', '.join(names)}")
    if not every and not names:
        known = ", ".join(study.name for study in available())
        raise ExperimentError(f"study run: names no study; must be --all, a study's folder, or some of {known}")
    studies = available() if every else list({study.folder: study for study in map(find, names)}.values())
    twice = [name for name, count in Counter(study.name for study in studies).items() if count > 1]
    if twice:
        raise ExperimentError(f"study run: several studies are called {twice[0]}; run them one at a time")
    return studies


def _run_one(study: Study, directory: Path, asked: _Options) -> tuple[StudyResults, str]:
    """Runs a study, saves its results and prints them, or returns them also as JSON."""
    made, formats, figure, quick, variants, json = asked

    def announce(runs: int, simulated_s: float) -> None:
        if isinstance(made.backend, Linux):
            minutes = ceil(made.backend.wall_s(simulated_s, runs) / 60 / (made.jobs or default_workers()))
            about = f"{minutes} min" if minutes < 120 else f"{minutes / 60:.0f} h"
            print(f"{runs} runs on linux, about {about}; --quick and --figure F run fewer", file=sys.stderr)

    keeps = made.store is not None
    with Display(keeps=keeps) as display:
        own = replace(made, report=display)
        results = run_study(study, figure=figure, quick=quick, runner=own, announce=announce)
    if results.stopped_by is not None:
        done = f"{results.finished} of {results.planned} runs of {study.name} finished, none of its claims judged"
        raise stop_reason(results.stopped_by, done)
    judgements = results.judgements()
    tried: list[Tried] = []
    if variants and study.variants:
        with Display(keeps=keeps) as display:
            tried, stopped_by = runner.run_variants(results, replace(made, report=display))
        if stopped_by is not None:
            raise stop_reason(stopped_by, f"{len(tried)} of {len(study.variants)} variants finished, nothing kept")
    with writing(directory):
        drawn = report.save(results, judgements, directory, tried=tried, formats=formats)
    if json:
        return results, report.as_json(results, judgements, drawn, tried=tried)
    show(as_table(report.claims_sheet(results, judgements)))
    files = f"figures: {', '.join(f'{directory}/*.{kind}' for kind in formats)}; " if drawn else ""
    print(f"{files}the study's page: {directory / 'claims.md'}")
    return results, ""


def _plan(study: Study, asked: _Options) -> dict[str, object]:
    """The runs of a study and their estimated duration; printed unless JSON is asked for."""
    where, figure, quick = asked.runner.backend, asked.figure, asked.quick
    runner.rehearse(study, runner.plan_study(study))
    plans = runner.plan_study(study, experiments=runner.experiments_shown(study, figure), quick=quick, backend=where)
    tried = runner.plan_variants(study, quick=quick) if asked.variants else []
    experiments: dict[str, int] = {}
    for experiment, _, plan in plans:
        experiments[experiment.id] = experiments.get(experiment.id, 0) + len(plan.jobs)
    of_variants = {variant.name: sum(len(plan.jobs) for _, _, plan in own) for variant, own in tried}
    own = [plan for _, _, plan in plans]
    varied = [[plan for _, _, plan in of_one] for _, of_one in tried]
    shown = len(runner.choose_figures(study, figure))
    found = estimate.estimate_study(own, varied, where, jobs=asked.runner.jobs, figures=shown, formats=asked.formats)
    if not asked.json:
        for kind, counts in (("experiment", experiments), ("variant", of_variants)):
            for name, count in counts.items():
                print(f"{kind} {name}: {estimate.in_runs(count)}")
        print(estimate.sentence(found))
    return {"experiments": experiments, "variants": of_variants, **found}
