"""What can be drawn of a grid."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from sojourn.figure import heatmap, pareto, sensitivity, smallmultiples, surface
from sojourn.figure.style import Width
from sojourn.frame.cells import CellTable
from sojourn.store.plans import StoredPlan
from sojourn.store.sensitivity import indices


class Pictures:
    """The pictures of a grid; each is a matplotlib Figure, saved with ``savefig``.

    Keys are ``"label"``, the queue under test, and the swept keys, ``"link.rate"``. Metrics are columns of the store.
    There is a panel for each queue and each combination of the values of the other swept keys; with ``pool`` the runs
    of those combinations count together. An ``ExperimentError`` tells of keys and metrics that the store does not have.
    """

    def __init__(self, grid: CellTable, plans: Callable[[], list[StoredPlan]]) -> None:
        self._grid = grid
        self._plans = plans

    def heatmap(
        self, x: str, y: str, metric: str = "sojourn_p95_ms", *, pool: bool = False, width: Width | None = None
    ) -> Figure:
        """The median of a metric over two keys, as colours. Hatched cells have no runs with the metric."""
        return heatmap.heatmap(self._grid, x, y, metric, pool, width)

    def lines(
        self,
        x: str,
        y: str = "label",
        metric: str = "sojourn_p95_ms",
        *,
        pool: bool = False,
        width: Width | None = None,
    ) -> Figure:
        """The median of a metric over the key ``x`` with its confidence interval, a line for each value of ``y``."""
        return smallmultiples.lines(self._grid, x, y, metric, pool, width)

    def pareto(
        self,
        x: str = "sojourn_p95_ms",
        y: str = "goodput_bps",
        *,
        pool: bool = False,
        width: Width | None = None,
    ) -> Figure:
        """Two metrics against each other: less of ``x`` and more of ``y`` are better.

        A point is a cell. A panel has the queues with all values of their own keys, ``queue.…``, at one combination of
        the values of the other keys: link, traffic and so on. Its line is the Pareto front: no other point of the panel
        is as good as one of its points in both metrics and better in one. With ``pool`` there is one panel.
        """
        return pareto.pareto(self._grid, x, y, pool, width)

    def surface(
        self, x: str, y: str, metric: str = "sojourn_p95_ms", *, pool: bool = False, width: Width | None = None
    ) -> Figure:
        """The median of a metric over two numeric keys as contours, interpolated linearly between the cells' dots."""
        return surface.surface(self._grid, x, y, metric, pool, width)

    def sensitivity(self, metric: str = "sojourn_p95_ms", *, width: Width | None = None) -> Figure:
        """What a metric depends on: indices of Sobol' of each key, for a sweep with ``design = "sobol"``."""
        return sensitivity.sensitivity(
            self._grid, self._grid.measure(metric), indices(self._grid, self._plans(), metric), width
        )
