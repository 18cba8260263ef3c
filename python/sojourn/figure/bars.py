"""Metrics of arms: as bars, several beside each other, and as lines over a swept key."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.figure import panels as panels_of
from sojourn.figure import style
from sojourn.figure.armpanels import ArmPanels, explain
from sojourn.figure.filenames import WIDTHS_IN
from sojourn.figure.names import name_arms
from sojourn.figure.style import TALLEST_IN, Look, OfResults, Width
from sojourn.frame.cells import axis_of_values
from sojourn.frame.metrics import Metric, has_queue, left_out, metric_called, overview_metrics, samples_note
from sojourn.frame.results import Results
from sojourn.frame.statistics import CONFIDENCE, Interval, fixed, median_interval
from sojourn.frame.swept import words

WIDTH_IN, PANEL_IN, BAR_IN = 5.2, 0.45, 0.24

GainPanel = tuple[str, int, Sequence[Interval]]
"""A measure: its words with the unit, its decimal places, and a value per arm."""
MOST_LINES = 24  # most lines in the figures that are drawn by default

_WIDEST_IN = 12.5  # most of an overview whose width is not given


def arm_intervals(results: Results, metric: Metric, queue: str) -> list[Interval]:
    """The median over the repeats of each arm, in the unit of the metric's heading."""
    is_of_queue = metric.declared.over in ("queue", "inner_queue")
    if metric.declared.over == "direction":
        queue = queue.rpartition("/")[2]
    runs = (
        [one.summary for one in arm.runs if not is_of_queue or has_queue(one.summary, queue)] for arm in results.arms
    )
    return [median_interval([value / metric.declared.per for value in metric.values(queue, own)]) for own in runs]


def draw_bars(
    axes: Axes, intervals: Sequence[Interval], look: Sequence[Look], scale: tuple[float, float] | None = None
) -> None:
    """Bars from zero, or from the beginning of their scale; marks on a logarithmic axis if they would be too small."""
    is_log = scale is None and style.wants_log([interval.middle for interval in intervals])
    for at, (interval, one) in enumerate(zip(intervals, look, strict=True)):
        if math.isnan(interval.middle):
            continue
        if is_log:
            axes.plot(at, interval.middle, "D", color=one.color, markersize=5)
        else:
            axes.bar(at, interval.middle, 0.6, color=one.color + "55", edgecolor=one.color)
        if interval.n > 1:
            reach = np.array([[interval.middle - interval.low], [interval.high - interval.middle]])
            axes.errorbar(at, interval.middle, yerr=reach, color=one.color, capsize=4, linewidth=1.4)
    axes.grid(axis="x", visible=False)
    if is_log:
        known = [end for one in intervals for end in (one.middle, one.low, one.high) if end > 0.0]
        axes.set_ylim(min(known) / 2, max(known) * 2)
        style.log_axis(axes, "y")
    elif scale is not None:
        axes.set_ylim(*scale)
    elif not any(interval.high > 0.0 for interval in intervals):
        axes.set_ylim(0.0, 1.0)
    for at, interval in enumerate(intervals):
        if interval.middle == 0.0:  # a bar without height, or none on a logarithmic axis
            axes.text(at, axes.get_ylim()[0], "0", color=look[at].color, ha="center", va="bottom")


class Bars(OfResults):
    """A metric per arm."""

    def bars(self, metric: str = "goodput_bps", queue: str = "down", *, width: Width | None = None) -> Figure:
        """A metric, or that of a group, ``"movie.rtt_p95_ms"``, as bars: medians with their 95 % intervals."""
        results = self._results
        shown = metric_called(metric, results)
        arms = results.arms
        intervals = arm_intervals(results, shown, queue)
        with style.applied():
            drawn = style.figure(width_in=style.width_for(len(arms)), width=width)
            axes = drawn.add_subplot()
            draw_bars(axes, intervals, self._looks, shown.declared.scale)
            name_arms([axes], [arm.title for arm in arms], drawn.get_figwidth() - 0.7)
            style.name_y(axes, shown.axis_label)
            repeated = any(interval.n > 1 for interval in intervals)
            spread = f"median of the repeats, {CONFIDENCE:.0%} confidence interval" if repeated else ""
            whose = style.where(results, shown, queue), samples_note(results, shown)
            style.note(axes, *whose, spread, style.own_times(results, shown, queue))
            return drawn

    def gains(self, headline: str, arms: Sequence[tuple[str, str]], panels: Sequence[GainPanel]) -> Figure:
        """Arms (label, discipline) beside each other, a panel per measure: its words, decimal places and values."""
        look = style.looks_of([discipline for _, discipline in arms])
        with style.applied():
            drawn = style.figure(WIDTH_IN, 0.75 + len(panels) * (PANEL_IN + BAR_IN * len(arms)))
            drawn.suptitle(style.wrapped(headline, WIDTH_IN - 0.6), x=0.01, ha="left", fontsize=10)
            all_axes = drawn.subplots(len(panels), 1, squeeze=False).ravel()
            for axes, (words, digits, values) in zip(all_axes, panels, strict=True):
                for index, (one, how) in enumerate(zip(values, look, strict=True)):
                    reach = [[one.middle - one.low], [one.high - one.middle]]
                    axes.barh(index, one.middle, 0.7, color=how.color + "55", edgecolor=how.color)
                    axes.errorbar(one.middle, index, xerr=reach, color=how.color, capsize=3, linewidth=1.2)
                    axes.annotate(
                        fixed(one.middle, digits), (one.high, index), (4, 0), textcoords="offset points", va="center"
                    )
                axes.set_yticks(range(len(arms)), [label for label, _ in arms])
                axes.invert_yaxis()
                axes.set_xlim(0.0, 1.18 * max([one.high for one in values if one.n] or [0.0]) or 1.0)
                axes.set_title(words, loc="left", fontsize=9)
                axes.tick_params(axis="x", labelsize=7)
                axes.grid(axis="y", visible=False)
            count = max((one.n for *_, values in panels for one in values), default=0)
            meant = f"Simulated; median of {count} runs, {CONFIDENCE:.0%} confidence interval"
            drawn.supxlabel(meant, x=0.01, ha="left", color="#555555", fontsize=8)
            return drawn


class Sweep(OfResults):
    """Metrics over swept keys, and beside each other."""

    def over(
        self, key: str, metric: str = "sojourn_p95_ms", queue: str = "down", *, width: Width | None = None
    ) -> Figure:
        """A metric (as for ``bars``) over a swept key, ``"link.rate"``: a line per queue and cell of the other keys.

        Values without an order, such as names of cases, have marks instead.
        """
        results = self._results
        swept = dict.fromkeys(key for arm in results.arms for key in arm.set)
        if key not in swept:
            known = f"must be one of the swept keys: {', '.join(swept)}" if swept else "the experiment sweeps no key"
            raise ValueError(f'over: got "{key}"; {known}')
        shown = metric_called(metric, results)
        intervals = arm_intervals(results, shown, queue)
        values = {str(arm.set[key]): arm.set[key] for arm in results.arms}
        across, ranks = axis_of_values(key, words(list(swept))[key], values.values())
        positions, x_log = panels_of.positions(across)
        at = dict(zip(values, positions[ranks].tolist(), strict=True))
        with style.applied():
            page = ArmPanels(results.arms, width, over=key)
            joined = across.numbers is not None
            for axes, name, look, line in page.lines():
                of_line = [(at[str(results.arms[arm].set[key])], intervals[arm]) for arm in line]
                rows_of = np.array([[place, one.low, one.middle, one.high] for place, one in of_line])
                x, *ends = rows_of[np.argsort(rows_of[:, 0], kind="stable")].T
                several = any(one.n > 1 for _, one in of_line)
                style.draw_line(axes, x, ends, look, name, band=several, size=4, joined=joined)
            first = page.plots[0]
            if not joined:
                name_arms([first], across.texts, page.panel_in - 0.7, whole=True)
            elif x_log:
                style.log_axis(first, "x")
            if shown.declared.scale is None and style.wants_log(interval.middle for interval in intervals):
                style.log_axis(first, "y")
            elif shown.declared.scale is not None:
                first.set_ylim(*shown.declared.scale)
            else:
                style.from_zero(first)
            repeated = any(interval.n > 1 for interval in intervals)
            shape = "band" if joined else "bar"
            spread = f"median of the repeats, {shape}: its {CONFIDENCE:.0%} confidence interval" if repeated else ""
            explained = [style.where(results, shown, queue), samples_note(results, shown), spread]
            explained.append(style.own_times(results, shown, queue))
            explain(page.drawn, page.plots, across.axis_label, shown.axis_label, *explained)
            page.legend()
            return page.drawn

    def overview(self, metrics: Sequence[str] | None = None, *, width: Width | None = None) -> Figure:
        """Several metrics (as for ``bars``) beside each other, a panel each.

        By default the p95 of the sojourn time and the goodput in each direction, and the application quality: opinion
        scores of calls, load times of pages, completion times of files, rates of video.
        """
        results = self._results
        shown = overview_metrics(results) if metrics is None else []
        shown += [(metric_called(name, results), "down") for name in metrics or ()]
        arms = results.arms
        panel_in = max(2.7, min(0.5 * len(arms) + 0.9, 6.0))
        # An upright name takes a tenth of an inch, if its letters are small.
        most = _WIDEST_IN / panel_in if width is None else WIDTHS_IN[width] / (0.75 + 0.1 * len(arms))
        columns = min(len(shown), max(1, int(most)), 1 if width == "column" and len(shown) <= 6 else 3)
        rows = math.ceil(len(shown) / columns)
        panel_in = WIDTHS_IN[width] / columns if width is not None else panel_in
        with style.applied():
            drawn = style.figure(columns * panel_in, rows * 2.1 + 0.4)
            all_axes = style.multiples(drawn, len(shown), columns, sharey=False)
            look = self._looks
            for axes, (metric, queue) in zip(all_axes, shown, strict=True):
                draw_bars(axes, arm_intervals(results, metric, queue), look, metric.declared.scale)
                if results.has_several_links:
                    of = style.where(results, metric, queue)
                    after = f", {of}" if of else ""
                else:
                    after = "" if metric.group or len(results.directions) == 1 else f" {queue}"
                unit = "" if metric.declared.scale is not None else metric.axis_label.removeprefix(metric.words)
                text = f"{metric.words}{after}{unit}"
                style.title(axes, "\n".join(filter(None, [text, samples_note(results, metric)])), panel_in)
            last = all_axes[-columns:]
            name_arms(last, [arm.title for arm in arms], panel_in - 0.7, 1 if rows * columns == len(shown) else 2)
            if width is not None:
                drawn.set_figheight(min(drawn.get_figheight(), TALLEST_IN))
            notes = [left_out(results)] if metrics is None else []
            notes += dict.fromkeys(style.own_times(results, metric, queue) for metric, queue in shown)
            if explained := "; ".join(filter(None, notes)):
                below = style.wrapped(explained, drawn.get_size_inches()[0] - 0.3)
                drawn.supxlabel(below, x=0.01, ha="left", color="#555555", fontsize=8)
            return drawn
