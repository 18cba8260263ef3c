"""A line per arm: in one panel, or, if they were too many, in a panel for each setting of a sweep."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.figure import style
from sojourn.figure.filenames import WIDTHS_IN
from sojourn.figure.style import Look, Width
from sojourn.frame.results import Arm
from sojourn.frame.swept import setting_text

MOST_IN_A_PANEL = 8
"""Most lines in one panel; beyond, there is a panel per combination of the other keys' values."""


class Line(NamedTuple):
    """How an arm is drawn in its panel."""

    name: str
    arm: int


def panels_of(arms: Sequence[Arm]) -> dict[str, list[Line]]:
    """The lines of each panel by its title: the queues; of one queue, the values of the first key with few."""
    if len(arms) <= MOST_IN_A_PANEL or not any(arm.set for arm in arms):
        return {"": [Line(arm.title, index) for index, arm in enumerate(arms)]}
    counts = {key: len({str(arm.set.get(key)) for arm in arms}) for key in arms[0].set}
    is_one = len({arm.label for arm in arms}) == 1
    each = next((key for key, count in counts.items() if 1 < count <= MOST_IN_A_PANEL), None) if is_one else None
    found: dict[str, list[Line]] = {}
    for index, arm in enumerate(arms):
        name = arm.label if each is None else setting_text({each: arm.set[each]})
        rest = setting_text({key: value for key, value in arm.set.items() if key != each})
        found.setdefault(rest, []).append(Line(name, index))
    return found


def figure_of(count: int, width: Width | None) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels of common axes."""
    most = 3 if width != "column" else 1 if count <= 4 else 2
    columns = min(math.ceil(math.sqrt(count)), most)
    rows = math.ceil(count / columns)
    size = () if count == 1 else (2.6 * columns, 2.2 * rows + 0.6)
    drawn = style.figure(*size, width=width)
    if count > 1 and width is not None:
        drawn.set_size_inches(WIDTHS_IN[width], min(1.9 * rows + 0.6, style.TALLEST_IN))
    return drawn, style.multiples(drawn, count, columns, sharey=True)


def panel_columns(plots: Sequence[Axes]) -> int:
    """The columns in which the panels stand."""
    return plots[0].get_subplotspec().get_gridspec().ncols  # type: ignore[union-attr]


def explain(drawn: Figure, plots: Sequence[Axes], x: str, y: str, *notes: str) -> None:
    """Labels the axes, and says what is drawn: above a single panel, else below all."""
    if len(plots) == 1:
        plots[0].set_xlabel(x)
        style.name_y(plots[0], y)
        style.note(plots[0], *notes)
        return
    below = style.wrapped("; ".join(filter(None, notes)), drawn.get_size_inches()[0] - 0.3)
    drawn.supxlabel(f"{x}\n{below}".rstrip("\n"), fontsize=9)
    drawn.supylabel(y, fontsize=9)


class ArmPanels:
    """A figure with a line per arm."""

    def __init__(self, arms: Sequence[Arm], width: Width | None) -> None:
        self._panels = panels_of(arms)
        self.drawn, self.plots = figure_of(len(self._panels), width)
        names = {line.name: arms[line.arm].discipline for lines in self._panels.values() for line in lines}
        if len(self._panels) == 1:
            looks = style.looks_of([arm.discipline for arm in arms])
            self._looks = {line.name: looks[line.arm] for line in self._panels[""]}
        else:
            self._looks = dict(zip(names, style.looks_of(list(names.values())), strict=True))
        panel_in = self.drawn.get_size_inches()[0] / panel_columns(self.plots)
        for axes, title in zip(self.plots, self._panels, strict=True):
            if title:
                style.title(axes, title, panel_in)

    def lines(self) -> Iterator[tuple[Axes, str, Look, int]]:
        """For each arm its axes, its name there, its look and its number."""
        for axes, lines in zip(self.plots, self._panels.values(), strict=True):
            for line in lines:
                yield axes, line.name, self._looks[line.name], line.arm

    def legend(self) -> None:
        """The names of the lines, beside all panels."""
        style.legend(self.drawn, max(self.plots, key=lambda axes: len(axes.lines)))
