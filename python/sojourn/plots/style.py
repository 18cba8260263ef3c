"""One look for all figures: legible in print, distinguishable without colour."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from sojourn.storage import Staging

FORMATS = ("png", "svg", "pdf")
_UNDATED: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}

# Okabe and Ito's palette, which colour-blind readers can tell apart, without its yellow.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""One arm after the other."""
_DASHES = ("-", "--", "-.", ":")

_RC: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9,
    "figure.constrained_layout.use": True,
    "figure.dpi": 110,
    "font.size": 9,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
    "svg.hashsalt": "sojourn",
}


# What a legend in the house style takes: per row, per name without its letters, and per letter of it.
_ROW_IN, _NAME_IN, _LETTER_IN = 0.17, 0.45, 0.065


class Look(NamedTuple):
    """How one arm is drawn, in every figure the same."""

    color: str
    dashes: str


def looks(count: int) -> list[Look]:
    """``count`` looks, told apart by colour as well as by dashes; the first 28 are all different."""
    return list(islice(map(Look, cycle(COLORS), cycle(_DASHES)), count))


@contextmanager
def style() -> Iterator[None]:
    """The house style, for what is drawn inside."""
    with matplotlib.rc_context(_RC):
        yield


class StyledFigure(Figure):
    """A figure that keeps the house style when it is saved, and that a notebook shows by itself."""

    def savefig(self, fname: Any, **options: Any) -> None:
        """As matplotlib's; without a date, so that the same figure gives the same bytes."""
        kind = options.get("format") or Path(str(fname)).suffix.removeprefix(".") or "png"
        with style():
            super().savefig(fname, **{"metadata": _UNDATED.get(kind), **options})

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


def figure(width_in: float = 5.2, height_in: float = 3.4) -> Figure:
    """An empty figure; one column of a paper wide unless told otherwise."""
    return StyledFigure(figsize=(width_in, height_in))


def width_for(arms: int) -> float:
    """The width in inches of a figure with a place per arm."""
    return max(4.2, min(12.0, 1.4 + 0.65 * arms))


def name_ticks(axes: Axes, names: Sequence[str]) -> None:
    """Names the places 0, 1, … on the horizontal axis, slanted where they would run into each other."""
    crowded = max(map(len, names), default=0) * len(names) > 48
    axes.set_xticks(range(len(names)), names, rotation=35 if crowded else 0, ha="right" if crowded else "center")


def legend_above(drawn: Figure, axes: Axes) -> None:
    """A legend above the axes, in as many columns as the names leave room for; the figure grows by its height."""
    handles, names = axes.get_legend_handles_labels()
    if not names:
        return
    width_in, height_in = drawn.get_size_inches()
    columns = max(1, min(4, len(names), int(width_in / (_NAME_IN + _LETTER_IN * max(map(len, names))))))
    rows = math.ceil(len(names) / columns)
    drawn.set_size_inches(width_in, height_in + _ROW_IN * (rows - 1))
    drawn.legend(handles, names, loc="outside upper center", ncols=columns)


def save(staging: Staging, name: str, drawn: Figure) -> list[Path]:
    """Stages a figure as PNG, SVG and PDF."""
    return [staging.add(f"{name}.{kind}", partial(drawn.savefig, format=kind)) for kind in FORMATS]
