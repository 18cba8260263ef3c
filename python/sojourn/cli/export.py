"""``sojourn export``: results in the formats of other tools."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from sojourn.cli.options import Width
from sojourn.cli.output import writing
from sojourn.cli.parameters import argument, option
from sojourn.export import FORMATS, export, not_recorded


def command(
    directory: Annotated[Path, argument("A directory that run or compare wrote with --out.", "DIR")],
    format: Annotated[
        str, option("csv, events, flent, latex, mahimahi, parquet; figures as pdf, svg, png.", among=FORMATS)
    ],
    width: Width = None,
    metrics: Annotated[str | None, option("Of latex: the columns of its tables, with commas.", "NAMES")] = None,
) -> None:
    """Write results into DIR/FORMAT: tables, figures for a paper, events for replay, files of Flent and mahimahi."""
    with writing(directory / format):
        written = export(directory, format, width=width, metrics=metrics and metrics.split(","))
    for path in written:
        print(path)
    for table, arms in not_recorded(directory).items():
        print(f"{table}: without {'; '.join(arms)}, which did not record it", file=sys.stderr)
