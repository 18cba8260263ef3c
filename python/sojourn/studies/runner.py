"""Runs a study: all its experiments as one batch, then its claims and figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sojourn import _core
from sojourn.api import as_run, read_plan
from sojourn.backends import Backend, backend_of
from sojourn.execution import Report, execute, jobs_of
from sojourn.results import Run
from sojourn.studies import texts
from sojourn.studies.evaluate import Names
from sojourn.studies.exhibits import FigureSpec
from sojourn.studies.grid import AxisValue, Cell, Grid
from sojourn.studies.measures import Measure
from sojourn.studies.recipe import Part, Published, Study, axes_of, experiments_with, texts_of
from sojourn.studies.relation import RelationError
from sojourn.studies.verdict import Answer, Judgement, answers, judge

_NUMBER = r"(?P<{name}>\d+(?:\.\d+)?|true|false)"
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
_BYTES = {"B": 1.0, "kB": 1e3, "MB": 1e6}
_BITS = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9}


@dataclass(frozen=True)
class StudyResults:
    """What came of running a study."""

    study: Study
    grids: Mapping[str, Grid]
    """The runs, by experiment."""
    finished: int
    planned: int
    stopped_by: BaseException | None
    backend: str = "sim"
    """Where it was run."""

    @property
    def departures(self) -> tuple[str, ...]:
        """How the runs depart from the study's files, because the backend lacks something that they ask for."""
        return self.study.on(self.backend).departures

    @property
    def runs(self) -> list[Run]:
        """All runs, each once."""
        return list({id(run): run for grid in self.grids.values() for cell in grid.cells for run in cell.runs}.values())

    def judgements(self) -> list[Judgement]:
        """Every claim of the paper beside what was measured."""
        return judge(self.study, self.grids)

    def answers(self) -> list[Answer]:
        """What was measured of the questions that the paper leaves open."""
        return answers(self.study, self.grids)


def choose_figures(study: Study, name: str | None) -> tuple[FigureSpec, ...]:
    """The figures that a user asked for; all without a name.

    Raises
    ------
    ExperimentError
        The study has no such figure.
    """
    chosen = tuple(figure for figure in study.figures if name is None or figure.is_called(name))
    if name is not None and not chosen:
        known = ", ".join(figure.name for figure in study.figures) or "none, it has no figures"
        raise _core.ExperimentError(f'--figure: got "{name}"; must be one of {known}')
    return chosen


def check_claims(study: Study) -> None:
    """Reads the claims: what is wrong with one is not to be told after hours of runs.

    Raises
    ------
    ExperimentError
        They cannot be read, or one of them is wrong.
    """
    try:
        _ = study.claims
    except OSError as error:
        raise _core.ExperimentError(f"study: {error.filename}: {error.strerror}") from None
    except ValueError as error:
        raise _core.ExperimentError(f"study: {error}") from None


def plan_study(
    study: Study, *, experiments: Iterable[str] | None = None, quick: bool = False, backend: str | Backend = "sim"
) -> list[tuple[Published, Part, _core.Plan]]:
    """Reads the experiment files, before anything is run.

    Raises
    ------
    ExperimentError
        One of them is wrong.
    """
    wanted = None if experiments is None else set(experiments)
    where = backend_of(backend)
    overrides = list(study.overrides(where.name, quick=quick).items())
    return [
        (experiment, part, read_plan(part.file, overrides, backend=where))
        for experiment in study.experiments
        if (wanted is None or experiment.id in wanted) and experiment.id not in study.on(where.name).without
        for part in experiment.parts
    ]


def run_study(
    study: Study,
    *,
    figure: str | None = None,
    quick: bool = False,
    backend: str | Backend = "sim",
    jobs: int | None = None,
    report: Report | None = None,
    announce: Callable[[int, float], None] | None = None,
) -> StudyResults:
    """Runs the experiments of a study.

    Parameters
    ----------
    study
        From ``find``.
    figure
        Run only what this figure shows.
    quick
        Fewer or shorter runs, as the recipe says: for a first look, not for a verdict.
    backend, jobs, report
        As for ``sojourn.run``.
    announce
        Hears how many runs there will be, and of how many simulated seconds, before the first.

    Raises
    ------
    ExperimentError
        There is no such figure, or an experiment file or a claim is wrong.
    """
    check_claims(study)
    experiments = None if figure is None else {spec.experiment for spec in choose_figures(study, figure)}
    where = backend_of(backend)
    plans = plan_study(study, experiments=experiments, quick=quick, backend=where)
    check_texts(study, plans)
    batch = [job for _, _, plan in plans for job in jobs_of(plan, where)]
    if announce is not None:
        announce(len(batch), sum(job.duration_s for job in batch))
    runs: dict[int, Run] = {}

    stopped_by = execute(batch, runs.__setitem__, finish=lambda _, core: as_run(core), threads=jobs, report=report)

    cells: dict[str, list[Cell]] = {}
    first = 0
    for experiment, part, plan in plans:
        own = [runs[index] for index in range(first, first + len(plan.jobs)) if index in runs]
        cells.setdefault(experiment.id, []).extend(_cells(experiment, part, own))
        first += len(plan.jobs)
    grids = grids_of(study, cells, study.measures, where.name)
    return StudyResults(study, grids, len(runs), len(batch), stopped_by, where.name)


def check_texts(study: Study, plans: Sequence[tuple[Published, Part, _core.Plan]]) -> None:
    """Checks the formulas in a recipe's texts, as far as they are about what is to be run.

    Raises
    ------
    ExperimentError
        One of them is wrong.
    """
    schemes: dict[str, set[str]] = {}
    for experiment, part, plan in plans:
        labels = {label for _, _, _, label in plan.jobs}
        schemes.setdefault(experiment.id, set()).update(_named(experiment, part, label)["scheme"] for label in labels)
    names = {id_: found for id_ in (one.id for one in study.experiments) if (found := _names(study, id_, schemes))}
    experiment_of = {claim.id: claim.experiment for claim in study.claims}
    for one in texts_of(study):
        ids = one.experiments or (experiment_of.get(one.claim, ""),)
        own = [names[id_] for id_ in ids if id_ in names]
        if not own:
            continue
        together = Names(*(frozenset().union(*sets) for sets in zip(*own, strict=True)))
        try:
            texts.check(one.text, together, study.derived, names)
        except RelationError as error:
            raise _core.ExperimentError(f"study: {study.folder / 'study.toml'}: {one.where}: {error}") from None


def _names(study: Study, id_: str, schemes: Mapping[str, set[str]]) -> Names | None:
    """What formulas about an experiment may name; None if it is not to be run."""
    parts = experiments_with(study, id_)
    own = set[str]().union(*(schemes.get(part.id, ()) for part in parts))
    others = {name for part in parts for name in (*part.aliases, *part.constants)}
    return Names(frozenset(own), frozenset(study.measures), frozenset(axes_of(study, id_) | others)) if own else None


def grids_of(
    study: Study, cells: Mapping[str, list[Cell]], measures: Mapping[str, Measure], backend: str
) -> dict[str, Grid]:
    """The grids of a study's experiments from the cells that were run of each."""
    different = study.on(backend).constants
    grids = {}
    for experiment in study.experiments:
        own = [cell for id_ in experiment.runs_of for cell in cells.get(id_, [])] or cells.get(experiment.id)
        if own:
            constants = {**experiment.constants, **different}
            grids[experiment.id] = Grid(own, measures, experiment.aliases, constants)
    return grids


def _cells(experiment: Published, part: Part, runs: Sequence[Run]) -> list[Cell]:
    """Groups repeats by scheme and place, which labels and swept values tell."""
    groups: dict[tuple[str, tuple[tuple[str, AxisValue], ...]], list[Run]] = {}
    for run in runs:
        named = _named(experiment, part, run.label)
        scheme = named.pop("scheme")
        point: dict[str, AxisValue] = {axis: _axis_value(value) for axis, value in named.items()}
        point |= {
            axis: in_axis_unit(run.summary["set"][key], axis)
            for axis, key in experiment.axes.items()
            if key in run.summary["set"]
        }
        point |= part.at
        groups.setdefault((scheme, tuple(sorted(point.items()))), []).append(run)
    return [Cell(scheme, dict(point), tuple(members)) for (scheme, point), members in groups.items()]


def _named(experiment: Published, part: Part, label: str) -> dict[str, str]:
    """The scheme, and the axis values, that an arm's label names."""
    arms = re.sub(r"\\\{(\w+)\\\}", _group, re.escape(experiment.arms))
    match = re.fullmatch(arms, label)
    if match is None:
        raise ValueError(f"{part.file}: label {label!r} is not like {experiment.arms!r}")
    return match.groupdict()


def _group(match: re.Match[str]) -> str:
    name = match.group(1)
    return r"(?P<scheme>[\w+]+)" if name == "scheme" else _NUMBER.format(name=name)


def _axis_value(text: str) -> AxisValue:
    return text == "true" if text in ("true", "false") else float(text)


def in_axis_unit(value: object, axis: str) -> AxisValue:
    """A swept value in the unit that the axis' name ends in: ``"0.1 s"`` on ``rtt_ms`` is 100."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return float(value)
    text = str(value)
    number, _, unit = text.partition(" ")
    suffix = axis.rpartition("_")[2]
    if unit in _SECONDS and suffix in ("ms", "s"):
        return round(float(number) * _SECONDS[unit] / _SECONDS[suffix], 9)
    if unit in _BITS and suffix in ("kbps", "mbps"):
        return round(float(number) * _BITS[unit] / {"kbps": 1e3, "mbps": 1e6}[suffix], 9)
    if unit in _BYTES and suffix == "bytes":
        return float(number) * _BYTES[unit]
    return text
