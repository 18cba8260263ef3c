"""What can be drawn of a grid."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from sojourn.figure.heatmap import Heatmap
from sojourn.figure.pareto import Pareto
from sojourn.figure.sensitivity import sensitivity
from sojourn.figure.smallmultiples import Lines
from sojourn.figure.style import Width
from sojourn.figure.surface import Surface
from sojourn.frame.cells import CellTable
from sojourn.store.plans import StoredPlan
from sojourn.store.sensitivity import indices


class Pictures(Heatmap, Lines, Pareto, Surface):
    """The pictures of a grid; each is a matplotlib Figure, saved with ``savefig``.

    Keys are ``"label"``, the queue under test, and the swept keys, ``"link.rate"``. Metrics are columns of the store.
    There is a panel for each queue and each combination of the values of the other swept keys; with ``pool`` the runs
    of those combinations count together. An ``ExperimentError`` tells of keys and metrics that the store does not have.
    """

    def __init__(self, grid: CellTable, plans: Callable[[], list[StoredPlan]]) -> None:
        super().__init__(grid)
        self._plans = plans

    def sensitivity(self, metric: str = "sojourn_p95_ms", *, width: Width | None = None) -> Figure:
        """What a metric depends on: indices of Sobol' of each key, for a sweep with ``design = "sobol"``."""
        shown = self._grid.measure(metric)
        return sensitivity(self._grid, shown, indices(self._grid, self._plans(), metric), width)
