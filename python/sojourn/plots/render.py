"""Draws and saves many figures, on all processors: run as a program, it saves the pickled figures that it is sent."""

from __future__ import annotations

import atexit
import contextlib
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, TYPE_CHECKING

from sojourn.executors import default_workers
from sojourn.filenames import FORMATS
from sojourn.plots.style import save, settle

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sojourn.storage import Staging

WORTH_A_PROCESS = 6
"""Figures for which another process is started; it needs about as long to start as to save three."""
AHEAD = 2
"""Figures given to another process at a time, so that it has one to save when it has saved one."""

Files = list[tuple[Path, str]]
"""Where a figure goes, and in which format."""


def save_all(
    staging: Staging,
    drawings: Sequence[tuple[str, Callable[[], Figure]]],
    formats: Sequence[str] = FORMATS,
    made_of: str | None = None,
) -> list[Path]:
    """Draws figures, given with their names, and stages them in each format; ``made_of`` as for ``Staging.add``.

    Figures are drawn here, one after another, and saved by another process unless all have enough to do.

    Raises
    ------
    OSError
        A file cannot be written.
    """
    helpers = _helpers(min(default_workers(), len(drawings) // WORTH_A_PROCESS) - 1) if formats else []
    if not helpers:
        return [path for name, draw in drawings for path in save(staging, name, draw(), formats, made_of)]
    finals: list[Path] = []
    try:
        for name, draw in drawings:
            figure = draw()
            places = [(*staging.reserve(f"{name}.{kind}", made_of), kind) for kind in formats]
            finals += [final for _, final, _ in places]
            share = [(figure, [(temporary, kind) for temporary, _, kind in places])]
            helper = min(helpers, key=lambda helper: helper.to_do)
            if helper.to_do < AHEAD:
                helper.save(share)
            else:
                _save_each(share)
        for helper in helpers:
            helper.wait()
    except BaseException:
        _end_helpers()
        for final in finals:
            staging.drop(final)
        raise
    return finals


class _Helper:
    """Another process that saves figures; it stays until this one ends."""

    def __init__(self) -> None:
        # -P: a module in the user's folder must not take the place of one that is imported.
        command = [sys.executable, "-P", "-m", "sojourn.plots.render"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._to: IO[bytes] = self._process.stdin
        self._from: IO[bytes] = self._process.stdout
        self._thread = ThreadPoolExecutor(1)
        """Talks to the process, which reads no figures while it saves one."""
        # It first says that it has started.
        self._asked = [self._thread.submit(self._hear)]

    @property
    def to_do(self) -> int:
        """The number of figures that it has not saved yet."""
        return sum(not one.done() for one in self._asked)

    def save(self, share: Sequence[tuple[Figure, Files]]) -> None:
        """Has figures saved."""
        self._asked.append(self._thread.submit(self._ask, pickle.dumps(share)))

    def wait(self) -> None:
        """Waits until all is saved.

        Raises
        ------
        OSError
            A file could not be written.
        """
        for one in self._asked:
            one.result()
        self._asked.clear()

    def _ask(self, content: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # _hear tells
            self._to.write(len(content).to_bytes(8) + content)
            self._to.flush()
        self._hear()

    def _hear(self) -> None:
        answer = self._from.readline().decode(errors="replace")
        if answer != "\n":
            raise OSError(answer.strip() or "figures: not saved")

    def end(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        self._thread.shutdown()
        for pipe in (self._to, self._from):
            with contextlib.suppress(OSError):
                pipe.close()


_started: list[_Helper] = []


def _helpers(count: int) -> list[_Helper]:
    """The processes that help, at least ``count`` of them if it is positive."""
    if not _started and count > 0:
        atexit.register(_end_helpers)
    while len(_started) < count:
        _started.append(_Helper())
    return list(_started)


def _end_helpers() -> None:
    while _started:
        _started.pop().end()


def _save_each(share: Sequence[tuple[Figure, Files]]) -> None:
    for figure, files in share:
        settle(figure)
        for path, kind in files:
            figure.savefig(path, format=kind)


def _main() -> int:
    """Saves the figures that ``save_all`` of another process sends, and answers each time with a line."""
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr
    error = ""
    while True:
        answers.write(f"{error}\n".encode())
        answers.flush()
        size = sys.stdin.buffer.read(8)
        if not size:
            return 0
        try:
            _save_each(pickle.loads(sys.stdin.buffer.read(int.from_bytes(size))))
            error = ""
        except Exception as failed:
            error = " ".join(str(failed).split()) or type(failed).__name__


if __name__ == "__main__":
    sys.exit(_main())
