"""``sojourn report``: writes a page of the results in a directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from sojourn._core import ExperimentError
from sojourn.cli.output import writing
from sojourn.cli.parameters import argument
from sojourn.files.storage import Staging
from sojourn.page.html import render
from sojourn.store import section as experiment
from sojourn.studies import section as study
from sojourn.studies.agreement import section as agreement

FILE = "report.html"


def command(
    directory: Annotated[Path, argument("A directory that run, compare, study run or agree wrote with --out.", "DIR")],
) -> None:
    """Write DIR/report.html: experiment, figures, tables, published values."""
    with writing(directory):
        print(write_report(directory))


def write_report(directory: str | Path) -> Path:
    """Writes report.html into a directory of results, and returns its path.

    Raises ExperimentError if there are no results or they cannot be read, OSError if the page cannot be written, and
    OutputError if there is a report.html that Sojourn did not write, or that was changed since.
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
        what = f"there is no {error}" if isinstance(error, KeyError) else error
        raise ExperimentError(f"report: {folder}: the results are damaged: {what}") from None
    with Staging(folder, by="report") as staging:
        return staging.add_text(FILE, render(contexts))
