"""Files of a store. They are written atomically, and their names contain a checksum."""

from __future__ import annotations

import contextlib
import os
import re
import uuid
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_NAME = re.compile(r"(\d+)-(\d+)-([0-9a-f]{8})\.parquet")


@dataclass(frozen=True)
class Part:
    """A file with the rows of runs ``first`` to ``last``."""

    path: Path
    first: int
    last: int
    checksum: int

    @property
    def is_whole(self) -> bool:
        """Whether the file matches its checksum."""
        try:
            return zlib.crc32(self.path.read_bytes()) == self.checksum
        except OSError:
            return False

    @property
    def damage(self) -> str:
        """What to tell the user if the file is damaged."""
        return f"{self.path} is damaged; sojourn sweep FILE --store repeats its runs"

    def read(self) -> pa.Table:
        """Its rows."""
        import pyarrow.parquet as pq

        return pq.read_table(self.path, partitioning=None)


def parts(folder: Path) -> list[Part]:
    """The files of a folder in the order of their runs. Where files overlap, only the larger one is listed."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir(folder):
            match = _NAME.fullmatch(entry.name)
            if match is not None and entry.is_file():
                found.append(Part(Path(entry.path), int(match[1]), int(match[2]), int(match[3], 16)))
    found.sort(key=lambda part: (part.first, -part.last, part.path.name))
    kept: list[Part] = []
    for part in found:
        if not kept or part.first > kept[-1].last:
            kept.append(part)
    return kept


def write_part(folder: Path, first: int, last: int, table: pa.Table) -> Part:
    """Writes the rows of runs; equal rows give identical files."""
    content = encoded(table)
    checksum = zlib.crc32(content)
    path = folder / f"{first:08}-{last:08}-{checksum:08x}.parquet"
    write(path, content)
    return Part(path, first, last, checksum)


def encoded(table: pa.Table) -> bytes:
    """A table as the content of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    content: bytes = sink.getvalue().to_pybytes()
    return content


def write(path: Path, content: bytes) -> None:
    """Writes a file atomically; replaces a file of the same name.

    Raises
    ------
    OSError
        It cannot be written; nothing is left of it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}")
    try:
        with unfinished.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise
