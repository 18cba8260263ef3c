"""A metric over a swept key, and several metrics beside each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.figure.bars import arm_intervals, draw_bars
from sojourn.figure.names import name_arms
from sojourn.figure.of_results import OfResults
from sojourn.figure.style import (
    TALLEST_IN,
    WIDTHS_IN,
    Look,
    Width,
    figure,
    from_zero,
    legend,
    log_axis,
    looks_of,
    name_y,
    note,
    own_times,
    style,
    title,
    wants_log,
    where,
    wrapped,
)
from sojourn.frame.metrics import Metric, left_out, metric_called, overview_metrics, samples_note
from sojourn.frame.results import Arm, Results
from sojourn.frame.statistics import CONFIDENCE, Interval
from sojourn.frame.swept import SHOWN, axis_label, quantity, setting_text, words

MOST_LINES = 24
"""Most lines in the figures that are drawn by default."""
MOST_IN_A_PANEL = 8
"""Most lines in one panel; beyond, there is a panel per combination of the other keys' values."""


_WIDEST_IN = 12.5
"""Most of an overview whose width is not given."""


class _Scale:
    """The horizontal axis: the values of a swept key, as numbers if all are, else by name."""

    def __init__(self, key: str, keys: Sequence[str], values: Sequence[object]) -> None:
        self._key = key
        self._numbers = {str(value): quantity(value) for value in values}
        self._names = list(self._numbers)
        units = {one.unit for one in self._numbers.values() if one is not None}
        self._is_numeric = None not in self._numbers.values() and len(units) == 1
        self.label = axis_label(words(keys)[key], units if self._is_numeric else ())

    def position(self, arm: Arm) -> float:
        """Where an arm is on the axis."""
        return self._position(str(arm.set[self._key]))

    def _position(self, value: str) -> float:
        found = self._numbers[value]
        if self._is_numeric and found is not None:
            return found.value / SHOWN.get(found.unit, (1.0, ""))[0]
        return float(self._names.index(value))

    def apply(self, axes: Axes, room_in: float) -> None:
        """Gives axes their scale, or their names."""
        if not self._is_numeric:
            name_arms([axes], self._names, room_in)
            return
        positions = [self._position(name) for name in self._names]
        if wants_log(positions) and min(positions) > 0.0:
            log_axis(axes, "x")


def _draw_line(axes: Axes, line: Sequence[tuple[Arm, Interval]], scale: _Scale, look: Look, name: str) -> None:
    """The medians of a queue and, with repeats, the band of their intervals."""
    rows = np.array([[scale.position(arm), one.middle, one.low, one.high] for arm, one in line])
    x, middle, low, high = rows[np.argsort(rows[:, 0], kind="stable")].T
    axes.plot(x, middle, color=look.color, linestyle=look.dashes, marker=look.marker, markersize=4, label=name)
    if any(one.n > 1 for _, one in line):
        axes.fill_between(x, low, high, color=look.color, alpha=0.15, linewidth=0)


def _panel(axes: Axes, metric: Metric, way_after: str, results: Results, width_in: float) -> None:
    unit = metric.axis_label.removeprefix(metric.words).strip(" []")
    shown = f"{metric.words}{way_after}" + (f" [{unit}]" if unit and metric.declared.scale is None else "")
    title(axes, "\n".join(filter(None, [shown, samples_note(results, metric)])), width_in)


class Sweep(OfResults):
    """Metrics over swept keys, and beside each other."""

    def over(
        self,
        key: str,
        metric: str = "sojourn_p95_ms",
        queue: str = "down",
        *,
        width: Width | None = None,
    ) -> Figure:
        """A metric (as for ``bars``) over a swept key, ``"link.rate"``: a line per queue and cell of the other keys."""
        results = self._results
        swept = dict.fromkeys(key for arm in results.arms for key in arm.set)
        if key not in swept:
            known = f"must be one of the swept keys: {', '.join(swept)}" if swept else "the experiment sweeps no key"
            raise ValueError(f'over: got "{key}"; {known}')
        shown = metric_called(metric, results)
        intervals = arm_intervals(results, shown, queue)
        panels: dict[str, dict[str, list[tuple[Arm, Interval]]]] = {}
        for arm, interval in zip(results.arms, intervals, strict=True):
            rest = setting_text({other: value for other, value in arm.set.items() if other != key})
            panels.setdefault(rest, {}).setdefault(arm.label, []).append((arm, interval))
        if sum(map(len, panels.values())) <= MOST_IN_A_PANEL:
            together = {
                ", ".join(filter(None, [label, rest])): line
                for rest, of in panels.items()
                for label, line in of.items()
            }
            panels = {"": together}
        scale = _Scale(key, list(swept), [arm.set[key] for arm in results.arms])
        disciplines = {name: line[0][0].discipline for of in panels.values() for name, line in of.items()}
        looks = dict(zip(disciplines, looks_of(list(disciplines.values())), strict=True))
        most = 3 if width != "column" else 1 if len(panels) <= 4 else 2
        columns = min(math.ceil(math.sqrt(len(panels))), most)
        rows = math.ceil(len(panels) / columns)
        with style():
            drawn = figure(width=width) if len(panels) == 1 else figure(2.6 * columns, 2.2 * rows + 0.6, width=width)
            if len(panels) > 1 and width is not None:
                drawn.set_size_inches(WIDTHS_IN[width], min(1.9 * rows + 0.6, TALLEST_IN))
            all_axes = drawn.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
            for axes, (rest, lines) in zip(all_axes, panels.items(), strict=False):
                for name, line in lines.items():
                    _draw_line(axes, line, scale, looks[name], name)
                if len(panels) > 1:
                    title(axes, rest, drawn.get_size_inches()[0] / columns)
            for axes in all_axes[len(panels) :]:
                axes.set_visible(False)
            for axes in all_axes[max(0, len(panels) - columns) : len(panels)]:
                axes.xaxis.set_tick_params(labelbottom=True)  # the last of its column
            first = all_axes[0]
            scale.apply(first, drawn.get_figwidth() / columns - 0.7)
            if shown.declared.scale is None and wants_log(interval.middle for interval in intervals):
                log_axis(first, "y")
            elif shown.declared.scale is not None:
                first.set_ylim(*shown.declared.scale)
            else:
                from_zero(first)
            repeated = any(interval.n > 1 for interval in intervals)
            spread = f"median of the repeats, band: its {CONFIDENCE:.0%} confidence interval" if repeated else ""
            explained = [where(results, shown, queue), samples_note(results, shown), spread]
            explained.append(own_times(results, shown, queue))
            if len(panels) == 1:
                first.set_xlabel(scale.label)
                name_y(first, shown.axis_label)
                note(first, *explained)
            else:
                below = "; ".join(filter(None, explained))
                below = wrapped(below, drawn.get_size_inches()[0] - 0.3)
                drawn.supxlabel(f"{scale.label}\n{below}" if below else scale.label, fontsize=9)
                drawn.supylabel(shown.axis_label, fontsize=9)
            legend(drawn, first)
            return drawn

    def overview(self, metrics: Sequence[str] | None = None, *, width: Width | None = None) -> Figure:
        """Several metrics (as for ``bars``) beside each other, a panel each.

        By default the p95 of the sojourn time and the goodput in each direction, and the application quality: opinion
        scores of calls, load times of pages, completion times of files, rates of video.
        """
        results = self._results
        shown = (
            overview_metrics(results)
            if metrics is None
            else [(metric_called(name, results), "down") for name in metrics]
        )
        arms = results.arms
        panel_in = max(2.7, min(0.5 * len(arms) + 0.9, 6.0))
        # An upright name takes a tenth of an inch, if its letters are small.
        most = _WIDEST_IN / panel_in if width is None else WIDTHS_IN[width] / (0.75 + 0.1 * len(arms))
        columns = min(len(shown), max(1, int(most)), 1 if width == "column" and len(shown) <= 6 else 3)
        rows = math.ceil(len(shown) / columns)
        panel_in = WIDTHS_IN[width] / columns if width is not None else panel_in
        with style():
            drawn = figure(columns * panel_in, rows * 2.1 + 0.4)
            # Names stand below the last panel of a column.
            all_axes = drawn.subplots(rows, columns, squeeze=False, sharex=True).ravel()
            look = self._looks
            for axes, (metric, queue) in zip(all_axes, shown, strict=False):
                draw_bars(axes, arm_intervals(results, metric, queue), look, metric.declared.scale)
                if results.has_several_links:
                    of = where(results, metric, queue)
                    after = f", {of}" if of else ""
                else:
                    after = "" if metric.group or len(results.directions) == 1 else f" {queue}"
                _panel(axes, metric, after, results, panel_in)
            for axes in all_axes[len(shown) :]:
                axes.set_visible(False)
            last = list(all_axes[max(0, len(shown) - columns) : len(shown)])
            for axes in last:
                axes.xaxis.set_tick_params(labelbottom=True)
            name_arms(last, [arm.title for arm in arms], panel_in - 0.7, 1 if rows * columns == len(shown) else 2)
            if width is not None:
                drawn.set_figheight(min(drawn.get_figheight(), TALLEST_IN))
            notes = [left_out(results)] if metrics is None else []
            notes += dict.fromkeys(own_times(results, metric, queue) for metric, queue in shown)
            if explained := "; ".join(filter(None, notes)):
                drawn.supxlabel(
                    wrapped(explained, drawn.get_size_inches()[0] - 0.3), x=0.01, ha="left", color="#555555", fontsize=8
                )
            return drawn
