"""What is gained: a panel per measure, horizontal bars with their numbers, one panel below the other for a phone."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from sojourn.figure.of_results import OfResults
from sojourn.figure.style import figure, looks_of, style, wrapped
from sojourn.frame.rounding import fixed
from sojourn.frame.statistics import CONFIDENCE, Interval

WIDTH_IN, PANEL_IN, BAR_IN = 5.2, 0.45, 0.24


Panel = tuple[str, int, Sequence[Interval]]
"""A measure: its words with the unit, its decimal places, and a value per arm."""


class Gains(OfResults):
    """What is gained."""

    def gains(self, headline: str, arms: Sequence[tuple[str, str]], panels: Sequence[Panel]) -> Figure:
        """Arms (label, discipline) beside each other, a panel per measure: its words, decimal places and values."""
        look = looks_of([discipline for _, discipline in arms])
        with style():
            drawn = figure(WIDTH_IN, 0.75 + len(panels) * (PANEL_IN + BAR_IN * len(arms)))
            drawn.suptitle(wrapped(headline, WIDTH_IN - 0.6), x=0.01, ha="left", fontsize=10)
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
            note = f"Simulated; median of {count} runs, {CONFIDENCE:.0%} confidence interval"
            drawn.supxlabel(note, x=0.01, ha="left", color="#555555", fontsize=8)
            return drawn
