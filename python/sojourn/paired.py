"""Compares queues on the same seeds, which removes the variation between seeds from their differences.

Two queues with the same seed get the same traffic, so the difference of the two runs varies less than either run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn._core import ExperimentError
from sojourn.metrics import Metric, columns, group_metrics, has_queue, of_queues
from sojourn.statistics import CONFIDENCE, Interval, median_interval
from sojourn.tables import Sheet, groups_sheet, place_heading, swept_keys

if TYPE_CHECKING:
    from sojourn.results import Arm, Results


@dataclass(frozen=True)
class Difference:
    """The difference of a metric between an arm and the baseline, over the seeds of both."""

    arm: Arm
    place: str
    """A place of ``Results.places``."""
    metric: Metric
    interval: Interval
    """The median of the differences, in the unit of the metric's name, with its bootstrap interval."""

    @property
    def is_clear(self) -> bool:
        """True if the interval excludes zero; never with fewer than six seeds, whose interval does not reach 95 %."""
        return self.interval.n > 5 and (self.interval.low > 0.0 or self.interval.high < 0.0)


def differences(results: Results, baseline: str, metrics: Sequence[Metric]) -> list[Difference]:
    """Every other arm compared with the arm labelled ``baseline`` in the same cell of the sweep.

    Raises
    ------
    ExperimentError
        No arm has this label.
    """
    check_baseline(baseline, [arm.label for arm in results.arms])
    bases = {_cell(arm): arm for arm in results.arms if arm.label == baseline}
    return [
        Difference(arm, place, metric, _interval(arm, base, place, metric))
        for arm in results.arms
        if arm.label != baseline and (base := bases.get(_cell(arm))) is not None
        for place in results.places
        if has_queue(arm.runs[0].summary, place)
        for metric in metrics
        if not metric.group or place == results.places[0]
    ]


def difference_rows(results: Results, baseline: str) -> list[dict[str, object]]:
    """``differences`` of all metrics as rows of differences.csv; units are in the metrics' names.

    The figures of a group of flows have no link and no direction. An interval of fewer than two seeds is empty.
    """
    rows: list[dict[str, object]] = []
    for one in differences(results, baseline, columns(results)):
        if math.isnan(one.interval.middle):
            continue
        link, _, direction = ("", "", "") if one.metric.group else one.place.rpartition("/")
        several = one.interval.n > 1
        rows.append(
            {"label": one.arm.label, "baseline": baseline}
            | {key: str(value) for key, value in one.arm.set.items()}
            | {"link": link, "direction": direction, "metric": one.metric.name, "difference": one.interval.middle}
            | {"low": one.interval.low if several else None, "high": one.interval.high if several else None}
            | {"seeds": one.interval.n, "clear": int(one.is_clear)}
        )
    return rows


def check_baseline(baseline: str, labels: Sequence[str]) -> None:
    """Raises ExperimentError unless an arm has this label."""
    if baseline not in labels:
        known = ", ".join(dict.fromkeys(labels))
        raise ExperimentError(f'baseline: got "{baseline}"; must be the label of a queue: {known}')


def paired_sheet(results: Results, baseline: str, metrics: Sequence[Metric] | None = None) -> Sheet:
    """``differences`` as a table, a row per arm and direction; an asterisk marks the clear ones."""
    metrics = of_queues(results) if metrics is None else metrics
    if results.has_several_links:
        # Goodput belongs to the flows, not to a link.
        metrics = [metric for metric in metrics if metric.declared.over != "direction"]
    found = differences(results, baseline, metrics)
    several = len(results.places) > 1 and not all(metric.group for metric in metrics)
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for one in found:
        row = rows.setdefault((*_words_of(one.arm, results), *([one.place] if several else [])), {})
        row[one.metric.name] = _text(one)
    return Sheet(
        f"difference from {baseline}, run by run on the same seeds",
        _caption(found),
        (
            *("queue", *swept_keys(results), *([place_heading(results)] if several else [])),
            *(f"{metric.group} {metric.heading}".strip() for metric in metrics),
        ),
        tuple((*words, *(row[metric.name] for metric in metrics)) for words, row in rows.items()),
        1 + len(swept_keys(results)) + several,
    )


def paired_groups_sheet(results: Results, baseline: str) -> Sheet | None:
    """``differences`` for groups of flows, a row per arm and group; None if there is no table of groups."""
    shown = groups_sheet(results)
    if shown is None:
        return None
    headings = shown.headings[shown.words :]
    found = differences(results, baseline, group_metrics(results))
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    for one in found:
        if results.groups.at(one.arm.runs[0].summary, one.metric.group) is not None:
            row = rows.setdefault((*_words_of(one.arm, results), one.metric.group), {})
            row[one.metric.heading] = _text(one)
    return Sheet(
        f"Application-level figures: difference from {baseline}",
        _caption(found),
        shown.headings,
        tuple((*words, *(row.get(heading, "–") for heading in headings)) for words, row in rows.items()),
        shown.words,
    )


def _words_of(arm: Arm, results: Results) -> tuple[str, ...]:
    return arm.label, *(str(arm.set.get(key, "")) for key in swept_keys(results))


def _caption(found: Sequence[Difference]) -> str:
    repeats = max((one.interval.n for one in found), default=0)
    caption = f"median difference over {repeats} seeds"
    if repeats > 1:
        caption += f", below it its {CONFIDENCE:.0%} bootstrap confidence interval"
    return caption + ("; * the interval excludes zero" if any(one.is_clear for one in found) else "")


def _cell(arm: Arm) -> str:
    return json.dumps(arm.set)


def _interval(arm: Arm, base: Arm, place: str, metric: Metric) -> Interval:
    of_base = {run.seed: metric.value(run.summary, place) for run in base.runs}
    return median_interval(
        [metric.value(run.summary, place) - of_base[run.seed] for run in arm.runs if run.seed in of_base]
    )


def _text(one: Difference) -> str:
    interval, per = one.interval, one.metric.shown_per
    if math.isnan(interval.middle):
        return "–"
    digits = one.metric.digits
    if abs(interval.middle) / per >= 10.0:
        digits = min(digits, 1)

    def signed(value: float) -> str:
        text = f"{value / per:+.{digits}f}"
        return f"{0:.{digits}f}" if float(text) == 0.0 else text.replace("-", "−")

    middle = signed(interval.middle) + ("*" if one.is_clear else "")
    return middle if interval.n < 2 else f"{middle}\n{signed(interval.low)} to {signed(interval.high)}"
