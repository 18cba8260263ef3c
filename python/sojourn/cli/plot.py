"""``sojourn plot``: draws the runs of a store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from sojourn import _core
from sojourn.cli.options import StoreFolder, Width
from sojourn.cli.outcome import complain
from sojourn.cli.output import write
from sojourn.cli.parameters import flag, option
from sojourn.figure.filenames import FORMATS, WIDTHS_IN
from sojourn.figure.style import content
from sojourn.files.typed import must_be
from sojourn.store import Store
from sojourn.store.cells import Grid

DELAY, GOODPUT = "sojourn_p95_ms", "goodput_bps"

Where = Annotated[
    str | None, option("Draw only these rows of queues: \"aqm = 'codel' and direction = 'down'\".", "SQL")
]


Kind = Literal["heatmap", "lines", "pareto", "surface", "sensitivity"]


def command(
    store: StoreFolder,
    kind: Annotated[
        Kind, option("Colours or contours over two keys, lines over one, goodput against delay, or indices.")
    ],
    out: Annotated[Path, option("The file to write: .png, .pdf or .svg.", "FILE")],
    x: Annotated[str | None, option("A swept key, link.rate, or label. For pareto a metric.", "KEY")] = None,
    y: Annotated[
        str | None, option("A second key; for lines, draws one line per value: label. For pareto a metric.", "KEY")
    ] = None,
    metric: Annotated[str, option("The metric to draw over the keys: a column of the store.", "NAME")] = DELAY,
    where: Where = None,
    pool: Annotated[bool, flag("Combine the runs of all values of the other swept keys.", "--pool")] = False,
    width: Width = None,
) -> None:
    """Draw a store: a metric over swept keys, a panel per queue and combination of the other keys."""
    suffix = out.suffix.removeprefix(".").lower()
    if suffix not in FORMATS:
        raise _core.ExperimentError(f'--out: got "{out}"; must end with .{", .".join(FORMATS)}')
    if kind not in ("pareto", "sensitivity") and (x is None or (y is None and kind != "lines")):
        raise _core.ExperimentError(f"plot: {kind} needs {'--x' if x is None else '--y'}, a swept key or label")
    wide: Any = width
    if width is not None:
        must_be(width, WIDTHS_IN, "--width")

    draw = Grid(Store(store, say=complain), where).plot
    if kind == "pareto":
        drawn = draw.pareto(x or DELAY, y or GOODPUT, pool=pool, width=wide)
    elif kind == "sensitivity":
        drawn = draw.sensitivity(metric, width=wide)
    elif kind == "lines":
        drawn = draw.lines(x or "", y or "label", metric, pool=pool, width=wide)
    else:
        drawn = getattr(draw, kind)(x, y, metric, pool=pool, width=wide)
    write(out, content(drawn, suffix))
    print(out)
