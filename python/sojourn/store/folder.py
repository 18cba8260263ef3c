"""The folder of results that ``run --out`` writes: ``save`` writes one, ``load`` reads it."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import cast

from sojourn import schema
from sojourn._core import ExperimentError
from sojourn.files import bounded, typed
from sojourn.files.manifest import Manifest
from sojourn.files.storage import Staging
from sojourn.frame.arrow import csv_text, plain
from sojourn.frame.later import pa
from sojourn.frame.pairs import difference_rows
from sojourn.frame.results import Recorded, Results, Run
from sojourn.store.tablefiles import FILES, TABLE_FILES, TableFiles, TableRows, kind_of, own_columns

SMALL_FILES = ("summary.json", "summary.csv", "differences.csv", "experiment.json")
"""The most important files of an experiment."""
BY = "results"
"""The writers, in the list of our files, of an experiment's files and of files made from them."""
MADE_OF_RESULTS = (BY, "report", "csv", "parquet", "flent", "events", "latex", "mahimahi", "pdf", "svg", "png")


def save(results: Results, directory: str | Path, *, plots: bool, formats: Sequence[str]) -> list[Path]:
    """Writes the results; ``Results.save`` describes it."""
    with Staging(Path(directory), by=BY, replaces=MADE_OF_RESULTS) as staging:
        written = stage_small(results, staging)
        with TableFiles(staging) as files:
            for run in results.runs:
                files.add(run)
        files.check()
        return written + files.paths + (results.plot.save_all(staging, formats) if plots else [])


def stage_small(results: Results, staging: Staging, baseline: str | None = None) -> list[Path]:
    """Stages ``SMALL_FILES``, summary.json first; differences.csv if there is a baseline."""
    written = [staging.add_text("summary.json", results.to_json())]
    tables = {"summary.csv": results.rows()} if results.runs else {}
    if baseline is not None and (differences := difference_rows(results, baseline)):
        tables["differences.csv"] = differences
    written += [staging.add_text(name, csv_text(rows)) for name, rows in tables.items()]
    if results.resolved_json is not None:
        written.append(staging.add_text("experiment.json", results.resolved_json))
    return written


def baseline_of(directory: Path) -> str | None:
    """What the folder's differences.csv compares with; None if it has no differences."""
    try:
        with (directory / "differences.csv").open(encoding="utf-8", newline="") as file:
            first = next(csv.DictReader(file), {})
    except FileNotFoundError:
        return None
    name = first.get("baseline")
    return name[1:] if name and plain(name[1:]) == name else name


def load(directory: str | Path) -> Results:
    """Reads results written by ``Results.save`` or ``sojourn run --out``.

    Parameters
    ----------
    directory
        The output directory, or its summary.json.

    Raises
    ------
    NoResultsError
        There is no such file. This is also a FileNotFoundError.
    ExperimentError
        It does not contain results, or those of a newer version, or files of two experiments.
    OSError
        It cannot be read.
    """
    path = Path(directory)
    folder = path.parent if path.name == "summary.json" and not path.is_dir() else path
    if not (folder / "summary.json").exists():
        what = "there is no summary.json in it" if folder.is_dir() else "there is no such folder"
        raise NoResultsError(f'load: got "{path}"; {what}: must be a folder that sojourn run --out wrote')
    is_ours = _listed(folder)
    summary = _read_summary(folder / "summary.json")

    tables = {name: TableRows(folder / file) for name, file in TABLE_FILES.items() if is_ours(file)}

    def reader(index: int) -> Callable[[Recorded], pa.Table | None]:
        return lambda name: None if name == "completions" or name not in tables else _load_table(tables[name], index)

    resolved = folder / "experiment.json"
    return Results(
        summary,
        [
            Run(run, reader(index), partial(_load_files, folder, index, is_ours))
            for index, run in enumerate(summary["runs"])
        ],
        bounded.read_text(resolved, bounded.LARGEST_RESULTS) if resolved.exists() and is_ours(resolved.name) else None,
    )


class NoResultsError(ExperimentError, FileNotFoundError):
    """There are no results at this place."""

    def __str__(self) -> str:
        return str(self.args[0])


def _listed(folder: Path) -> Callable[[str], bool]:
    """Tells whether a file belongs to the results: by the folder's list, or by its name if that lacks the results.

    The list lacks them in a copy without hidden files to which a report was added.
    """
    manifest = Manifest.read(folder)
    if manifest.is_mixed(BY):
        raise ExperimentError(
            f"{folder}: has files of old and of new results, since the process that replaced them was killed; "
            f"run the experiment again"
        )
    return manifest.entries.__contains__ if "summary.json" in manifest.entries else lambda _: True


def _read_summary(path: Path) -> schema.Summary:
    summary = typed.read_json(path)
    found = summary.get("format", schema.FORMAT) if isinstance(summary, dict) else schema.FORMAT
    if isinstance(found, int) and found > schema.FORMAT:
        raise ExperimentError(
            f"{path}: has format {found}, newer than this version of sojourn reads, which is {schema.FORMAT}"
        )
    if found != schema.FORMAT:
        raise ExperimentError(f"{path}: the results are damaged: format is {found!r}, must be {schema.FORMAT}")
    try:
        typed.convert(summary, schema.Summary)
    except ValueError as error:
        raise ExperimentError(f"{path}: the results are damaged: {error}") from None
    return cast("schema.Summary", summary)


def _load_files(folder: Path, run: int, is_ours: Callable[[str], bool]) -> dict[str, bytes]:
    """A run's capture and qlogs."""
    found = {}
    for pattern in FILES.values():
        for path in sorted(folder.glob(pattern.replace("*", f"{run}_*"))):
            if is_ours(path.name):
                flow = re.search(r"_flow_\d+$", path.stem)
                name = f"{kind_of(path.name)}_*{flow[0] if flow and path.suffix == '.sqlog' else ''}{path.suffix}"
                found[name] = path.read_bytes()
    return found


def _load_table(rows: TableRows, run: int) -> pa.Table | None:
    if not rows.path.exists():
        return None
    try:
        table = rows.of_run(run)
    except (pa.ArrowInvalid, KeyError, pa.ArrowNotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise ExperimentError(f"{rows.path}: the results are damaged: {' '.join(str(error).split())[:200]}") from None
    return None if table is None else own_columns(table)
