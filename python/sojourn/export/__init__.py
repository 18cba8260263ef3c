"""Results in the formats of other tools, from what ``--out`` wrote.

- ``export``: writes DIR/FORMAT/… in one of ``FORMATS``
- ``not_recorded``: what it leaves out, because not all arms recorded it
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sojourn._core import ExperimentError
from sojourn.export import columnar, flent
from sojourn.results import TABLE_FILES, Results, load
from sojourn.storage import Staging

__all__ = ["FORMATS", "export", "not_recorded"]

FORMATS: dict[str, Callable[[Results, Staging], list[Path]]] = {
    "csv": columnar.stage_csv,
    "flent": flent.stage,
    "parquet": columnar.stage_parquet,
}
"""What writes each format."""


def export(directory: str | Path, format: str) -> list[Path]:
    """Writes a directory of results in another format, into a folder of it that is called like the format.

    Parameters
    ----------
    directory
        What ``Results.save`` or ``sojourn run --out`` wrote.
    format
        ``"csv"`` and ``"parquet"``: runs, flows and everything recorded as tables, units in the column names;
        ``"flent"``: a data file of Flent for every run, from its recorded series.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    ExperimentError
        There is no such format, the directory holds no results, or they lack what the format needs.
    OSError
        The files cannot be written.
    OutputError
        A file would be replaced that is not ours, or was changed since.
    """
    if format not in FORMATS:
        raise ExperimentError(f'--format: got "{format}"; must be one of {", ".join(FORMATS)}')
    folder = Path(directory)
    if not (folder / "summary.json").is_file():
        raise ExperimentError(f'export: got "{folder}"; must be a directory that sojourn run --out wrote')
    try:
        results = load(folder)
        if not results.runs:
            raise ExperimentError(f'export: got "{folder}"; it holds no finished run')
        with Staging(folder, by=format, replaces=(format,), inside=format) as staging:
            return FORMATS[format](results, staging)
    except (KeyError, TypeError, AttributeError) as error:
        raise ExperimentError(f"export: {folder}: the results are damaged: {error}") from None


def not_recorded(directory: str | Path) -> dict[str, list[str]]:
    """The arms without a table that others recorded, by the table's name."""
    results = load(directory)
    lacking = {Path(file).stem: results.lacking(name) for name, file in TABLE_FILES.items()}
    return {name: arms for name, arms in lacking.items() if arms}
