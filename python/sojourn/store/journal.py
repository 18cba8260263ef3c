"""Keeps runs as they finish, so that a killed process loses at most 10 ms of them: ``--resume`` continues from there.

A workspace has two files for this, to which entries are only appended. ``journal.jsonl`` begins with a line about the
experiment, followed by a line per finished run: its index in the plan, its part of summary.json, and the position of
its recorded tables in ``tables.arrow``, each an Arrow stream, with its length and CRC-32. Captures and qlogs are
stored there unchanged. A run whose line is incomplete, or does not match the tables, is repeated.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
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

FORMAT = 4
"""Version of these files; incremented when the meaning of a key changes."""
LINES = "journal.jsonl"
TABLES = "tables.arrow"
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
    """The finished runs of an experiment, in a workspace."""

    def __init__(self, workspace: Workspace, header: Header) -> None:
        self.workspace = workspace
        self.header = header
        self.stored: dict[int, Run] = {}
        """The runs of an earlier process, by their index in the plan."""
        self.kept = 0
        """Number of runs stored."""
        self.failed: OSError | None = None
        """Why the journal was abandoned."""
        self._files: tuple[IO[bytes], IO[bytes]] | None = None
        """The lines and the tables; None once it is closed."""
        self._end = 0
        self._synced_s = time.monotonic()

    @classmethod
    def start(cls, directory: Path, header: Header) -> Journal:
        """Starts an empty journal in a new workspace."""
        journal = cls(Workspace.make(directory, for_runs=True), header)
        try:
            journal._open()
            journal._write_line(json.dumps(asdict(header)))
        except OSError as error:
            journal._abandon(error)
        return journal

    @classmethod
    def resume(cls, workspace: Workspace, header: Header) -> Journal:
        """Takes over the journal of another process, with the runs that it finished."""
        journal = cls(workspace, header)
        lines, tables = (workspace.path / name for name in (LINES, TABLES))
        journal._end = tables.stat().st_size if tables.exists() else 0
        content = lines.read_bytes()
        for line in content.split(b"\n")[1:]:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                entry = _checked(line)
                if all(offset + length <= journal._end for offset, length, _ in entry["tables"].values()):
                    journal.stored[entry["run"]] = journal._stored_run(entry)
        journal.kept = len(journal.stored)
        journal._open()
        if not content.endswith(b"\n"):
            journal._write_line("")
        return journal

    def add(self, index: int, run: Run) -> None:
        """Stores a finished run."""
        if self._files is None:
            return
        try:
            tables = {name: run.read_table(name) for name in TABLE_FILES}
            spans: dict[str, list[int]] = {}
            spans |= {name: self._store(_as_stream(table)) for name, table in tables.items() if table is not None}
            spans |= {name: self._store(content) for name, content in run.read_files().items()}
            content = (
                f'"run":{index},"tables":{json.dumps(spans)},"summary":{msgspec.json.encode(run.summary).decode()}'
            )
            self._write_line(f'{{"check":{zlib.crc32(content.encode())},{content}}}')
            self.kept += 1
            if time.monotonic() - self._synced_s > SYNC_EVERY_S:
                for file in reversed(self._files):
                    os.fsync(file.fileno())
                self._synced_s = time.monotonic()
        except OSError as error:
            self._abandon(error)

    def close(self, *, keep: bool) -> None:
        """Closes the journal; with ``keep`` its content is kept for ``--resume``."""
        self._close_files()
        if keep and self.kept:
            self.workspace.leave()
        else:
            self.workspace.remove()

    def _open(self) -> None:
        lines, tables = ((self.workspace.path / name).open("ab", buffering=0) for name in (LINES, TABLES))
        self._files = lines, tables

    def _close_files(self) -> None:
        for file in self._files or ():
            file.close()
        self._files = None

    def _store(self, content: bytes | memoryview) -> list[int]:
        """Stores bytes; returns their offset, length and checksum."""
        assert self._files is not None
        _write_all(self._files[1], content)
        span = [self._end, len(content), zlib.crc32(content)]
        self._end += len(content)
        return span

    def _write_line(self, line: str) -> None:
        assert self._files is not None
        _write_all(self._files[0], f"{line}\n".encode())

    def _abandon(self, error: OSError) -> None:
        """Abandons the journal and frees its disk space for the results."""
        self.failed = error
        self.kept = len(self.stored)
        self._close_files()
        if not self.stored:
            for name in (TABLES, LINES):
                (self.workspace.path / name).unlink(missing_ok=True)

    def _stored_run(self, entry: dict[str, Any]) -> Run:
        spans: dict[str, list[int]] = entry["tables"]
        for span in spans.values():
            if zlib.crc32(self._read(span)) != span[2]:
                raise ValueError("not what was written")

        def read_table(name: Recorded) -> pa.Table | None:
            return pa.ipc.open_stream(self._read(spans[name])).read_all() if name in spans else None

        def read_files() -> dict[str, bytes]:
            return {name: self._read(span).to_pybytes() for name, span in spans.items() if kind_of(name) in FILES}

        return Run(cast("schema.Run", entry["summary"]), read_table, read_files)

    def _read(self, span: list[int]) -> pa.Buffer:
        """The bytes at a span, in memory of Arrow's own, as ``store.files.Part.content`` explains."""
        with pa.OSFile(str(self.workspace.path / TABLES)) as file:
            file.seek(span[0])
            return file.read_buffer(span[1])


class LeftBehind:
    """Workspaces in a directory whose processes have ended."""

    def __init__(self, directory: Path, *, for_runs: bool = False) -> None:
        """``for_runs``: raises OutputError if another process makes runs for this directory."""
        self._directory = directory
        self._found = {one: _read(one.path) for one in Workspace.left_behind(directory, for_runs=for_runs)}

    def runs_of(self, key: str) -> int:
        """The number of finished runs of an experiment."""
        return max((found[1] for found in self._found.values() if found and found[0].is_of(key)), default=0)

    def take(self, header: Header) -> Journal | None:
        """Returns the journal of an experiment with the most runs. Raises OutputError if only others have one."""
        own = {one: found[1] for one, found in self._found.items() if found and found[0].is_of(header.key)}
        if not own:
            for found in self._found.values():
                if found and found[1]:
                    raise OutputError(
                        f'--resume: {self._directory} has finished runs of another experiment, "{found[0].experiment}" '
                        f"(the file, options or version differ); omit --resume to start again"
                    )
            return None
        chosen = max(own, key=own.__getitem__)
        del self._found[chosen]
        return Journal.resume(chosen, header)

    def close(self, *, remove: bool) -> None:
        """Releases all journals that were not taken; with ``remove`` deletes them."""
        for one in self._found:
            if remove:
                one.remove()
            else:
                one.leave()


def _checked(line: bytes) -> dict[str, Any]:
    """Parses a line of the journal. Raises ValueError if it is not as it was written."""
    entry: dict[str, Any] = json.loads(line)
    content = line[line.index(b",") + 1 : line.rindex(b"}")]
    if zlib.crc32(content) != entry["check"]:
        raise ValueError("not what was written")
    return entry


def _read(folder: Path) -> tuple[Header, int] | None:
    """The header of the journal in a folder, and the number of its runs; None if there is no such regular file."""
    path = folder / LINES
    with contextlib.suppress(OSError, ValueError, TypeError):
        if path.is_file():
            with path.open("rb") as file:
                return Header(**json.loads(file.readline(100_000))), sum(1 for _ in file)
    return None


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
