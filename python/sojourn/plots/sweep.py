"""A metric over a swept key, and several metrics beside each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.metrics import Metric, metric_called, overview_metrics, samples_note
from sojourn.plots.bars import arm_intervals, draw_bars
from sojourn.plots.style import (
    WIDTHS_IN,
    Width,
    figure,
    legend,
    log_axis,
    looks_of,
    name_ticks,
    name_y,
    note,
    style,
    title,
    wants_log,
    way,
)
from sojourn.statistics import CONFIDENCE, Interval
from sojourn.swept import SHOWN, Quantity, axis_label, quantity, setting_text

if TYPE_CHECKING:
    from sojourn.results import Arm, Direction, Results

MOST_LINES = 24
"""Most lines that can be distinguished."""


def over(results: Results, key: str, name: str, direction: Direction, width: Width | None = None) -> Figure:
    """The median of a metric over a swept key, a line per queue and per cell of the other keys.

    Raises
    ------
    ValueError
        The experiment does not sweep the key, or there is no such metric.
    """
    swept = dict.fromkeys(key for arm in results.arms for key in arm.set)
    if key not in swept:
        known = f"must be one of the swept keys: {', '.join(swept)}" if swept else "the experiment sweeps no key"
        raise ValueError(f'over: got "{key}"; {known}')
    metric = metric_called(name, results)
    intervals = arm_intervals(results, metric, direction)
    lines: dict[tuple[str, str], list[tuple[Arm, Interval]]] = {}
    for arm, interval in zip(results.arms, intervals, strict=True):
        rest = setting_text({other: value for other, value in arm.set.items() if other != key})
        lines.setdefault((arm.label, rest), []).append((arm, interval))
    numbers = {str(arm.set[key]): quantity(arm.set[key]) for arm in results.arms}
    units = {one.unit for one in numbers.values() if one is not None}
    is_numeric = None not in numbers.values() and len(units) == 1
    names = list(numbers)
    with style():
        drawn = figure(width=width)
        axes = drawn.add_subplot()
        looks = looks_of([members[0][0].discipline for members in lines.values()])
        for ((label, rest), members), look in zip(lines.items(), looks, strict=True):
            rows = np.array(
                [
                    [_place(arm.set[key], numbers, names, is_numeric), one.middle, one.low, one.high]
                    for arm, one in members
                ]
            )
            x, middle, low, high = rows[np.argsort(rows[:, 0], kind="stable")].T
            name = ", ".join(filter(None, [label, rest]))
            axes.plot(x, middle, color=look.color, linestyle=look.dashes, marker=look.marker, markersize=4, label=name)
            if any(one.n > 1 for _, one in members):
                axes.fill_between(x, low, high, color=look.color, alpha=0.15, linewidth=0)
        if is_numeric:
            places = [_place(arm.set[key], numbers, names, is_numeric) for arm in results.arms]
            if wants_log(places) and min(places) > 0.0:
                log_axis(axes, "x")
            axes.set_xlabel(axis_label(key, units))
        else:
            name_ticks(axes, names)
            axes.set_xlabel(axis_label(key, ()))
        name_y(axes, metric.axis_label)
        if wants_log(interval.middle for interval in intervals):
            log_axis(axes, "y")
        elif metric.declared.scale is not None:
            axes.set_ylim(*metric.declared.scale)
        else:
            axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        repeated = any(interval.n > 1 for interval in intervals)
        spread = f"median of the repeats, band: its {CONFIDENCE:.0%} confidence interval" if repeated else ""
        note(axes, "" if metric.group else way(results, direction), samples_note(results, metric), spread)
        legend(drawn, axes)
        return drawn


def _place(value: object, numbers: dict[str, Quantity | None], names: list[str], is_numeric: bool) -> float:
    found = numbers[str(value)]
    if is_numeric and found is not None:
        return found.value / SHOWN.get(found.unit, (1.0, ""))[0]
    return float(names.index(str(value)))


def overview(results: Results, names: Sequence[str] | None = None, width: Width | None = None) -> Figure:
    """Several metrics beside each other, a panel each, a bar or mark per arm.

    Raises
    ------
    ValueError
        There is no such metric.
    """
    shown: list[tuple[Metric, Direction]] = (
        overview_metrics(results) if names is None else [(metric_called(name, results), "down") for name in names]
    )
    arms = results.arms
    columns = min(len(shown), 1 if width == "column" else 3)
    rows = math.ceil(len(shown) / columns)
    panel_in = WIDTHS_IN[width] / columns if width is not None else max(2.7, 0.5 * len(arms) + 0.9)
    with style():
        drawn = figure(columns * panel_in, rows * 2.3 + 0.2)
        all_axes = drawn.subplots(rows, columns, squeeze=False).ravel()
        look = looks_of([arm.discipline for arm in arms])
        for axes, (metric, direction) in zip(all_axes, shown, strict=False):
            draw_bars(axes, arm_intervals(results, metric, direction), look, metric.declared.scale)
            way_after = "" if metric.group or len(results.directions) == 1 else f" {direction}"
            _panel(axes, metric, way_after, results, panel_in)
        for axes in all_axes[len(shown) :]:
            axes.set_visible(False)
        return drawn


def _panel(axes: Axes, metric: Metric, way_after: str, results: Results, width_in: float) -> None:
    unit = metric.axis_label.removeprefix(metric.words).strip(" []")
    shown = f"{metric.words}{way_after}" + (f" [{unit}]" if unit and metric.declared.scale is None else "")
    title(axes, "\n".join(filter(None, [shown, samples_note(results, metric)])), width_in)
    name_ticks(axes, [arm.title for arm in results.arms])
    axes.tick_params(axis="x", labelrotation=30)
    for label in axes.get_xticklabels():
        label.set_horizontalalignment("right")
