"""Converts the results in a directory to the formats of other tools.

- ``export``: writes DIR/FORMAT/… in one of ``FORMATS``, or the figures as ``PICTURES``
- ``not_recorded``: the tables that are missing for some arms, because these did not record them
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from sojourn._core import ExperimentError
from sojourn.export import columnar, events, flent, mahimahi
from sojourn.figure.filenames import FORMATS as PICTURES
from sojourn.figure.filenames import WIDTHS_IN
from sojourn.files.storage import Staging
from sojourn.files.typed import must_be
from sojourn.frame.results import Results
from sojourn.store.folder import baseline_of, load
from sojourn.store.tablefiles import TABLE_FILES

__all__ = ["FORMATS", "PICTURES", "export", "not_recorded"]

FORMATS: dict[str, Callable[[Results, Staging], list[Path]]] = {
    "csv": columnar.stage_csv,
    "events": events.stage,
    "flent": flent.stage,
    "latex": columnar.stage_latex,
    "mahimahi": mahimahi.stage,
    "parquet": columnar.stage_parquet,
}


def export(
    directory: str | Path, format: str, *, width: str | None = None, metrics: Sequence[str] | None = None
) -> list[Path]:
    """Converts a directory that ``Results.save`` wrote to another format, in a subfolder named so; returns the files.

    ``"csv"`` and ``"parquet"``: tables of runs, flows and recordings, with units in the column names; ``"flent"``: a
    data file of Flent for every run, from its recorded series; ``"events"``: the packets of every queue for
    ``sojourn.replay``; ``"mahimahi"``: the same as logs of mm-link; ``"latex"``: the tables of medians and intervals,
    and those of differences if the directory has differences.csv, with the columns ``metrics`` if they are given, named
    as for ``Results.paired``; ``"pdf"``, ``"svg"`` and ``"png"``: the figures, of a ``width`` as in ``Results.plot``.

    Raises ExperimentError if the format is unknown or the results lack what it needs, OSError if the files cannot be
    written, OutputError if a file that Sojourn did not write, or that was changed since, would be replaced.
    """
    must_be(format, (*FORMATS, *PICTURES), "--format")
    if width is not None:
        must_be(width, WIDTHS_IN, "--width")
    if width is not None and format not in PICTURES:
        raise ExperimentError(f'--width: got "{width}"; needs a --format of figures: {", ".join(PICTURES)}')
    if metrics is not None and format != "latex":
        raise ExperimentError(f'--metrics: got "{",".join(metrics)}"; needs --format latex')
    folder = Path(directory)
    if not (folder / "summary.json").is_file():
        raise ExperimentError(f'export: got "{folder}"; must be a directory that sojourn run --out wrote')
    try:
        results = load(folder)
        if not results.runs:
            raise ExperimentError(f'export: got "{folder}"; it contains no finished run')
        with Staging(folder, by=format, replaces=(format,), inside=format) as staging:
            if format == "latex":
                return columnar.stage_latex(results, staging, baseline_of(folder), metrics)
            if format in PICTURES:
                return results.plot.save_all(staging, (format,), width)
            return FORMATS[format](results, staging)
    except (KeyError, TypeError, AttributeError) as error:
        raise ExperimentError(f"export: {folder}: the results are damaged: {error}") from None


def not_recorded(directory: str | Path) -> dict[str, list[str]]:
    """The arms without a table that other arms recorded, by the table's name."""
    results = load(directory)
    lacking = {Path(file).stem: results.lacking(name) for name, file in TABLE_FILES.items()}
    return {name: arms for name, arms in lacking.items() if arms}
