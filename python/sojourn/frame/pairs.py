"""Compares queues on the same seeds, which removes the variation between seeds from their differences.

Two queues with the same seed get the same traffic, so the difference of the two runs varies less than either run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from sojourn._core import ExperimentError
from sojourn.frame.metrics import Metric, columns, has_queue
from sojourn.frame.results import Arm, Results
from sojourn.frame.statistics import Interval, median_interval

FEWEST = 6
"""The fewest seeds with which a difference can be clear: the interval of fewer does not reach 95 %."""


@dataclass(frozen=True)
class Difference:
    """The difference of a metric between an arm and the baseline, over the seeds of both."""

    arm: Arm
    queue: str
    """One of ``Results.queues``."""
    metric: Metric
    interval: Interval
    """The median of the differences, in the unit of the metric's name, with its bootstrap interval."""

    @property
    def is_clear(self) -> bool:
        """True if the interval excludes zero; never with fewer than ``FEWEST`` seeds."""
        return self.interval.n >= FEWEST and (self.interval.low > 0.0 or self.interval.high < 0.0)


def differences(results: Results, baseline: str, metrics: Sequence[Metric]) -> list[Difference]:
    """Every other arm compared with the arm labelled ``baseline`` in the same cell of the sweep."""
    check_baseline(baseline, [arm.label for arm in results.arms])
    bases = {json.dumps(arm.set): arm for arm in results.arms if arm.label == baseline}
    return [
        Difference(arm, queue, metric, _interval(arm, base, queue, metric))
        for arm in results.arms
        if arm.label != baseline and (base := bases.get(json.dumps(arm.set))) is not None
        for queue in results.queues
        if has_queue(arm.runs[0].summary, queue)
        for metric in metrics
        if not metric.group or queue == results.queues[0]
        # An inner queue of another discipline is another one, even if it has the same name.
        if not metric.owner.startswith("queue.") or arm.discipline == base.discipline
    ]


def difference_rows(
    results: Results, baseline: str, metrics: Sequence[Metric] | None = None
) -> list[dict[str, object]]:
    """``differences`` as rows of differences.csv, by default of all metrics.

    One of a group or of the whole run has no link and direction.
    """
    rows: list[dict[str, object]] = []
    for one in differences(results, baseline, columns(results) if metrics is None else metrics):
        again = one.metric.is_of_run and one.queue != results.queues[0]
        if again or math.isnan(one.interval.middle):
            continue
        link, _, direction = ("", "", "") if one.metric.is_of_run else one.queue.rpartition("/")
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


def check_compared(baseline: str, jobs: Iterable[tuple[Hashable, str]]) -> None:
    """Raises ExperimentError unless the arm with this label runs beside another; ``jobs`` are cells with labels."""
    labels: dict[Hashable, list[str]] = {}
    for cell, label in jobs:
        labels.setdefault(cell, []).append(label)
    check_baseline(baseline, [label for cell in labels.values() for label in cell])
    if not any(baseline in cell and len(set(cell)) > 1 for cell in labels.values()):
        raise ExperimentError(f'baseline: got "{baseline}"; must have another queue beside it to compare with')


def _interval(arm: Arm, base: Arm, queue: str, metric: Metric) -> Interval:
    of_base = {run.seed: metric.value(run.summary, queue) for run in base.runs}
    return median_interval(
        [metric.value(run.summary, queue) - of_base[run.seed] for run in arm.runs if run.seed in of_base]
    )
