"""Result files: written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType


class OutputError(ValueError):
    """The output directory cannot be used; the message is one line."""


def prepare(directory: Path) -> None:
    """Makes sure that results can be written to ``directory``, before any work is done for them.

    Raises
    ------
    OutputError
        It cannot be created or written to, or is no directory.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / f".sojourn-{os.getpid()}.partial"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OutputError(f'--out: got "{directory}"; must be a writable directory ({_why(error)})') from None


def write_failed(directory: Path, error: OSError) -> str:
    """One line for a write that the operating system refused halfway."""
    return f"{directory}: cannot write the results: {_why(error)}"


def _why(error: OSError) -> str:
    return error.strerror or " ".join(str(error).split())


def file_name(text: str) -> str:
    """A text as the name of a file: what is not a letter, digit, dot, plus or hyphen becomes an underscore."""
    return re.sub(r"[^\w.+-]+", "_", text)


class Staging:
    """Files written under hidden temporary names and put in place together, in the order in which they were added.

    Leaving the ``with`` block normally puts all files in place; leaving it by an exception removes them, and the
    directories that were made for them. A killed process can leave hidden ``*.partial`` files behind, but never half a
    file under a final name.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._temporary: set[Path] = set()
        self._complete: dict[Path, Path] = {}
        self._superseded: tuple[str, ...] = ()
        self._made: list[Path] = []

    def reserve(self, name: str) -> tuple[Path, Path]:
        """A temporary path to be filled before the block ends, and the final path that it will get."""
        temporary, final = self._paths(name)
        self._complete[final] = temporary
        return temporary, final

    def add(self, name: str, write: Callable[[Path], object]) -> Path:
        """Lets ``write`` fill the temporary file that will become ``name``; returns the final path.

        A file whose writing is interrupted is dropped, whatever becomes of the others.
        """
        temporary, final = self._paths(name)
        write(temporary)
        self._complete[final] = temporary
        return final

    def add_text(self, name: str, text: str) -> Path:
        """A text file, UTF-8."""
        return self.add(name, lambda path: path.write_text(text, encoding="utf-8"))

    def supersede(self, patterns: Iterable[str]) -> None:
        """Whatever in the directory is called like one of these is removed when the new files are put in place."""
        self._superseded = tuple(patterns)

    def _paths(self, name: str) -> tuple[Path, Path]:
        final = self._directory / name
        temporary = final.with_name(f".{final.name}.{os.getpid()}.partial")
        self._temporary.add(temporary)
        return temporary, final

    def __enter__(self) -> Staging:
        self._made = [path for path in (self._directory, *self._directory.parents) if not path.exists()]
        self._directory.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._commit()
        finally:
            for temporary in self._temporary:
                temporary.unlink(missing_ok=True)
            if kind is not None:
                with contextlib.suppress(OSError):
                    for path in self._made:
                        path.rmdir()

    def _commit(self) -> None:
        for temporary in self._complete.values():
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
        for old in {path for pattern in self._superseded for path in self._directory.glob(pattern)}:
            if old not in self._complete and old.is_file():
                old.unlink()
                if old.parent != self._directory:
                    with contextlib.suppress(OSError):
                        old.parent.rmdir()
        for final, temporary in self._complete.items():
            temporary.replace(final)
