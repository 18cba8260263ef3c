"""Input files, none of which is read without a bound: regular files of a sane size."""

from __future__ import annotations

import stat
import zlib
from pathlib import Path

from sojourn._core import ExperimentError

MEGABYTE = 1_000_000
LARGEST_TEXT = 16 * MEGABYTE
"""Of an experiment file, a study's file, a Python file."""
LARGEST_EVENTS = 2_000 * MEGABYTE
"""Of recorded events, plain: some hundred million of them."""
LARGEST_RESULTS = 4_000 * MEGABYTE
"""Of summary.json and experiment.json: some hundred thousand runs."""

_GZIP = b"\x1f\x8b"


def check(path: Path, largest: int) -> None:
    """Makes sure that there is a regular file of at most so many bytes, or no file at all.

    Raises
    ------
    ExperimentError
        It is something else, or larger.
    OSError
        The file cannot be looked at.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise ExperimentError(f'{path}: is a link to "{path.readlink()}", which is not there') from None
        return  # Whoever reads it has the words for that.
    if stat.S_ISDIR(status.st_mode):
        raise ExperimentError(f"{path}: is a directory; must be a file")
    if not stat.S_ISREG(status.st_mode):
        raise ExperimentError(f"{path}: is a pipe or a device; must be a regular file")
    if status.st_size > largest:
        raise ExperimentError(f"{path}: {_size(status.st_size)}; at most {_size(largest)} are read")


def read_bytes(path: Path, largest: int) -> bytes:
    """A file's content.

    Raises
    ------
    ExperimentError
        It is no regular file, or larger.
    OSError
        It cannot be read.
    """
    check(path, largest)
    with path.open("rb") as file:
        content = file.read(largest + 1)
    if len(content) > largest:
        raise ExperimentError(f"{path}: grows while it is read; at most {_size(largest)} are read")
    return content


def read_text(path: Path, largest: int) -> str:
    """A file's content as UTF-8; errors as of ``read_bytes``, and ExperimentError if it is something else."""
    try:
        return read_bytes(path, largest).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ExperimentError(f"{path}: not UTF-8 text (byte {error.start})") from None


def unzipped(content: bytes, path: Path, largest: int) -> bytes:
    """Content that may be compressed by gzip, as it was before.

    Raises
    ------
    ExperimentError
        It is larger, or no whole gzip file.
    """
    if not content.startswith(_GZIP):
        return content
    parts: list[bytes] = []
    room = largest
    rest = content
    try:
        while rest:  # A gzip file is one member or several, one after another.
            member = zlib.decompressobj(wbits=31)
            parts.append(member.decompress(rest, room + 1))
            room -= len(parts[-1])
            if room < 0:
                raise ExperimentError(f"{path}: decompresses to more than {_size(largest)}, the most that is read")
            if not member.eof:
                raise ExperimentError(f"{path}: not a whole gzip file: it ends early")
            rest = member.unused_data.lstrip(b"\0")
    except zlib.error as error:
        raise ExperimentError(f"{path}: not a whole gzip file: {error}") from None
    return b"".join(parts)


def _size(count: int) -> str:
    return f"{count / MEGABYTE:,.0f} MB" if count >= MEGABYTE else f"{count:,} bytes"
