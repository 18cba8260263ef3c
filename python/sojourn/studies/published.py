"""Published numbers at places of the grid, for figures and tables that compare them with the runs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from sojourn.studies.claims import Bound, Claim
from sojourn.studies.evaluate import ANY, OTHER, Missing, Options, expand, instances
from sojourn.studies.grid import AmbiguousPlaceError, Grid, Point, same
from sojourn.studies.recipe import Study
from sojourn.studies.relation import Call, Node, Reference, RelationError, parse, walk
from sojourn.studies.verdict import Case, cases, plain_measure

_FLIPPED: dict[Bound, Bound] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TRIED = (1.0, 2.0, 3.0)
"""Trial values of a reference, to find how the published number depends on it."""


@dataclass(frozen=True)
class PublishedValue:
    """A published number: the expected value of a metric at a place."""

    claim: Claim
    scheme: str
    metric: str
    statistic: str
    point: Point
    """The place as far as the claim determines it; other axes may have any value of ``places``."""
    places: tuple[Point, ...]
    """The cells of the grid that it refers to."""
    low: float
    """In the metric's unit, like ``high``; both are the published number, or the ends of a range."""
    high: float
    bound: Bound | None
    """The direction of a bound, if it is one."""
    relative: bool
    """True if it was published relative to another value, for which the measured one is used: a gain, a difference."""
    measured: float
    """The measured value, in the claim's unit; NaN if it was never seen."""
    judged: bool = True
    """Whether to show the measured value beside it: some published numbers cannot be compared."""

    def is_at(self, point: Point) -> bool:
        """True if one of its places is at a point, which need not name every axis."""
        return any(
            all(axis not in place or same(place[axis], value) for axis, value in point.items()) for place in self.places
        )


def published_values(
    study: Study, grids: Mapping[str, Grid], experiment: str, metrics: Collection[str]
) -> list[PublishedValue]:
    """Published values of some metrics, from claims about an experiment or about one that shares its runs.

    A claim counts if its number depends linearly on one statistic of such a metric: the statistic itself, its
    difference from another, a reduction in percent. For the other statistics in its formula the measured values are
    used.
    """
    return [
        value
        for case, grid in _about(study, grids, experiment)
        if case.is_number
        for value in _values(study, grid, case, metrics)
    ]


def entries(study: Study, grids: Mapping[str, Grid], experiment: str, metric: str) -> list[PublishedValue]:
    """The claims about a metric, with published numbers as they are and measured ones if comparable, for tables."""
    return [
        value
        for case, grid in _about(study, grids, experiment)
        if case.claim.metric == metric and case.is_judged and case.claim.low is not None
        for value in _entries(grid, case)
    ]


def _about(study: Study, grids: Mapping[str, Grid], experiment: str) -> Iterator[tuple[Case, Grid]]:
    """The claims about an experiment or about one that shares its runs, each with its runs."""
    wanted = _runs(study, experiment)
    for case in cases(study):
        for id_ in case.experiments:
            if id_ in grids and wanted & _runs(study, id_):
                yield case, grids[id_]


def _entries(grid: Grid, case: Case) -> Iterator[PublishedValue]:
    claim = case.claim
    formula = case.formulas[0] if case.is_number else plain_measure(claim)
    try:
        part = case.part_of(grid)
        measured = case.of(formula, part)
        named = [node.names[0] for node in walk(parse(formula)) if isinstance(node, Reference) and len(node.names) > 1]
    except (RelationError, AmbiguousPlaceError):
        return
    # The number of "100 * (1 - a.x / b.x)" is about a.
    by_name = [*[name for name in named if name in grid.schemes], *case.schemes[:1], ""][0]
    for one in measured:
        scheme = one.scheme or by_name
        places = tuple(cell.set for cell in part.at(scheme, one.point))
        value = math.nan if not case.is_number or isinstance(one.value, Missing) else float(one.value)
        if places and one.value != Missing.NOT_RUN and claim.low is not None and claim.high is not None:
            ends = (claim.low, claim.high, claim.bound)
            yield PublishedValue(
                claim, scheme, claim.metric, claim.statistic, one.point, places, *ends, False, value, case.is_number
            )


def _runs(study: Study, experiment: str) -> set[str]:
    """The experiments whose runs serve an experiment of the study."""
    one = study.experiment(experiment)
    return {experiment} if one is None else set(one.runs_of or (experiment,))


def _values(study: Study, grid: Grid, case: Case, metrics: Collection[str]) -> Iterator[PublishedValue]:
    claim = case.claim
    (formula,) = case.formulas
    try:
        part = case.part_of(grid)
        statistics = _statistics(expand(parse(formula), study.derived), study.measures)
        # The first in order: the gain "1 - a / b" is at the place of a.
        node, metric, statistic = next(one for one in statistics if one[1] in metrics)
        ways: list[Options] = [{"schemes": case.schemes, "derived": study.derived, "given": {}}]
        ways += [{**ways[0], "given": {node: value}} for value in _TRIED]
        measured, *tried = (
            {(one.scheme, tuple(one.point.items())): one for one in instances(formula, part, **way)} for way in ways
        )
    except (RelationError, AmbiguousPlaceError, StopIteration):
        return
    relative = len({one[0] for one in statistics}) > 1
    for key, outcome in tried[0].items():
        line = _line([float(one[key].value) for one in tried if key in one])
        if line is None or claim.low is None or claim.high is None:
            continue
        at_zero, slope = line
        low, high = sorted(((claim.low - at_zero) / slope, (claim.high - at_zero) / slope))
        bound = claim.bound if claim.bound is None or slope > 0.0 else _FLIPPED[claim.bound]
        # The scheme that the formula names, or the one for which it was evaluated.
        names_one = node.names[0] != metric and node.names[0] not in (*ANY, OTHER)
        scheme = node.names[0] if names_one else outcome.scheme or ""
        point = {**outcome.point, **dict(grid.place(axis, value) for axis, value in node.at)}
        # The claim's selection, unless its formula names another place.
        places = tuple(cell.set for cell in [*part.at(scheme, point)] or grid.at(scheme, point))
        if places:
            value = float(measured[key].value) if key in measured else math.nan
            yield PublishedValue(claim, scheme, metric, statistic, point, places, low, high, bound, relative, value)


def _line(values: list[float]) -> tuple[float, float] | None:
    """Intercept and slope of the straight line through the values at ``_TRIED``; None if they are not on a line."""
    if len(values) < len(_TRIED) or not all(map(math.isfinite, values)):
        return None
    first, second, third = values
    slope = second - first
    if slope == 0.0 or not math.isclose(third - second, slope, rel_tol=1e-6):
        return None
    return first - slope, slope


def _statistics(node: Node, measures: Collection[str]) -> list[tuple[Reference, str, str]]:
    """The statistics in a formula, each with its metric and name; none of the larger or smaller of several values."""
    match node:
        case Reference(names):
            own = names if names[0] in measures else names[1:]
            return [(node, own[0], own[1] if len(own) > 1 else "value")] if own else []
        case Call("mean" | "median" | "min" | "max" as function, (Reference() as inner,)):
            return [(one, metric, function) for one, metric, _ in _statistics(inner, measures)]
        case Call("mean" | "median", (inner, Reference())):
            return _statistics(inner, measures)
        case Call("+" | "-" | "*" | "/", (left, right)):
            return [*_statistics(left, measures), *_statistics(right, measures)]
    return []
