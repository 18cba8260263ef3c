"""Runs a study: all its experiments as one batch, then its claims and figures."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from msgspec import structs

from sojourn import _core
from sojourn.files import bounded, typed
from sojourn.frame.results import Run
from sojourn.runs.backends import Backend, backend_of
from sojourn.runs.execution import Report
from sojourn.runs.plan import read_plan
from sojourn.store import Store
from sojourn.store.runner import Runner
from sojourn.studies import fullrun
from sojourn.studies.exhibits import FigureSpec
from sojourn.studies.grid import Cell, Grid
from sojourn.studies.recipe import Part, Published, Study
from sojourn.studies.rehearsal import Plans, rehearse
from sojourn.studies.runs import cells_of, grids_of
from sojourn.studies.variants import Tried, Variant
from sojourn.studies.verdict import Answer, Judgement, answers, experiments_of, judge, summary


@dataclass(frozen=True)
class StudyResults:
    """The results of a study."""

    study: Study
    grids: Mapping[str, Grid]
    """The runs, by experiment."""
    finished: int
    planned: int
    stopped_by: BaseException | None
    backend: str = "sim"
    """The backend."""
    made_of: str | None = None
    """A hash of the study's files and of all its runs; None on a backend whose runs differ each time."""
    quick: bool = False
    """True if the runs are fewer or shorter than the full ones."""

    @property
    def departures(self) -> tuple[str, ...]:
        """The differences from the study's files, because the backend lacks a feature that they need."""
        return self.study.on(self.backend).departures

    @property
    def runs(self) -> list[Run]:
        """All runs, each once."""
        return list({id(run): run for grid in self.grids.values() for cell in grid.cells for run in cell.runs}.values())

    def judgements(self) -> list[Judgement]:
        """Every claim of the paper, with its measured result."""
        found = judge(self.study, self.grids)
        return fullrun.beside(self.study, found) if self.quick else found

    def summary(self) -> str:
        """The recipe's summary."""
        return summary(self.study, self.grids)

    def answers(self) -> list[Answer]:
        """The answers to the paper's open questions."""
        return answers(self.study, self.grids)


def choose_figures(study: Study, name: str | None) -> tuple[FigureSpec, ...]:
    """The figures that a user requested; all without a name. Raises ExperimentError if the study has no such figure."""
    chosen = tuple(figure for figure in study.figures if name is None or figure.is_called(name))
    if name is not None and not chosen:
        known = ", ".join(figure.name for figure in study.figures) or "none, it has no figures"
        raise _core.ExperimentError(f'--figure: got "{name}"; must be one of {known}')
    return chosen


def check_claims(study: Study) -> None:
    """Reads the claims, so that errors in them are found before the runs.

    Raises ExperimentError if they cannot be read, or one of them has an error.
    """
    try:
        _ = study.claims
    except OSError as error:
        raise _core.ExperimentError(f"study: {error.filename}: {error.strerror}") from None
    except ValueError as error:
        raise _core.ExperimentError(f"study: {error}") from None


def plan_study(
    study: Study,
    *,
    experiments: Iterable[str] | None = None,
    quick: bool = False,
    backend: str | Backend = "sim",
    variant: Variant | None = None,
) -> Plans:
    """Reads the experiment files before anything is run. Raises ExperimentError if one of them has an error."""
    wanted = None if experiments is None else set(experiments)
    where = backend_of(backend)
    overrides = study.overrides(where.name, quick=quick)

    def is_changed(experiment: Published) -> bool:
        if variant is None:
            return True
        changes = any(variant.changes(typed.read_toml(part.file)) for part in experiment.parts)
        return changes and experiment.id not in variant.without

    def plan(part: Part) -> _core.Plan:
        more = {} if variant is None else variant.overrides(typed.read_toml(part.file))
        return read_plan(part.file, list({**more, **overrides}.items()), backend=where)

    return [
        (experiment, part, plan(part))
        for experiment in study.experiments
        if (wanted is None or experiment.id in wanted) and experiment.id not in study.on(where.name).without
        if is_changed(experiment)
        for part in experiment.parts
    ]


def plan_variants(study: Study, *, quick: bool = False) -> list[tuple[Variant, Plans]]:
    """The plans of each variant of a study: the experiments that it changes and claims are about, on the simulator."""
    experiments = {id_ for claim in study.claims for id_ in experiments_of(claim, study.readings.get(claim.id))}
    shared = {id_ for experiment in study.experiments if experiment.id in experiments for id_ in experiment.runs_of}
    return [
        (variant, plan_study(study, experiments=experiments | shared, quick=quick, variant=variant))
        for variant in study.variants
    ]


def experiments_shown(study: Study, figure: str | None) -> set[str] | None:
    """The experiments that a figure needs; None, all of them, without a figure."""
    return None if figure is None else {spec.experiment for spec in choose_figures(study, figure)}


def run_study(
    study: Study,
    *,
    figure: str | None = None,
    quick: bool = False,
    backend: str | Backend = "sim",
    jobs: int | None = None,
    store: Store | None = None,
    report: Report | None = None,
    announce: Callable[[int, float], None] | None = None,
) -> StudyResults:
    """Runs the experiments of a study, or only those of a ``figure``.

    ``quick``: fewer or shorter runs, as in the recipe, for a quick look and not for a verdict. ``backend``, ``jobs``
    and ``report`` are as for ``sojourn.run``. A ``store`` keeps the runs; those that it has are not made again.
    ``announce`` is called before the first run with the number of runs and their total of simulated seconds. Raises
    ExperimentError if there is no such figure, or an experiment file or a claim has an error.
    """
    check_claims(study)
    where = backend_of(backend)
    rehearse(study, plan_study(study))
    plans = plan_study(study, experiments=experiments_shown(study, figure), quick=quick, backend=where)
    batch = _specs(plans)
    if announce is not None:
        announce(len(batch), sum(spec.duration_s for spec in batch))
    cells, finished, stopped_by = _run(study.name, plans, where, jobs, store, report)
    grids = grids_of(study, cells, study.measures, where.name)
    made_of = _made_of(study, plans) if where.name == "sim" else None
    return StudyResults(study, grids, finished, len(batch), stopped_by, where.name, made_of, quick)


def _made_of(study: Study, plans: Plans) -> str:
    """A hash of everything that determines the results of a study on the simulator."""
    found = hashlib.sha256(_core.version.encode())
    for name in ("claims.toml", "study.toml"):
        found.update(bounded.read_bytes(study.folder / name, bounded.LARGEST_TEXT))
    for experiment, part, plan in plans:
        found.update(f"{experiment.id} {part.file.name} {plan.hash}\n".encode())
    return found.hexdigest()


def run_variants(
    base: StudyResults,
    *,
    quick: bool = False,
    jobs: int | None = None,
    store: Store | None = None,
    report: Report | None = None,
    announce: Callable[[int, float], None] | None = None,
) -> tuple[list[Tried], BaseException | None]:
    """Runs every variant of a study on the simulator and judges the claims on each. Also returns what stopped it early.

    Parameters are those of ``run_study``, after its results.
    """
    study = base.study
    where = backend_of("sim")
    planned = plan_variants(study, quick=quick)
    batches = [_specs(plans) for _, plans in planned]
    if announce is not None:
        announce(sum(map(len, batches)), sum(spec.duration_s for batch in batches for spec in batch))
    tried: list[Tried] = []
    for (variant, plans), batch in zip(planned, batches, strict=True):
        name = f"{study.name}, {variant.name}"
        cells, _, stopped_by = _run(name, plans, where, jobs, store, report)
        if stopped_by is not None:
            return tried, stopped_by
        changed = [structs.replace(one, constants={**one.constants, **variant.constants}) for one in study.experiments]
        grids = grids_of(replace(study, experiments=tuple(changed)), cells, study.measures, where.name)
        control = judge(study, {id_: base.grids[id_].first(own.repeats) for id_, own in grids.items()})
        tried.append(Tried(variant, len(batch), _by_id(judge(study, grids)), _by_id(control)))
    return tried, None


def _by_id(judgements: Iterable[Judgement]) -> dict[str, Judgement]:
    return {one.id: one for one in judgements}


def _specs(plans: Plans) -> list[_core.RunSpec]:
    return [spec for _, _, plan in plans for spec in plan]


def _run(
    name: str, plans: Plans, backend: Backend, jobs: int | None, store: Store | None, report: Report | None
) -> tuple[dict[str, list[Cell]], int, BaseException | None]:
    """Makes planned runs. Returns the cells of each experiment, the number of runs, and what stopped them early."""
    runs: dict[int, Run] = {}
    runner = Runner(backend, jobs=jobs, store=store, report=report)
    stopped_by = runner.run(name, _specs(plans), runs.__setitem__, finish=lambda _, run: run)
    cells: dict[str, list[Cell]] = {}
    first = 0
    for experiment, part, plan in plans:
        own = [runs[index] for index in range(first, first + len(plan.jobs)) if index in runs]
        cells.setdefault(experiment.id, []).extend(cells_of(experiment, part, own))
        first += len(plan.jobs)
    return cells, len(runs), stopped_by
