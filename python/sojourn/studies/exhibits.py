"""The ``[[figure]]`` and ``[[table]]`` parts of a recipe."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from msgspec import Meta

from sojourn.files.typed import Strict, Texts, must_be
from sojourn.studies.measures import SERIES, Measure, is_statistic

SCHEME = "scheme"
"""The name for the discipline in tables, beside the names of axes."""
KINDS = {
    "box": "boxes over ``x``, a panel per value of ``panels``",
    "series": "a metric over time",
    "bars": "the mean over the repeats with its interval, one bar per scheme, in groups of ``x``",
    "cdf": "the distribution function of a metric, one line per scheme and value of ``x``",
    "ellipse": "a metric over another, ``x``: a dot per run and their 1-sigma ellipse",
    "spread": "a metric's mean over the distribution of another, ``x``: median, box and whiskers lie flat",
    "packets": "every packet as it came to the queue and left it, from the metric's ``from_s`` to its ``to_s``",
}
"""The kinds of figures and their content."""
OVER_METRIC = ("ellipse", "spread")
"""The kinds whose ``x`` is a metric."""


class Exhibit(Strict, frozen=True, kw_only=True):
    """A figure or a table of the paper."""

    name: str
    title: str
    experiment: str
    where: dict[str, Any] = {}
    shows: str = ""
    """Its location in the paper; by default derived from its name, ``Fig 3`` for ``fig3a``."""

    def __post_init__(self) -> None:
        # The name is used in file names, which must stay in the folder of results.
        if not re.fullmatch(r"\w[\w.+-]{0,99}", self.name):
            raise ValueError(f"name: got {self.name!r}; must be letters, digits, _ . + - and no longer than 100")

    @property
    def location(self) -> str:
        """Its location in the paper; empty for a name without a number."""
        found = re.match(r"(fig|table)(\d+)", self.name)
        return self.shows or (f"{found.group(1).title()} {found.group(2)}" if found else "")


class FigureSpec(Exhibit, frozen=True, kw_only=True):
    """A figure to draw."""

    kind: Annotated[str, Meta(extra_json_schema={"enum": list(KINDS)})]
    metric: str
    x: str = ""
    panels: str = ""
    schemes: tuple[str, ...] = ()
    """The schemes to draw, in this order; empty for all."""
    whiskers: tuple[int | float, ...] = (10, 90)
    """Percentiles of the ends of a box's whiskers."""
    of_runs: bool = False
    """Draw boxes of one number per run instead of the distribution within each run."""
    statistic: str = "value"
    """The number per run for ``of_runs``."""
    bin_s: int | float = 0.0
    """Draw a series as means over bins of this many seconds; 0 to draw it as recorded."""
    from_zero: bool = True
    """Whether the metric's axis begins at zero, if it is not logarithmic."""
    log: bool = False
    """Whether the metric's axis is logarithmic, so that one scheme does not hide the differences of the others."""
    below: tuple[str, ...] = ()
    """Metrics drawn below the first one, in the same way and over the same axis."""
    beside: tuple[str, ...] = ()
    """For bars: metrics drawn beside the first one, in the same group."""
    label: str = ""
    """Label of the first metric's axis; default: the metric's own."""
    published: tuple[str, ...] = ()
    """Further metrics whose published values are drawn: other measures of the same quantity."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """All metrics on its vertical axes, from above."""
        return (self.metric, *self.below)

    def is_called(self, name: str) -> bool:
        """True if a user's name means this figure: ``fig3``, ``Fig 3``, ``3``; ``3`` also means ``fig3a``."""
        wanted = name.lower().replace(" ", "").removeprefix("fig").removeprefix("ure")
        own = self.name.removeprefix("fig")
        return own == wanted or own.rstrip("abcd") == wanted


class Value(Strict, frozen=True):
    """A number in every row of a table."""

    heading: str
    metric: str
    statistic: str = "value"


class TableSpec(Exhibit, frozen=True, kw_only=True):
    """A table of the paper: published and measured numbers in the paper's rows and columns."""

    rows: Texts
    """Axes, or ``scheme``, whose values are the rows."""
    values: tuple[Value, ...]
    across: str = ""
    """An axis, or ``scheme``; there is a column of every value for each of its values."""


class Names(NamedTuple):
    """The names that figures and tables may use."""

    measures: Mapping[str, Measure]
    derived: frozenset[str]
    axes: Mapping[str, frozenset[str]]
    """By experiment."""
    constants: Mapping[str, frozenset[str]]
    """By experiment."""


def check_names(figures: Sequence[FigureSpec], of_tables: Sequence[TableSpec], names: Names) -> None:
    """Checks that the names used by figures and tables exist.

    Raises ValueError if a name does not exist; the message lists the accepted ones.
    """
    for index, spec in enumerate(figures):
        _check_figure(spec, f"figure.{index}", names)
    for index, one in enumerate(of_tables):
        where = f"table.{index}"
        must_be(one.experiment, names.axes, f"{where}: experiment")
        axes = names.axes[one.experiment] | names.constants[one.experiment]
        for axis in [*one.rows, *filter(None, [one.across])]:
            must_be(axis, axes | {SCHEME}, f"{where}: {'across' if axis == one.across else 'rows'}")
        for axis in one.where:
            must_be(axis, axes, f"{where}: where")
        for number, value in enumerate(one.values):
            must_be(value.metric, {*names.measures, *names.derived}, f"{where}: values.{number}: metric")
            _check_statistic(value.statistic, f"{where}: values.{number}")


def _check_figure(spec: FigureSpec, where: str, names: Names) -> None:
    must_be(spec.kind, KINDS, f"{where}: kind")
    must_be(spec.experiment, names.axes, f"{where}: experiment")
    for key in ("below", "beside", "published"):
        for metric in getattr(spec, key):
            must_be(metric, names.measures, f"{where}: {key}")
    must_be(spec.metric, names.measures, f"{where}: metric")
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
        must_be(axis, axes | names.constants[spec.experiment], f"{where}: where")
    if spec.kind in OVER_METRIC:
        must_be(spec.x, names.measures, f"{where}: x")
    elif spec.x:
        must_be(spec.x, axes, f"{where}: x")
    if spec.panels:
        must_be(spec.panels, axes, f"{where}: panels")


def _check_statistic(name: str, where: str) -> None:
    if not is_statistic(name):
        raise ValueError(f'{where}: statistic: got "{name}"; must be value, mean, median, min, max, p90, …')
