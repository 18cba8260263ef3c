"""Converts the results in a directory to the formats of other tools.

- ``export``: writes DIR/FORMAT/… in one of ``FORMATS``
- ``not_recorded``: the tables that are missing for some arms, because these did not record them
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sojourn._core import ExperimentError
from sojourn.export import columnar, events, flent, latex, mahimahi
from sojourn.files.storage import Staging
from sojourn.frame.results import Results
from sojourn.store.folder import load
from sojourn.store.tablefiles import TABLE_FILES

__all__ = ["FORMATS", "export", "not_recorded"]

FORMATS: dict[str, Callable[[Results, Staging], list[Path]]] = {
    "csv": columnar.stage_csv,
    "events": events.stage,
    "flent": flent.stage,
    "latex": latex.stage,
    "mahimahi": mahimahi.stage,
    "parquet": columnar.stage_parquet,
}
"""The function that writes each format."""


def export(directory: str | Path, format: str) -> list[Path]:
    """Converts a directory of results to another format, in a subfolder named after the format.

    Parameters
    ----------
    directory
        A directory written by ``Results.save`` or ``sojourn run --out``.
    format
        ``"csv"`` and ``"parquet"``: tables of runs, flows and recordings, with units in the column names; ``"flent"``:
        a data file of Flent for every run, from its recorded series; ``"events"``: the packets of every queue for
        ``sojourn.replay``; ``"mahimahi"``: the same as logs of mm-link; ``"latex"``: the tables of medians and
        intervals, for a paper.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    ExperimentError
        The format is unknown, the directory contains no results, or they lack data that the format needs.
    OSError
        The files cannot be written.
    OutputError
        A file that Sojourn did not write, or that was changed since, would be replaced.
    """
    if format not in FORMATS:
        raise ExperimentError(f'--format: got "{format}"; must be one of {", ".join(FORMATS)}')
    folder = Path(directory)
    if not (folder / "summary.json").is_file():
        raise ExperimentError(f'export: got "{folder}"; must be a directory that sojourn run --out wrote')
    try:
        results = load(folder)
        if not results.runs:
            raise ExperimentError(f'export: got "{folder}"; it contains no finished run')
        with Staging(folder, by=format, replaces=(format,), inside=format) as staging:
            return FORMATS[format](results, staging)
    except (KeyError, TypeError, AttributeError) as error:
        raise ExperimentError(f"export: {folder}: the results are damaged: {error}") from None


def not_recorded(directory: str | Path) -> dict[str, list[str]]:
    """The arms without a table that other arms recorded, by the table's name."""
    results = load(directory)
    lacking = {Path(file).stem: results.lacking(name) for name, file in TABLE_FILES.items()}
    return {name: arms for name, arms in lacking.items() if arms}
