"""Every discipline in every scenario against drop-tail, as a map: delay and goodput, blue where better."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from sojourn.figure.style import figure, style
from sojourn.frame.statistics import FloatArray

FAMILIES = {
    "drop-tail": ("pfifo", "bfifo", "pfifo_fast", "pfifo_head_drop"),
    "RED and BLUE": ("red", "ared", "choke", "blue", "sfb"),
    "PIE": ("pie", "docsis_pie", "madpie", "pi2", "dualpi2"),
    "CoDel": ("codel", "cobalt"),
    "flow queueing": (
        "sfq",
        "fq_nocodel",
        "sfq_red",
        "sfq_ared",
        "sfq_pie",
        "sfq_madpie",
        "fq_pie",
        "fq_codel",
        "cake",
        "fq",
        "hhf",
    ),
    "policing": ("policer",),
    "set from outside": ("policy",),
}
"""The disciplines by what they decide by; those of one's own come last."""
DELAY_DECADES = 2.0
"""Delay from a hundredth of drop-tail's to a hundred times as much has colours of its own; beyond, the last."""
GOODPUT_SHARE = 0.3
"""Goodput within this share of drop-tail's has colours of its own."""
_CELL_IN, _ROW_IN, _LETTER_IN = 0.24, 0.19, 0.062
_LEAST_IN = 3.0
"""Width of a map of few queues: its colours' labels lie beside each other."""
_NO_VALUE = "#e4e4e4"


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
    """Two maps beside each other, a row per scenario and a column per queue: mean delay, and goodput.

    Both are ratios to the reference in the same scenario, of shape (scenarios, queues); NaN where there is none.
    """
    families = by_family(queues)
    order = [list(queues).index(queue) for _, members in families for queue in members]
    with style():
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
        for plot, words, ticks in (
            (
                left,
                f"mean queueing delay, of {reference}'s",
                {-2: "100 times", -1: "10", 0: "1", 1: "1/10", 2: "1/100"},
            ),
            (
                right,
                f"goodput, against {reference}'s",
                {-0.3: "−30 %", -0.15: "−15", 0: "0", 0.15: "+15", 0.3: "+30 %"},
            ),
        ):
            bar = drawn.colorbar(plot.collections[0], ax=plot, location="bottom", shrink=0.8, aspect=32, pad=0.01)
            bar.set_ticks(list(ticks), labels=list(ticks.values()), fontsize=7.5)
            bar.set_label(f"{words}; blue is better", fontsize=8.5)
        return drawn


def _draw(plot: Axes, values: FloatArray, limit: float, families: Sequence[tuple[str, Sequence[str]]]) -> None:
    """One map; ``values`` are positive where better, and white at 0."""
    rows, columns = values.shape
    plot.set_facecolor(_NO_VALUE)
    plot.pcolormesh(
        np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5, np.ma.masked_invalid(values.clip(-limit, limit)),
        cmap="RdBu", norm=Normalize(-limit, limit), edgecolor="white", linewidth=0.4,
    )  # fmt: skip
    plot.grid(False)
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
