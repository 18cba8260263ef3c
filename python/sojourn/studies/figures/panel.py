"""One set of axes of a figure, with its data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from statistics import fmean

from matplotlib.axes import Axes

from sojourn.figure.style import Look
from sojourn.frame.results import Run
from sojourn.studies.exhibits import FigureSpec
from sojourn.studies.figures.marks import Drawn
from sojourn.studies.grid import AxisValue, Cell, Grid
from sojourn.studies.measures import Measure
from sojourn.studies.published import Mark


@dataclass(frozen=True)
class Panel:
    """A metric at one value of the panels' axis."""

    axes: Axes
    spec: FigureSpec
    metric: str
    grid: Grid
    at: Mapping[str, AxisValue]
    looks: Mapping[str, Look]
    """By scheme, in the order of drawing."""
    marks: Sequence[Mark]
    """The published values of the metric here."""
    drawn: Drawn

    @property
    def measure(self) -> Measure:
        """The metric on the vertical axis."""
        return self.grid.measures[self.metric]

    def cells(self, scheme: str) -> list[Cell]:
        """The cells of a scheme here."""
        return list(self.grid.at(scheme, self.at))

    def of_run(self, metric: str, statistic: str, cell: Cell, run: Run) -> float:
        """A metric's statistic of one run."""
        return self.grid.measures[metric].statistic(run, statistic, {**self.grid.constants, **cell.point})

    def of_runs(self, metric: str, statistic: str, cells: Sequence[Cell]) -> list[float]:
        """A metric's statistic of every run of some cells."""
        return [self.of_run(metric, statistic, cell, run) for cell in cells for run in cell.runs]

    def over_repeats(self, metric: str, statistic: str, cell: Cell) -> float:
        """A metric's statistic of a cell, as for claims: the mean over its repeats, or of all combined."""
        place = {**self.grid.constants, **cell.point}
        known = [one for one in self.grid.measures[metric].of_repeats(cell.runs, statistic, place) if not isnan(one)]
        return fmean(known) if known else nan
