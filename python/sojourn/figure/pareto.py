"""Goodput against delay of many cells, with their Pareto fronts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sojourn.figure import panels
from sojourn.figure.of_grid import OfGrid
from sojourn.figure.style import Width, legend, log_axis, looks_of, style, wants_log
from sojourn.figure.tradeoff import widen
from sojourn.frame.cells import LABEL, CellTable
from sojourn.frame.statistics import FloatArray


def front(cost: FloatArray, gain: FloatArray) -> npt.NDArray[np.int64]:
    """The indices of the points that no other point dominates, in the order of their cost.

    A point dominates another if it has no more cost and no less gain, and is better in one of them. NaN is on no front.
    """
    known = np.flatnonzero(np.isfinite(cost) & np.isfinite(gain))
    # By cost, and at the same cost the largest gain first.
    ordered = known[np.lexsort((-gain[known], cost[known]))]
    found = []
    best_gain, its_cost = -np.inf, np.nan
    for index in ordered:
        equal = gain[index] == best_gain and cost[index] == its_cost
        if gain[index] > best_gain or equal:
            found.append(index)
            best_gain, its_cost = gain[index], cost[index]
    return np.array(found, dtype=np.int64)


def within(grid: CellTable) -> list[str]:
    """The keys that an operator chooses: the queue and its parameters. The others say where it is used."""
    return [key for key in grid.axes if key == LABEL or key.startswith("queue.")]


class Pareto(OfGrid):
    """Two metrics against each other."""

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
        whole = self._grid
        cost, gain = whole.measure(x, "--x"), whole.measure(y, "--y")
        found = panels.panels(whole, list(whole.axes) if pool else within(whole))
        costs, gains = whole.intervals(cost), whole.intervals(gain)
        labels = whole.axes[LABEL]
        looks = looks_of([whole.discipline(label) for label in labels.texts])
        known = costs.middle[np.isfinite(costs.middle)]
        is_log = bool(known.size) and bool((known > 0.0).all()) and wants_log(known.tolist())
        is_dense = len(whole) / len(found) > 60
        with style():
            size = (5.2, 3.6) if len(found) == 1 else (2.6, 2.1)
            # Goodputs of different links differ by far: each panel has its own scale.
            drawn, plots, panel_in = panels.layout(found, size, width, share_y=False)
            texts = panels.legend_texts(labels.texts, drawn)
            for plot, panel in zip(plots, found, strict=True):
                best = panel.cells[front(costs.middle[panel.cells], gains.middle[panel.cells])]
                plot.step(
                    costs.middle[best], gains.middle[best], where="post", color="#555555", linewidth=1.0, zorder=1.5
                )
                for value, (text, look) in enumerate(zip(texts, looks, strict=True)):
                    of_label = panel.cells[whole.indices(LABEL)[panel.cells] == value]
                    for cells, on_front in (
                        (np.setdiff1d(of_label, best), False),
                        (np.intersect1d(of_label, best), True),
                    ):
                        plot.plot(
                            costs.middle[cells], gains.middle[cells], linestyle="none", marker=look.marker,
                            markersize=(3 if is_dense else 4.5) + on_front,
                            markerfacecolor=look.color + ("" if on_front else "55"),
                            markeredgecolor="black" if on_front else look.color,
                            markeredgewidth=0.8 if on_front else 0.4,
                            label=text if on_front else None, zorder=3 if on_front else 2,
                        )  # fmt: skip
            for plot in plots:
                if is_log:
                    log_axis(plot, "x")
                else:
                    plot.xaxis.set_major_locator(MaxNLocator(6 if len(found) == 1 else 3))
                widen(plot)
            plots[0].invert_xaxis()
            panels.name_panels(plots, found, panel_in)
            panels.name_axes(drawn, f"{cost.axis_label}, less to the right", gain.axis_label)
            if len(texts) > 1:
                legend(drawn, plots[0])
            panels.headline(
                drawn,
                panels.joined(
                    "line and black edges: Pareto front",
                    panels.spread(costs.n, interval=False),
                    "all cells together" if pool else "",
                ),
            )
            return drawn
