"""Draws published values beside the measured ones."""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from sojourn.studies.published import Mark

INK, PAPER, RELATIVE = "#000000", "#ffffff", "#bbbbbb"
_MIDDLE = frozenset({"median", "value", "mean", "p50"})


class Drawn:
    """The published values drawn on some axes, for the legend and for marks that need the final limits."""

    def __init__(self) -> None:
        self.claims: set[str] = set()
        self._has: set[str] = set()
        self._later: list[tuple[Axes, Mark, float, float]] = []

    def upright(self, axes: Axes, mark: Mark, x: float, width: float, *, named: bool = True) -> None:
        """Draws a mark at a position of the horizontal axis: a diamond, or a band as wide as a box."""
        self._note(mark)
        if mark.bound is not None:
            axes.plot([x - width / 2, x + width / 2], [mark.low] * 2, color=INK, linewidth=1.0, zorder=6)
            self._bound(axes, mark, x - width / 2, x + width / 2)
        elif mark.low != mark.high:
            band = Rectangle((x - width / 2, mark.low), width, mark.high - mark.low, zorder=5)
            band.set(facecolor=INK + "22", edgecolor=INK, linewidth=0.8, linestyle="--" if mark.relative else "-")
            axes.add_patch(band)
            axes.update_datalim([(x, mark.low), (x, mark.high)])
            axes.autoscale_view()
        else:
            self._diamond(axes, mark, x, mark.low)
        if named and mark.statistic not in _MIDDLE:
            axes.annotate(
                mark.statistic.replace("_", "."),
                (x, mark.high),
                xytext=(4, 2),
                textcoords="offset points",
                fontsize=6,
                zorder=7,
            )

    def level(self, axes: Axes, mark: Mark, start: float, end: float, at: float, color: str) -> None:
        """Draws a level over time, with its diamond between its ends."""
        self._note(mark)
        if mark.bound is not None:
            axes.plot([start, end], [mark.low] * 2, color=color, linewidth=0.9, linestyle=(0, (4, 2)), zorder=5)
            self._bound(axes, mark, start, end)
        elif mark.low != mark.high:
            axes.fill_between([start, end], mark.low, mark.high, color=color, alpha=0.2, linewidth=0, zorder=5)
        else:
            axes.plot([start, end], [mark.low] * 2, color=color, linewidth=0.9, linestyle=(0, (4, 2)), zorder=5)
            self._diamond(axes, mark, start + at * (end - start), mark.low, color)

    def point(self, axes: Axes, mark: Mark, low: tuple[float, float], high: tuple[float, float], color: str) -> None:
        """Draws a mark at a point, or between two."""
        self._note(mark)
        if low == high:
            self._diamond(axes, mark, *low, color)
            if mark.bound is not None:
                ahead = mark.bound in (">", ">=")
                moved = 14 if ahead else -14
                arrow = {"arrowstyle": "->", "color": INK, "linewidth": 0.9}
                axes.annotate(
                    "", low, xytext=(moved, 0), textcoords="offset points", arrowprops={**arrow, "arrowstyle": "<-"}
                )
        else:
            axes.plot(*zip(low, high, strict=True), color=INK, linewidth=4, alpha=0.35, zorder=6)

    def finish(self) -> None:
        """Draws the bands of bounds, which extend to the limits of the axes."""
        for axes, mark, start, end in self._later:
            bottom, top = axes.get_ylim()
            limits = axes.get_xlim()
            reach = top if mark.bound in (">", ">=") else bottom
            axes.fill_between([start, end], mark.low, reach, color=INK, alpha=0.09, linewidth=0, zorder=1)
            axes.set_ylim(bottom, top)
            axes.set_xlim(limits)

    def handles(self) -> Iterable[Artist]:
        """The legend's entries."""
        if "number" in self._has:
            yield _entry(PAPER, "published")
        if "relative" in self._has:
            yield _entry(RELATIVE, "published gain")
        if "band" in self._has:
            yield Patch(facecolor=INK + "22", edgecolor=INK, label="published range")

    def _note(self, mark: Mark) -> None:
        self.claims.add(mark.claim.id)
        is_number = mark.low == mark.high and mark.bound is None
        self._has.add("band" if not is_number else "relative" if mark.relative else "number")

    def _bound(self, axes: Axes, mark: Mark, start: float, end: float) -> None:
        """Leaves room on the accepted side of a bound; its band is drawn last."""
        beyond = 1.15 if mark.bound in (">", ">=") else 0.9
        axes.update_datalim([(start, beyond * mark.low)])
        axes.autoscale_view(scalex=False)
        self._later.append((axes, mark, start, end))

    def _diamond(self, axes: Axes, mark: Mark, x: float, y: float, color: str = PAPER) -> None:
        face = RELATIVE if mark.relative and color == PAPER else color
        axes.plot(
            [x], [y], "D", color=face, markeredgecolor=INK, markersize=4.5, markeredgewidth=0.9, zorder=8, clip_on=False
        )


def _entry(color: str, label: str) -> Line2D:
    return Line2D([], [], marker="D", linestyle="", color=color, markeredgecolor=INK, markersize=4.5, label=label)
