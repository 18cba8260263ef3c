"""Compares queues on the same seeds, which removes the variation between seeds from their differences.

Two queues with the same seed get the same traffic, so the difference of the two runs varies less than either run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sojourn._core import ExperimentError
from sojourn.frame.metrics import Metric, columns, has_queue
from sojourn.frame.results import Arm, Results
from sojourn.frame.statistics import Interval, apart, median_interval
from sojourn.frame.swept import as_in_file


@dataclass(frozen=True)
class Difference:
    """The difference of a metric between an arm and the baseline, over the seeds of both."""

    arm: Arm
    queue: str
    """One of ``Results.queues``."""
    metric: Metric
    interval: Interval
    """The median of the differences, in the unit of the metric's name, with its bootstrap interval."""


def differences(results: Results, baseline: str, metrics: Sequence[Metric]) -> list[Difference]:
    """Every arm compared with the one that differs from it only by having the baseline, a label or a swept value."""
    bases = _bases(baseline, [(arm.set, arm.label) for arm in results.arms])
    return [
        Difference(arm, queue, metric, _interval(arm, base, queue, metric))
        for arm, base in (
            (arm, results.arms[at]) for arm, at in zip(results.arms, bases, strict=True) if at is not None
        )
        for queue in results.queues
        if has_queue(arm.runs[0].summary, queue) and has_queue(base.runs[0].summary, queue)
        for metric in metrics
        # An inner queue of another discipline is another one, even if it has the same name.
        if not metric.owner.startswith("queue.") or arm.discipline == base.discipline
    ]


def difference_rows(
    results: Results, baseline: str, metrics: Sequence[Metric] | None = None
) -> list[dict[str, object]]:
    """``differences`` as rows of differences.csv, by default of all metrics.

    One of a group or of the whole run has no link and direction, and stands once.
    """
    rows: list[dict[str, object]] = []
    there = set()
    for one in differences(results, baseline, columns(results) if metrics is None else metrics):
        link, direction = one.metric.place(one.queue)
        where = (one.arm.name, one.metric.name, link, direction)
        if where in there or math.isnan(one.interval.middle):
            continue
        there.add(where)
        several = one.interval.n > 1
        rows.append(
            {"label": one.arm.label, "baseline": baseline}
            | {key: str(value) for key, value in one.arm.set.items()}
            | {"link": link, "direction": direction, "metric": one.metric.name, "difference": one.interval.middle}
            | {"low": one.interval.low if several else None, "high": one.interval.high if several else None}
            | {"seeds": one.interval.n, "clear": int(one.interval.is_clear)}
        )
    return rows


def check_compared(baseline: str, arms: Iterable[tuple[Mapping[str, Any], str]]) -> None:
    """Raises ExperimentError unless some arm can be compared with a baseline; ``arms`` are swept values and labels."""
    arms = list(arms)
    if any(base is not None for base in _bases(baseline, arms)):
        return
    meant = _meant(baseline, arms)
    if len(meant) == 1:
        what = "value" if meant[0][0] else "queue"
        raise ExperimentError(f'baseline: got "{baseline}"; must have another {what} beside it to compare with')
    swept = ", ".join(f"{key}={value}" for key, value in meant or _named(arms) if key)
    labels = ", ".join(value for key, value in _named(arms) if not key)
    must = f"the label of a queue: {labels}" + (f"; or a swept value: {swept}" if swept else "")
    raise ExperimentError(f'baseline: got "{baseline}"; must be {f"one of {swept}" if meant else must}')


def _cell(settings: Mapping[str, Any], label: str) -> dict[str, str]:
    """What distinguishes an arm: the swept values by their keys, the label without one."""
    return {"": label} | {key: as_in_file(value) for key, value in settings.items()}


def _named(arms: Iterable[tuple[Mapping[str, Any], str]]) -> list[tuple[str, str]]:
    return list(dict.fromkeys(pair for arm in arms for pair in _cell(*arm).items()))


def _meant(baseline: str, arms: Sequence[tuple[Mapping[str, Any], str]]) -> list[tuple[str, str]]:
    """The keys and values that a baseline may mean; a label goes before swept values."""
    found = [(key, value) for key, value in _named(arms) if baseline == value or (key and baseline == f"{key}={value}")]
    return [pair for pair in found if not pair[0]] or found


def _bases(baseline: str, arms: Sequence[tuple[Mapping[str, Any], str]]) -> list[int | None]:
    """The index of the arm with which each is compared."""
    meant = _meant(baseline, arms)
    if len(meant) != 1:
        return [None] * len(arms)
    ((key, value),) = meant
    cells = [_cell(*arm) for arm in arms]
    others = [json.dumps({name: of for name, of in cell.items() if name != key}) for cell in cells]
    bases = {other: at for at, other in enumerate(others) if cells[at].get(key) == value}
    return [None if cell.get(key) == value else bases.get(other) for cell, other in zip(cells, others, strict=True)]


def _interval(arm: Arm, base: Arm, queue: str, metric: Metric) -> Interval:
    of_base = {run.seed: metric.value(run.summary, queue) for run in base.runs}
    return median_interval(
        [apart(metric.value(run.summary, queue), of_base[run.seed]) for run in arm.runs if run.seed in of_base]
    )
