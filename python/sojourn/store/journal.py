"""Keeps runs as they finish, so that a killed process loses at most 10 ms of them: ``--resume`` continues from there.

Entries are appended to one file of a workspace, ``journal``. Its first line is about the experiment. Each entry is a
finished run: a line with the CRC-32 of the rest, the run's index in the plan, its part of summary.json and
the lengths of what it recorded; then that, tables as Arrow streams, captures and qlogs unchanged. A run whose entry is
incomplete, or was changed, is repeated; reading goes on with the next entry that is whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import re
import time
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from sojourn import _core, schema
from sojourn.files.manifest import OutputError
from sojourn.files.workspace import Workspace
from sojourn.frame.later import pa
from sojourn.frame.results import Recorded, Run
from sojourn.runs.backends import Backend
from sojourn.store.tablefiles import FILES, TABLE_FILES, kind_of

FORMAT = 5
"""Version of the file; incremented when the meaning of a key changes."""
FILE = "journal"
SYNC_EVERY_S = 5.0
"""Seconds between syncs: what a power failure can lose."""

SMALL_BYTES = 1_000_000
"""Size of a table up to which one thread compresses it."""


@dataclass(frozen=True)
class Header:
    """The experiment of a journal."""

    sojourn: str
    experiment: str
    key: str
    """``plan_key``."""
    runs: int
    """Number of planned runs."""
    format: int = FORMAT

    def is_of(self, key: str) -> bool:
        """True if this version reads the journal, and it is of the experiment with this key."""
        return (self.key, self.format) == (key, FORMAT)


def plan_key(plan: _core.Plan, backend: Backend) -> str:
    """The key of all of a plan's runs in their order, and of their names. Equal keys mean equal runs.

    It covers everything that determines their results: the experiment with every default and trace, the seeds, the
    source of user-defined disciplines (but not of modules that it imports), the version of Sojourn, and the backend.
    """
    return hashlib.sha256("\n".join([_core.version, backend_key(backend), plan.hash]).encode()).hexdigest()


def backend_key(backend: Backend) -> str:
    """What a backend's results depend on besides the run: its options, and the release of its kernel."""
    if backend.name == "sim":
        return backend.name
    return f"{backend.name} {backend!r} {getattr(backend, 'release', '')}".rstrip()


class Journal:
    """The finished runs of an experiment, in a workspace; ``left``: those of a process that has ended."""

    def __init__(self, workspace: Workspace, header: Header, left: _Left | None = None) -> None:
        self.workspace = workspace
        self.stored: dict[int, Run] = left.runs if left else {}
        """The runs of an earlier process, by their index in the plan."""
        self.kept = len(self.stored)
        """Number of runs stored."""
        self.lost = min(left.damaged, header.runs - self.kept) if left else 0
        """Number of runs whose entries were damaged, of those that are missing."""
        self.failed: OSError | None = None
        """Why the journal was abandoned."""
        self._file: IO[bytes] | None = None
        self._synced_s = time.monotonic()
        try:
            self._file = (workspace.path / FILE).open("ab", buffering=0)
            self._file.truncate(left.end if left else 0)
            if left is None:
                _write_all(self._file, json.dumps(asdict(header)).encode() + b"\n")
        except OSError as error:
            self._abandon(error)

    def add(self, index: int, run: Run) -> None:
        """Stores a finished run."""
        if self._file is None:
            return
        tables = {name: run.read_table(name) for name in TABLE_FILES}
        recorded: dict[str, bytes | memoryview] = {}
        recorded |= {name: _as_stream(table) for name, table in tables.items() if table is not None}
        recorded |= run.read_files()
        entry = _Entry(index, {name: len(content) for name, content in recorded.items()}, cast("Any", run.summary))
        line = msgspec.json.encode(entry) + b"\n"
        try:
            _write_all(self._file, b"%08x " % _checksum(line, *recorded.values()) + line)
            for content in recorded.values():
                _write_all(self._file, content)
            self.kept += 1
            if time.monotonic() - self._synced_s > SYNC_EVERY_S:
                os.fsync(self._file.fileno())
                self._synced_s = time.monotonic()
        except OSError as error:
            self._abandon(error)

    def close(self, *, keep: bool) -> None:
        """Closes the journal; with ``keep`` its content is kept for ``--resume``."""
        if self._file is not None:
            self._file.close()
        if keep and self.kept:
            self.workspace.leave()
        else:
            self.workspace.remove()

    def _abandon(self, error: OSError) -> None:
        """Abandons the journal and frees its disk space for the results."""
        self.failed = error
        self.kept = len(self.stored)
        if self._file is not None:
            self._file.close()
            self._file = None
        if not self.stored:
            (self.workspace.path / FILE).unlink(missing_ok=True)


class _Entry(msgspec.Struct):
    """The line of a run."""

    run: int
    sizes: dict[str, int]
    """Of what it recorded, in bytes, by name."""
    summary: dict[str, Any]


_LINE = re.compile(rb'([0-9a-f]{8}) (\{"run":.*\n)')
"""The line of a run."""


@dataclass
class _Left:
    """What a journal holds, up to its last whole entry."""

    header: Header
    runs: dict[int, Run]
    end: int
    damaged: int = 0
    """Number of damaged entries, as far as they can be told apart."""

    @classmethod
    def read(cls, path: Path) -> _Left | None:
        """Reads a journal; None if there is no such regular file."""
        with contextlib.suppress(OSError, ValueError, TypeError):
            if path.is_file():
                with path.open("rb") as file:
                    left = cls(Header(**json.loads(file.readline(100_000))), {}, file.tell())
                    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                        left._take(path, content)
                    return left
        return None

    def _take(self, path: Path, content: mmap.mmap) -> None:
        at, damaged, at_end = self.end, 0, 0
        while line := _LINE.search(content, at):
            end, spans = line.end(), {}
            with contextlib.suppress(ValueError, msgspec.MsgspecError):
                entry = msgspec.json.decode(line[2], type=_Entry)
                for name, size in entry.sizes.items():
                    spans[name] = end, size
                    end += size
                if _checksum(line[2], memoryview(content)[line.end() : end]) == int(line[1], 16):
                    self.runs[entry.run] = _run(path, entry, spans)
                    # A damaged line may not look like one: then only the gap shows it.
                    self.damaged += damaged or int(line.start() > self.end)
                    self.end = at = end
                    damaged = at_end = 0
                    continue
            # The last entry may have been cut, as by a kill: that is no damage.
            at, damaged, at_end = line.start() + 1, damaged + 1, at_end + int(end <= len(content))
        self.damaged += at_end


def _run(path: Path, entry: _Entry, spans: dict[str, tuple[int, int]]) -> Run:
    def read(name: str) -> pa.Buffer:
        # In memory of Arrow's own, as ``store.files.Part.content`` explains.
        with pa.OSFile(str(path)) as file:
            file.seek(spans[name][0])
            return file.read_buffer(spans[name][1])

    def read_table(name: Recorded) -> pa.Table | None:
        return pa.ipc.open_stream(read(name)).read_all() if name in spans else None

    def read_files() -> dict[str, bytes]:
        return {name: read(name).to_pybytes() for name in spans if kind_of(name) in FILES}

    return Run(cast("schema.Run", entry.summary), read_table, read_files)


class LeftBehind:
    """Workspaces in a directory whose processes have ended."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._found = {one: _Left.read(one.path / FILE) for one in Workspace.left_behind(directory)}

    def runs_of(self, key: str) -> int:
        """The number of finished runs of an experiment."""
        return max((len(left.runs) for left in self._found.values() if left and left.header.is_of(key)), default=0)

    def take(self, header: Header) -> Journal | None:
        """Returns the journal of an experiment with the most runs. Raises OutputError if only others have one."""
        own = {one: len(left.runs) for one, left in self._found.items() if left and left.header.is_of(header.key)}
        if own:
            chosen = max(own, key=own.__getitem__)
            return Journal(chosen, header, self._found.pop(chosen))
        for left in self._found.values():
            if left and left.runs:
                raise OutputError(
                    f'--resume: {self._directory} has finished runs of another experiment, "{left.header.experiment}" '
                    f"(the file, options or version differ); omit --resume to start again"
                )
        return None

    def close(self, *, remove: bool) -> None:
        """Releases all journals that were not taken; with ``remove`` deletes them."""
        for one in self._found:
            if remove:
                one.remove()
            else:
                one.leave()


def _checksum(*contents: bytes | memoryview) -> int:
    found = 0
    for content in contents:
        found = zlib.crc32(content, found)
    return found


def _as_stream(table: pa.Table) -> memoryview:
    sink = pa.BufferOutputStream()
    # Arrow's threads take longer over a small table than the table itself.
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=table.nbytes > SMALL_BYTES)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return memoryview(sink.getvalue())


def _write_all(file: IO[bytes], content: bytes | memoryview) -> None:
    # An unbuffered write may be partial, for example on a disk that is nearly full.
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]
