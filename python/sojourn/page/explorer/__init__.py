"""A store as one page that opens from disk: its cells, template, style, script and Plotly in one file.

Its script draws with Plotly; it needs no network.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from markupsafe import Markup

from sojourn import _core
from sojourn.figure.style import DASHES, LOG_FROM, Look, looks, looks_of
from sojourn.frame.cells import LABEL, CellTable
from sojourn.frame.statistics import FloatArray, Intervals
from sojourn.page.html import template

DIGITS = 7  # more than are shown, so that nothing is rounded twice to what people read
MOST_CELLS = 100_000  # most cells of a page; a browser would become slow
_SYMBOLS = {
    "o": "circle", "s": "square", "D": "diamond", "^": "triangle-up", "v": "triangle-down", "P": "cross", "*": "star",
    "X": "x", "p": "pentagon", "h": "hexagon", "<": "triangle-left", ">": "triangle-right",
}  # fmt: skip
_DASHES = dict(zip(DASHES, ("solid", "dash", "dashdot", "dot", "longdash", "longdashdot"), strict=True))


def page(grid: CellTable, metrics: Sequence[str] | None = None) -> str:
    """The explorer of a grid, as HTML; ``metrics`` are columns of the store, by default all."""
    try:
        plotly = (resources.files("plotly") / "package_data" / "plotly.min.js").read_bytes()
    except (ModuleNotFoundError, FileNotFoundError):
        raise _core.ExperimentError("explore: needs the package plotly: pip install 'sojourn[explore]'") from None
    data = explored(grid, metrics)
    templates = Path(__file__).parent / "templates"
    style, script = (Markup((templates / name).read_text(encoding="utf-8")) for name in ("explorer.css", "explorer.js"))
    return template("sojourn.page.explorer", "explorer.html").render(
        data=data,
        style=style,
        script=script,
        plotly=_packed(plotly),
        cells=_packed(msgspec.json.encode(data)),
        count=len(grid),
    )


def _packed(content: bytes) -> str:
    """Bytes as the page holds them: gzip, in base64. The same bytes give the same text."""
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode("ascii")


def explored(grid: CellTable, metrics: Sequence[str] | None) -> dict[str, Any]:
    """Everything that the page shows of a grid."""
    if len(grid) > MOST_CELLS:
        raise _core.ExperimentError(
            f"explore: would have {len(grid)} cells; must have at most {MOST_CELLS}: choose some of them with --where"
        )
    shown = [grid.column(name, "--metrics") for name in (grid.metrics if metrics is None else metrics)]
    labels = grid.axes[LABEL].texts
    others = looks(12)
    known = looks_of([grid.discipline(label) for label in labels])
    return {
        "name": grid.name,
        "runs": grid.runs,
        "version": _core.version,
        "log_from": LOG_FROM,
        "keys": [
            {
                "key": key,
                "words": axis.words,
                "label": axis.axis_label,
                "texts": axis.texts,
                "numbers": None if axis.numbers is None else _rounded(axis.numbers, 12),
                "indices": grid.indices(key).tolist(),
            }
            for key, axis in grid.axes.items()
        ],
        "looks": [_look(look) for look in known],
        "palette": [_look(look) for look in others],
        "metrics": [
            {"name": one.name, "words": one.words, "unit": one.unit, "per": one.per} | _figures(grid.intervals(one))
            for one in shown
        ],
    }


def _look(look: Look) -> dict[str, str]:
    return {"color": look.color, "dash": _DASHES[look.dashes], "symbol": _SYMBOLS[look.marker]}


def _figures(found: Intervals) -> dict[str, Any]:
    counts = found.n.tolist()
    # All counts, or the only one that there is.
    figures: dict[str, Any] = {"middle": _rounded(found.middle), "n": counts[0] if len(set(counts)) == 1 else counts}
    if found.n.size and found.n.max() > 1:
        figures |= {"low": _rounded(found.low), "high": _rounded(found.high)}
    return figures


def _rounded(values: FloatArray, digits: int = DIGITS) -> list[float | int | None]:
    """Numbers with some significant digits; None if there is none."""
    # Whole numbers without a decimal point: there are many, and they are shorter.
    texts = np.char.mod(f"%.{digits}g", values)
    return [
        None if not known else int(number) if (number := float(text)).is_integer() and abs(number) < 1e15 else number
        for text, known in zip(texts.tolist(), np.isfinite(values).tolist(), strict=True)
    ]
