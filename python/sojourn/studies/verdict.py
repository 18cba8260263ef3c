"""Judges claims: what was measured, whether it agrees with what was published, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

from sojourn.studies import texts
from sojourn.studies.claims import Claim
from sojourn.studies.evaluate import Instance, Slack, instances
from sojourn.studies.grid import AmbiguousPlaceError, Grid
from sojourn.studies.measures import quantile_level
from sojourn.studies.recipe import Reading, Study
from sojourn.studies.relation import RelationError


class Verdict(StrEnum):
    """What became of a claim."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    NOT_COMPARABLE = "not comparable"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Judgement:
    """A claim beside what was measured."""

    id: str
    statement: str
    location: str
    published: str
    measured: str
    verdict: Verdict
    reason: str

    def as_json(self) -> dict[str, str]:
        """As an element of ``claims`` in ``study run --json``."""
        return {key: str(value) for key, value in asdict(self).items()}


@dataclass(frozen=True)
class Answer:
    """A question that the paper leaves open, and what was measured of it."""

    question: str
    location: str
    answer: str


_NO_RESULT = {
    "cited": "quoted by the paper from another work",
    "manual": "published without a relation that a program could check",
    "setup": "a parameter of the set-up, not a result",
    "derived": "follows by arithmetic from other values of the paper, not from a run",
}


def judge(study: Study, grids: Mapping[str, Grid]) -> list[Judgement]:
    """A judgement for every claim of the study, in the paper's order.

    Parameters
    ----------
    study
        The paper.
    grids
        What was run, by experiment; claims about any other experiment are not run.
    """
    return [_judge(claim, study, grids) for claim in study.claims]


def _judge(claim: Claim, study: Study, grids: Mapping[str, Grid]) -> Judgement:
    reading = study.readings.get(claim.id, Reading(because=""))
    reading = replace(reading, because=_because(claim, reading, study, grids))
    if reading.not_comparable:
        return _judgement(claim, "", Verdict.NOT_COMPARABLE, reading.because)
    if claim.check in _NO_RESULT:
        return _judgement(claim, "", Verdict.NOT_COMPARABLE, _NO_RESULT[claim.check])
    if reading.not_run:
        return _judgement(claim, "", Verdict.NOT_RUN, reading.because)
    relations = reading.relations or tuple(filter(None, (reading.relation or claim.relation,)))
    if not relations and claim.low is None:
        return _judgement(claim, "", Verdict.NOT_COMPARABLE, "published without a number or a relation")
    wanted = experiments_of(claim, reading)
    found = [grids[id_] for id_ in wanted if id_ in grids]
    if not found:
        return _judgement(claim, "", Verdict.NOT_RUN, _why_not_run(study, wanted))
    try:
        outcomes = [
            instance
            for grid in found
            for formula in ([reading.measure] if reading.measure else relations or [plain_measure(claim)])
            for instance in instances(
                formula,
                selected(grid, claim, reading),
                schemes=claim.schemes if reading.schemes is None else reading.schemes,
                slack=Slack(claim.tol_margin, claim.tol_rel, claim.tol_abs),
                derived=study.derived,
            )
        ]
    except (RelationError, AmbiguousPlaceError) as error:
        return _judgement(claim, "", Verdict.NOT_COMPARABLE, str(error))
    if not outcomes:
        return _judgement(claim, "", Verdict.NOT_RUN, "no run at the places that the claim is about")
    return _weigh(claim, reading, outcomes, is_relation=bool(relations))


def experiments_of(claim: Claim, reading: Reading) -> tuple[str, ...]:
    """The experiments that a claim is judged on."""
    return reading.experiments or (claim.experiment,)


def _because(claim: Claim, reading: Reading, study: Study, grids: Mapping[str, Grid]) -> str:
    """The reading's reason, with what was measured in it."""
    found = [grids[id_] for id_ in experiments_of(claim, reading) if id_ in grids]
    try:
        parts = [(selected(grid, claim, reading), grid) for grid in found]
    except RelationError:
        parts = [(grid, grid) for grid in found]
    schemes = claim.schemes if reading.schemes is None else reading.schemes
    return texts.fill(reading.because, parts, study.derived, schemes, grids)


def answers(study: Study, grids: Mapping[str, Grid]) -> list[Answer]:
    """What was measured of every question that the paper leaves open; those whose experiment was not run left out."""
    return [
        Answer(
            question.asks,
            question.location,
            texts.fill(question.answer, [(grid, grid)], study.derived, others=grids),
        )
        for question in study.questions
        if (grid := grids.get(question.experiment)) is not None
    ]


def _why_not_run(study: Study, wanted: Sequence[str]) -> str:
    experiment = study.experiment(wanted[0])
    if experiment is not None and experiment.unavailable:
        return experiment.unavailable
    return f"experiment {wanted[0]} was not run"


def plain_measure(claim: Claim) -> str:
    """The formula for what a claim without a reading publishes: its statistic of its metric."""
    statistic = claim.statistic.split()[0] if claim.statistic else "value"
    if statistic not in ("mean", "std", "value") and quantile_level(statistic) is None:
        statistic = "value"
    return f"each.{claim.metric}.{statistic}"


def selected(grid: Grid, claim: Claim, reading: Reading) -> Grid:
    """The part of a grid that a claim is about."""
    places = (
        reading.cells
        if reading.cells is not None
        else (claim.condition if reading.condition is None else reading.condition,)
    )
    for name in {name for place in places for name in place}:
        if not grid.knows(name):
            raise RelationError(f"the claim's condition on {name!r} is about nothing that was varied here")
    return grid.where(lambda cell: any(grid.is_at(cell, place) for place in places))


def _weigh(claim: Claim, reading: Reading, outcomes: Sequence[Instance], *, is_relation: bool) -> Judgement:
    if is_relation:
        holds = [bool(outcome.value) for outcome in outcomes]
        measured = f"holds in {sum(holds)} of {len(holds)}"
        if not all(holds) and any(holds):
            measured += f"; not at {_places(outcomes, holds)}"
        needed = "must hold in all" if claim.hold_min >= 1.0 else f"must hold in {claim.hold_min:.0%}"
    else:
        values = [float(outcome.value) for outcome in outcomes]
        holds = [claim.accepts(value) for value in values]
        unit = "" if claim.unit in ("", "1") else f" {claim.unit}"
        low, high = texts.short(min(values)), texts.short(max(values))
        measured = f"{low}{unit}" if low == high else f"{low} to {high}{unit}"
        if len(values) == 1:
            needed = "within the tolerance" if holds[0] else "outside the tolerance"
        else:
            needed = f"{sum(holds)} of {len(holds)} within the tolerance"
            if not all(holds) and any(holds):
                needed += f"; not at {_places(outcomes, holds)}"
    reproduced = sum(holds) >= claim.hold_min * len(holds) - 1e-9
    reason = "; ".join(part for part in (needed, reading.because, claim.tol_reason) if part)
    return _judgement(claim, measured, Verdict.REPRODUCED if reproduced else Verdict.NOT_REPRODUCED, reason)


def _places(outcomes: Sequence[Instance], holds: Sequence[bool], limit: int = 3) -> str:
    missed = [outcome for outcome, hold in zip(outcomes, holds, strict=True) if not hold]
    named = [
        " ".join(
            [*([one.scheme] if one.scheme else []), *(f"{axis}={_plain(value)}" for axis, value in one.point.items())]
        )
        for one in missed[:limit]
    ]
    return ", ".join(named) + (f" and {len(missed) - limit} more" if len(missed) > limit else "")


def _plain(value: float | bool | str) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def _judgement(claim: Claim, measured: str, verdict: Verdict, reason: str) -> Judgement:
    return Judgement(claim.id, claim.statement, claim.location, claim.published, measured, verdict, reason)
