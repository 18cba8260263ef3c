"""Marks at one point: those below are larger, so that each is seen around those above it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

COVERED = "a mark around another: at the same point"
"""What a figure with such marks says."""
_SEEN_PT = 1.5
"""Less of a mark beside the one above it is not seen."""
_RING_PT = 5.0
_MOST = 500
"""Most marks of an axes that are compared: among more there is no room for larger ones."""


def uncover(axes: Axes, marks: Sequence[tuple[str, Line2D]]) -> bool:
    """Enlarges marks below those of another arm, given as (arm, its marks); tells whether there are any.

    The axes have their final limits.
    """
    # In matplotlib's order: by zorder, and among equals as they were drawn.
    drawn = sorted(marks, key=lambda one: one[1].get_zorder())
    points = [_in_points(axes, line) for _, line in drawn]
    if not 1 < sum(map(len, points)) <= _MOST:
        return False
    found = False
    for at, (arm, line) in enumerate(drawn):
        rings = np.zeros(len(points[at]), dtype=np.int64)
        for (other, above), places in zip(drawn[at + 1 :], points[at + 1 :], strict=True):
            if other != arm:
                seen_pt = _SEEN_PT + (above.get_markersize() - line.get_markersize()) / 2
                apart = np.hypot(*(points[at][:, None, :] - places[None, :, :]).transpose(2, 0, 1))
                rings += (apart < seen_pt).any(axis=1)
        if rings.any():
            found = True
            _enlarge(axes, line, rings)
    return found


def _in_points(axes: Axes, line: Line2D) -> npt.NDArray[np.float64]:
    pixels = axes.transData.transform(np.column_stack([line.get_xdata(), line.get_ydata()]).astype(np.float64))
    places: npt.NDArray[np.float64] = pixels * 72.0 / axes.get_figure(root=True).dpi  # type: ignore[union-attr]
    return places


def _enlarge(axes: Axes, line: Line2D, rings: npt.NDArray[np.int64]) -> None:
    """Makes marks larger by the rings that are around others; the line keeps its name and its smallest marks."""
    x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    size, zorder, part = line.get_markersize(), line.get_zorder(), line
    for count in np.unique(rings):
        if count > rings.min():
            (part,) = axes.plot([], [])
            part.update_from(line)
            part.set_label("_nolegend_")
        part.set_data(x[rings == count], y[rings == count])
        # Below all that is above the line itself.
        part.set(markersize=size + _RING_PT * count, zorder=zorder - 0.01 * count, clip_on=not count)
