"""The scorecard: each metric of each scenario with its interval, beside that of drop-tail."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sojourn import _core
from sojourn.files.typed import json_text
from sojourn.frame.statistics import Interval, mean_interval
from sojourn.studies.suites.runner import AGAINST, Evaluation, Measured, Planned
from sojourn.studies.suites.suite import Better

DONE = "done"
NOT_APPLICABLE = "not applicable"
Than = Literal["better", "worse", "same", ""]


@dataclass(frozen=True)
class Score:
    """A metric of the discipline under test in a scenario."""

    name: str
    label: str
    unit: str
    value: Interval
    reference: Interval
    than_reference: Than
    """Against drop-tail: better or worse if the interval of the difference, seed by seed, leaves out zero."""
    against: Mapping[str, Interval]


@dataclass(frozen=True)
class Line:
    """A scenario of the scorecard."""

    section: str
    name: str
    weight: str
    asks: str
    decided: str
    status: str
    reason: str
    scores: tuple[Score, ...]


def scorecard(evaluation: Evaluation) -> list[Line]:
    """Every scenario, in the suite's order."""
    return [_line(evaluation, index, one) for index, one in enumerate(evaluation.planned)]


def _line(evaluation: Evaluation, index: int, one: Planned) -> Line:
    runs = evaluation.measured.get(index, [])
    under_test = [run for run in runs if run.queue == evaluation.arms[0].queue]
    reason = one.reason
    if not reason and one.scenario.needs == "ecn" and not any(run.values.get("marks") for run in under_test):
        reason = f"{evaluation.arms[0].aqm} marked no packet with ECN on"
    scores = () if reason else tuple(_scores(evaluation, one, runs))
    return Line(
        one.scenario.section,
        one.scenario.title(one.case),
        one.scenario.weight,
        one.scenario.asks,
        one.scenario.decided,
        NOT_APPLICABLE if reason else DONE,
        reason,
        scores,
    )


def _scores(evaluation: Evaluation, one: Planned, runs: Sequence[Measured]) -> Iterator[Score]:
    reference = evaluation.suite.content.reference
    for name, metric in evaluation.suite.metrics_of(one.scenario).items():
        of = {
            arm.queue: {run.seed: run.values[name] for run in runs if run.queue == arm.queue} for arm in evaluation.arms
        }
        own, base = of[evaluation.arms[0].queue], of[reference]
        yield Score(
            name,
            name if metric.label is None else metric.label,
            metric.unit,
            mean_interval(list(own.values())).within(*metric.bounds),
            mean_interval(list(base.values())).within(*metric.bounds),
            compared([own[seed] - base[seed] for seed in own if seed in base], metric.better),
            {
                arm.queue: mean_interval(list(of[arm.queue].values())).within(*metric.bounds)
                for arm in evaluation.arms
                if arm.role == AGAINST and of[arm.queue]
            },
        )


def compared(differences: Sequence[float], better: Better) -> Than:
    """Whether a metric is better than the reference's, from the differences of runs with the same seed.

    ``same`` means that the 95 % interval of the mean difference contains zero. Empty if neither way is better, or with
    fewer than two differences.
    """
    known = [one for one in differences if not math.isnan(one)]
    if not better or len(known) < 2:
        return ""
    interval = mean_interval(known)
    if interval.low <= 0.0 <= interval.high:
        return "same"
    return "better" if (interval.middle > 0.0) == (better == "higher") else "worse"


def tally(lines: Sequence[Line]) -> dict[str, int]:
    """The number of metrics by their comparison with drop-tail."""
    found = {"better": 0, "same": 0, "worse": 0}
    for line in lines:
        for score in line.scores:
            if score.than_reference:
                found[score.than_reference] += 1
    return found


def as_json(evaluation: Evaluation, lines: Sequence[Line], figures: Sequence[str]) -> str:
    """The output of ``--json``, and scorecard.json. A number that no run has is null."""
    document: dict[str, Any] = {
        "suite": evaluation.suite.name,
        "aqm": evaluation.arms[0].queue,
        "against": [arm.queue for arm in evaluation.arms if arm.role == AGAINST],
        "reference": evaluation.suite.content.reference,
        "sojourn": _core.version,
        "quick": evaluation.quick,
        "runs": evaluation.runs,
        "scenarios": [_line_json(line) for line in lines],
        "figures": list(figures),
    }
    return json_text(document)


def _line_json(line: Line) -> dict[str, Any]:
    found: dict[str, Any] = {
        "section": line.section,
        "name": line.name,
        "weight": line.weight,
        "status": line.status,
        **({"reason": line.reason} if line.reason else {}),
        "metrics": {},
    }
    for score in line.scores:
        found["metrics"][score.name] = {
            **_interval(score.value),
            "reference": _number(score.reference.middle),
            "reference_ci95": _interval(score.reference)["ci95"],
            "unit": score.unit,
            "than_reference": score.than_reference,
            **({"against": {name: _interval(one) for name, one in score.against.items()}} if score.against else {}),
        }
    return found


def _interval(interval: Interval) -> dict[str, Any]:
    return {"value": _number(interval.middle), "ci95": [_number(interval.low), _number(interval.high)]}


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
