"""``sojourn report``: writes a page of the results in a directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sojourn.cli.outcome import FAILED, Stopped
from sojourn.storage import write_failed


def command(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A directory that run, compare, study run or agree wrote with --out.")
    ],
) -> None:
    """Write DIR/report.html: experiment, figures, tables, published values."""
    from sojourn.report import write_report

    try:
        print(write_report(directory))
    except OSError as error:
        raise Stopped(FAILED, write_failed(directory, error)) from None
