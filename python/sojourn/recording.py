"""Recorded tables as Parquet files: written run by run, read back run by run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from sojourn.results import RUN_COLUMNS, TABLE_FILES, Run, TableName, with_run_columns
from sojourn.storage import Staging

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


class Recording:
    """Writes what runs recorded while later runs are still going, so that memory holds one run's tables at a time.

    Each run is a row group of its own. Leaving the ``with`` block completes the files.
    """

    def __init__(self, staging: Staging) -> None:
        self._staging = staging
        self._files: dict[TableName, _File] = {}
        self._runs = 0

    def add(self, run: Run) -> Run:
        """Appends a run's tables, and returns the run with its tables read from the files."""
        groups: dict[TableName, int] = {}
        for name in TABLE_FILES:
            table = run.read_table(name)
            if table is not None:
                if name not in self._files:
                    self._files[name] = _File(self._staging, TABLE_FILES[name])
                groups[name] = self._files[name].append(with_run_columns(table, self._runs, run))
        self._runs += 1
        return Run(run.summary, self._reader(groups))

    @property
    def paths(self) -> list[Path]:
        """The files, under their final names."""
        return [file.final for file in self._files.values()]

    def _reader(self, groups: dict[TableName, int]) -> Callable[[TableName], pa.Table | None]:
        return lambda name: self._files[name].read(groups[name]) if name in groups else None

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.close()


class _File:
    """One Parquet file, a row group per run."""

    def __init__(self, staging: Staging, name: str) -> None:
        self._temporary, self.final = staging.reserve(name)
        self._writer: pq.ParquetWriter | None = None
        self._groups = 0

    def append(self, table: pa.Table) -> int:
        """Writes a row group; returns its number."""
        import pyarrow.parquet as pq

        if self._writer is None:
            self._writer = pq.ParquetWriter(self._temporary, table.schema)
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self._groups += 1
        return self._groups - 1

    def read(self, group: int) -> pa.Table:
        """Reads a row group back, without the columns that name the run."""
        import pyarrow.parquet as pq

        path = self._temporary if self._temporary.exists() else self.final
        return pq.ParquetFile(path).read_row_group(group).drop_columns(RUN_COLUMNS)

    def close(self) -> None:
        """Completes the file."""
        if self._writer is not None:
            self._writer.close()
