"""Writes result files atomically, and never over a file of the user's."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

from sojourn.files import interrupts
from sojourn.files.manifest import Entry, Manifest, OutputError, locked
from sojourn.files.workspace import Workspace

_LONGEST_NAME = 200
"""Most bytes in a file name; file systems allow 255."""


def prepare(directory: Path, names: Iterable[str] = ()) -> None:
    """Checks that files of these names can be written, before any work is done for them; raises OutputError if not."""
    if reason := unwritable(directory):
        raise OutputError(f'--out: got "{directory}"; must be a writable directory ({reason})')
    Manifest.read(directory).refuse_foreign(names)


def unwritable(directory: Path) -> str:
    """Why a directory, created if missing, cannot be written to; empty if it can."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return ""
    except OSError as error:
        return why(error)


@contextlib.contextmanager
def reserved(directory: Path | None, names: Iterable[str] = ()) -> Iterator[Workspace | None]:
    """``prepare``; within the context no other process makes runs for this directory. None reserves nothing.

    Gives a workspace. At the end it is removed unless it was left, and so is a directory that was made if it is empty.
    """
    if directory is None:
        yield None
        return
    is_new = not directory.exists()
    try:
        prepare(directory, names)
        workspace = Workspace.make(directory, for_runs=True)
        try:
            yield workspace
        finally:
            workspace.remove()
    finally:
        if is_new:
            with contextlib.suppress(OSError):
                directory.rmdir()  # only if nothing was written


def write_failed(directory: Path, error: OSError) -> str:
    """The message for a write that the operating system refused."""
    return f"{directory}: cannot write the results: {why(error)}"


def why(error: OSError) -> str:
    """The operating system's message, on one line."""
    # Libraries add text of their own to the system's message.
    return os.strerror(error.errno) if error.errno else error.strerror or " ".join(str(error).split())


def file_name(text: str) -> str:
    """A text as a file name: characters other than letters, digits, dots, plus and hyphens become underscores.

    A name too long for a file system is shortened and ends with its hash.
    """
    name = re.sub(r"[^\w.+-]+", "_", text)
    encoded = name.encode("utf-8")
    if len(encoded) <= _LONGEST_NAME:
        return name
    suffix = f"-{hashlib.sha256(encoded).hexdigest()[:8]}{PurePosixPath(name).suffix[:16]}"
    return encoded[: _LONGEST_NAME - len(suffix.encode("utf-8"))].decode("utf-8", "ignore") + suffix


class Staging:
    """Files that are written to a hidden folder of the directory and then moved into place together.

    Leaving the ``with`` block normally moves all files into place. Leaving it by an exception removes them, and the
    directories created for them. A killed process can leave the hidden folder behind, but never a partial file under a
    final name.

    Their names are relative to the folder ``inside`` of the directory. ``by`` is their writer, for the directory's list
    of our files. Files of the writers ``replaces`` are removed when the new ones are in place, unless the user has
    changed them. ``workspace`` is the hidden folder to use, which is kept; by default a new one. With ``rescue``, if a
    file of the user's blocks a new file at the end, the new files are kept beside it, in a folder named in the error.
    """

    def __init__(
        self,
        directory: Path,
        *,
        by: str = "results",
        replaces: Iterable[str] = (),
        inside: str = "",
        workspace: Workspace | None = None,
        rescue: bool = False,
    ) -> None:
        self._directory = directory
        self._by = by
        self._replaces = frozenset(replaces)
        self._inside = inside
        self.made_of: dict[str, str] = {}
        """By file: a hash of everything that determines its content, for ``has``; listed once all are in place."""
        self._given = workspace
        self._workspace: Workspace | None = None
        self._rescue = rescue
        self._known: Manifest | None = None
        """The list of our files before this."""
        self._complete: dict[str, Path] = {}
        self._ended: set[str] = set()
        self._made: list[Path] = []

    def reserve(self, name: str) -> tuple[Path, Path]:
        """Returns a temporary path to be written before the block ends, and its final path."""
        name, temporary, final = self._paths(name)
        self._complete[name] = temporary
        return temporary, final

    def has(self, name: str, made_of: str) -> Path | None:
        """The path of a file that an earlier process made of the same, if it is unchanged since."""
        relative = (PurePosixPath(self._inside) / name).as_posix()
        self._known = self._known or Manifest.read(self._directory)
        is_there = self._known.made_of.get(relative) == made_of and self._known.owns(relative)
        return self._directory / relative if is_there else None

    def add(self, name: str, write: Callable[[Path], object], made_of: str | None = None) -> Path:
        """Calls ``write`` with the path of the temporary file that becomes ``name``; returns the final path.

        A file whose writing is interrupted is removed, independently of the others. ``made_of`` is as above.
        """
        name, temporary, final = self._paths(name)
        try:
            write(temporary)
        except BaseException:
            self._complete.pop(name, None)
            temporary.unlink(missing_ok=True)
            raise
        self._complete[name] = temporary
        if made_of is not None:
            self.made_of[name] = made_of
        return final

    def end(self, name: str) -> None:
        """Removes a file of ours, unless the user has changed it, once the new files are in place."""
        self._ended.add((PurePosixPath(self._inside) / name).as_posix())

    def add_text(self, name: str, text: str) -> Path:
        """Adds a text file in UTF-8."""
        return self.add(name, lambda path: path.write_text(text, encoding="utf-8", newline="\n"))

    def add_bytes(self, name: str, content: bytes) -> Path:
        """Adds a file with this content."""
        return self.add(name, lambda path: path.write_bytes(content))

    def drop(self, final: Path) -> None:
        """Removes a file again, by its final path."""
        temporary = self._complete.pop(final.relative_to(self._directory).as_posix(), None)
        if temporary is not None:
            temporary.unlink(missing_ok=True)

    def _paths(self, name: str) -> tuple[str, Path, Path]:
        if self._workspace is None:
            raise RuntimeError("used outside of its with block")
        relative = PurePosixPath(self._inside) / name
        if relative.is_absolute() or ".." in relative.parts or not relative.name:
            raise OutputError(f'{self._directory}: got "{name}"; a file must be inside of this directory')
        temporary = self._workspace.path / "staged" / relative
        temporary.parent.mkdir(parents=True, exist_ok=True)
        return relative.as_posix(), temporary, self._directory / relative

    def __enter__(self) -> Staging:
        self._made = [path for path in (self._directory, *self._directory.parents) if not path.exists()]
        self._directory.mkdir(parents=True, exist_ok=True)
        self._workspace = self._given or Workspace.make(self._directory)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                with interrupts.held():
                    self._commit()
        except BaseException:
            kind = kind or BaseException
            raise
        finally:
            if self._workspace is not None and self._given is None:
                self._workspace.remove()
            if kind is not None:
                with contextlib.suppress(OSError):
                    for path in self._made:
                        path.rmdir()

    def _commit(self) -> None:
        """Moves the files into place, the first staged file last.

        The list of our files contains the old and the new ones before the first is moved, so that a process killed in
        between leaves none that would be taken for the user's.
        """
        if not self._complete:
            return
        for temporary in self._complete.values():
            with temporary.open("r+b") as file:  # Windows refuses to sync what is open for reading.
                os.fsync(file.fileno())
        written = {name: Entry.of(temporary, self._by) for name, temporary in self._complete.items()}
        with locked(self._directory):
            known = Manifest.read(self._directory)
            try:
                known.refuse_foreign(written)
            except OutputError as error:
                if not self._rescue or self._workspace is None:
                    raise
                beside = self._directory / f"sojourn-results-{os.getpid()}"
                (self._workspace.path / "staged").rename(beside)
                raise OutputError(f"{error}; the new files are in {beside}") from None
            ended = [
                name
                for name, entries in known.entries.items()
                if name not in written
                and (name in self._ended or self._replaces.intersection(entry.by for entry in entries))
            ]
            superseded = [self._directory / name for name in ended if known.owns(name)]
            for name, entry in written.items():
                known.entries[name] = [*known.entries.get(name, ()), entry]
                known.made_of.pop(name, None)
            known.write()
            for path in superseded:
                path.unlink(missing_ok=True)
                if path.parent != self._directory:
                    with contextlib.suppress(OSError):
                        path.parent.rmdir()
            for name, temporary in reversed(self._complete.items()):
                final = self._directory / name
                final.parent.mkdir(parents=True, exist_ok=True)
                temporary.replace(final)
            for name in ended:
                del known.entries[name]
            for name, entry in written.items():
                known.entries[name] = [entry]
            known.made_of |= {name: of for name, of in self.made_of.items() if name in written}
            known.write()
