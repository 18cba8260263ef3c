"""What the figures of a store share: the cells, and what is drawn of them over two keys."""

from __future__ import annotations

from sojourn import _core
from sojourn.figure import panels
from sojourn.figure.panels import Panel
from sojourn.frame.cells import LABEL, Axis, CellTable
from sojourn.frame.columns import Measure
from sojourn.frame.intervals import Intervals


class OfGrid:
    """Cells to be drawn. A mark is a class of its file, whose methods are figures; a store's pictures have them all."""

    def __init__(self, grid: CellTable) -> None:
        self._grid = grid

    def _over(
        self, across: Axis, up: Axis, metric: str, pool: bool
    ) -> tuple[CellTable, Measure, list[Panel], Intervals]:
        """The cells to draw over two keys, the metric, the panels, and the medians of each cell."""
        if across.key == up.key:
            raise _core.ExperimentError(f'--y: got "{up.key}", as --x; must be another key')
        shown = self._grid.measure(metric)
        grid = self._grid.pooled([across.key, up.key, LABEL]) if pool else self._grid
        return grid, shown, panels.panels(grid, [across.key, up.key]), grid.intervals(shown)
