"""``sojourn study``: re-runs published studies."""

from __future__ import annotations

import json as json_
import sys
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sojourn import ExperimentError, storage
from sojourn.backends import Backend as AnyBackend
from sojourn.cli import estimate, listing
from sojourn.cli.options import (
    EVERY_FORMAT,
    Backend,
    DryRun,
    Figures,
    Jobs,
    Json,
    KeptRuns,
    Kernel,
    On,
    chosen,
    formats_of,
    kept_runs,
    out_directory,
)
from sojourn.cli.outcome import FAILED, Stopped, refuse_invalid, stop_reason
from sojourn.cli.progress import Display
from sojourn.cli.shown import show
from sojourn.executors import default_workers
from sojourn.linux import Linux

if TYPE_CHECKING:
    from sojourn.studies.recipe import Study
    from sojourn.studies.variants import Tried

app = typer.Typer(help="Published studies, re-run and compared with what was published.", no_args_is_help=False)


@app.command("list")
def list_(json: Json = False) -> None:
    """List the studies."""
    listing.command(listing.What.STUDIES, json)


@app.command("run")
def run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A study's name, or its folder.")],
    figure: Annotated[
        str | None, typer.Option("--figure", metavar="F", help="Execute only the runs of this figure.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer or shorter runs, for a quick look.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            parser=out_directory,
            help="Directory for figures and claims; default: results/NAME.",
        ),
    ] = None,
    figures: Figures = EVERY_FORMAT,
    variants: Annotated[
        bool, typer.Option("--variants", help="Also run the recipe's variants, and compare them with each miss.")
    ] = False,
    backend: Backend = "sim",
    on: On = None,
    kernel: Kernel = None,
    jobs: Jobs = None,
    store: KeptRuns = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Run a study and compare its results with the published ones."""
    from sojourn.studies import find, report, run_study
    from sojourn.studies.runner import check_claims, choose_figures, run_variants

    where = chosen(backend, on, kernel)
    formats = formats_of(figures)
    study = find(name)
    choose_figures(study, figure)
    check_claims(study)
    if variants and (figure is not None or isinstance(where, Linux)):
        raise ExperimentError("--variants: runs the whole study on the simulator; omit --figure and --backend")
    if variants and not study.variants:
        raise ExperimentError(f"--variants: the study {study.name} has none")
    if dry_run:
        _show_plan(study, where, figure=figure, quick=quick, variants=variants, jobs=jobs, json=json)
        return
    kept = kept_runs(store, where)
    directory = out or Path("results") / study.name
    storage.prepare(directory, report.files_of(study))

    def announce(runs: int, simulated_s: float) -> None:
        if isinstance(where, Linux):
            minutes = ceil(where.wall_s(simulated_s, runs) / 60 / (jobs or default_workers()))
            about = f"{minutes} min" if minutes < 120 else f"{minutes / 60:.0f} h"
            print(f"{runs} runs on linux, about {about}; --quick and --figure F run fewer", file=sys.stderr)

    with Display() as display:
        results = run_study(
            study, figure=figure, quick=quick, backend=where, jobs=jobs, store=kept, report=display, announce=announce
        )
    if results.stopped_by is not None:
        raise stop_reason(results.stopped_by, f"{results.finished} of {results.planned} runs finished, no claim judged")
    judgements = results.judgements()
    tried: list[Tried] = []
    if variants:
        with Display() as display:
            tried, stopped_by = run_variants(results, quick=quick, jobs=jobs, store=kept, report=display)
        if stopped_by is not None:
            raise stop_reason(stopped_by, f"{len(tried)} of {len(study.variants)} variants finished, nothing kept")
    try:
        drawn = report.save(results, judgements, directory, quick=quick, tried=tried, formats=formats)
    except OSError as error:
        raise Stopped(FAILED, storage.write_failed(directory, error)) from None
    if json:
        sys.stdout.write(report.as_json(results, judgements, drawn, quick=quick, tried=tried))
        refuse_invalid(results.runs)
        return
    table = report.claims_table(results, judgements, quick=quick)
    show(table)
    files = f"figures: {', '.join(f'{directory}/*.{kind}' for kind in formats)}; " if drawn else ""
    print(f"{files}the study's page: {directory / 'claims.md'}")
    refuse_invalid(results.runs)


def _show_plan(
    study: Study, where: AnyBackend, *, figure: str | None, quick: bool, variants: bool, jobs: int | None, json: bool
) -> None:
    """Prints the runs of a study and their estimated duration."""
    from sojourn.studies.rehearsal import rehearse
    from sojourn.studies.runner import experiments_shown, plan_study, plan_variants

    rehearse(study, plan_study(study))
    plans = plan_study(study, experiments=experiments_shown(study, figure), quick=quick, backend=where)
    tried = plan_variants(study, quick=quick) if variants else []
    experiments: dict[str, int] = {}
    for experiment, _, plan in plans:
        experiments[experiment.id] = experiments.get(experiment.id, 0) + len(plan.jobs)
    of_variants = {variant.name: sum(len(plan.jobs) for _, _, plan in own) for variant, own in tried}
    every = [plan for own in (plans, *(own for _, own in tried)) for _, _, plan in own]
    found = estimate.estimate_all(every, where, jobs=jobs)
    if json:
        print(json_.dumps({"experiments": experiments, "variants": of_variants, **found}))
        return
    for kind, counts in (("experiment", experiments), ("variant", of_variants)):
        for name, count in counts.items():
            print(f"{kind} {name}: {count} runs")
    print(estimate.sentence(found))
