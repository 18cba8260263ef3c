"""The page: template, style, script, data and Plotly in one file."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import msgspec
from markupsafe import Markup

from sojourn import _core
from sojourn.frame.cells import CellTable
from sojourn.page.explorer.data import explored
from sojourn.page.html import template


def page(grid: CellTable, metrics: Sequence[str] | None = None) -> str:
    """The explorer of a grid, as HTML; ``metrics`` are columns of the store, by default all.

    Raises ExperimentError if there is no such metric, there are too many cells, or Plotly is not installed.
    """
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
