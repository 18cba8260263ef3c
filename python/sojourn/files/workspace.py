"""A hidden folder for unfinished results in their directory, or for temporary files, locked while its process lives."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from sojourn.files import locks
from sojourn.files.manifest import OutputError, locked

_NAME = re.compile(r"\.sojourn-(\d+)-[0-9a-f]{6}\.partial")
_LOCK = "lock"
_RUNS = "runs"
"""A file that marks the folder of a process that makes runs."""

_ours: set[Path] = set()
"""The folders of this process."""


class Workspace:
    """A hidden folder. One left behind by a killed process can be taken over or removed."""

    def __init__(self, path: Path, lock: IO[bytes]) -> None:
        self.path = path.absolute()
        self._lock = lock
        _ours.add(self.path)

    @classmethod
    def make(cls, directory: Path, *, for_runs: bool = False) -> Workspace:
        """Creates a new one. ``for_runs``: raises OutputError if another process makes runs for the directory."""
        path = directory / f".sojourn-{os.getpid()}-{os.urandom(3).hex()}.partial"
        with locked(directory):
            if for_runs:
                _refuse_others(directory)
            path.mkdir()
            try:
                if for_runs:
                    (path / _RUNS).touch()
                lock = _take_lock(path)
                if lock is None:
                    raise OSError(f"{path}: another process has taken it")
            except BaseException:
                shutil.rmtree(path, ignore_errors=True)
                raise
        return cls(path, lock)

    @classmethod
    def left_behind(cls, directory: Path) -> list[Workspace]:
        """Takes over the folders in a directory whose processes have ended."""
        with locked(directory):
            return [cls(path, lock) for path, _, lock in _others(directory) if lock is not None]

    def remove(self) -> None:
        """Removes it with its content, unless it was left or removed."""
        if self._lock.closed:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        self.leave()
        if sys.platform == "win32":  # An open file cannot be removed there.
            shutil.rmtree(self.path, ignore_errors=True)

    def leave(self) -> None:
        """Releases it for another process."""
        _ours.discard(self.path)
        self._lock.close()


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder for temporary files, removed at the end, as those of killed processes. Raises OSError."""
    if sys.platform == "win32":
        raise NotImplementedError("runs on Linux need it, and they are refused here before")
    directory = Path(tempfile.gettempdir(), f"sojourn-{os.geteuid()}")
    workspace = None
    while workspace is None:
        directory.mkdir(0o700, exist_ok=True)
        about = directory.lstat()
        if about.st_uid != os.geteuid() or not stat.S_ISDIR(about.st_mode):
            raise PermissionError(errno.EACCES, "is not a folder of this user", str(directory))
        # Another process may remove it while it is empty.
        with contextlib.suppress(FileNotFoundError):
            for killed in Workspace.left_behind(directory):
                killed.remove()
            workspace = Workspace.make(directory)
    try:
        yield workspace.path
    finally:
        workspace.remove()
        with contextlib.suppress(OSError):
            directory.rmdir()


def _refuse_others(directory: Path) -> None:
    """Checks that no other process makes runs whose results go to a directory."""
    for path, process, lock in _others(directory):
        if lock is not None:
            lock.close()
        elif (path / _RUNS).is_file():
            raise OutputError(
                f'--out: got "{directory}"; process {process} is making runs for it: wait for its end, or name '
                "another directory"
            )


def _others(directory: Path) -> Iterator[tuple[Path, str, IO[bytes] | None]]:
    """The folders in a directory that this process does not have, with their process; locked if that has ended."""
    for path in sorted(directory.glob(".sojourn-*.partial")):
        named = _NAME.fullmatch(path.name)
        if named is not None and path.is_dir() and not path.is_symlink() and path.absolute() not in _ours:
            yield path, named[1], _take_lock(path) if (path / _LOCK).is_file() else None


def _take_lock(path: Path) -> IO[bytes] | None:
    """Takes the lock of a folder; None if a living process has it."""
    lock = (path / _LOCK).open("ab")
    if locks.take(lock.fileno()):
        return lock
    lock.close()
    return None
