"""Judges claims: compares measured with published results, and gives reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from msgspec import structs

from sojourn.frame.statistics import three_digits
from sojourn.studies import texts
from sojourn.studies.claims import Claim, Verdict
from sojourn.studies.evaluate import Missing, Outcome, Slack, outcomes
from sojourn.studies.grid import AmbiguousPlaceError, Grid, Point
from sojourn.studies.measures import quantile_level
from sojourn.studies.recipe import UNEXPLAINED, Reading, Study
from sojourn.studies.relation import RelationError
from sojourn.studies.texts import in_numbers, place_of, plain
from sojourn.studies.tolerances import Tolerance


@dataclass(frozen=True)
class Judgement:
    """A claim and its measured result."""

    id: str
    statement: str
    location: str
    published: str
    measured: str
    verdict: Verdict
    reason: str
    tolerance: str = ""
    is_reading: bool = False
    """``published`` is a relation: our reading of the statement, not what the paper printed."""
    judged_as: str = ""
    """The formula that was measured for a number, and the places of the claim."""
    numbers: str = ""
    """For a relation: the measured values of its sides."""
    only_by_tolerance: bool = False
    """Reproduced, but only because of the tolerance."""
    wide: str = ""
    """What the tolerance of a number accepts, if it is half of the effect or more: it shows a direction, not a size."""
    expected: int = 0
    judged: int = 0
    left_out: int = 0
    """The number of further places that the reading excludes, because the claim does not cover them."""
    runs_per_place: int = 0
    """Repeats per place; 0 if it differs between places."""
    not_seen: int = 0
    """Places where the event of the claim did not happen, which counts as not reproduced."""
    empty_repeats: int = 0
    """The most repeats, at one place, in which it did not happen."""
    repeats: int = 0
    """Repeats judged individually; 0 for several places, or for a single run."""
    repeats_held: int = 0
    cause: str = ""
    """The cause of a miss, as in the recipe: one of ``CAUSES``."""

    @property
    def is_split(self) -> bool:
        """Decided by the mean: more than a quarter of the repeats are on the other side, each judged by itself."""
        others = self.repeats - self.repeats_held if self.verdict == Verdict.REPRODUCED else self.repeats_held
        return self.repeats > 0 and others > self.repeats / 4

    @property
    def basis(self) -> str:
        """The basis of the verdict, if it is not every place of the claim."""
        parts = {
            f"{self.judged} of {self.expected} places run": self.judged < self.expected,
            f"{self.left_out} places left out": self.left_out,
            f"not seen at {self.not_seen} of them": self.not_seen and self.expected > 1,
            f"not seen in up to {self.empty_repeats} repeats of a place": self.empty_repeats,
            f"by itself in {self.repeats_held} of {self.repeats} repeats": self.repeats,
            "single runs go either way": self.is_split,
            "one place, run once": self.judged == self.runs_per_place == 1,
            "only by tolerance": self.only_by_tolerance,
            f"wide tolerance: accepts {self.wide}": self.wide,
        }
        return "; ".join(part for part, applies in parts.items() if applies)

    def as_json(self) -> dict[str, Any]:
        """The element of ``claims`` in ``study run --json``."""
        return {**asdict(self), "verdict": str(self.verdict), "basis": self.basis}


@dataclass(frozen=True)
class Answer:
    """An open question of the paper, and its measured answer."""

    question: str
    location: str
    answer: str


NOT_SEEN = "not seen"
"""Measured result of a claim whose event did not happen."""
NO_RESULT = {
    "cited": "quoted by the paper from another work",
    "manual": "judged by nobody: no program checks it, and the recipe does not say why",
    "setup": "a parameter of the set-up, not a result",
    "derived": "follows by arithmetic from other values of the paper, not from a run",
}


@dataclass(frozen=True)
class Case:
    """A claim as the recipe reads it, and its evaluation."""

    claim: Claim
    reading: Reading
    derived: Mapping[str, str]

    @property
    def is_judged(self) -> bool:
        """True if runs can decide: for a claim that is not ``auto``, if its reading has a formula."""
        reading = self.reading
        return self.claim.check not in NO_RESULT or bool(reading.measure or reading.relation or reading.relations)

    @property
    def is_relation(self) -> bool:
        """True if it is a relation, not a number."""
        return not self.reading.measure and bool(self.claim.relation or self.reading.relation or self.reading.relations)

    @property
    def is_number(self) -> bool:
        """True if a program measures the number that the claim publishes."""
        left_out = self.reading.not_comparable or self.reading.not_run
        return self.is_judged and not left_out and self.claim.low is not None and not self.is_relation

    @property
    def formulas(self) -> tuple[str, ...]:
        """The formulas to evaluate: relations, or the measure of a number; empty if the claim has neither."""
        if self.reading.measure:
            return (self.reading.measure,)
        relations = self.reading.relations or tuple(filter(None, (self.reading.relation or self.claim.relation,)))
        if relations:
            return relations
        return () if self.claim.low is None else (plain_measure(self.claim),)

    @property
    def experiments(self) -> tuple[str, ...]:
        """The experiments on which the claim is judged."""
        return self.reading.experiments or (self.claim.experiment,)

    @property
    def schemes(self) -> Sequence[str]:
        """The schemes of the claim."""
        return self.claim.schemes if self.reading.schemes is None else self.reading.schemes

    def part_of(self, grid: Grid) -> Grid:
        """The part of a grid that the claim covers."""
        reading = self.reading
        condition = self.claim.condition if reading.condition is None else reading.condition
        places = (condition,) if reading.cells is None else reading.cells
        for name in {name for place in places for name in place}:
            if name not in grid.names:
                raise RelationError(f"the claim's condition on {name!r} is about nothing that was varied here")
        return grid.where(lambda cell: any(grid.is_at(cell, place) for place in places))

    @property
    def described(self) -> str:
        """What was measured for a number, unless it is the claim's own metric, and where."""
        reading = self.reading
        cells = reading.cells or (self.claim.condition if reading.condition is None else reading.condition,)

        def named(axis: str, of: Any) -> str:
            return f"{axis}={'|'.join(map(plain, of if isinstance(of, list) else [of]))}"

        places = "; ".join(" ".join(named(*one) for one in cell.items()) for cell in cells)
        where = f"where {reading.only_where}" if reading.only_where else ""
        return ", ".join(filter(None, [reading.measure, f"at {places}" if places else "", where]))

    def of(self, formula: str, grid: Grid, slack: Slack | None = None) -> list[Outcome]:
        """The results of a formula for the claim's schemes."""
        return outcomes(formula, grid, schemes=self.schemes, slack=slack or Slack(), derived=self.derived)

    def outcomes(self, grids: Sequence[Grid]) -> list[Outcome]:
        """The results of the claim at every place that it covers."""
        slack = Slack(self.claim.tol_margin, Tolerance(self.claim.tol_rel, self.claim.tol_abs))
        found: list[Outcome] = []
        for grid in grids:
            places: list[Point] | None = None
            if self.reading.only_where is not None:
                places = [one.point for one in self.of(self.reading.only_where, grid) if one.value is True]
            for number, formula in enumerate(self.formulas, 1):
                of = number if len(self.formulas) > 1 else 0
                every = self.of(formula, grid, slack)
                found += [replace(one, relation=of) for one in every if places is None or one.point in places]
        return found

    def left_out(self, grids: Sequence[Grid]) -> int:
        """The number of places that the reading excludes, because the claim does not cover them."""
        if self.reading.only_where is None:
            return 0
        whole = replace(self, reading=structs.replace(self.reading, only_where=None))
        return len(whole.outcomes(grids)) - len(self.outcomes(grids))

    def holds(self, outcome: Outcome) -> bool:
        """True if the claim holds at a place; False if its event did not happen there."""
        if isinstance(outcome.value, Missing):
            return False
        return bool(outcome.value) if self.is_relation else self.claim.accepts(float(outcome.value))


def cases(study: Study) -> list[Case]:
    """Every claim of the study, as its recipe reads it."""
    plain = Reading(because="")
    return [Case(claim, study.readings.get(claim.id, plain), study.derived) for claim in study.claims]


def judge(study: Study, grids: Mapping[str, Grid]) -> list[Judgement]:
    """Judges every claim of the study, in the paper's order, by the runs of its experiments."""
    return [_judge(case, study, grids) for case in cases(study)]


def _judge(case: Case, study: Study, grids: Mapping[str, Grid]) -> Judgement:
    claim = case.claim
    reading = structs.replace(case.reading, because=_because(case, grids))
    case = replace(case, reading=reading)
    if reading.not_comparable:
        return _judgement(claim, "", Verdict.NOT_COMPARABLE, reading.because)
    if not case.is_judged:
        # The reason in the recipe, of the claim or of its experiment, or else that of all such claims.
        own = study.experiment(claim.experiment) if claim.check == "manual" else None
        why = reading.because or (own.unavailable if own is not None else "") or NO_RESULT[claim.check]
        return _judgement(claim, "", Verdict.NOT_COMPARABLE, why)
    if reading.not_run:
        return _judgement(claim, "", Verdict.NOT_RUN, reading.because)
    if not case.formulas:
        return _judgement(claim, "", Verdict.NOT_COMPARABLE, "published without a number or a relation")
    found = [grids[id_] for id_ in case.experiments if id_ in grids]
    if not found:
        first = study.experiment(case.experiments[0])
        why = first.unavailable if first is not None else ""
        return _judgement(claim, "", Verdict.NOT_RUN, why or f"experiment {case.experiments[0]} was not run")
    try:
        parts = [case.part_of(grid) for grid in found]
        whole = _weigh(case, parts)
        alone = structs.replace(reading, because="", measure=None, relation=None, relations=())
        further = [_weigh(replace(case, claim=one, reading=alone), parts) for one in claim.further]
        return _together(whole, claim.further, further)
    except (RelationError, AmbiguousPlaceError) as error:
        return _judgement(claim, "", Verdict.NOT_COMPARABLE, str(error))


def _because(case: Case, grids: Mapping[str, Grid]) -> str:
    """The reading's reason, with its formulas replaced by measured values."""
    found = [grids[id_] for id_ in case.experiments if id_ in grids]
    try:
        parts = [(case.part_of(grid), grid) for grid in found]
    except RelationError:
        parts = [(grid, grid) for grid in found]
    return texts.fill(case.reading.because, parts, case.derived, case.schemes, grids)


def plain_measure(claim: Claim) -> str:
    """The formula of a claim without a reading: its statistic of its metric."""
    return f"each.{claim.metric}.{plain_statistic(claim)}"


def plain_statistic(claim: Claim) -> str:
    """The first statistic that a claim names, in the language of formulas: ``mean`` for ``mean over runs``."""
    statistic = claim.statistic.split()[0] if claim.statistic else "value"
    known = statistic in ("mean", "std", "value") or quantile_level(statistic) is not None
    return statistic if known else "value"


def _weigh(case: Case, grids: Sequence[Grid]) -> Judgement:
    claim = case.claim
    expected = case.outcomes(grids)
    judged = [one for one in expected if one.value != Missing.NOT_RUN]
    if not judged:
        return _judgement(claim, "", Verdict.NOT_RUN, "no run at the places that the claim is about")
    holds = [case.holds(one) for one in judged]
    repeats = _by_repeat(case, grids) if len(expected) == 1 else []
    measured, needed = _of_number(claim, judged, holds)
    if case.is_relation:
        measured = f"holds in {sum(holds)} of {len(holds)}{_missed(judged, holds)}"
        needed = "must hold in all" if claim.hold_min >= 1.0 else f"must hold in {claim.hold_min:.0%}"
    reproduced = _suffices(claim, holds)
    exact = replace(case, claim=claim.exact)
    exact_holds = [exact.holds(one) for one in exact.outcomes(grids) if one.value != Missing.NOT_RUN]
    counts = {len(cell.runs) for grid in grids for cell in grid.cells}
    verdict = Verdict.REPRODUCED if reproduced else Verdict.NOT_REPRODUCED
    reason = "; ".join(part for part in (needed, case.reading.because, claim.tol_reason) if part)
    return replace(
        _judgement(claim, measured, verdict, reason),
        published="; ".join(case.formulas) if case.is_relation else claim.published,
        judged_as=case.described,
        is_reading=case.is_relation,
        numbers=in_numbers(judged) if case.is_relation else "",
        only_by_tolerance=reproduced and not _suffices(claim, exact_holds),
        wide="" if case.is_relation else claim.wide(case.reading.effect),
        expected=len(expected),
        judged=len(judged),
        left_out=case.left_out(grids),
        not_seen=sum(one.value == Missing.NOT_SEEN for one in judged),
        empty_repeats=max(one.empty_repeats for one in judged),
        runs_per_place=counts.pop() if len(counts) == 1 else 0,
        repeats=len(repeats),
        repeats_held=sum(repeats),
        cause="" if reproduced else case.reading.cause or UNEXPLAINED,
    )


def _together(whole: Judgement, claims: Sequence[Claim], further: Sequence[Judgement]) -> Judgement:
    """The verdict on a claim of several numbers: the worst of theirs."""
    worst = [whole, *further]
    for verdict in (Verdict.NOT_RUN, Verdict.NOT_REPRODUCED):
        worst = [one for one in worst if one.verdict == verdict] or worst
    named = list(zip((claim.metric for claim in claims), further, strict=True))
    return replace(
        whole,
        measured="; ".join([whole.measured, *(f"{metric} {one.measured}" for metric, one in named)]),
        verdict=worst[0].verdict,
        reason="; ".join([whole.reason, *(f"{metric} {one.reason}" for metric, one in named)]),
        only_by_tolerance=any(one.only_by_tolerance for one in worst),
        wide="; ".join(filter(None, [whole.wide, *(one.wide for one in further)])),
        cause=whole.cause or worst[0].cause,
    )


def _by_repeat(case: Case, grids: Sequence[Grid]) -> list[bool]:
    """For a claim about one place, whether it holds in each repeat; empty for a single run."""
    if len(grids) != 1 or grids[0].repeats < 2:
        return []
    alone = (grids[0].of(slice(index, index + 1)) for index in range(grids[0].repeats))
    return [case.holds(one) for grid in alone for one in case.outcomes([grid])]


def _suffices(claim: Claim, holds: Sequence[bool]) -> bool:
    return sum(holds) >= claim.hold_min * len(holds) - 1e-9


def _of_number(claim: Claim, judged: Sequence[Outcome], holds: Sequence[bool]) -> tuple[str, str]:
    """The measured result of a number, and how many values are within the tolerance."""
    values = [float(one.value) for one in judged if not isinstance(one.value, Missing)]
    measured = texts.span(values, three_digits) + claim.unit_text if values else NOT_SEEN
    if len(judged) == 1:
        return measured, "within the tolerance" if holds[0] else "outside the tolerance"
    return measured, f"{sum(holds)} of {len(holds)} within the tolerance{_missed(judged, holds)}"


def _missed(judged: Sequence[Outcome], holds: Sequence[bool], limit: int = 3) -> str:
    """The places of a claim that holds at others: ``; not at codel flows=4``."""
    missed = [place_of(outcome) for outcome, hold in zip(judged, holds, strict=True) if not hold]
    more = f" and {len(missed) - limit} more" if len(missed) > limit else ""
    return f"; not at {', '.join(missed[:limit])}{more}" if missed and any(holds) else ""


def _judgement(claim: Claim, measured: str, verdict: Verdict, reason: str) -> Judgement:
    named = (claim.id, claim.statement, claim.location, claim.published)
    return Judgement(*named, measured, verdict, reason, claim.tolerance, is_reading=claim.relation is not None)
