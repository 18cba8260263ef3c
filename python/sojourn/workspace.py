"""A hidden folder in the output directory for unfinished results, locked while its process lives."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from pathlib import Path
from typing import IO

from sojourn.manifest import locked

_NAME = re.compile(r"\.sojourn-\d+-[0-9a-f]{6}\.partial")
_LOCK = "lock"


class Workspace:
    """A hidden folder. One left behind by a killed process can be taken over or removed."""

    def __init__(self, path: Path, lock: IO[bytes]) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def make(cls, directory: Path) -> Workspace:
        """Creates a new one in a directory."""
        path = directory / f".sojourn-{os.getpid()}-{secrets.token_hex(3)}.partial"
        with locked(directory):
            path.mkdir()
            try:
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
        found = []
        with locked(directory):
            for path in sorted(directory.glob(".sojourn-*.partial")):
                is_ours = _NAME.fullmatch(path.name) and path.is_dir() and not path.is_symlink()
                lock = _take_lock(path) if is_ours and (path / _LOCK).is_file() else None
                if lock is not None:
                    found.append(cls(path, lock))
        return found

    def remove(self) -> None:
        """Removes it with its content."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.leave()

    def leave(self) -> None:
        """Releases it for another process."""
        self._lock.close()


def _take_lock(path: Path) -> IO[bytes] | None:
    """Takes the lock of a folder; None if a living process has it."""
    lock = (path / _LOCK).open("ab")
    with contextlib.suppress(ImportError):
        import fcntl

        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return None
        except OSError:
            pass  # A file system without locks.
    return lock
