"""Evaluates a formula over a grid: once for every value of the axes and every scheme that it leaves open."""

from __future__ import annotations

import math
import operator as operators
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise, product
from statistics import fmean, median
from typing import NamedTuple, TypedDict, Unpack

import numpy as np

from sojourn.studies import relation
from sojourn.studies.grid import Grid, Point
from sojourn.studies.measures import STATISTICS, is_statistic
from sojourn.studies.relation import Call, Node, Reference, RelationError
from sojourn.studies.tolerances import Tolerance

ANY = frozenset({"any", "each"})
OTHER = "any_other"
_OVER_AXIS = {"increasing": 2, "decreasing": 2, "slope": 2, "range": 2, "mean": 2, "median": 2, "reaching": 4}
"""The functions along an axis, which is their last argument, with their number of arguments."""
_OF_VALUES: dict[str, Callable[[Sequence[float]], float]] = {
    "max": max, "min": min, "median": median, "mean": fmean, "range": lambda values: max(values) - min(values),
}  # fmt: skip
_ARITHMETIC = {"+": operators.add, "-": operators.sub, "*": operators.mul, "/": operators.truediv}
_COMPARED = {"<": operators.lt, "<=": operators.le, ">": operators.gt, ">=": operators.ge}


class Slack(NamedTuple):
    """The tolerance of comparisons."""

    margin: float = 0.0
    """Relative slack of inequalities."""
    equal: Tolerance = Tolerance(0.0, 0.0)
    """Of ``~=``, by the larger side."""


class Missing(StrEnum):
    """Why a formula has no value at a place."""

    NOT_RUN = "not run"
    """A run that the formula needs was not made."""
    NOT_SEEN = "not seen"
    """The runs were made, but the event that the formula needs did not happen in any of them."""


class Side(NamedTuple):
    """The values compared at one place."""

    values: tuple[float, ...]
    signs: tuple[str, ...]
    holds: bool


@dataclass(frozen=True)
class Outcome:
    """The result of a formula at one place, even if it has no value there."""

    scheme: str | None
    point: Point
    value: float | bool | Missing
    sides: tuple[Side, ...] = ()
    """For a relation: its comparisons, in order."""
    empty_repeats: int = 0
    """Repeats in which an event that the formula needs did not happen; the value is that of the others."""
    relation: int = 0
    """For a claim read as several relations: the number of this one, from 1."""


class Options(TypedDict, total=False):
    """What an evaluation takes besides its formula and its grid."""

    schemes: Sequence[str]
    """The range of ``any``, ``each``, ``any_other`` and a metric without a scheme; default: all schemes of the grid."""
    slack: Slack
    derived: Mapping[str, str]
    """Metrics defined by formulas over other metrics of one scheme, which they call ``each``."""
    within: Grid
    """The part of the grid to evaluate; places named in the formula itself may lie outside. Default: all."""
    given: Mapping[Reference, float]
    """Values to use for references of the formula (with derived metrics expanded) instead of measured ones."""


def instances(formula: str, grid: Grid, **options: Unpack[Options]) -> list[Outcome]:
    """Evaluates a formula at every place, like ``outcomes``; places without a value are omitted."""
    return [one for one in outcomes(formula, grid, **options) if not isinstance(one.value, Missing)]


def outcomes(formula: str, grid: Grid, **options: Unpack[Options]) -> list[Outcome]:
    """Evaluates a formula, in the language of ``relation``, at every place of an experiment's runs.

    Raises RelationError if the formula has a syntax error, or names something that the grid does not have.
    """
    return list(_Evaluator(relation.parse(formula), grid, options).outcomes())


def check_names(formula: str, grid: Grid, derived: Mapping[str, str], *, number: bool = True) -> None:
    """Checks a formula, of a ``number`` or of any kind, before there is data: the grid has the planned runs.

    Raises RelationError if it is wrong.
    """
    root = relation.parse(formula)
    for node in relation.walk(expand(root, derived)):
        match node:
            case relation.Comparison() | Call("and" | "increasing" | "decreasing") if number:
                raise RelationError(f"{formula!r} is true or false; must be a number")
            case relation.Comparison() | Call("+" | "-"):
                _check_units(node, grid)
            case Reference(parts, at):
                _check_reference(parts, grid, {*grid.measures, *derived})
                for axis, _ in at:
                    _must_be(axis, grid.names, "axis")


def _check_units(node: Node, grid: Grid) -> None:
    """Checks the numbers with a unit among what is compared or added."""
    found = list(_added(node))
    numbers = [one for one in found if isinstance(one, relation.Number) and one.unit]
    references = [one for one in found if isinstance(one, Reference)]
    for reference, number in product(references, numbers):
        unit = _unit(reference, grid)
        if unit not in ("", number.unit):
            raise RelationError(f"{number}: {reference} is in {unit}")
    if len({number.unit for number in numbers}) > 1:
        raise RelationError(f"{' and '.join(map(str, numbers))} have different units")


def _added(node: Node) -> Iterator[relation.Number | Reference]:
    """Its numbers and references, but for those in products, whose unit is another one."""
    match node:
        case relation.Number() | Reference():
            yield node
        case Call("*" | "/" | "slope" | "reaching"):
            pass
        case Call() | relation.Comparison():
            for argument in node.arguments:
                yield from _added(argument)


def _unit(reference: Reference, grid: Grid) -> str:
    """The unit of its values; empty if it has none or is not known."""
    of = next((grid.measures[name] for name in reference.names[:2] if name in grid.measures), None)
    return "" if of is None or of.at_least is not None or reference.names[-1] == "count" else of.unit


def _check_reference(parts: Sequence[str], grid: Grid, metrics: Set[str]) -> None:
    if len(parts) == 1 and parts[0] not in metrics:
        _must_be(parts[0], grid.names | metrics, "axis or metric")
        return
    if parts[0] not in metrics:
        if parts[0] not in ANY | {OTHER}:
            _must_be(parts[0], grid.schemes, "scheme")
        parts = parts[1:]
    _must_be(parts[0], metrics, "metric")
    if len(parts) > 2 or (len(parts) == 2 and not is_statistic(parts[1])):
        raise RelationError(f"no statistic {'.'.join(parts[1:])!r}; must be one of {', '.join(STATISTICS)}, p90, …")


def _must_be(name: str, accepted: Collection[str], what: str) -> None:
    if name not in accepted:
        raise RelationError(f"no {what} {name!r}; must be one of {', '.join(sorted(accepted))}")


class _NoDataError(Exception):
    """A value that the formula needs is missing."""

    def __init__(self, why: Missing) -> None:
        super().__init__(why)
        self.why = why


class _Evaluator:
    def __init__(self, root: Node, grid: Grid, options: Options) -> None:
        self._grid = grid
        self._within = options.get("within", grid)
        self._root = expand(root, options.get("derived", {}))
        self._schemes = [scheme for scheme in options.get("schemes") or grid.schemes if scheme in grid.schemes]
        self._slack = options.get("slack", Slack())
        self._given = options.get("given", {})
        self._references = [node for node in relation.walk(self._root) if isinstance(node, Reference)]
        self._sides: list[Side] = []
        self._empty_repeats = 0

    def outcomes(self) -> Iterator[Outcome]:
        for scheme, point in product(self._bindings(), self._points()):
            self._sides, self._empty_repeats = [], 0
            value: float | bool | Missing
            try:
                value = self._value(self._root, scheme, point)
            except _NoDataError as error:
                value = error.why
            yield Outcome(scheme, point, value, tuple(self._sides), self._empty_repeats)

    def _bindings(self) -> Sequence[str | None]:
        heads = {reference.names[0] for reference in self._references}
        if OTHER in heads:
            return [scheme for scheme in self._schemes if scheme not in heads]
        return self._schemes if heads & (ANY | self._grid.measures.keys()) else [None]

    def _points(self) -> list[Point]:
        """The places to evaluate: every combination that was run of values of the axes that the formula leaves open."""
        settled = {self._axis(name) for reference in self._references for name, _ in reference.at}
        for node in relation.walk(self._root):
            if isinstance(node, Call) and len(node.arguments) == _OVER_AXIS.get(node.function):
                settled.add(self._axis_argument(node))
        free = [axis for axis in self._grid.axes if axis not in settled]
        places = (((axis, cell.set[axis]) for axis in free if axis in cell.set) for cell in self._within.cells)
        return list(map(dict, dict.fromkeys(map(tuple, places))))

    def _axis(self, name: str) -> str:
        if name not in self._grid.names:
            raise RelationError(f"no axis {name!r}")
        return self._grid.place(name, math.nan)[0]

    def _axis_argument(self, call: Call) -> str:
        axis = call.arguments[-1]
        if not isinstance(axis, Reference) or len(axis.names) != 1:
            raise RelationError(f"{call.function} needs the name of an axis")
        return self._axis(axis.names[0])

    def _value(self, node: Node, scheme: str | None, point: Point) -> float | bool:
        match node:
            case relation.Number(value):
                return value
            case Reference():
                return self._reference(node, scheme, point)
            case Call("+" | "-" | "*" | "/" as operator, arguments):
                values = self._numbers(arguments, scheme, point)
                if operator == "/" and values[1] == 0.0:
                    raise _NoDataError(Missing.NOT_SEEN)
                return float(_ARITHMETIC[operator](*values))
            case Call("and", parts):
                return all(self._values(((part, point) for part in parts), scheme))
            case Call():
                return self._call(node, scheme, point)
            case relation.Comparison(terms, operators):
                values = self._numbers(terms, scheme, point)
                holds = all(map(self._compare, values, operators, values[1:]))
                self._sides.append(Side(tuple(values), tuple(operators), holds))
                return holds

    def _values(self, nodes: Iterable[tuple[Node, Point]], scheme: str | None) -> list[float | bool]:
        """Evaluates all of them, so that the result does not depend on the order in which a claim is written."""
        values: list[float | bool] = []
        missing = []
        for node, point in nodes:
            try:
                values.append(self._value(node, scheme, point))
            except _NoDataError as error:
                missing.append(error.why)
        if missing:
            raise _NoDataError(Missing.NOT_RUN if Missing.NOT_RUN in missing else Missing.NOT_SEEN)
        return values

    def _numbers(self, nodes: Sequence[Node], scheme: str | None, point: Point) -> list[float]:
        return [float(value) for value in self._values(((node, point) for node in nodes), scheme)]

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
        of_repeats = self._grid.of_repeats(of, rest[0], statistic or (rest[1] if len(rest) == 2 else "value"), place)
        if not of_repeats:
            raise _NoDataError(Missing.NOT_RUN)
        known = [value for value in of_repeats if not math.isnan(value)]
        if not known:
            raise _NoDataError(Missing.NOT_SEEN)
        self._empty_repeats = max(self._empty_repeats, len(of_repeats) - len(known))
        return fmean(known)

    def _coordinate(self, name: str, point: Point) -> float:
        if name not in self._grid.names:
            raise RelationError(f"no axis or metric {name!r}")
        alias = self._grid.aliases.get(name)
        place = {**self._grid.constants, **point}
        axis = alias.axis if alias else name
        if axis not in place or isinstance(place[axis], str):
            raise RelationError(f"{name!r} has no number here")
        return float(place[axis]) * (alias.factor if alias else 1.0)

    def _call(self, node: Call, scheme: str | None, point: Point) -> float | bool:
        first = node.arguments[0]
        if len(node.arguments) == _OVER_AXIS.get(node.function):
            return self._over_axis(node, scheme, point)
        if node.function == "spread" or (
            len(node.arguments) == 1 and node.function in ("median", "mean", "max", "min")
        ):
            if not isinstance(first, Reference):
                raise RelationError(f"{'p90' if node.function == 'spread' else node.function} needs a metric")
            if node.function != "spread":
                return self._reference(first, scheme, point, node.function)
            high, low = (self._reference(first, scheme, point, level) for level in ("p90", "p10"))
            return high - low
        values = self._numbers(node.arguments, scheme, point)
        if node.function == "abs" and len(values) == 1:
            return abs(values[0])
        if node.function in _OF_VALUES:
            return _OF_VALUES[node.function](values)
        raise RelationError(f"{node.function} cannot take {len(values)} arguments")

    def _over_axis(self, node: Call, scheme: str | None, point: Point) -> float | bool:
        axis = self._axis_argument(node)
        along = self._within.values(axis)
        values = self._along(node.arguments[0], axis, scheme, point)
        if node.function == "reaching":
            heights = self._along(node.arguments[1], axis, scheme, point)
            level = float(self._value(node.arguments[2], scheme, point))
            # Where the height first reaches the level, interpolated linearly between two points.
            for (before, low), (after, high) in pairwise(zip(values, heights, strict=True)):
                if low < level <= high:
                    return before + (after - before) * (level - low) / (high - low)
            raise _NoDataError(Missing.NOT_SEEN)
        if node.function in ("increasing", "decreasing"):
            sign = "<" if node.function == "increasing" else ">"
            # The margin is a share of the earlier value.
            ascending = pairwise(values if sign == "<" else values[::-1])
            holds = all(self._compare(later, ">", earlier) for earlier, later in ascending)
            self._sides.append(Side(tuple(values), (sign,) * (len(values) - 1), holds))
            return holds
        if node.function in _OF_VALUES:
            return _OF_VALUES[node.function](values)
        positions = np.array([float(at) for at in along if not isinstance(at, str)])
        return float(np.polyfit(positions, np.array(values), 1)[0])

    def _along(self, node: Node, axis: str, scheme: str | None, point: Point) -> list[float]:
        places: list[Point] = [{**point, axis: at} for at in self._within.values(axis)]
        values = [float(value) for value in self._values(((node, place) for place in places), scheme)]
        if len(values) < 2:
            raise _NoDataError(Missing.NOT_RUN)
        return values

    def _compare(self, left: float, operator: str, right: float) -> bool:
        if operator == "==":
            return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)
        if operator == "~=":
            return abs(left - right) <= self._slack.equal.bound(max(abs(left), abs(right)))
        room = self._slack.margin * abs(right)
        return bool(_COMPARED[operator](left, right + room if operator[0] == "<" else right - room))


def expand(node: Node, derived: Mapping[str, str]) -> Node:
    """Replaces derived metrics by their formulas."""

    def formula(of: Reference) -> Node:
        metric = next((name for name in of.names[:2] if name in derived), None)
        if metric is None:
            return of
        scheme = "each" if metric == of.names[0] else of.names[0]

        def own(one: Reference) -> Node:
            return Reference((scheme, *one.names[1:]) if one.names[0] == "each" else one.names, (*of.at, *one.at))

        return relation.mapped(relation.parse(derived[metric]), own)

    return relation.mapped(node, formula)
