"""One self-contained HTML page about the results in a directory: experiment, figures, tables, published values.

- ``write_report``: writes DIR/report.html for the results of ``sojourn run``, ``compare``, ``study run`` or ``agree``
"""

from __future__ import annotations

from pathlib import Path

from sojourn._core import ExperimentError
from sojourn.report import agreement, experiment, study
from sojourn.report.page import render
from sojourn.storage import Staging

__all__ = ["write_report"]

FILE = "report.html"


def write_report(directory: str | Path) -> Path:
    """Writes the report of a directory of results into this directory.

    Returns
    -------
    Path
        The page, report.html.

    Raises
    ------
    ExperimentError
        The directory contains no results, or they cannot be read.
    OSError
        The page cannot be written.
    OutputError
        There is a report.html that Sojourn did not write, or that was changed since.
    """
    folder = Path(directory)
    if not folder.is_dir():
        raise ExperimentError(f'report: got "{folder}"; must be a directory that sojourn run, study run or agree wrote')
    sections = [room for room in (study, agreement, experiment) if (folder / room.NEEDS).is_file()]
    if not sections:
        needed = ", ".join(room.NEEDS for room in (experiment, study, agreement))
        raise ExperimentError(f'report: got "{folder}"; it contains no results: none of {needed}')
    try:
        contexts = [room.context(folder) for room in sections]
    except (LookupError, TypeError, AttributeError) as error:
        raise ExperimentError(f"report: {folder}: the results are damaged: {_named(error)}") from None
    with Staging(folder, by="report") as staging:
        return staging.add_text(FILE, render(contexts))


def _named(error: Exception) -> str:
    return f"there is no {error}" if isinstance(error, KeyError) else str(error)
