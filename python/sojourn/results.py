"""The results of an experiment, returned by ``run`` and ``compare`` and read by ``load``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from sojourn import bounded, schema, typed
from sojourn._core import ExperimentError
from sojourn.bounded import LARGEST_RESULTS
from sojourn.filenames import DEFAULT_FORMATS
from sojourn.groups import GroupIndex
from sojourn.manifest import Manifest
from sojourn.metrics import Metric, columns, has_queue, queue_at, queues
from sojourn.storage import Staging, file_name
from sojourn.swept import number_columns, setting_text

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd
    import pyarrow as pa
    from rich.table import Table

    from sojourn.plots import Plots

Direction = Literal["down", "up"]
TableName = Literal["packets", "queue_series", "flow_series", "rtts", "medium", "histogram"]
Recorded = TableName | Literal["completions"]

TABLE_FILES: dict[TableName, str] = {
    "packets": "packets.parquet",
    "queue_series": "series.parquet",
    "flow_series": "flow_series.parquet",
    "rtts": "rtts.parquet",
    "medium": "medium.parquet",
    "histogram": "histograms.parquet",
}
"""The file of each recorded table, beside summary.json."""

RECORDED: tuple[Recorded, ...] = (*TABLE_FILES, "completions")
"""All recorded tables."""

IF_ASKED_FOR = frozenset({"packets", "queue_series", "flow_series", "rtts", "medium"})
"""Tables that exist only if the experiment records them."""

SMALL_FILES = ("summary.json", "summary.csv", "differences.csv", "experiment.json")
"""The most important files of an experiment."""

BY = "results"
"""The writers, in the list of our files, of an experiment's files and of files made from them."""
MADE_OF_RESULTS = (BY, "report", "csv", "parquet", "flent", "events")


@dataclass(frozen=True)
class Run:
    """One run: a queue under one seed in one cell of the sweep."""

    summary: schema.Run
    """The run's element of ``runs`` in summary.json."""
    read_table: Callable[[Recorded], pa.Table | None]
    """Returns its recorded tables."""
    read_capture: Callable[[], bytes | None] = lambda: None
    """Returns its capture."""

    @property
    def label(self) -> str:
        """The arm's name."""
        return self.summary["label"]

    @property
    def seed(self) -> int:
        """The run's seed."""
        return self.summary["seed"]

    def sojourn_ms(self, place: str = "down") -> schema.Distribution:
        """Sojourn times of the packets that left the queue at a place after the warm-up, in ms."""
        return queue_at(self.summary, place)["sojourn_ms"]

    def packets(self) -> pa.Table | None:
        """A row per packet at the queue; None unless ``[record] packets = true``."""
        return self.read_table("packets")

    def capture(self) -> bytes | None:
        """Headers of the packets at the bottleneck, a pcapng file; None unless ``[record] pcap = true``."""
        return self.read_capture()

    def queue_series(self) -> pa.Table | None:
        """The queue in bins of time; None unless ``[record] series`` was set."""
        return self.read_table("queue_series")

    def flow_series(self) -> pa.Table | None:
        """Every flow in bins of time; None unless ``[record] series`` was set."""
        return self.read_table("flow_series")

    def rtts(self) -> pa.Table | None:
        """A row per round-trip time measured by a flow; None unless ``[record] rtt = true``."""
        return self.read_table("rtts")

    def medium(self) -> pa.Table | None:
        """A row per transmission in a cell of Wi-Fi; None unless ``[record] medium = true``."""
        return self.read_table("medium")

    def histogram(self) -> pa.Table | None:
        """Sojourn times after the warm-up: a row per direction and non-empty bucket, ``sojourn_ms`` its upper edge.

        None if the results lack their file.
        """
        return self.read_table("histogram")


@dataclass(frozen=True)
class Arm:
    """The repeats of one queue in one cell of the sweep."""

    label: str
    set: dict[str, object]
    """The swept keys and their values in this cell."""
    runs: tuple[Run, ...]

    @property
    def name(self) -> str:
        """Label and swept values by their keys: ``codel, link.rate 10 Mbit/s``."""
        return ", ".join([self.label, *(f"{key} {value}" for key, value in self.set.items())])

    @property
    def title(self) -> str:
        """Label and swept values in words, for figures: ``codel, rate 10 Mbit/s``."""
        return ", ".join(filter(None, [self.label, setting_text(self.set)]))

    @property
    def discipline(self) -> str:
        """The name of its queue discipline."""
        return self.runs[0].summary["queue"]


class Results:
    """All runs of an experiment, with tables and figures.

    Examples
    --------
    >>> import sojourn as sj
    >>> results = sj.compare("pfifo", "codel", rate="10 Mbit/s", rtt="40 ms", duration="5 s")
    >>> [arm.label for arm in results.arms]
    ['pfifo', 'codel']
    """

    def __init__(self, summary: schema.Summary, runs: Sequence[Run], resolved_json: str | None = None) -> None:
        self.summary = summary
        """The document that ``--json`` prints."""
        self.runs = tuple(runs)
        """All runs: cells of the sweep in file order, then seeds, then queues."""
        self.resolved_json = resolved_json
        """The experiment with every default filled in; None if not known."""

    @property
    def partial(self) -> bool:
        """True if the experiment was stopped before all its runs were done."""
        return self.summary.get("partial", False)

    @property
    def missed(self) -> list[str]:
        """The metrics that did not become as precise as requested, a line per queue and cell."""
        until = self.summary.get("until")
        return [] if until is None else until["missed"]

    @cached_property
    def arms(self) -> tuple[Arm, ...]:
        """The runs grouped by queue and cell of the sweep, in the order of the file."""
        groups: dict[str, list[Run]] = {}
        for run in self.runs:
            groups.setdefault(json.dumps([run.summary["set"], run.label]), []).append(run)
        return tuple(Arm(runs[0].label, runs[0].summary["set"], tuple(runs)) for runs in groups.values())

    def by_cell(self) -> dict[str, Results]:
        """The results of each cell of the sweep, by its swept values: ``link.rate 10 Mbit/s``; one without a sweep."""
        cells: dict[str, list[Run]] = {}
        for run in self.runs:
            name = ", ".join(f"{key} {value}" for key, value in run.summary["set"].items())
            cells.setdefault(name, []).append(replace(run, summary={**run.summary, "set": {}}))
        return {
            name: Results({**self.summary, "runs": [run.summary for run in runs]}, runs) for name, runs in cells.items()
        }

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The directions in which the first link under test has a queue."""
        both: tuple[Direction, ...] = ("down", "up")
        return tuple(d for d in both if any(has_queue(run.summary, d) for run in self.runs))

    @property
    def has_several_links(self) -> bool:
        """True if the experiment has several links."""
        return any(len(run.summary["links"]) > 1 for run in self.runs)

    @cached_property
    def places(self) -> tuple[str, ...]:
        """All queues: ``down`` and ``up``; with several links ``home/down`` and so on, link by link."""
        return tuple(dict.fromkeys(place for run in self.runs for place in queues(run.summary)))

    @cached_property
    def groups(self) -> GroupIndex:
        """The figures of the groups of flows, by name."""
        return GroupIndex(self)

    def table(self) -> Table:
        """One row per arm: the median over repeats with its 95 % confidence interval."""
        from sojourn.tables import results_table

        return results_table(self)

    def paired(self, baseline: str, metrics: Sequence[str] | None = None) -> Table:
        """The difference of every other queue from the one labelled ``baseline``, on the same seeds.

        ``metrics`` are names as for ``plot.bars``, also of groups of flows: ``["sojourn_p95_ms", "mos"]``; by default
        the columns of the table.

        Raises
        ------
        ExperimentError
            No queue has this label.
        ValueError
            There is no such metric.
        """
        from sojourn.metrics import metric_called
        from sojourn.paired import paired_sheet
        from sojourn.tables import as_table

        chosen = None if metrics is None else [metric_called(name, self) for name in metrics]
        return as_table(paired_sheet(self, baseline, chosen))

    def __str__(self) -> str:
        from sojourn.tables import groups_table, inner_table, plain
        from sojourn.wifi import stations_table

        tables = [self.table(), groups_table(self), stations_table(self), inner_table(self)]
        return "\n".join(plain(table) for table in tables if table is not None)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from sojourn.tables import groups_sheet, inner_sheet, results_sheet, sheet_html
        from sojourn.wifi import stations_sheet

        sheets = [results_sheet(self), groups_sheet(self), stations_sheet(self), inner_sheet(self)]
        return "\n".join(sheet_html(sheet) for sheet in sheets if sheet is not None)

    def __repr__(self) -> str:
        return f"<Results of {self.summary['experiment']!r}: {len(self.runs)} runs of {len(self.arms)} arms>"

    def to_arrow(self) -> pa.Table:
        """One row per run, link and direction; units are in the column names.

        A swept key has a column with the text of the file, ``link.rate``, and a numeric one, ``link.rate_bps``. The
        figures of a group of flows are in columns such as ``movie.rtt_p50_ms``, the same in both rows of a run, and
        those of an inner queue in ``queue.sparse.sojourn_p95_ms``.
        """
        return _table_of([row for run in self.runs for row in self.rows_of(run)])

    def to_pandas(self) -> pd.DataFrame:
        """``to_arrow`` as a pandas frame; pandas must be installed."""
        return cast("pd.DataFrame", self.to_arrow().to_pandas())

    def to_frame(self, metrics: Sequence[str] | None = None) -> pd.DataFrame:
        """Medians over the repeats with their 95 % intervals, one row per arm and queue; pandas must be installed.

        A metric (by default every column of ``to_arrow``) has three columns: ``sojourn_p95_ms`` is the median,
        ``sojourn_p95_ms_low`` and ``sojourn_p95_ms_high`` are the ends of the interval, the same for one repeat.

        Raises
        ------
        ValueError
            There is no such metric.
        """
        from sojourn.metrics import metric_called
        from sojourn.statistics import median_interval

        chosen = self._columns if metrics is None else [metric_called(name, self) for name in metrics]
        rows = []
        for arm in self.arms:
            for place in self.places:
                if has_queue(arm.runs[0].summary, place):
                    link, _, direction = place.rpartition("/")
                    row: dict[str, Any] = {"label": arm.label} | arm.set | number_columns(arm.set)
                    row |= ({"link": link} if link else {}) | {"direction": direction, "repeats": len(arm.runs)}
                    for metric in chosen:
                        found = median_interval([metric.value(run.summary, place) for run in arm.runs])
                        row |= {metric.name: found.middle}
                        row |= {f"{metric.name}_low": found.low, f"{metric.name}_high": found.high}
                    rows.append(row)
        return cast("pd.DataFrame", _table_of(rows).to_pandas())

    def rows_of(self, run: Run) -> Iterator[dict[str, Any]]:
        """The rows of a run in ``to_arrow``, as dictionaries. Figures that only other runs have are NaN."""
        settings = run.summary["set"]
        numbers = number_columns(settings)
        for place in self.places:
            if has_queue(run.summary, place):
                row: dict[str, Any] = {key: run.summary[key] for key in ("queue", "label", "seed")}
                row |= {key: value if isinstance(value, int | float) else str(value) for key, value in settings.items()}
                row |= {name: number for name, number in numbers.items() if name not in row}
                link, _, row["direction"] = place.rpartition("/")
                if link:
                    row["link"] = link
                yield row | {metric.name: metric.value(run.summary, place) for metric in self._columns}

    @cached_property
    def _columns(self) -> Sequence[Metric]:
        return columns(self)

    def packets(self) -> pa.Table | None:
        """The packet tables of all runs, concatenated, with the columns ``run``, ``label`` and ``seed`` first."""
        return self.recorded("packets")

    def queue_series(self) -> pa.Table | None:
        """The queue series of all runs, as in ``packets``."""
        return self.recorded("queue_series")

    def flow_series(self) -> pa.Table | None:
        """The flow series of all runs, as in ``packets``."""
        return self.recorded("flow_series")

    def rtts(self) -> pa.Table | None:
        """The round-trip times of all runs, as in ``packets``."""
        return self.recorded("rtts")

    def medium(self) -> pa.Table | None:
        """The transmissions of all runs, as in ``packets``."""
        return self.recorded("medium")

    def histogram(self) -> pa.Table | None:
        """The histograms of sojourn times of all runs, as in ``packets``."""
        return self.recorded("histogram")

    def recorded(self, name: TableName) -> pa.Table | None:
        """A recorded table of all runs; None if it was not recorded. Columns are not copied.

        A column that only some runs have, such as the state of one discipline, is null for the others.
        """
        import pyarrow as pa

        tables = [(index, run, run.read_table(name)) for index, run in enumerate(self.runs)]
        parts = [with_run_columns(table, index, run) for index, run, table in tables if table is not None]
        return pa.concat_tables(parts, promote_options="default") if parts else None

    def lacking(self, name: TableName) -> list[str]:
        """The arms without a table that was recorded for other arms."""
        recorded = {arm.name: any(run.read_table(name) is not None for run in arm.runs) for arm in self.arms}
        return [arm for arm, has in recorded.items() if not has] if any(recorded.values()) else []

    @property
    def plot(self) -> Plots:
        """The figures: ``plot.cdf()``, ``plot.box()``, ``plot.ellipse()``, ``plot.timeseries()`` and others."""
        from sojourn.plots import Plots

        return Plots(self)

    def to_json(self) -> str:
        """summary.json."""
        return json.dumps(self.summary, indent=1, ensure_ascii=False) + "\n"

    def save(
        self, directory: str | Path, *, plots: bool = True, formats: Sequence[str] = DEFAULT_FORMATS
    ) -> list[Path]:
        """Writes summary.json, summary.csv, experiment.json, recorded tables and plots in ``formats``: png, svg, pdf.

        All files appear together under their final names, or none does. Files of earlier results that are not written
        again are removed, unless they were changed since.

        Returns
        -------
        list of Path
            The files written.

        Raises
        ------
        OSError
            The directory cannot be written to, or the disk is full.
        OutputError
            A file of the user's, or one that was changed since Sojourn wrote it, would be replaced.
        """
        from sojourn.tablefiles import TableFiles

        with Staging(Path(directory), by=BY, replaces=MADE_OF_RESULTS) as staging:
            written = self.stage_small(staging)
            with TableFiles(staging) as files:
                for run in self.runs:
                    files.add(run)
            files.check()
            return written + files.paths + (self.plot.save_all(staging, formats) if plots else [])

    def stage_small(self, staging: Staging, baseline: str | None = None) -> list[Path]:
        """Stages ``SMALL_FILES``, summary.json first; differences.csv if there is a baseline."""
        import pyarrow.csv

        written = [staging.add_text("summary.json", self.to_json())]
        tables = {"summary.csv": self.to_arrow()} if self.runs else {}
        if baseline is not None and any(run.label == baseline for run in self.runs):
            from sojourn.paired import difference_rows

            tables["differences.csv"] = _table_of(difference_rows(self, baseline))
        for name, table in tables.items():
            written.append(staging.add(name, partial(pyarrow.csv.write_csv, without_formulas(table))))
        if self.resolved_json is not None:
            written.append(staging.add_text("experiment.json", self.resolved_json))
        return written


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

    def reader(index: int) -> Callable[[Recorded], pa.Table | None]:
        def read_table(name: Recorded) -> pa.Table | None:
            if name == "completions":
                return None
            return _load_table(folder / TABLE_FILES[name], index) if is_ours(TABLE_FILES[name]) else None

        return read_table

    resolved = folder / "experiment.json"
    return Results(
        summary,
        [
            Run(run, reader(index), partial(_load_capture, folder, index, is_ours))
            for index, run in enumerate(summary["runs"])
        ],
        bounded.read_text(resolved, LARGEST_RESULTS) if resolved.exists() and is_ours(resolved.name) else None,
    )


class NoResultsError(ExperimentError, FileNotFoundError):
    """There are no results at this place."""

    def __str__(self) -> str:
        return str(self.args[0])


def _listed(folder: Path) -> Callable[[str], bool]:
    """Tells whether a file belongs to the results: by the folder's list, or by its name if that lacks the results.

    The list lacks them in a copy without hidden files to which a report was added.

    Raises
    ------
    ExperimentError
        The files are of two experiments: the process that replaced them was killed.
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
    if isinstance(summary, dict) and summary.get("format", schema.FORMAT) != schema.FORMAT:
        raise ExperimentError(_other_format(path, summary["format"]))
    try:
        typed.convert(summary, schema.Summary)
    except ValueError as error:
        raise ExperimentError(f"{path}: the results are damaged: {error}") from None
    return cast("schema.Summary", summary)


def _other_format(path: Path, found: object) -> str:
    if isinstance(found, int) and found > schema.FORMAT:
        return f"{path}: has format {found}, newer than this version of sojourn reads, which is {schema.FORMAT}"
    return f"{path}: the results are damaged: format is {found!r}, must be {schema.FORMAT}"


RUN_COLUMNS = ["run", "label", "seed"]
"""The first columns of a recorded table of several runs."""


def as_arrow(column: npt.NDArray[np.generic]) -> pa.Array:
    """A column as Arrow, without copying it. ``pa.array`` would load pandas wherever it is installed."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.from_numpy_dtype(column.dtype), len(column), [None, pa.py_buffer(column)])


def values_as_arrow(values: Sequence[Any]) -> pa.Array:
    """Values as Arrow. Uses ``pa.array``, which loads pandas, only for values of mixed types and for nulls."""
    import numpy as np
    import pyarrow as pa

    kinds = set(map(type, values))
    if kinds == {str}:
        texts = [value.encode() for value in values]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
        return pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends), pa.py_buffer(b"".join(texts)))
    return as_arrow(np.array(values)) if kinds and kinds <= {int, float} else pa.array(values)


def _table_of(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows as a table; the first rows may lack a column."""
    import pyarrow as pa

    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: values_as_arrow([row.get(name) for row in rows]) for name in names})


def with_run_columns(table: pa.Table, index: int, run: Run) -> pa.Table:
    """A run's table with ``RUN_COLUMNS`` first, without copying its own columns."""
    import numpy as np
    import pyarrow as pa

    rows = table.num_rows
    columns = [
        as_arrow(np.full(rows, index, np.int32)),
        pa.DictionaryArray.from_arrays(as_arrow(np.zeros(rows, np.int32)), values_as_arrow([run.label])),
        as_arrow(np.full(rows, run.seed, np.uint64)),
    ]
    for place, (name, column) in enumerate(zip(RUN_COLUMNS, columns, strict=True)):
        table = table.add_column(place, name, column)
    return table


def capture_file(index: int, run: Run) -> str:
    """The file name of a run's capture; ``index`` is its index in ``runs``."""
    return file_name(f"capture_{index}_{run.label}_seed_{run.seed}.pcapng")


def without_formulas(table: pa.Table) -> pa.Table:
    """A table for a CSV file: texts that a spreadsheet would take for a formula get an apostrophe in front."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            texts = [
                f"'{text}" if text is not None and text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
                for text in table[field.name].to_pylist()
            ]
            table = table.set_column(place, field.name, values_as_arrow(texts))
    return table


def _load_capture(folder: Path, run: int, is_ours: Callable[[str], bool]) -> bytes | None:
    path = next((path for path in folder.glob(f"capture_{run}_*.pcapng") if is_ours(path.name)), None)
    return None if path is None else path.read_bytes()


def _load_table(path: Path, run: int) -> pa.Table | None:
    import pyarrow.parquet

    if not path.exists():
        return None
    try:
        table = pyarrow.parquet.read_table(path, filters=[("run", "=", run)]).drop_columns(RUN_COLUMNS)
        if not table.num_rows and pyarrow.parquet.read_metadata(path).num_rows:
            return None  # only others recorded it
    except (pyarrow.ArrowInvalid, pyarrow.ArrowKeyError, pyarrow.ArrowNotImplementedError, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise ExperimentError(f"{path}: the results are damaged: {' '.join(str(error).split())[:200]}") from None
    of_others = [name for name in table.column_names if table.num_rows and table[name].null_count == table.num_rows]
    return table.drop_columns(of_others)
