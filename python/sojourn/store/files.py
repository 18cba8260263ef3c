"""Files of a store. They are written atomically, and their names contain a checksum.

Any number of processes may read and write at the same time. A file can only be replaced by another with the same rows,
so a reader whose file is gone lists the folder again (``again``). The files that a larger one replaces stay until the
folder's clock has moved on since the larger one is there. So a listing has all rows: either nothing was removed while
it was made, or the time of the folder's last change shows it, and a second listing has the larger file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
import time
import uuid
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import TypeVar

from sojourn import _core
from sojourn.files import whole
from sojourn.frame.later import pa, pq

_NAME = re.compile(r"(\d+)-(\d+)-([0-9a-f]{8})\.parquet")
SETTLE_S = 2.0
"""How long to wait at most for a folder's clock: the coarsest has steps of two seconds."""
LOOK_S = 0.002
"""Interval of looks at a folder's clock."""
WAITS_S = (0.0, *(0.05 * 2**power for power in range(11)))
"""Waits before a folder is listed again, 102 s in total: network file systems repeat an old listing for up to 60 s."""

T = TypeVar("T")


class Gone(Exception):
    """A listed file is not there any more: another process has replaced it."""


@dataclass(frozen=True)
class Part:
    """A file with the rows of runs ``first`` to ``last``."""

    path: Path
    first: int
    last: int
    checksum: int

    @property
    def is_whole(self) -> bool:
        """Whether the file matches its checksum. Raises Gone if there is no such file."""
        try:
            with self.open() as file:
                return zlib.crc32(file.read()) == self.checksum
        except OSError:
            return False

    @property
    def damage(self) -> str:
        """What to tell the user if the file is damaged."""
        return f"{self.path} is damaged; sojourn sweep FILE --store repeats its runs"

    def open(self) -> BufferedReader:
        """Opens the file. Raises Gone if there is no such file, and OSError if it cannot be read."""
        try:
            return self.path.open("rb")
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ESTALE):
                raise Gone(str(self.path)) from None
            raise

    def read(self, columns: list[str] | None = None) -> pa.Table:
        """Its rows. Raises Gone if there is no such file, and OSError or ValueError if it is damaged."""
        with pq.ParquetFile(self.content()) as file:
            return file.read(columns)

    def content(self) -> pa.BufferReader:
        """Its content, in memory: Arrow's threads may still read it when an error has been raised.

        The memory is Arrow's own: a thread of Arrow that frees a Python object while Python ends aborts the process.
        """
        with self.open() as file:
            memory = pa.allocate_buffer(os.fstat(file.fileno()).st_size)
            file.readinto(memory)
        return pa.BufferReader(memory)


def again(read: Callable[[], T]) -> T:
    """Calls ``read``, which lists and reads files, until no listed one is gone; raises RunError if one always is."""
    for wait_s in WAITS_S:
        time.sleep(wait_s)
        try:
            return read()
        except Gone as gone:
            path = str(gone)
    raise _core.RunError(f"{path}: the folder lists this file, but it is gone; repeat the command later")


def parts(folder: Path) -> list[Part]:
    """The files of a folder in the order of their runs. Where files overlap, only the larger one is listed."""
    return listing(folder)[0]


def listing(folder: Path) -> tuple[list[Part], list[Part]]:
    """``parts``, and the files whose runs are in larger ones, left behind by a process that was killed."""
    before = _changed(folder)
    found = _parts_in(folder)
    if _changed(folder) != before:
        found = _parts_in(folder)
    kept: list[Part] = []
    smaller: list[Part] = []
    for part in found:
        if not kept or part.first > kept[-1].last:
            kept.append(part)
        else:
            smaller.append(part)
    return kept, smaller


def _changed(folder: Path) -> int:
    """The time of a folder's last change."""
    try:
        return folder.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _parts_in(folder: Path) -> list[Part]:
    found = []
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir(folder):
            match = _NAME.fullmatch(entry.name)
            if match is not None and entry.is_file():
                found.append(Part(Path(entry.path), int(match[1]), int(match[2]), int(match[3], 16)))
    found.sort(key=lambda part: (part.first, -part.last, part.path.name))
    return found


def remove(old: Collection[Part]) -> None:
    """Removes files whose rows are in others now."""
    for folder in {part.path.parent for part in old}:
        _settle(folder)
    for part in old:
        part.path.unlink(missing_ok=True)


def _settle(folder: Path) -> None:
    """Waits until the next change of a folder has a later time than its last one."""
    last = _changed(folder)
    until_s = time.monotonic() + SETTLE_S
    probe = folder / f".now-{uuid.uuid4().hex}"
    while _changed(folder) == last and time.monotonic() < until_s:
        time.sleep(LOOK_S)
        probe.touch()
        probe.unlink()


@contextmanager
def pinned(listed: Iterable[Part]) -> Iterator[list[str]]:
    """Paths under which these files can be read within the context, even if another process removes them.

    Of more files than the process may open the paths are their own. Raises Gone if one of them was removed before.
    """
    some = list(listed)
    with contextlib.ExitStack() as stack:
        if len(some) > _most_pins():
            yield [str(part.path) for part in some]
            return
        opened = [stack.enter_context(part.open()) for part in some]
        yield [f"/dev/fd/{file.fileno()}" for file in opened]


def _most_pins() -> int:
    """How many files may be open, if DuckDB opens each once more."""
    if sys.platform == "win32" or not Path("/dev/fd").is_dir():
        return 0
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 1 << 20 if hard == resource.RLIM_INFINITY else hard
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    return max(0, soft // 2 - 200)


def write_part(folder: Path, first: int, last: int, table: pa.Table) -> Part:
    """Writes the rows of runs; equal rows give identical files."""
    content = encoded(table)
    checksum = zlib.crc32(content)
    path = folder / f"{first:08}-{last:08}-{checksum:08x}.parquet"
    whole.write(path, content)
    return Part(path, first, last, checksum)


def encoded(table: pa.Table) -> bytes:
    """A table as the content of a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    content: bytes = sink.getvalue().to_pybytes()
    return content
