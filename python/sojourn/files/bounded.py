"""Reads input files of limited size: only regular files."""

from __future__ import annotations

import gzip
import io
import stat
import zlib
from pathlib import Path

from sojourn._core import ExperimentError

MEGABYTE = 1_000_000
LARGEST_TEXT = 16 * MEGABYTE
"""Largest experiment file, study file or Python file."""
LARGEST_EVENTS = 2_000 * MEGABYTE
"""Largest recording, uncompressed: some hundred million events."""
LARGEST_RESULTS = 4_000 * MEGABYTE
"""Largest summary.json or experiment.json: some hundred thousand runs."""

_GZIP = b"\x1f\x8b"


def check(path: Path, largest: int) -> None:
    """Checks that a path is a regular file of at most ``largest`` bytes, or none. Raises ExperimentError, OSError."""
    try:
        status = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise ExperimentError(f'{path}: is a link to "{path.readlink()}", which does not exist') from None
        return  # The reader of the file reports the error.
    if stat.S_ISDIR(status.st_mode):
        raise ExperimentError(f"{path}: is a directory; must be a file")
    if not stat.S_ISREG(status.st_mode):
        raise ExperimentError(f"{path}: is a pipe or a device; must be a regular file")
    if status.st_size > largest:
        raise ExperimentError(f"{path}: {_size(status.st_size)}; at most {_size(largest)} are read")


def read_bytes(path: Path, largest: int) -> bytes:
    """Reads a file. Raises ExperimentError if it is not a regular file, or too large, and OSError."""
    check(path, largest)
    with path.open("rb") as file:
        content = file.read(largest + 1)
    if len(content) > largest:
        raise ExperimentError(f"{path}: grew while it was read; at most {_size(largest)} are read")
    return content


def read_given(path: Path, largest: int) -> bytes:
    """Reads a file that a user named; as ``read_bytes``, and ExperimentError in place of OSError."""
    try:
        return read_bytes(path, largest)
    except OSError as error:
        raise ExperimentError(f"{path}: cannot be read: {error.strerror or error}") from None


def read_text(path: Path, largest: int) -> str:
    """Reads a file as UTF-8; errors as for ``read_bytes``, and ExperimentError if it is not UTF-8."""
    try:
        return read_bytes(path, largest).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ExperimentError(f"{path}: not UTF-8 text (byte {error.start})") from None


def unzipped(content: bytes, path: Path, largest: int) -> bytes:
    """Decompresses content if it is compressed by gzip. Raises ExperimentError if it is too large, or incomplete."""
    if not content.startswith(_GZIP):
        return content
    found = bytearray()
    try:
        with gzip.open(io.BytesIO(content)) as file:
            while len(found) <= largest and (more := file.read(MEGABYTE)):
                found += more
    except EOFError:
        raise ExperimentError(f"{path}: incomplete or damaged gzip file: it ends early") from None
    except (zlib.error, OSError) as error:
        raise ExperimentError(f"{path}: incomplete or damaged gzip file: {error}") from None
    if len(found) > largest:
        raise ExperimentError(f"{path}: decompresses to more than {_size(largest)}, the most that is read")
    return bytes(found)


def _size(count: int) -> str:
    return f"{count / MEGABYTE:,.0f} MB" if count >= MEGABYTE else f"{count:,} bytes"
