"""The list of the files that Sojourn wrote to a folder. Other files, and files changed since, belong to the user.

The list is ``.sojourn-manifest.json`` in the folder. It identifies files by size and time, or by their SHA-256 if the
time differs, as in a copy. In a folder without a list every file belongs to the user, whatever its name.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import msgspec

from sojourn.files import locks, whole

FILE = ".sojourn-manifest.json"
FORMAT = 1
"""Version of the list; incremented when the meaning of a key changes."""
LARGEST_BYTES = 100_000_000


class OutputError(ValueError):
    """The output directory cannot be used; the message is one line."""


class Entry(msgspec.Struct, frozen=True):
    """A file as Sojourn wrote it."""

    by: str
    """The writer: ``results``, ``report``, ``csv``, …"""
    size: int
    mtime_ns: int
    sha256: str

    @classmethod
    def of(cls, path: Path, by: str) -> Entry:
        """The entry of a file just written."""
        status = path.stat()
        return cls(by, status.st_size, status.st_mtime_ns, sha256(path))

    def is_of(self, path: Path, status: os.stat_result) -> bool:
        """True if a file is as Sojourn wrote it."""
        return self.size == status.st_size and (self.mtime_ns == status.st_mtime_ns or self.sha256 == sha256(path))


class _Document(msgspec.Struct):
    """The contents of the list."""

    format: int
    files: dict[str, list[Entry]]
    made_of: dict[str, str] = {}


@dataclass
class Manifest:
    """The files written to a folder. While files are replaced, a name has two entries, the old one and the new one."""

    folder: Path
    entries: dict[str, list[Entry]]
    made_of: dict[str, str] = field(default_factory=dict)
    """By file: a hash of everything that determines its content, if known. That of summary.json is of all results."""

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Reads the list of a folder, empty if there is none. Raises OutputError if a file of that name is no list."""
        path = folder / FILE
        try:
            status = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return cls(folder, {})
        try:
            if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_BYTES:
                raise ValueError("not a regular file, or too large")
            document = msgspec.json.decode(path.read_bytes(), type=_Document)
            if document.format != FORMAT:
                raise ValueError("has another version")
        except (OSError, ValueError) as error:
            what = " ".join(str(error).split())
            raise OutputError(
                f"{path}: cannot be read as the list of our files ({what}); name another directory, or move it away"
            ) from None
        entries = {
            name: known
            for name, known in document.files.items()
            # A list copied from elsewhere with its folder must not refer to files outside of the folder.
            if name not in ("", ".") and not name.startswith("/") and ".." not in PurePosixPath(name).parts
        }
        return cls(folder, entries, document.made_of)

    def is_mixed(self, by: str) -> bool:
        """True if a process was killed while it replaced files of this writer: some may be old and some new."""
        return any(len(known) > 1 and any(entry.by == by for entry in known) for known in self.entries.values())

    def owns(self, name: str) -> bool:
        """True if a file of this name exists and is as Sojourn wrote it."""
        path = self.folder / name
        if self._blocked(name) is not None:
            return False
        try:
            status = path.lstat()
            return stat.S_ISREG(status.st_mode) and any(
                entry.is_of(path, status) for entry in self.entries.get(name, ())
            )
        except OSError:
            return False

    def refuse_foreign(self, names: Iterable[str]) -> None:
        """Raises OutputError if there are files of these names that must not be replaced."""
        blocking = {
            self._blocked(name) or (name if os.path.lexists(self.folder / name) and not self.owns(name) else None)
            for name in names
        }
        found = sorted(name for name in blocking if name is not None)
        if not found:
            return
        shown = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
        was, it = ("was", "it") if len(found) == 1 else ("were", "them")
        is_listed = (self.folder / FILE).is_file()
        why = f"{was} changed since we wrote {it}, or not written by us" if is_listed else f"{was} there before"
        raise OutputError(
            f"{self.folder}: {shown} {why}; nothing was replaced: name another directory, or move {it} away"
        )

    def _blocked(self, name: str) -> str | None:
        """The part of a name's path that should be a folder and is not, or is a link to a folder elsewhere."""
        for parent in list(PurePosixPath(name).parents)[-2::-1]:
            path = self.folder / parent
            if path.is_symlink() or (path.exists() and not path.is_dir()):
                return str(parent)
        return None

    def write(self) -> None:
        """Writes the list atomically."""
        made_of = {name: of for name, of in self.made_of.items() if name in self.entries}
        text = msgspec.json.encode(_Document(FORMAT, self.entries, made_of), order="deterministic")
        whole.write(self.folder / FILE, msgspec.json.format(text, indent=1) + b"\n")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Locks a folder against other processes of Sojourn, if the file system supports it."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            number = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, number)
            locks.take(number, wait=True)
        yield


def sha256(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
