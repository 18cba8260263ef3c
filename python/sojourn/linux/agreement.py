"""The agreement of two backends on the same experiment: per arm, direction and metric, and by distribution."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from sojourn import schema
from sojourn.metrics import METRICS, Metric, group_metrics, has_queue
from sojourn.results import Arm, Direction, Results
from sojourn.statistics import median_interval
from sojourn.storage import Staging

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Agreement:
    """One metric of one arm on both backends: medians over the repeats."""

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


def overlay(first: Results, second: Results) -> Results:
    """Both results as one, with every arm named after its backend, to be drawn in the same figures."""
    runs = []
    for one, other in zip(first.runs, second.runs, strict=True):
        for results, run in ((first, one), (second, other)):
            backend = results.summary["backend"]
            summary = cast("schema.Run", {**run.summary, "label": f"{run.label} ({backend})"})
            runs.append(replace(run, summary=summary))
    return Results({**first.summary, "runs": [run.summary for run in runs]}, runs)


FEW_SEEDS = 5
"""With fewer seeds a difference may be due to chance."""


def _caption(one: str, other: str, *, seeds: int) -> str:
    said = (
        f"difference: ({other} - {one}) / {one}; distance: the largest vertical distance between the two "
        "distribution functions of the sojourn time, 0 to 1"
    )
    if seeds < FEW_SEEDS:
        said += f"; with fewer than {FEW_SEEDS} seeds, as here, two results of one backend can differ as much"
    return said


def table(first: Results, second: Results) -> Table:
    """The agreement as a table for people."""
    names = [results.summary["backend"] for results in (first, second)]
    shown = Table(
        title=Text(f"{first.summary['experiment']}: {names[0]} and {names[1]}"),
        caption=Text(_caption(*names, seeds=len({run.seed for run in first.runs}))),
        box=box.SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
    )
    for heading in ("queue", "way", "metric"):
        shown.add_column(heading)
    for heading in (*names, "difference"):
        shown.add_column(heading, justify="right")
    metrics = {metric.name: metric for metric in (*METRICS, *group_metrics(first))}
    before: tuple[str, str] | None = None
    for row in compare(first, second):
        place = (row.arm, row.direction)
        cells = ["", ""] if place == before else list(place)
        before = place
        metric = metrics.get(row.metric)
        if metric is None:
            cells += ["distance", "", "", _number(row.second, 3)]
        else:
            cells += [
                f"{metric.group} {metric.heading}".strip(),
                *(_number(value / metric.shown_per, metric.digits) for value in (row.first, row.second)),
            ]
            cells.append("–" if math.isnan(row.relative) else f"{row.relative:+.1%}")
        shown.add_row(*map(Text, cells))
    return shown


def _number(value: float, digits: int) -> str:
    return "–" if math.isnan(value) else f"{value:.{digits}f}"


def as_json(first: Results, second: Results) -> str:
    """The agreement as JSON: a list with a row per arm, direction and metric; NaN is null."""
    names = [results.summary["backend"] for results in (first, second)]

    def row(agreement: Agreement) -> dict[str, object]:
        fields = asdict(agreement)
        values = {names[0]: fields.pop("first"), names[1]: fields.pop("second"), "relative": agreement.relative}
        return fields | {key: None if math.isnan(value) else value for key, value in values.items()}

    document = {
        "experiment": first.summary["experiment"],
        "backends": names,
        "agreement": [row(agreement) for agreement in compare(first, second)],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def figure(first: Results, second: Results, direction: Direction = "down") -> Figure:
    """The distribution functions of the sojourn time in one figure."""
    return overlay(first, second).plot.cdf(direction)


def files() -> list[str]:
    """The files that ``save`` may write besides the folders of the backends."""
    from sojourn.filenames import FORMATS

    return ["agreement.json", *(f"agreement_cdf{suffix}.{kind}" for suffix in ("", "_up") for kind in FORMATS)]


def save(first: Results, second: Results, *, directory: Path) -> list[Path]:
    """Writes agreement.json, the figure, and each backend's own results in a folder of its name."""
    from sojourn.plots import style

    written = []
    for results in (first, second):
        written += results.save(directory / results.summary["backend"])
    with Staging(directory) as staging:
        for direction in first.directions:
            suffix = "" if direction == "down" else "_up"
            written += style.save(staging, f"agreement_cdf{suffix}", figure(first, second, direction))
        written.append(staging.add_text("agreement.json", as_json(first, second)))
    return written
