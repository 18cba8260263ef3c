"""Evaluates a formula over a grid: once for every cell of the axes, and every scheme, that it leaves free."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from statistics import fmean, median
from typing import NamedTuple

import numpy as np

from sojourn.studies.grid import AxisValue, Grid, Point
from sojourn.studies.measures import STATISTICS, is_statistic
from sojourn.studies.relation import (
    All,
    Arithmetic,
    Call,
    Comparison,
    Node,
    Number,
    Reference,
    RelationError,
    parse,
    walk,
)

ANY = frozenset({"any", "each"})
OTHER = "any_other"
_OVER_AXIS = {"increasing": 2, "decreasing": 2, "slope": 2, "range": 2, "mean": 2, "median": 2, "reaching": 4}
"""The functions that run along an axis, their last argument, and how many arguments they then have."""


@dataclass(frozen=True)
class Slack:
    """How closely a comparison must hold."""

    margin: float = 0.0
    """Relative slack of inequalities."""
    relative: float = 0.0
    """Of ``~=``: of the larger side."""
    absolute: float = 0.0
    """Of ``~=``: in the metric's unit."""


@dataclass(frozen=True)
class Instance:
    """The outcome at one place: a truth value of a relation, a number of a formula."""

    scheme: str | None
    point: Point
    value: float | bool


def instances(
    formula: str,
    grid: Grid,
    *,
    schemes: Sequence[str] = (),
    slack: Slack | None = None,
    derived: Mapping[str, str] | None = None,
    within: Grid | None = None,
    given: Mapping[Reference, float] | None = None,
) -> list[Instance]:
    """Evaluates a formula everywhere.

    Parameters
    ----------
    formula
        In the language of ``relation``.
    grid
        The experiment's runs.
    schemes
        What ``any``, ``each``, ``any_other`` and a metric without a scheme range over; default: all of the grid.
    slack
        Tolerances of comparisons.
    derived
        Metrics that are formulas of others for one scheme, which they call ``each``.
    within
        The part of the grid whose places are looked at; what the formula itself places may lie outside. Default: all.
    given
        What references of the formula, derived metrics expanded, are taken to be instead of what was measured.

    Returns
    -------
    list of Instance
        Places without data are left out.

    Raises
    ------
    RelationError
        The formula is not in the language, or names something that the grid does not have.
    """
    evaluator = _Evaluator(
        parse(formula), grid, schemes or grid.schemes, slack or Slack(), derived or {}, within or grid, given or {}
    )
    return list(evaluator.instances())


class Names(NamedTuple):
    """What formulas about an experiment may name."""

    schemes: frozenset[str]
    metrics: frozenset[str]
    axes: frozenset[str]
    """Other words for one and constants are among them."""


def check_names(formula: str, names: Names, derived: Mapping[str, str]) -> None:
    """Checks a formula for a number, before there is anything to evaluate it on.

    Raises
    ------
    RelationError
        It is not in the language, no number, or names something that the experiment does not have.
    """
    root = parse(formula)
    for node in walk(expand(root, derived)):
        match node:
            case Comparison() | All() | Call("increasing" | "decreasing"):
                raise RelationError(f"{formula!r} is true or false; must be a number")
            case Reference(parts, at):
                _check_reference(parts, names)
                for axis, _ in at:
                    _must_be(axis, names.axes, "axis")


def _check_reference(parts: Sequence[str], names: Names) -> None:
    if len(parts) == 1 and parts[0] not in names.metrics:
        _must_be(parts[0], names.axes | names.metrics, "axis or metric")
        return
    if parts[0] not in names.metrics:
        if parts[0] not in ANY | {OTHER}:
            _must_be(parts[0], names.schemes, "scheme")
        parts = parts[1:]
    _must_be(parts[0], names.metrics, "metric")
    if len(parts) > 2 or (len(parts) == 2 and not is_statistic(parts[1])):
        raise RelationError(f"no statistic {'.'.join(parts[1:])!r}; must be one of {', '.join(STATISTICS)}, p90, …")


def _must_be(name: str, accepted: frozenset[str], what: str) -> None:
    if name not in accepted:
        raise RelationError(f"no {what} {name!r}; must be one of {', '.join(sorted(accepted))}")


class _NoDataError(Exception):
    """Some value that the formula needs was not run."""


class _Evaluator:
    def __init__(
        self,
        root: Node,
        grid: Grid,
        schemes: Sequence[str],
        slack: Slack,
        derived: Mapping[str, str],
        within: Grid,
        given: Mapping[Reference, float],
    ) -> None:
        self._grid = grid
        self._within = within
        self._root = expand(root, derived)
        self._schemes = [scheme for scheme in schemes if scheme in grid.schemes]
        self._slack = slack
        self._given = given
        self._references = [node for node in walk(self._root) if isinstance(node, Reference)]

    def instances(self) -> list[Instance]:
        found = []
        for scheme, point in product(self._bindings(), self._points()):
            try:
                found.append(Instance(scheme, point, self._value(self._root, scheme, point)))
            except _NoDataError:
                continue
        return found

    def _bindings(self) -> Sequence[str | None]:
        heads = {reference.names[0] for reference in self._references}
        if OTHER in heads:
            return [scheme for scheme in self._schemes if scheme not in heads]
        if heads & ANY or heads & self._grid.measures.keys():
            return self._schemes
        return [None]

    def _points(self) -> list[Point]:
        """The places to look at: every combination that was run of the axes that the formula does not settle."""
        settled = {self._axis(name) for reference in self._references for name, _ in reference.at}
        for node in walk(self._root):
            if (
                isinstance(node, Call)
                and node.function in _OVER_AXIS
                and len(node.arguments) == _OVER_AXIS[node.function]
            ):
                settled.add(self._axis_argument(node))
        free = [axis for axis in self._grid.axes if axis not in settled]
        points: dict[tuple[tuple[str, AxisValue], ...], None] = {}
        for cell in self._within.cells:
            points[tuple((axis, cell.point[axis]) for axis in free if axis in cell.point)] = None
        return [dict(point) for point in points]

    def _axis(self, name: str) -> str:
        if not self._grid.knows(name):
            raise RelationError(f"no axis {name!r}")
        return self._grid.place(name, math.nan)[0]

    def _axis_argument(self, call: Call) -> str:
        axis = call.arguments[-1]
        if not isinstance(axis, Reference) or len(axis.names) != 1:
            raise RelationError(f"{call.function} needs the name of an axis")
        return self._axis(axis.names[0])

    def _value(self, node: Node, scheme: str | None, point: Point) -> float | bool:
        match node:
            case Number(value):
                return value
            case Reference():
                return self._reference(node, scheme, point)
            case Arithmetic(operator, left, right):
                return _arithmetic(operator, self._value(left, scheme, point), self._value(right, scheme, point))
            case Call():
                return self._call(node, scheme, point)
            case Comparison(terms, operators):
                values = [self._value(term, scheme, point) for term in terms]
                pairs = zip(values, operators, values[1:], strict=False)
                return all(self._compare(left, operator, right) for left, operator, right in pairs)
            case All(parts):
                # All of them, so that missing data never depends on the order in which a claim is written.
                values = [self._value(part, scheme, point) for part in parts]
                return all(values)

    def _reference(self, node: Reference, scheme: str | None, point: Point, statistic: str | None = None) -> float:
        names = node.names
        if len(names) == 1 and names[0] not in self._grid.measures:
            return self._coordinate(names[0], point)
        if names[0] in self._grid.measures:
            of, rest = scheme, names
        else:
            of, rest = (scheme if names[0] in ANY or names[0] == OTHER else names[0]), names[1:]
        if of is None or (of not in self._grid.schemes and of not in self._schemes):
            raise RelationError(f"no scheme {names[0]!r}")
        if rest[0] not in self._grid.measures or len(rest) > 2:
            raise RelationError(f"no metric {'.'.join(rest)!r}")
        if node in self._given:
            return self._given[node]
        place = {**point, **dict(self._grid.place(axis, value) for axis, value in node.at)}
        value = self._grid.value(of, rest[0], statistic or (rest[1] if len(rest) == 2 else "value"), place)
        if math.isnan(value):
            raise _NoDataError
        return value

    def _coordinate(self, name: str, point: Point) -> float:
        if not self._grid.knows(name):
            raise RelationError(f"no axis or metric {name!r}")
        alias = self._grid.aliases.get(name)
        place = {**self._grid.constants, **point}
        axis = alias.axis if alias else name
        if axis not in place or isinstance(place[axis], str):
            raise RelationError(f"{name!r} has no number here")
        return float(place[axis]) * (alias.factor if alias else 1.0)

    def _call(self, node: Call, scheme: str | None, point: Point) -> float | bool:
        first = node.arguments[0]
        if node.function == "spread":
            return self._statistic(first, "p90", scheme, point) - self._statistic(first, "p10", scheme, point)
        if len(node.arguments) == _OVER_AXIS.get(node.function):
            return self._over_axis(node, scheme, point)
        if len(node.arguments) == 1 and node.function in ("median", "mean", "max", "min"):
            return self._statistic(first, node.function, scheme, point)
        values = [float(self._value(argument, scheme, point)) for argument in node.arguments]
        match node.function:
            case "abs" if len(values) == 1:
                return abs(values[0])
            case "max":
                return max(values)
            case "min":
                return min(values)
            case "median":
                return median(values)
            case "mean":
                return fmean(values)
            case "range":
                return max(values) - min(values)
        raise RelationError(f"{node.function} cannot take {len(values)} arguments")

    def _statistic(self, node: Node, statistic: str, scheme: str | None, point: Point) -> float:
        if not isinstance(node, Reference):
            raise RelationError(f"{statistic} needs a metric")
        return self._reference(node, scheme, point, statistic)

    def _over_axis(self, node: Call, scheme: str | None, point: Point) -> float | bool:
        axis = self._axis_argument(node)
        along = self._within.values(axis)
        values = [float(self._value(node.arguments[0], scheme, {**point, axis: at})) for at in along]
        if len(values) < 2:
            raise _NoDataError
        if node.function == "reaching":
            heights = [float(self._value(node.arguments[1], scheme, {**point, axis: at})) for at in along]
            return _reaching(values, heights, float(self._value(node.arguments[2], scheme, point)))
        match node.function:
            case "increasing":
                return self._monotone(values)
            case "decreasing":
                return self._monotone(values[::-1])
            case "range":
                return max(values) - min(values)
            case "mean":
                return fmean(values)
            case "median":
                return median(values)
        positions = np.array([float(at) for at in along if not isinstance(at, str)])
        return float(np.polyfit(positions, np.array(values), 1)[0])

    def _monotone(self, values: Sequence[float]) -> bool:
        steps = pairwise(values)
        return all(self._compare(later, ">", earlier) for earlier, later in steps)

    def _compare(self, left: float, operator: str, right: float) -> bool:
        room = self._slack.margin * abs(right)
        match operator:
            case "<":
                return left < right + room
            case "<=":
                return left <= right + room
            case ">":
                return left > right - room
            case ">=":
                return left >= right - room
            case "==":
                return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)
        near = max(self._slack.relative * max(abs(left), abs(right)), self._slack.absolute)
        return abs(left - right) <= near


def _reaching(values: Sequence[float], heights: Sequence[float], level: float) -> float:
    """The value where the height first reaches a level, on the line between the points before and after."""
    for (before, low), (after, high) in pairwise(zip(values, heights, strict=True)):
        if low < level <= high:
            return before + (after - before) * (level - low) / (high - low)
    raise _NoDataError


def _arithmetic(operator: str, left: float, right: float) -> float:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
    if right == 0.0:
        raise _NoDataError
    return left / right


def expand(node: Node, derived: Mapping[str, str]) -> Node:
    """Puts the formulas of derived metrics in their place."""
    match node:
        case Reference(names, at):
            metric = names[0] if names[0] in derived else names[1] if len(names) > 1 and names[1] in derived else None
            if metric is None:
                return node
            scheme = "each" if metric == names[0] else names[0]
            return _of_scheme(parse(derived[metric]), scheme, at)
        case Arithmetic(operator, left, right):
            return Arithmetic(operator, expand(left, derived), expand(right, derived))
        case Call(function, arguments):
            return Call(function, tuple(expand(argument, derived) for argument in arguments))
        case Comparison(terms, operators):
            return Comparison(tuple(expand(term, derived) for term in terms), operators)
        case All(parts):
            return All(tuple(expand(part, derived) for part in parts))
    return node


def _of_scheme(node: Node, scheme: str, at: tuple[tuple[str, AxisValue], ...]) -> Node:
    match node:
        case Reference(names, own):
            return Reference((scheme, *names[1:]) if names[0] == "each" else names, (*at, *own))
        case Arithmetic(operator, left, right):
            return Arithmetic(operator, _of_scheme(left, scheme, at), _of_scheme(right, scheme, at))
        case Call(function, arguments):
            return Call(function, tuple(_of_scheme(argument, scheme, at) for argument in arguments))
    return node
