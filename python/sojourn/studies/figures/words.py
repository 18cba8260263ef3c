"""Names of axes, places and schemes in figures and tables, and explanations of a figure's parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sojourn.figure.style import Look, looks_of
from sojourn.studies.grid import AxisValue, Grid
from sojourn.studies.measures import Measure
from sojourn.studies.recipe import FigureSpec, Study
from sojourn.studies.texts import plain

_DISCIPLINES = {"droptail": "pfifo"}
_NAMES = {"rtt": "RTT", "rtt_base": "base RTT", "link": "rate", "mtu": "MTU", "buffer": "buffer"}
_UNITS = {"packets": "packets", "ms": "ms", "s": "s", "mbps": "Mbit/s", "kbps": "kbit/s", "bytes": "B"}


def scheme_looks(schemes: Sequence[str]) -> list[Look]:
    """The looks of schemes: a discipline has its usual look; no two in a figure are equal."""
    return looks_of([_DISCIPLINES.get(scheme, scheme.partition("+")[0]) for scheme in schemes])


def words(axis: str) -> str:
    """``target_ms`` as ``target [ms]``."""
    name, unit = _parts(axis)
    return f"{name} [{unit}]" if unit else name


def at(axis: str, value: AxisValue) -> str:
    """``target 5 ms``, ``4 flows``."""
    name, unit = _parts(axis)
    if isinstance(value, bool):
        return f"{name}: {plain(value)}"
    if unit or axis in _NAMES:
        return f"{name} {plain(value)} {unit}".rstrip()
    return f"{plain(value)} {name}"


def _parts(axis: str) -> tuple[str, str]:
    """An axis' name and its unit, if it has one."""
    name, _, unit = axis.rpartition("_")
    if not name or unit not in _UNITS:
        name, unit = axis, ""
    return _NAMES.get(name, name.replace("_", " ")), _UNITS.get(unit, "")


def with_unit(measure: Measure) -> str:
    """``queueing delay [ms]``."""
    label = measure.label or ""
    return f"{label} [{measure.unit}]" if measure.unit != "1" else label


def part_shown(spec: FigureSpec, grids: Mapping[str, Grid]) -> Grid:
    """The part of its experiment's runs that a figure shows."""
    grid = grids[spec.experiment]
    return grid.where(lambda cell: grid.is_at(cell, spec.where) and (cell.label in spec.schemes or not spec.schemes))


def caption(spec: FigureSpec, study: Study, grids: Mapping[str, Grid]) -> str:
    """The caption of a figure: its content, direction, and the meaning of its whiskers and bands."""
    grid = part_shown(spec, grids)
    measures = [study.measures[name] for name in spec.metrics]
    if spec.kind in ("ellipse", "spread"):
        measures.append(study.measures[spec.x])
    ways = {measure.direction for measure in measures if "rtt" not in measure.source}
    direction = {"down": "Downstream.", "up": "Upstream.", "both": "Both directions together."}
    is_two_way = any("up" in run.summary["bottleneck"] for cell in grid.cells for run in cell.runs)
    sentences = [
        f"{spec.title.rstrip('.')}.",
        *([direction[ways.pop()]] if len(ways) == 1 and is_two_way else []),
        _marks_of(spec, max((len(cell.runs) for cell in grid.cells), default=0), study.measures[spec.metric].pooled),
    ]
    return " ".join(filter(None, sentences))


def _marks_of(spec: FigureSpec, repeats: int, pooled: bool) -> str:
    """The meaning of boxes, whiskers, bands and dots."""
    low, high = spec.whiskers
    statistic = {"value": "number", "mean": "mean"}.get(spec.statistic, spec.statistic)
    several = repeats > 1
    match spec.kind:
        case "box" if spec.of_runs:
            return f"A {statistic} per run; box: quartiles over the runs, whiskers: p{low} and p{high}."
        case "box":
            bar = ", black bar: least and greatest median of a repeat" if several else ""
            over = (
                f", {'of' if pooled else 'means of'} {repeats} repeats{' together' if pooled else ''}"
                if several
                else ""
            )
            return f"Box: quartiles, whiskers: p{low} and p{high}{over}{bar}."
        case "bars":
            return f"Mean of {repeats} repeats with its 95 % confidence interval." if several else "One run."
        case "series" if several and spec.bin_s > 0.0:
            return f"Mean of {repeats} repeats in bins of {spec.bin_s:g} s in a band of its 95 % confidence interval."
        case "series":
            return "One run." if not several else f"The first of {repeats} repeats."
        case "cdf" if spec.of_runs:
            return "A number per run."
        case "cdf":
            return f"Mean of {repeats} repeats, each level by itself, in a band of their range." if several else ""
        case "ellipse":
            return "A dot per run, a circle at the medians; the ellipse is one standard deviation over the runs."
        case "spread":
            return f"Dot: median, thick line: quartiles, whiskers: p{low} and p{high}; vertical: range of the repeats."
    return ""
