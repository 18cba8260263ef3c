"""Arranges the runs of a study as in its recipe: labels and swept values become places of a grid."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sojourn.frame.results import Run
from sojourn.frame.swept import quantity
from sojourn.studies.grid import AxisValue, Cell, Grid
from sojourn.studies.measures import Measure
from sojourn.studies.recipe import Part, Published, Study

_NUMBER = r"(?P<{name}>\d+(?:\.\d+)?|true|false)"
_IN_AXIS = {"ms": ("ms", 1.0), "s": ("ms", 1e3), "kbps": ("bps", 1e3), "mbps": ("bps", 1e6), "bytes": ("bytes", 1.0)}
"""The unit of ``quantity`` for the suffix of an axis' name, and how many of it are one of the axis'."""


def grids_of(
    study: Study, cells: Mapping[str, list[Cell]], measures: Mapping[str, Measure], backend: str
) -> dict[str, Grid]:
    """The grids of a study's experiments, from the cells of each."""
    different = study.on(backend).constants
    grids = {}
    for experiment in study.experiments:
        own = [cell for id_ in experiment.runs_of for cell in cells.get(id_, [])] or cells.get(experiment.id)
        if own:
            constants = {**experiment.constants, **different}
            grids[experiment.id] = Grid(own, measures, experiment.aliases, constants)
    return grids


def cells_of(experiment: Published, part: Part, runs: Sequence[Run]) -> list[Cell]:
    """Groups repeats by scheme and place, which follow from labels and swept values."""
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
    """The scheme and the axis values in an arm's label."""
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
    """A swept value in the unit of the axis' name: ``"0.1 s"`` on ``rtt_ms`` is 100."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return float(value)
    found = quantity(value)
    unit, per = _IN_AXIS.get(axis.rpartition("_")[2], ("", 1.0))
    return round(found.value / per, 9) if found is not None and unit and found.unit == unit else str(value)
