"""Recorded tables as Parquet files, written and read run by run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from sojourn.files.storage import Staging, file_name
from sojourn.frame.arrow import RUN_COLUMNS, with_run_columns
from sojourn.frame.later import np, npt, pa, pc, pq
from sojourn.frame.results import Recorded, Run, TableName

TABLE_FILES: dict[TableName, str] = {
    "packets": "packets.parquet",
    "queue_series": "series.parquet",
    "flow_series": "flow_series.parquet",
    "rtts": "rtts.parquet",
    "medium": "medium.parquet",
    "histogram": "histograms.parquet",
}
"""The file of each recorded table, beside summary.json."""

STREAMED: frozenset[TableName] = frozenset({"packets", "flow_series", "rtts", "medium", "histogram"})
"""The tables that grow with packets, flows or runs, and have the same columns in every run."""

FILES = {"capture": "capture_*.pcapng", "qlog": "qlog_*.sqlog"}
"""The names of captures and qlogs; in a folder they have the run's index in ``runs``, its label and its seed."""


def kind_of(name: str) -> str:
    """What a file that a run recorded is: a key of ``FILES``."""
    return name.partition("_")[0]


def own_columns(table: pa.Table) -> pa.Table:
    """A run's table, of those of several, without the columns that only others have."""
    of_others = [name for name in table.column_names if table.num_rows and table[name].null_count == table.num_rows]
    return table.drop_columns(of_others)


class TableFiles:
    """Writes the recorded tables of runs while later runs continue, so that memory holds one run's packets at a time.

    A streamed table has a row group per run; captures and qlogs are separate files. The queue series, which are small
    and have columns that depend on the discipline, are concatenated at the end, with the ``with`` block. If the disk is
    full, a file is removed to free its space; the others continue.
    """

    def __init__(self, staging: Staging) -> None:
        self._staging = staging
        self._files: dict[str, _File] = {}
        self._collected: dict[str, list[pa.Table]] = {}
        self._staged: dict[str, list[Path]] = {}
        """By table's file or kind of file: what was staged, under its final name."""
        self._runs = 0
        self.dropped: dict[str, OSError] = {}
        """The files that could not be written, with the errors."""

    def add(self, run: Run) -> Run:
        """Appends a run's tables, and returns the run with its streamed tables read from the files."""
        groups: dict[Recorded, tuple[str, int]] = {}
        collected: dict[Recorded, pa.Table] = {}
        for name, file in TABLE_FILES.items():
            table = run.read_table(name)
            if table is None or file in self.dropped:
                continue
            with_run = with_run_columns(table, self._runs, run)
            if name in STREAMED:
                with self._or_dropped(file):
                    if file not in self._files:
                        paths = self._staging.reserve(file)
                        self._staged[file] = [paths[1]]
                        self._files[file] = _File(*paths, with_run.schema)
                    groups[name] = file, self._files[file].append(with_run)
            else:
                collected[name] = table
                self._collected.setdefault(file, []).append(with_run)
        for key, content in run.read_files().items():
            if (kind := FILES[kind_of(key)]) not in self.dropped:
                with self._or_dropped(kind):
                    own = file_name(key.replace("*", f"{self._runs}_{run.label}_seed_{run.seed}"))
                    self._staged.setdefault(kind, []).append(self._staging.add_bytes(own, content))
        self._runs += 1

        # Keep no reference to the given run, so that its tables are freed.
        def read_table(name: Recorded) -> pa.Table | None:
            file, group = groups.get(name, ("", 0))
            return self._files[file].read(group) if file in self._files else collected.get(name)

        return Run(run.summary, read_table)

    @property
    def paths(self) -> list[Path]:
        """The files, under their final names."""
        return [path for paths in self._staged.values() for path in paths]

    def __enter__(self) -> TableFiles:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for name, file in list(self._files.items()):
            with self._or_dropped(name):
                file.close()
        if kind is None:
            for name, tables in self._collected.items():
                together = pa.concat_tables(tables, promote_options="default")
                with self._or_dropped(name):
                    self._staged[name] = [self._staging.add(name, partial(pq.write_table, together))]

    def check(self) -> None:
        """Raises the error because of which the first file was removed, if one was."""
        for error in self.dropped.values():
            raise error

    def drop_all(self, error: OSError) -> None:
        """Removes all files, to free their space."""
        for path in self.paths:
            self._staging.drop(path)
        self.dropped.update(dict.fromkeys(sorted(self._staged), error))
        self._staged = {}

    @contextmanager
    def _or_dropped(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.dropped[name] = error
            if name in self._files:
                with suppress(OSError):
                    self._files.pop(name).close()
            for path in self._staged.pop(name, []):
                self._staging.drop(path)


class TableRows:
    """The rows of a complete file, the first of these paths that exists.

    What its end says of the row groups grows with the runs: it is read once, not again for each run.
    """

    def __init__(self, *paths: Path) -> None:
        self._paths = paths
        self._end: tuple[tuple[int, ...], pq.FileMetaData, npt.NDArray[np.float64]] | None = None
        """Of which content it is, the end, and the first and last run of each row group."""

    @property
    def path(self) -> Path:
        """Where the file is."""
        return next((path for path in self._paths if path.exists()), self._paths[-1])

    def of_run(self, run: int) -> pa.Table | None:
        """The rows of the run with this index, without the columns that name it; None if only others recorded any."""
        with self.opened() as (file, (first, last)):
            groups = np.flatnonzero((first <= run) & (run <= last)).tolist()
            table = file.read_row_groups(groups).filter(pc.field("run") == run).drop_columns(RUN_COLUMNS)
            return table if table.num_rows or not file.metadata.num_rows else None

    @contextmanager
    def opened(self) -> Iterator[tuple[pq.ParquetFile, npt.NDArray[np.float64]]]:
        """The file, and the first and the last run of each row group."""
        path = self.path
        status = path.stat()
        content = (status.st_ino, status.st_size, status.st_mtime_ns)
        known = self._end if self._end is not None and self._end[0] == content else None
        with pq.ParquetFile(path, metadata=known and known[1]) as file:
            if known is None:
                known = self._end = (content, file.metadata, _runs_of(file.metadata))
            yield file, known[2]


def _runs_of(end: pq.FileMetaData) -> npt.NDArray[np.float64]:
    """The first and the last run of each row group, as two rows; any run, if the file does not tell."""
    column = end.schema.to_arrow_schema().get_field_index("run")
    if column < 0:
        raise pa.ArrowInvalid("no column of runs")
    known = [end.row_group(group).column(column).statistics for group in range(end.num_row_groups)]
    runs = [(of.min, of.max) if of is not None and of.has_min_max else (-np.inf, np.inf) for of in known]
    return np.array(runs, np.float64).reshape(-1, 2).T


class _File(TableRows):
    """A file that is written, a row group per run."""

    def __init__(self, temporary: Path, final: Path, columns: pa.Schema) -> None:
        super().__init__(temporary, final)
        # Numbers of packets hardly repeat, but grow: as differences they take a third of the space.
        growing = {"packet": "DELTA_BINARY_PACKED"} if "packet" in columns.names else None
        repeating = [name for name in columns.names if name != "packet"]
        self._writer = pq.ParquetWriter(temporary, columns, use_dictionary=repeating, column_encoding=growing)
        self._groups = 0

    def append(self, table: pa.Table) -> int:
        """Writes a row group; returns its number."""
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self._groups += 1
        return self._groups - 1

    def read(self, group: int) -> pa.Table:
        """Reads a row group back, without the columns that name the run."""
        with self.opened() as (file, _):
            return file.read_row_group(group).drop_columns(RUN_COLUMNS)

    def close(self) -> None:
        """Completes the file."""
        self._writer.close()
