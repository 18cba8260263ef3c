"""Runs a study: checks its recipe, then all its experiments as one batch, then its claims and figures.

Every formula is evaluated before anything is run, on the places that the files will run. Otherwise a name that the
files do not have would be found only after the runs, as a claim without a verdict.
"""

from __future__ import annotations

import hashlib
import json
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

from msgspec import structs

from sojourn import _core
from sojourn.files import bounded, typed
from sojourn.files.typed import all_must_be, must_be
from sojourn.frame.results import Run
from sojourn.runs.backends import Backend, backend_of
from sojourn.runs.plan import read_plan
from sojourn.store.runner import Runner
from sojourn.studies import fullrun, recipe, texts
from sojourn.studies.evaluate import Missing, Outcome, check_names
from sojourn.studies.grid import Cell, Grid
from sojourn.studies.measures import Measure, Place
from sojourn.studies.recipe import ExperimentFile, FigureSpec, Published, Study
from sojourn.studies.relation import RelationError
from sojourn.studies.variants import Tried, Variant, keys_in
from sojourn.studies.verdict import NO_RESULT, Answer, Case, Judgement, cases, judge, plain_measure

Plans = Sequence[tuple[Published, ExperimentFile, _core.Plan]]


@dataclass(frozen=True)
class StudyResults:
    """The results of a study."""

    study: Study
    grids: Mapping[str, Grid]
    finished: int
    planned: int
    stopped_by: BaseException | None
    backend: str = "sim"
    made_of: str | None = None
    """A hash of the study's files and of all its runs; None on a backend whose runs differ each time."""
    quick: bool = False

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
        """The recipe's summary, with its formulas replaced by measured values."""
        return texts.fill(self.study.summary, [], self.study.derived, others=self.grids)

    def answers(self) -> list[Answer]:
        """The measured answers to the paper's open questions, without those whose experiment was not run."""
        found = [(one, self.grids[one.experiment]) for one in self.study.questions if one.experiment in self.grids]
        fill = partial(texts.fill, derived=self.study.derived, others=self.grids)
        return [Answer(one.asks, one.location, fill(one.answer, [(grid, grid)])) for one, grid in found]


def choose_figures(study: Study, name: str | None) -> tuple[FigureSpec, ...]:
    """The figures that a user requested; all without a name. Raises ExperimentError if the study has no such figure."""
    chosen = tuple(figure for figure in study.figures if name is None or figure.is_called(name))
    if name is not None and not chosen:
        known = ", ".join(figure.name for figure in study.figures) or "none, it has no figures"
        raise _core.ExperimentError(f'--figure: got "{name}"; must be one of {known}')
    return chosen


def check_claims(study: Study) -> None:
    """Reads the claims. Raises ExperimentError if they cannot be read, or one of them has an error."""
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
        if variant is None or experiment.id in variant.without:
            return variant is None
        return any(variant.changes(typed.read_toml(part.file)) for part in experiment.parts)

    def plan(part: ExperimentFile) -> _core.Plan:
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
    experiments = {id_ for case in cases(study) for id_ in case.experiments}
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
    runner: Runner | None = None,
    announce: Callable[[int, float], None] | None = None,
) -> StudyResults:
    """Runs the experiments of a study, or only those of a ``figure``.

    ``quick``: fewer or shorter runs, as in the recipe, for a quick look and not for a verdict. ``runner``: how they are
    made, by default on the simulator and without a store. ``announce`` is called before the first run with the number
    of runs and their total of simulated seconds. Raises ExperimentError if there is no such figure, or an experiment
    file or a claim has an error.
    """
    check_claims(study)
    runner = runner or Runner()
    where = runner.backend.name
    rehearse(study, plan_study(study))
    plans = plan_study(study, experiments=experiments_shown(study, figure), quick=quick, backend=runner.backend)
    batch = _specs(plans)
    if announce is not None:
        announce(len(batch), sum(spec.duration_s for spec in batch))
    cells, finished, stopped_by = _run(study.name, plans, runner)
    grids = recipe.grids_of(study, cells, study.measures, where)
    made_of = _made_of(study, plans) if where == "sim" else None
    return StudyResults(study, grids, finished, len(batch), stopped_by, where, made_of, quick)


def _made_of(study: Study, plans: Plans) -> str:
    """A hash of everything that determines the results of a study on the simulator."""
    found = hashlib.sha256(_core.version.encode())
    for name in ("claims.toml", "study.toml"):
        found.update(bounded.read_bytes(study.folder / name, bounded.LARGEST_TEXT))
    for experiment, part, plan in plans:
        found.update(f"{experiment.id} {part.file.name} {plan.hash}\n".encode())
    return found.hexdigest()


def run_variants(base: StudyResults, runner: Runner | None = None) -> tuple[list[Tried], BaseException | None]:
    """Runs every variant on the simulator and judges the claims on each. Also returns what stopped it early."""
    study = base.study
    runner = replace(runner or Runner(), backend=backend_of("sim"))
    tried: list[Tried] = []
    for variant, plans in plan_variants(study, quick=base.quick):
        name = f"{study.name}, {variant.name}"
        cells, _, stopped_by = _run(name, plans, runner)
        if stopped_by is not None:
            return tried, stopped_by
        changed = [structs.replace(one, constants={**one.constants, **variant.constants}) for one in study.experiments]
        grids = recipe.grids_of(structs.replace(study, experiments=tuple(changed)), cells, study.measures, "sim")
        control = judge(study, {id_: base.grids[id_].of(slice(own.repeats or None)) for id_, own in grids.items()})
        now, then = ({one.id: one for one in found} for found in (judge(study, grids), control))
        tried.append(Tried(variant, len(_specs(plans)), now, then))
    return tried, None


def _specs(plans: Plans) -> list[_core.RunSpec]:
    return [spec for _, _, plan in plans for spec in plan]


def _run(name: str, plans: Plans, runner: Runner) -> tuple[dict[str, list[Cell]], int, BaseException | None]:
    """Makes planned runs. Returns the cells of each experiment, the number of runs, and what stopped them early."""
    runs: dict[int, Run] = {}
    stopped_by = runner.run(name, _specs(plans), runs.__setitem__)
    cells: dict[str, list[Cell]] = {}
    first = 0
    for experiment, part, plan in plans:
        own = [runs[index] for index in range(first, first + len(plan.jobs)) if index in runs]
        cells.setdefault(experiment.id, []).extend(recipe.cells_of(experiment, part, own))
        first += len(plan.jobs)
    return cells, len(runs), stopped_by


class _Anything(Measure, frozen=True):
    """A metric with every statistic, since nothing was measured; ``check_names`` knows which there are."""

    def of_repeats(self, runs: Sequence[Run], name: str, place: Place) -> tuple[float, ...]:
        return (1.0,) * len(runs)


def rehearse(study: Study, plans: Plans) -> None:
    """Checks every name in a recipe and claims against the planned runs. Raises ExperimentError if one is wrong."""
    try:
        planned: list[tuple[str, Mapping[str, Any]]] = []
        cells: dict[str, list[Cell]] = {}
        for experiment, part, plan in plans:
            resolved = json.loads(plan.resolved_json())
            planned += [(experiment.id, cell) for cell in resolved]
            jobs = dict.fromkeys((cell, label) for cell, _, _, label in plan.jobs)
            runs: list[Any] = [SimpleNamespace(label=label, summary={"set": resolved[at]["set"]}) for at, label in jobs]
            cells.setdefault(experiment.id, []).extend(recipe.cells_of(experiment, part, runs))
        measures = {name: _Anything(**structs.asdict(one)) for name, one in study.measures.items()}
        grids = recipe.grids_of(study, cells, measures, "sim")
        _check_axes(study, planned)
        _check_words(study, grids)
        _check_parts(study, planned)
        for case in cases(study):
            _check_claim(case, study, grids)
        _check_texts(study, grids)
    except ValueError as error:
        raise _core.ExperimentError(f"study: {study.folder / 'study.toml'}: {error}") from None


def _check_axes(study: Study, planned: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Checks that the files sweep every axis."""
    swept: dict[str, set[str]] = {}
    for id_, cell in planned:
        swept.setdefault(id_, set()).update(cell["set"])
    for experiment in study.experiments:
        for axis, key in experiment.axes.items():
            if experiment.id in swept and key not in swept[experiment.id]:
                accepted = ", ".join(sorted(swept[experiment.id])) or "nothing, its files sweep no key"
                raise ValueError(f'experiment {experiment.id}: axes.{axis}: got "{key}"; must be one of {accepted}')
        for name, alias in experiment.aliases.items():
            must_be(
                alias.axis, recipe.axes_of(study, experiment.id), f"experiment {experiment.id}: aliases.{name}: axis"
            )


def _check_words(study: Study, grids: Mapping[str, Grid]) -> None:
    """Checks the names outside of formulas in a recipe."""
    all_must_be(study.labels, {scheme for grid in grids.values() for scheme in grid.schemes}, "labels")
    claims = {claim.id for claim in study.claims}
    all_must_be(study.readings, claims, "reading: claim")
    known = {name for id_ in grids for name in recipe.axes_of(study, id_) | recipe.constants_of(study, id_)}
    for metric, measure in study.measures.items():
        all_must_be(measure.added, known, f"metrics.{metric}: plus")
    for variant in study.variants:
        all_must_be(variant.claims, claims, f'variant "{variant.name}": claims')
        all_must_be(variant.constants, known, f'variant "{variant.name}": constants')
        files = [typed.read_toml(part.file) for experiment in study.experiments for part in experiment.parts]
        for key in variant.set:
            if not any(keys_in(file, key) for file in files):
                raise ValueError(f'variant "{variant.name}": set: no file has an entry for "{key}"')
    for spec in (one for one in study.figures if one.experiment in grids):
        all_must_be(spec.schemes, set(grids[spec.experiment].schemes), f"figure {spec.name}: schemes")


def _check_parts(study: Study, planned: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Checks the traffic, the links and the stations of metrics against the planned cells."""
    most = max((len(cell["traffic"]) for _, cell in planned), default=0)
    links = [link for _, cell in planned if isinstance(cell["link"], list) for link in cell["link"]]
    names = {link["name"] for link in links}
    stations = {name for link in links for one in link.get("station", ()) for name in (one, f"{link['name']}/{one}")}
    for metric, measure in study.measures.items() if planned else ():
        index = measure.traffic
        if most and index is not None and not 0 <= index < most:
            raise ValueError(f"metrics.{metric}: traffic: got {index}; must be 0 to {most - 1}")
        for key, name, known in (("link", measure.link, names), ("station", measure.station, stations)):
            all_must_be(filter(None, [name]), known, f"metrics.{metric}: {key}")


def _check_claim(case: Case, study: Study, grids: Mapping[str, Grid]) -> None:
    where = f"reading of {case.claim.id}"
    all_must_be(case.experiments, {experiment.id for experiment in study.experiments}, f"{where}: experiments")
    if case.reading.not_comparable or case.reading.not_run or case.claim.check in NO_RESULT or not case.formulas:
        return
    if any((experiment := study.experiment(id_)) is not None and experiment.unavailable for id_ in case.experiments):
        return
    found = [grids[id_] for id_ in case.experiments if id_ in grids]
    try:
        places = [place for grid in found for place in _places(case, grid)]
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    if found and all(place.value == Missing.NOT_RUN for place in places):
        raise ValueError(f"{where}: no file has a run at the places that it is about")


def _places(case: Case, grid: Grid) -> Iterator[Outcome]:
    all_must_be(case.schemes, set(grid.schemes), "schemes")
    formulas = (*case.formulas, *map(plain_measure, case.claim.further))
    for formula in filter(None, (*formulas, case.reading.only_where)):
        check_names(formula, grid, case.derived, number=False)
    part = case.part_of(grid)
    for formula in formulas:
        yield from case.of(formula, part)
    if case.reading.only_where is not None:
        case.of(case.reading.only_where, part)


def _check_texts(study: Study, grids: Mapping[str, Grid]) -> None:
    """Checks the formulas in a recipe's texts."""
    experiment_of = {claim.id: claim.experiment for claim in study.claims}
    for one in recipe.texts_of(study):
        ids = one.experiments or (experiment_of.get(one.claim, ""),)
        own = [grids[id_] for id_ in ids if id_ in grids]
        if not own and one.text != study.summary:
            continue
        together = Grid(
            [cell for grid in own for cell in grid.cells],
            own[0].measures if own else {},
            dict(ChainMap(*(dict(grid.aliases) for grid in own))),
            dict(ChainMap(*(dict(grid.constants) for grid in own))),
        )
        try:
            texts.check(one.text, together, study.derived, grids)
        except RelationError as error:
            raise ValueError(f"{one.where}: {error}") from None
