"""Lines of arms: in one panel, or, if they were too many, in a panel for each setting of a sweep."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.figure import style
from sojourn.figure.filenames import WIDTHS_IN
from sojourn.figure.style import Look, Width
from sojourn.frame.results import Arm
from sojourn.frame.swept import setting_text

MOST_IN_A_PANEL = 8
"""Most lines in one panel; beyond, there is a panel per combination of the other keys' values."""


Lines = dict[str, list[int]]
"""The lines of a panel: their names, each with the numbers of its arms."""


def panels_of(arms: Sequence[Arm]) -> dict[str, Lines]:
    """The lines of each panel by its title: the queues; of one queue, the values of the first key with few."""
    if len(arms) <= MOST_IN_A_PANEL or not any(arm.set for arm in arms):
        return {"": {arm.title: [index] for index, arm in enumerate(arms)}}
    counts = {key: len({str(arm.set.get(key)) for arm in arms}) for key in arms[0].set}
    is_one = len({arm.label for arm in arms}) == 1
    each = next((key for key, count in counts.items() if 1 < count <= MOST_IN_A_PANEL), None) if is_one else None
    found: dict[str, Lines] = {}
    for index, arm in enumerate(arms):
        name = arm.label if each is None else setting_text({each: arm.set[each]})
        rest = setting_text({key: value for key, value in arm.set.items() if key != each})
        found.setdefault(rest, {})[name] = [index]
    return found


def panels_over(arms: Sequence[Arm], key: str) -> dict[str, Lines]:
    """The same for lines over a swept key: the arms of a line differ in it alone."""
    found: dict[str, Lines] = {}
    for index, arm in enumerate(arms):
        rest = setting_text({other: value for other, value in arm.set.items() if other != key})
        found.setdefault(rest, {}).setdefault(arm.label, []).append(index)
    if sum(map(len, found.values())) > MOST_IN_A_PANEL:
        return found
    return {
        "": {", ".join(filter(None, [label, rest])): line for rest, of in found.items() for label, line in of.items()}
    }


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
    """A figure with lines of arms, by default one per arm."""

    def __init__(self, arms: Sequence[Arm], width: Width | None, over: str = "") -> None:
        self._panels = panels_over(arms, over) if over else panels_of(arms)
        self.drawn, self.plots = figure_of(len(self._panels), width)
        self.panel_in = self.drawn.get_size_inches()[0] / self.plots[0].get_subplotspec().get_gridspec().ncols  # type: ignore[union-attr]
        firsts = {name: arms[line[0]].discipline for lines in self._panels.values() for name, line in lines.items()}
        self._looks = dict(zip(firsts, style.looks_of(list(firsts.values())), strict=True))
        for axes, title in zip(self.plots, self._panels, strict=True):
            if title:
                style.title(axes, title, self.panel_in)

    def lines(self) -> Iterator[tuple[Axes, str, Look, list[int]]]:
        """For each line its axes, its name there, its look and the numbers of its arms."""
        for axes, lines in zip(self.plots, self._panels.values(), strict=True):
            for name, line in lines.items():
                yield axes, name, self._looks[name], line

    def legend(self) -> None:
        """The names of the lines, beside all panels."""
        style.legend(self.drawn, max(self.plots, key=lambda axes: len(axes.lines)))
