"""The ``[[figure]]`` and ``[[table]]`` parts of a recipe: what is drawn and tabulated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sojourn.studies import tables
from sojourn.studies.measures import SERIES, Measure, is_statistic

SCHEME = "scheme"
"""What tables call the discipline, beside the names of axes."""


@dataclass(frozen=True)
class FigureSpec:
    """A figure to draw."""

    name: str
    title: str
    kind: str
    """One of ``KINDS``."""
    experiment: str
    metric: str
    x: str = ""
    panels: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    schemes: Sequence[str] = ()
    """Only these, in this order; empty: all."""
    whiskers: Sequence[int] = (10, 90)
    """Percentiles that a box's whiskers reach to."""
    of_runs: bool = False
    """A box is of one number per run, not of a distribution within each."""
    statistic: str = "value"
    """The number per run that ``of_runs`` means."""
    bin_s: float = 0.0
    """A series is drawn as means over so many seconds; 0: as it was recorded."""
    from_zero: bool = True
    """Whether the metric's axis begins at zero, unless it is logarithmic."""
    log: bool = False
    """Whether the metric's axis is logarithmic: where one scheme would flatten the others."""
    below: Sequence[str] = ()
    """Metrics drawn beneath the first one, alike and over the same axis."""
    beside: Sequence[str] = ()
    """Of bars: metrics drawn beside the first one, in the same group."""
    label: str = ""
    """Of the first metric's axis; default: the metric's own."""
    published: Sequence[str] = ()
    """Further metrics whose published values are drawn: other ways to measure what the figure shows."""
    shows: str = ""
    """Where the paper has it; default: what its name says, ``Fig 3`` for ``fig3a``."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """All metrics on its vertical axes, from above."""
        return (self.metric, *self.below)

    @property
    def location(self) -> str:
        """Where the paper has it."""
        return self.shows or _location(self.name)

    def is_called(self, name: str) -> bool:
        """Whether a user means this figure: ``fig3``, ``Fig 3``, ``3``; ``3`` also means ``fig3a``."""
        wanted = name.lower().replace(" ", "").removeprefix("fig").removeprefix("ure")
        own = self.name.removeprefix("fig")
        return own == wanted or own.rstrip("abcd") == wanted


@dataclass(frozen=True)
class Value:
    """A number that a table has in every row."""

    heading: str
    metric: str
    statistic: str = "value"


@dataclass(frozen=True)
class TableSpec:
    """A table of the paper: published and measured numbers, in its rows and columns."""

    name: str
    title: str
    experiment: str
    rows: Sequence[str]
    """Axes, or ``scheme``, whose values make the rows."""
    values: tuple[Value, ...]
    across: str = ""
    """An axis, or ``scheme``, whose values each have a column of every value."""
    where: Mapping[str, Any] = field(default_factory=dict)
    shows: str = ""
    """Where the paper has it; default: what its name says."""

    @property
    def location(self) -> str:
        """Where the paper has it."""
        return self.shows or _location(self.name)


KINDS = {
    "box": "boxes over ``x``, a panel per value of ``panels``",
    "series": "a metric over time",
    "bars": "the mean over the repeats with its interval, one bar per scheme, in groups of ``x``",
    "cdf": "the distribution function of a metric, one line per scheme and value of ``x``",
    "ellipse": "a metric over another, ``x``: a dot per run and their 1-sigma ellipse",
    "spread": "a metric's mean over the distribution of another, ``x``: median, box and whiskers lie flat",
    "packets": "every packet as it came to the queue and left it, from the metric's ``from_s`` to its ``to_s``",
}
"""What kinds of figure there are, and what they show."""
OVER_METRIC = ("ellipse", "spread")
"""The kinds whose ``x`` is a metric."""

_FIGURE: dict[str, tables.Kinds] = {
    "name": tables.TEXT, "title": tables.TEXT, "kind": tables.TEXT, "experiment": tables.TEXT, "metric": tables.TEXT,
    "x": tables.TEXT, "panels": tables.TEXT, "where": tables.TABLE, "schemes": tables.LIST, "whiskers": tables.LIST,
    "of_runs": tables.FLAG, "statistic": tables.TEXT, "bin_s": tables.NUMBER, "from_zero": tables.FLAG,
    "log": tables.FLAG, "below": tables.LIST, "beside": tables.LIST, "label": tables.TEXT, "published": tables.LIST,
    "shows": tables.TEXT,
}  # fmt: skip
_TABLE: dict[str, tables.Kinds] = {
    "name": tables.TEXT, "title": tables.TEXT, "experiment": tables.TEXT, "rows": tables.TEXTS,
    "values": tables.LIST, "across": tables.TEXT, "where": tables.TABLE, "shows": tables.TEXT,
}  # fmt: skip
_VALUE: dict[str, tables.Kinds] = {
    "heading": tables.TEXT, "metric": tables.TEXT, "statistic": tables.TEXT,
}  # fmt: skip


class Names(NamedTuple):
    """What figures and tables may name."""

    measures: Mapping[str, Measure]
    derived: frozenset[str]
    axes: Mapping[str, frozenset[str]]
    """By experiment."""
    constants: Mapping[str, frozenset[str]]
    """By experiment."""


def check_keys(recipe: Mapping[str, Any]) -> None:
    """Checks that the figures and tables of a recipe have the keys and kinds of values that they may have.

    Raises
    ------
    ValueError
        One has not; the message names the key.
    """
    for index, table in enumerate(recipe.get("figure", [])):
        where = f"figure.{index}"
        tables.check(table, where, _FIGURE, needs=("name", "title", "kind", "experiment", "metric"))
        for key in ("schemes", "below", "beside", "published"):
            tables.check_each(table.get(key), f"{where}.{key}", tables.TEXT)
        tables.check_each(table.get("whiskers"), f"{where}.whiskers", tables.NUMBER)
        _check_name(table["name"], where)
    for index, table in enumerate(recipe.get("table", [])):
        where = f"table.{index}"
        tables.check(table, where, _TABLE, needs=("name", "title", "experiment", "rows", "values"))
        for number, value in enumerate(table["values"]):
            tables.check(value, f"{where}.values.{number}", _VALUE, needs=("heading", "metric"))
        _check_name(table["name"], where)
    for kind in ("figure", "table"):
        names = [table["name"].casefold() for table in recipe.get(kind, [])]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise ValueError(f'{kind}.{index}: name: got "{name}" twice; each {kind} has files of its own')


def _check_name(name: str, where: str) -> None:
    """A name becomes that of files, which stay in the folder of results."""
    if not re.fullmatch(r"\w[\w.+-]{0,99}", name):
        raise ValueError(f"{where}: name: got {name!r}; must be letters, digits, _ . + - and no longer than 100")


def figure(fields: Mapping[str, Any]) -> FigureSpec:
    """A ``[[figure]]`` whose keys were checked."""
    return FigureSpec(**fields)


def table(fields: Mapping[str, Any]) -> TableSpec:
    """A ``[[table]]`` whose keys were checked."""
    rows = fields["rows"]
    values = tuple(Value(**value) for value in fields["values"])
    return TableSpec(**{**fields, "rows": [rows] if isinstance(rows, str) else rows, "values": values})


def check_names(figures: Sequence[FigureSpec], of_tables: Sequence[TableSpec], names: Names) -> None:
    """Checks that what figures and tables name is there.

    Raises
    ------
    ValueError
        Something is not; the message says what may be named.
    """
    for index, spec in enumerate(figures):
        _check_figure(spec, f"figure.{index}", names)
    for index, one in enumerate(of_tables):
        where = f"table.{index}"
        _must_be(one.experiment, names.axes, f"{where}: experiment")
        axes = names.axes[one.experiment] | names.constants[one.experiment]
        for axis in [*one.rows, *filter(None, [one.across])]:
            _must_be(axis, axes | {SCHEME}, f"{where}: {'across' if axis == one.across else 'rows'}")
        for axis in one.where:
            _must_be(axis, axes, f"{where}: where")
        for number, value in enumerate(one.values):
            _must_be(value.metric, names.measures.keys() | names.derived, f"{where}: values.{number}: metric")
            _check_statistic(value.statistic, f"{where}: values.{number}")


def _check_figure(spec: FigureSpec, where: str, names: Names) -> None:
    _must_be(spec.kind, KINDS, f"{where}: kind")
    _must_be(spec.experiment, names.axes, f"{where}: experiment")
    for key in ("below", "beside", "published"):
        for metric in getattr(spec, key):
            _must_be(metric, names.measures, f"{where}: {key}")
    _must_be(spec.metric, names.measures, f"{where}: metric")
    needed = {"series": tuple(SERIES), "packets": ("packet_sojourn_ms",)}.get(spec.kind)
    for metric in spec.metrics:
        source = names.measures[metric].source
        if needed is not None and source not in needed:
            got = f'{where}: metric: "{metric}" is from {source}'
            raise ValueError(f"{got}; of kind {spec.kind} must be from {', '.join(needed)}")
    if spec.beside and spec.kind != "bars":
        raise ValueError(f"{where}: beside: is for figures of kind bars")
    if spec.below and spec.kind not in ("box", "bars", "series", "cdf"):
        raise ValueError(f"{where}: below: a figure of kind {spec.kind} has one metric")
    _check_statistic(spec.statistic, where)
    axes = names.axes[spec.experiment]
    for axis in spec.where:
        _must_be(axis, axes | names.constants[spec.experiment], f"{where}: where")
    if spec.kind in OVER_METRIC:
        _must_be(spec.x, names.measures, f"{where}: x")
    elif spec.x:
        _must_be(spec.x, axes, f"{where}: x")
    if spec.panels:
        _must_be(spec.panels, axes, f"{where}: panels")


def _check_statistic(name: str, where: str) -> None:
    if not is_statistic(name):
        raise ValueError(f'{where}: statistic: got "{name}"; must be value, mean, median, min, max, p90, …')


def _must_be(name: str, accepted: Iterable[str], where: str) -> None:
    known = list(accepted) if isinstance(accepted, Mapping) else sorted(accepted)
    if name not in known:
        raise ValueError(f'{where}: got "{name}"; must be one of {", ".join(known)}')


def _location(name: str) -> str:
    """``Fig 3`` for ``fig3a``, ``Table 5`` for ``table5``; empty for a name without a number."""
    found = re.match(r"(fig|table)(\d+)", name)
    return f"{found.group(1).title()} {found.group(2)}" if found else ""
