"""The agreement of results of the same experiment: per arm, direction and metric, and by distribution.

The results are those of two backends, or of several kernels and the simulator. Each has a name; the others are compared
with the first.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from sojourn import schema
from sojourn.linux.tolerances import TOLERANCES
from sojourn.metrics import METRICS, Metric, group_metrics, has_queue
from sojourn.results import Arm, Direction, Results
from sojourn.statistics import median_interval
from sojourn.storage import Staging

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Named: TypeAlias = Mapping[str, Results]
"""Results by name; the first is the reference."""


@dataclass(frozen=True)
class Agreement:
    """One metric of one arm in two results: medians over the repeats."""

    arm: str
    direction: str
    """``down`` or ``up``; with several links ``home/down`` and so on."""
    metric: str
    """The metric's name, with the unit as suffix."""
    first: float
    second: float

    @property
    def relative(self) -> float:
        """(second − first) / first; NaN if undefined."""
        return (self.second - self.first) / self.first if self.first else math.nan

    @property
    def within(self) -> bool | None:
        """Whether the figures agree; None if the metric is not judged, or neither result has it."""
        tolerance = TOLERANCES.get(self.metric)
        if tolerance is None or (math.isnan(self.first) and math.isnan(self.second)):
            return None
        return tolerance.within(self.first, self.second)


def compare(first: Results, second: Results) -> list[Agreement]:
    """All metrics of all arms. Both results are of the same plan, so their arms are the same.

    Metrics of groups of flows, such as ``movie.rtt_p50_ms``, are included if both results have them, with the direction
    of the group's data. The last metric of each bottleneck queue, ``sojourn_distance``, is the largest vertical
    distance between the two distribution functions of the sojourn time (Kolmogorov and Smirnov's): 0 if they are equal.
    """
    groups = _group_metrics(first, second)
    rows: list[Agreement] = []
    for one, other in zip(first.arms, second.arms, strict=True):
        run = one.runs[0].summary
        for place in first.places:
            if has_queue(run, place):
                rows += [Agreement(one.name, place, *figures) for figures in _figures(one, other, place)]
        for mine, its in groups:
            group = first.groups.at(run, mine.group)
            if group is not None:
                way = group["direction"]
                rows.append(Agreement(one.name, way, mine.name, _median(one, mine, way), _median(other, its, way)))
    return rows


def _group_metrics(first: Results, second: Results) -> list[tuple[Metric, Metric]]:
    """The metrics of groups of flows in both results."""
    of_second = {metric.name: metric for metric in group_metrics(second)}
    return [(one, of_second[one.name]) for one in group_metrics(first) if one.name in of_second]


def _figures(one: Arm, other: Arm, place: str) -> Iterator[tuple[str, float, float]]:
    for metric in METRICS:
        yield metric.name, _median(one, metric, place), _median(other, metric, place)
    yield "sojourn_distance", 0.0, distance(one, other, place)


def _median(arm: Arm, metric: Metric, place: str) -> float:
    return median_interval([metric.value(run.summary, place) for run in arm.runs]).middle


def distance(one: Arm, other: Arm, place: str) -> float:
    """The largest vertical distance between the distribution functions of two arms' sojourn times; NaN without any."""
    from sojourn.plots.distributions import sojourn_curve

    curves = [sojourn_curve(arm, place) for arm in (one, other)]
    if any(values.size == 0 for values, _ in curves):
        return math.nan
    at = np.concatenate([values for values, _ in curves])
    shares = [np.interp(at, values, levels, left=0.0, right=1.0) for values, levels in curves]
    return float(np.max(np.abs(shares[0] - shares[1])))


def differences(named: Named) -> dict[str, list[Agreement]]:
    """By name: the figures that differ from the reference's by more than their tolerance."""
    reference, *others = named.items()
    return {name: [row for row in compare(reference[1], results) if row.within is False] for name, results in others}


def verdict(named: Named, name: str) -> str:
    """A line that says whether a result agrees with the reference, and how many figures do not."""
    reference = next(iter(named))
    off = differences(named)[name]
    if not off:
        return f"{name} agrees with {reference}"
    figures = "1 figure is" if len(off) == 1 else f"{len(off)} figures are"
    return f"{name} does not agree with {reference}: {figures} beyond the tolerance"


def overlay(named: Named) -> Results:
    """All results as one, with the name behind every arm's, to be drawn in the same figures."""
    runs = []
    for several in zip(*(results.runs for results in named.values()), strict=True):
        for name, run in zip(named, several, strict=True):
            summary = cast("schema.Run", {**run.summary, "label": f"{run.label} ({name})"})
            runs.append(replace(run, summary=summary))
    first = next(iter(named.values()))
    return Results({**first.summary, "runs": [run.summary for run in runs]}, runs)


FEW_SEEDS = 5
"""With fewer seeds a difference may be due to chance."""


def _caption(named: Named) -> str:
    reference, *others = named
    other = others[0] if len(others) == 1 else "other"
    judged = ", ".join(metric.heading.partition(" ")[0] for metric in METRICS if metric.name in TOLERANCES)
    said = (
        f"judged: {judged}; difference: ({other} - {reference}) / {reference}, with ! if it is beyond the tolerance; "
        "distance: the largest vertical distance between the two distribution functions of the sojourn time, 0 to 1"
    )
    seeds = len({run.seed for run in named[reference].runs})
    if seeds < FEW_SEEDS:
        said += f"; with fewer than {FEW_SEEDS} seeds, as here, two results of one backend can differ as much"
    return said


def _rows(named: Named) -> dict[tuple[str, str, str], dict[str, Agreement]]:
    """By arm, place and metric: the comparison of each result with the reference."""
    reference, *others = named.items()
    rows: dict[tuple[str, str, str], dict[str, Agreement]] = {}
    for name, results in others:
        for row in compare(reference[1], results):
            rows.setdefault((row.arm, row.direction, row.metric), {})[name] = row
    return rows


def table(named: Named) -> Table:
    """The agreement as a table for people."""
    reference, *others = named
    first = named[reference]
    shown = Table(
        title=Text(f"{first.summary['experiment']}: {', '.join((reference, *others[:-1]))} and {others[-1]}"),
        caption=Text(_caption(named)),
        box=box.SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
    )
    for heading in ("queue", "way", "metric"):
        shown.add_column(heading)
    for heading in (reference, *(heading for name in others for heading in (name, "difference"))):
        shown.add_column(heading, justify="right")
    metrics = {metric.name: metric for metric in (*METRICS, *group_metrics(first))}
    before: tuple[str, str] | None = None
    for (arm, direction, key), of_others in _rows(named).items():
        place = (arm, direction)
        cells = ["", ""] if place == before else list(place)
        before = place
        metric = metrics.get(key)
        if metric is None:
            cells += ["distance", ""]
        else:
            cells += [f"{metric.group} {metric.heading}".strip(), _shown(next(iter(of_others.values())).first, metric)]
        for name in others:
            cells += _cells(of_others.get(name), metric)
        shown.add_row(*map(Text, cells))
    return shown


def _cells(row: Agreement | None, metric: Metric | None) -> list[str]:
    """A result's figure and its difference from the reference."""
    if row is None:
        return ["", ""]
    if metric is None:
        return ["", _number(row.second, 3)]
    difference = "–" if math.isnan(row.relative) else f"{row.relative:+.1%}"
    return [_shown(row.second, metric), f"{difference} !" if row.within is False else difference]


def _shown(value: float, metric: Metric) -> str:
    return _number(value / metric.shown_per, metric.digits)


def _number(value: float, digits: int) -> str:
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


def as_json(named: Named) -> str:
    """The agreement as JSON: a list with a row per arm, direction and metric; NaN is null.

    ``relative`` and ``within`` are those of the second result; with more results they are objects, by name.
    """
    reference, *others = named
    pair = len(others) == 1

    def number(value: float) -> float | None:
        return None if math.isnan(value) else value

    rows: list[dict[str, object]] = []
    for (arm, direction, metric), of_others in _rows(named).items():
        first = next(iter(of_others.values())).first
        values = {name: number(row.second) for name, row in of_others.items()}
        relative = {name: number(row.relative) for name, row in of_others.items()}
        within = {name: row.within for name, row in of_others.items()}
        rows.append(
            {
                "arm": arm,
                "direction": direction,
                "metric": metric,
                reference: number(first),
                **values,
                "relative": relative[others[0]] if pair else relative,
                "within": within[others[0]] if pair else within,
            }
        )
    document = {
        "experiment": named[reference].summary["experiment"],
        "backends": list(named),
        "kernels": {name: kernel for name, results in named.items() if (kernel := _kernel(results)) is not None},
        "agree": {name: not off for name, off in differences(named).items()},
        "agreement": rows,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _kernel(results: Results) -> str | None:
    """The kernel that made the runs; None for the simulator's."""
    return results.runs[0].summary.get("kernel") if results.runs else None


def figure(named: Named, direction: Direction = "down") -> Figure:
    """The distribution functions of the sojourn time in one figure."""
    return overlay(named).plot.cdf(direction)


def files() -> list[str]:
    """The files that ``save`` may write besides the folders of the results."""
    from sojourn.filenames import FORMATS

    return ["agreement.json", *(f"agreement_cdf{suffix}.{kind}" for suffix in ("", "_up") for kind in FORMATS)]


def save(named: Named, *, directory: Path) -> list[Path]:
    """Writes agreement.json, the figure, and each result in a folder of its name."""
    from sojourn.plots import style

    written = []
    for name, results in named.items():
        written += results.save(directory / name)
    with Staging(directory) as staging:
        for direction in next(iter(named.values())).directions:
            suffix = "" if direction == "down" else "_up"
            written += style.save(staging, f"agreement_cdf{suffix}", figure(named, direction))
        written.append(staging.add_text("agreement.json", as_json(named)))
    return written
