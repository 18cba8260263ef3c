"""Checks a recipe before anything is run: evaluates every formula on the places that its files will run.

Otherwise a name that the files do not have would be found only after the runs, as a claim without a verdict.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from sojourn import _core
from sojourn.files import typed
from sojourn.files.typed import must_be
from sojourn.frame.results import Run
from sojourn.studies import texts
from sojourn.studies.claims import Claim
from sojourn.studies.evaluate import Missing, Names, check_names, outcomes
from sojourn.studies.grid import Cell, Grid
from sojourn.studies.measures import Measure, is_statistic
from sojourn.studies.recipe import Part, Published, Reading, Study, axes_of, experiments_with, texts_of
from sojourn.studies.relation import RelationError
from sojourn.studies.runs import cells_of, grids_of
from sojourn.studies.variants import keys_in
from sojourn.studies.verdict import NO_RESULT, experiments_of, formulas_of, plain_measure, selected

Plans = Sequence[tuple[Published, Part, _core.Plan]]


@dataclass(frozen=True)
class _Planned:
    """A planned run."""

    label: str
    summary: Mapping[str, Any]
    seed: int = 0


class _Anything:
    """A metric with every statistic, since nothing was measured."""

    def of_repeats(self, runs: Sequence[Run], name: str, _place: Mapping[str, float | bool | str]) -> tuple[float, ...]:
        if not is_statistic(name):
            raise RelationError(f"no statistic {name!r}; must be one of mean, median, min, max, std, p90, …")
        return (1.0,) * len(runs)


def rehearse(study: Study, plans: Plans) -> None:
    """Checks every name in a study's recipe and claims against the planned runs.

    Raises ExperimentError if a name is misspelt, or refers to places that are not run.
    """
    try:
        grids = _planned_grids(study, plans)
        _check_axes(study, plans)
        names = {id_: _names(study, grid, id_) for id_, grid in grids.items()}
        _check_words(study, grids)
        _check_traffic(study, plans)
        _check_links(study, plans)
        for claim in study.claims:
            _check_claim(claim, study, grids, names)
        _check_texts(study, names)
    except ValueError as error:
        raise _core.ExperimentError(f"study: {study.folder / 'study.toml'}: {error}") from None


def _planned_grids(study: Study, plans: Plans) -> dict[str, Grid]:
    cells: dict[str, list[Cell]] = {}
    for experiment, part, plan in plans:
        sets = [cell["set"] for cell in json.loads(plan.resolved_json())]
        planned = {(cell, label): _Planned(label, {"set": sets[cell]}) for cell, _, _, label in plan.jobs}
        runs = cast("list[Run]", list(planned.values()))
        cells.setdefault(experiment.id, []).extend(cells_of(experiment, part, runs))
    return grids_of(study, cells, cast("dict[str, Measure]", dict.fromkeys(study.measures, _Anything())), "sim")


def _check_axes(study: Study, plans: Plans) -> None:
    """Checks that the files sweep every axis."""
    swept: dict[str, set[str]] = {}
    for experiment, _, plan in plans:
        for cell in json.loads(plan.resolved_json()):
            swept.setdefault(experiment.id, set()).update(cell["set"])
    for experiment in study.experiments:
        for axis, key in experiment.axes.items():
            if experiment.id in swept and key not in swept[experiment.id]:
                accepted = ", ".join(sorted(swept[experiment.id])) or "nothing, its files sweep no key"
                raise ValueError(f'experiment {experiment.id}: axes.{axis}: got "{key}"; must be one of {accepted}')
        for name, alias in experiment.aliases.items():
            must_be(alias.axis, axes_of(study, experiment.id), f"experiment {experiment.id}: aliases.{name}: axis")


def _names(study: Study, grid: Grid, id_: str) -> Names:
    parts = experiments_with(study, id_)
    others = {name for part in parts for name in (*part.aliases, *part.constants)}
    metrics = frozenset({*study.measures, *study.derived})
    return Names(frozenset(grid.schemes), metrics, frozenset(axes_of(study, id_) | others))


def _check_words(study: Study, grids: Mapping[str, Grid]) -> None:
    """Checks the names outside of formulas in a recipe."""
    schemes = {scheme for grid in grids.values() for scheme in grid.schemes}
    for label in study.labels:
        must_be(label, schemes, "labels")
    claims = {claim.id for claim in study.claims}
    for id_ in study.readings:
        must_be(id_, claims, "reading: claim")
    known = {name for id_ in grids for name in _axes_and_constants(study, id_)}
    for measure in study.measures.values():
        for name in measure.plus:
            must_be(name, known, f"metrics.{measure.name}: plus")
    for variant in study.variants:
        for id_ in variant.claims:
            must_be(id_, claims, f'variant "{variant.name}": claims')
        for axis in variant.constants:
            must_be(axis, known, f'variant "{variant.name}": constants')
        files = [typed.read_toml(part.file) for experiment in study.experiments for part in experiment.parts]
        for key in variant.set:
            if not any(keys_in(file, key) for file in files):
                raise ValueError(f'variant "{variant.name}": set: no file has an entry for "{key}"')
    for spec in study.figures:
        for scheme in spec.schemes:
            if spec.experiment in grids:
                must_be(scheme, set(grids[spec.experiment].schemes), f"figure {spec.name}: schemes")


def _check_traffic(study: Study, plans: Plans) -> None:
    most = max((len(cell["traffic"]) for _, _, plan in plans for cell in json.loads(plan.resolved_json())), default=0)
    for measure in study.measures.values():
        index = measure.part.traffic
        if most and index is not None and not 0 <= index < most:
            raise ValueError(f"metrics.{measure.name}: traffic: got {index}; must be 0 to {most - 1}")


def _check_links(study: Study, plans: Plans) -> None:
    """Checks the links and stations of metrics."""
    links: list[dict[str, Any]] = []
    for _, _, plan in plans:
        for cell in json.loads(plan.resolved_json()):
            links += cell["link"] if isinstance(cell["link"], list) else []
    names = {link["name"] for link in links}
    stations = {station for link in links for station in link.get("station", ())}
    stations |= {f"{link['name']}/{station}" for link in links for station in link.get("station", ())}
    for measure in study.measures.values() if plans else ():
        for key, name, known in (("link", measure.part.link, names), ("station", measure.part.station, stations)):
            if name:
                must_be(name, known, f"metrics.{measure.name}: {key}")


def _axes_and_constants(study: Study, id_: str) -> set[str]:
    return axes_of(study, id_) | {name for part in experiments_with(study, id_) for name in part.constants}


def _check_claim(claim: Claim, study: Study, grids: Mapping[str, Grid], names: Mapping[str, Names]) -> None:
    reading = study.readings.get(claim.id, Reading(because=""))
    where = f"reading of {claim.id}"
    wanted = experiments_of(claim, reading)
    for id_ in wanted:
        must_be(id_, {experiment.id for experiment in study.experiments}, f"{where}: experiments")
    if reading.not_comparable or reading.not_run or claim.check in NO_RESULT:
        return
    if any((experiment := study.experiment(id_)) is not None and experiment.unavailable for id_ in wanted):
        return
    formulas = formulas_of(claim, reading)
    if not formulas:
        return
    formulas = (*formulas, *map(plain_measure, claim.further))
    found = [(names[id_], grids[id_]) for id_ in wanted if id_ in grids]
    try:
        places = [place for own, grid in found for place in _places(claim, reading, formulas, study, own, grid)]
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    if found and all(place.value == Missing.NOT_RUN for place in places):
        raise ValueError(f"{where}: no file has a run at the places that it is about")


def _places(
    claim: Claim, reading: Reading, formulas: Sequence[str], study: Study, names: Names, grid: Grid
) -> Iterator[Any]:
    schemes = claim.schemes if reading.schemes is None else reading.schemes
    for scheme in schemes:
        must_be(scheme, set(grid.schemes), "schemes")
    for formula in filter(None, (*formulas, reading.only_where)):
        check_names(formula, names, study.derived, number=False)
    part = selected(grid, claim, reading)
    for formula in formulas:
        yield from outcomes(formula, part, schemes=schemes, derived=study.derived)
    if reading.only_where is not None:
        outcomes(reading.only_where, part, schemes=schemes, derived=study.derived)


def _check_texts(study: Study, names: Mapping[str, Names]) -> None:
    """Checks the formulas in a recipe's texts."""
    experiment_of = {claim.id: claim.experiment for claim in study.claims}
    for one in texts_of(study):
        ids = one.experiments or (experiment_of.get(one.claim, ""),)
        own = [names[id_] for id_ in ids if id_ in names]
        if not own and one.text != study.summary:
            continue
        together = Names(*(frozenset[str]().union(*(names[index] for names in own)) for index in range(3)))
        try:
            texts.check(one.text, together, study.derived, names)
        except RelationError as error:
            raise ValueError(f"{one.where}: {error}") from None
