"""Initial file systems for Linux: cpio archives in the "newc" format (Documentation/driver-api/early-userspace)."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from pathlib import PurePosixPath


class Archive:
    """An archive in memory. Equal content yields equal bytes: there are no times, and root owns everything."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._seen: set[PurePosixPath] = set()

    def add_file(self, path: str, content: bytes, *, executable: bool = False) -> None:
        """Adds a regular file and its missing parent directories. An existing file is kept."""
        target = PurePosixPath(path.lstrip("/"))
        if target not in self._seen:
            self.add_directories([target.parent])
            self._add(target, stat.S_IFREG | (0o755 if executable else 0o644), content)

    def add_directories(self, paths: Iterable[PurePosixPath | str]) -> None:
        """Adds directories and their parents."""
        for path in map(PurePosixPath, paths):
            for directory in (*reversed(path.parents), path):
                if directory != PurePosixPath(".") and directory not in self._seen:
                    self._add(directory, stat.S_IFDIR | 0o755)

    def add_device(self, path: str, major: int, minor: int) -> None:
        """Adds a character device."""
        target = PurePosixPath(path.lstrip("/"))
        self.add_directories([target.parent])
        self._add(target, stat.S_IFCHR | 0o600, device=(major, minor))

    def to_bytes(self) -> bytes:
        """The whole archive."""
        return b"".join([*self._parts, _entry(0, "TRAILER!!!", 0, b"", (0, 0))])

    def _add(self, path: PurePosixPath, mode: int, content: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        self._seen.add(path)
        self._parts.append(_entry(len(self._seen), str(path), mode, content, device))


def _entry(number: int, path: str, mode: int, content: bytes, device: tuple[int, int]) -> bytes:
    name = path.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(name), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
    return _padded(head) + _padded(content)


def _padded(part: bytes) -> bytes:
    return part + b"\0" * (-len(part) % 4)
