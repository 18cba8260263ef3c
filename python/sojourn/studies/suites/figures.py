"""The figures of an evaluation: a map of all scenarios, and goodput against queueing delay.

The latter (RFC 7928, section 2.7) is a figure per chapter with a panel per scenario.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox

from sojourn.figure.distributions import draw_ellipse
from sojourn.figure.panels import draw_map
from sojourn.figure.style import COLORS, applied, figure, looks_of, multiples, save, title
from sojourn.files.storage import Staging
from sojourn.frame.statistics import FloatArray
from sojourn.studies.suites.suite import Evaluation, Suite

ACROSS = 3
OVERVIEW = "overview"
_PANEL_IN = (3.0, 2.4)
DELAY, GOODPUT = "delay_mean_ms", "goodput_mbps"
FAMILIES = {
    "drop-tail": ("pfifo", "bfifo", "pfifo_fast", "pfifo_head_drop"),
    "RED and BLUE": ("red", "ared", "choke", "blue", "sfb"),
    "PIE": ("pie", "docsis_pie", "madpie", "pi2", "dualpi2"),
    "CoDel": ("codel", "cobalt"),
    "flow queueing": (
        *("sfq", "fq_nocodel", "sfq_red", "sfq_ared", "sfq_pie", "sfq_madpie", "fq_pie", "fq_codel", "cake", "fq"),
        "hhf",
    ),
    "policing": ("policer",),
    "set from outside": ("policy",),
}
"""The disciplines by what they decide by; those of one's own come last."""
DELAY_DECADES = 2.0
"""Delay from a hundredth of drop-tail's to a hundred times as much has colours of its own; beyond, the last."""
GOODPUT_SHARE = 0.3  # goodput within this share of drop-tail's has colours of its own
_CELL_IN, _ROW_IN, _LETTER_IN = 0.24, 0.19, 0.062
_LEAST_IN = 3.0  # width of a map of few queues: its colours' labels lie beside each other


def names(suite: Suite) -> dict[str, str]:
    """The figures of goodput against delay: their names without a suffix, by chapter."""
    chapters = dict.fromkeys(one.section.partition(".")[0] for one in suite.content.scenario if not one.unmeasured)
    return {chapter: f"tradeoff-{chapter}" for chapter in chapters}


def stage(staging: Staging, evaluation: Evaluation) -> list[Path]:
    """Draws the map, and the figures of the chapters that have runs."""
    paths = save(staging, OVERVIEW, overview(evaluation), ("png",)) if any(evaluation.measured.values()) else []
    chapters = [one.scenario.section.partition(".")[0] for one in evaluation.planned]
    for chapter, name in names(evaluation.suite).items():
        indices = [index for index, of in enumerate(chapters) if of == chapter and evaluation.measured.get(index)]
        if indices:
            paths += save(staging, name, chapter_figure(evaluation, indices), ("png",))
    return paths


def overview(evaluation: Evaluation) -> Figure:
    """The medians of mean delay and goodput of every arm in every scenario, as ratios to those of drop-tail."""
    indices = [index for index in range(len(evaluation.planned)) if evaluation.measured.get(index)]
    arms = [arm.queue for arm in evaluation.arms]

    def ratios(metric: str) -> FloatArray:
        found = np.full((len(indices), len(arms)), np.nan)
        for row, index in enumerate(indices):
            for column, queue in enumerate(arms):
                values = [run.values[metric] for run in evaluation.measured[index] if run.queue == queue]
                found[row, column] = np.median(values) if values else np.nan
        with np.errstate(divide="ignore", invalid="ignore"):
            result: FloatArray = found / found[:, [arms.index(evaluation.reference)]]
        return result

    planned = [evaluation.planned[index] for index in indices]
    names = [f"{one.scenario.section} {one.scenario.title(one.case)}" for one in planned]
    return relative_map(names, arms, ratios(DELAY), ratios(GOODPUT), evaluation.reference)


def chapter_figure(evaluation: Evaluation, indices: list[int]) -> Figure:
    """A panel per case of a chapter: marks are medians, coloured by family if there are more queues than colours."""
    across = min(ACROSS, len(indices))
    rows = math.ceil(len(indices) / across)
    arms = [arm.queue for arm in evaluation.arms]
    looks = dict(zip(arms, looks_of([arm.aqm for arm in evaluation.arms]), strict=True))
    families = by_family(arms) if len(arms) > len(COLORS) else []
    for (_, members), color in zip(families, COLORS, strict=False):
        looks |= {queue: looks[queue]._replace(color=color) for queue in members}
    looks = {queue: look._replace(marker="o") for queue, look in looks.items()}
    legend = {members[0]: name for name, members in families} if families else dict(zip(arms, arms, strict=True))
    with applied():
        drawn = figure(_PANEL_IN[0] * across, _PANEL_IN[1] * rows + 0.4)
        panels = multiples(drawn, len(indices), across, sharex=False, sharey=False)
        for axes, index in zip(panels, indices, strict=True):
            one = evaluation.planned[index]
            for queue in arms:
                runs = [run.values for run in evaluation.measured[index] if run.queue == queue]
                sample = np.array([(run[DELAY], run[GOODPUT]) for run in runs], dtype=np.float64).reshape(-1, 2)
                if len(known := sample[~np.isnan(sample).any(axis=1)]):
                    draw_ellipse(axes, known, looks[queue].color, label=queue, is_log=False)
            axes.invert_xaxis()
            title(axes, f"{one.scenario.section} {one.scenario.title(one.case)}", _PANEL_IN[0])
        handles = [Line2D([], [], ls="", marker="o", color=looks[queue].color, label=legend[queue]) for queue in legend]
        drawn.legend(handles=handles, loc="outside upper center", ncols=min(6, len(handles)))
        drawn.supxlabel("mean queueing delay [ms], less to the right", fontsize=9)
        drawn.supylabel("goodput [Mbit/s]", fontsize=9)
        if families:
            # Only the layout tells where the marks are.
            drawn.draw_without_rendering()
            for axes in panels:
                _name_marks(axes)
        return drawn


def _name_marks(axes: Axes) -> None:
    """Writes the labels of the marks beside them: those that stand apart first, and no two over each other."""
    marks = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
    points = np.array([np.asarray(line.get_xydata())[0] for line in marks])
    at = axes.transData.transform(points)
    apart = [np.sort(np.hypot(*(at - one).T))[1] if len(at) > 1 else 0.0 for one in at]
    per_point = axes.figure.dpi / 72.0
    frame = axes.get_window_extent()
    taken = [Bbox.from_bounds(x - 3 * per_point, y - 3 * per_point, 6 * per_point, 6 * per_point) for x, y in at]
    for number in np.argsort(apart)[::-1]:
        text = str(marks[number].get_label())
        wide, high = 3.4 * len(text) * per_point, 6.5 * per_point
        x, y = at[number]
        gap = 4.5 * per_point
        for left, below in ((x + gap, y - high / 2), (x - gap - wide, y - high / 2), (x - wide / 2, y + gap),
                            (x - wide / 2, y - gap - high)):  # fmt: skip
            box = Bbox.from_bounds(left, below, wide, high)
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if inside and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                across, up = axes.transAxes.inverted().transform((left + wide / 2, below + high / 2))
                written = axes.text(
                    across, up, text, transform=axes.transAxes, fontsize=6, ha="center", va="center",
                    color=marks[number].get_color(),
                )  # fmt: skip
                written.set_in_layout(False)
                break


def by_family(queues: Sequence[str]) -> list[tuple[str, list[str]]]:
    """The queues by the family of their discipline, families in the order of ``FAMILIES``."""
    order = {aqm: (number, of) for number, names in enumerate(FAMILIES.values()) for of, aqm in enumerate(names)}
    known = {queue: order.get(queue.partition(":")[0]) for queue in queues}
    found = []
    for number, name in enumerate(FAMILIES):
        own = sorted((at, queue) for queue, at in known.items() if at is not None and at[0] == number)
        if own:
            found.append((name, [queue for _, queue in own]))
    others = [queue for queue, at in known.items() if at is None]
    return found + ([("other", others)] if others else [])


def relative_map(
    scenarios: Sequence[str], queues: Sequence[str], delay: FloatArray, goodput: FloatArray, reference: str
) -> Figure:
    """Two maps, a row per scenario and a column per queue: mean delay and goodput, as ratios to the reference's."""
    families = by_family(queues)
    order = [list(queues).index(queue) for _, members in families for queue in members]
    with applied():
        wide, high = max(_CELL_IN * len(order), _LEAST_IN), _ROW_IN * len(scenarios)
        labels = _LETTER_IN * max(map(len, scenarios), default=0)
        drawn = figure(labels + 2 * wide + 1.0, high + 2.4)
        # The longest labels are measured too short by a letter.
        drawn.set_layout_engine("constrained", w_pad=0.15, h_pad=0.15)
        left, right = drawn.subplots(1, 2, sharey=True)
        with np.errstate(divide="ignore"):
            decades = -np.log10(delay[:, order])
        _draw(left, decades, DELAY_DECADES, families)
        _draw(right, goodput[:, order] - 1.0, GOODPUT_SHARE, families)
        left.set_yticks(np.arange(len(scenarios)), scenarios, fontsize=7.5)
        times: dict[float, str] = {-2: "100 times", -1: "10", 0: "1", 1: "1/10", 2: "1/100"}
        shares: dict[float, str] = {-0.3: "−30 %", -0.15: "−15", 0: "0", 0.15: "+15", 0.3: "+30 %"}
        for plot, words, ticks in (
            (left, f"mean queueing delay, of {reference}'s", times),
            (right, f"goodput, against {reference}'s", shares),
        ):
            bar = drawn.colorbar(plot.collections[0], ax=plot, location="bottom", shrink=0.8, aspect=32, pad=0.01)
            bar.set_ticks(list(ticks), labels=list(ticks.values()), fontsize=7.5)
            bar.set_label(f"{words}; blue is better", fontsize=8.5)
        return drawn


def _draw(plot: Axes, values: FloatArray, limit: float, families: Sequence[tuple[str, Sequence[str]]]) -> None:
    """One map; ``values`` are positive where better, and white at 0."""
    rows, columns = values.shape
    norm = Normalize(-limit, limit)
    draw_map(plot, values.clip(-limit, limit), cmap="RdBu", norm=norm, edgecolor="white", linewidth=0.4)
    plot.tick_params(length=0)
    plot.xaxis.tick_top()
    # Settings stand below each other, so that no name is as long as the map is high.
    names = [queue.replace(",", ",\n").replace(":", ":\n") for _, members in families for queue in members]
    plot.set_xticks(np.arange(columns), names, rotation=90, fontsize=7.5)
    below = plot.get_xaxis_transform()
    first = 0
    for name, members in families:
        last = first + len(members)
        plot.plot(
            [first - 0.35, last - 0.65], [-0.006] * 2, color="#444444", linewidth=1.0, clip_on=False, transform=below
        )
        if last < columns:
            plot.axvline(last - 0.5, color="#444444", linewidth=0.8)
        words = name if len(members) > 2 else name.replace(" ", "\n")
        plot.text((first + last - 1) / 2, -0.01, words, ha="center", va="top", fontsize=7.5, transform=below)
        first = last
    plot.set_xlim(-0.5, columns - 0.5)
    plot.set_ylim(rows - 0.5, -0.5)
