"""Differences between queues on the same seeds, as tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sojourn.frame.metrics import Metric, group_metrics, of_queues
from sojourn.frame.pairs import Difference, differences
from sojourn.frame.results import Arm, Results
from sojourn.frame.statistics import CONFIDENCE, FEWEST, fixed
from sojourn.page.sheet import Sheet
from sojourn.page.tables import groups_sheet, queue_heading, sheet_of, shown_metrics


def paired_sheet(results: Results, baseline: str, metrics: Sequence[Metric] | None = None) -> Sheet:
    """``differences`` as a table, a row per arm and direction; an asterisk marks the clear ones."""
    if metrics is None:
        metrics = of_queues(results)
        if results.has_several_links:
            # Goodput belongs to the flows, not to a link; and so does the fairness of several groups.
            metrics = [metric for metric in shown_metrics(results) if metric.declared.over != "direction"]
    found = differences(results, baseline, metrics)
    which = [] if all(metric.group for metric in metrics) else queue_heading(results)
    rows: dict[tuple[str, ...], tuple[Arm, dict[str, str]]] = {}
    for one in found:
        row = rows.setdefault((one.arm.name, *([one.queue] if which else [])), (one.arm, {}))
        row[1][one.metric.name] = _text(one)
    of_runs = {(one.arm.name, one.metric.name): _text(one) for one in found if one.metric.is_of_run}

    def cell(arm: Arm, of: dict[str, str], name: str) -> str:
        return of.get(name) or of_runs.get((arm.name, name), "–")

    return sheet_of(
        results,
        f"difference from {baseline}, run by run on the same seeds",
        _caption(found),
        which,
        (metric.heading for metric in metrics),
        (
            (arm.label, arm, [*key[1:], *(cell(arm, of, one.name) for one in metrics)])
            for key, (arm, of) in rows.items()
        ),
    )


def paired_groups_sheet(results: Results, baseline: str) -> Sheet | None:
    """``differences`` for groups of flows, a row per arm and group; None if there is no table of groups."""
    shown = groups_sheet(results)
    if shown is None:
        return None
    headings = shown.headings[shown.words :]
    found = differences(results, baseline, group_metrics(results))
    rows: dict[tuple[str, str], tuple[Arm, dict[str, str]]] = {}
    for one in found:
        group = results.groups.at(one.arm.runs[0].summary, one.metric.group)
        # One flow is always fair to itself.
        if group is not None and not (one.metric.declared.name == "jain_goodput" and group["flows"] == 1):
            row = rows.setdefault((one.arm.name, one.metric.group), (one.arm, {}))
            row[1][one.metric.declared.heading] = _text(one)
    return sheet_of(
        results,
        f"Application-level figures: difference from {baseline}",
        _caption(found),
        ["traffic"],
        headings,
        ((arm.label, arm, [key[1], *(of.get(one, "–") for one in headings)]) for key, (arm, of) in rows.items()),
    )


def _caption(found: Sequence[Difference]) -> str:
    counts = sorted({one.interval.n for one in found if one.interval.n}) or [0]
    times = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    caption = f"median difference over {times} seed{'' if times == '1' else 's'}"
    if counts[-1] > 1:
        caption += f", below it its {CONFIDENCE:.0%} bootstrap confidence interval"
    if any(one.interval.is_clear for one in found):
        caption += "; * the interval excludes zero"
    if counts[-1] > 1 and counts[0] < FEWEST:
        caption += f"; no asterisk with fewer than {FEWEST} seeds"
    return caption


def _text(one: Difference) -> str:
    interval, per = one.interval, one.metric.declared.per
    if math.isnan(interval.middle):
        return "–"
    digits = one.metric.declared.digits
    if abs(interval.middle) / per >= 10.0:
        digits = min(digits, 1)
    if one.interval.is_clear:
        # The end beside zero must not be shown as zero.
        nearest = min(abs(interval.low), abs(interval.high)) / per
        while float(fixed(nearest, digits)) == 0.0:
            digits += 1

    def signed(value: float) -> str:
        text = fixed(value / per, digits, "+")
        return f"{0:.{digits}f}" if float(text) == 0.0 else text.replace("-", "−")

    middle = signed(interval.middle) + ("*" if one.interval.is_clear else "")
    return middle if interval.n < 2 else f"{middle}\n{signed(interval.low)} to {signed(interval.high)}"
