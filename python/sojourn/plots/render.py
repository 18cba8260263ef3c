"""Saves many figures, on all processors: run as a program, it saves the pickled figures whose files it is given."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sojourn.executors import default_workers
from sojourn.filenames import FORMATS
from sojourn.plots.style import save, settle

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sojourn.storage import Staging

WORTH_A_PROCESS = 6
"""Figures for which another process is started; it needs about as long to start as to save three."""

Files = list[tuple[Path, str]]
"""Where a figure goes, and in which format."""


def save_all(
    staging: Staging,
    drawn: Sequence[tuple[str, Figure]],
    formats: Sequence[str] = FORMATS,
    made_of: str | None = None,
) -> list[Path]:
    """Stages figures, given with their names, in each format; ``made_of`` as for ``Staging.add``.

    Raises
    ------
    OSError
        A file cannot be written.
    """
    processes = min(default_workers(), len(drawn) // WORTH_A_PROCESS)
    if processes < 2 or not formats:
        return [path for name, figure in drawn for path in save(staging, name, figure, formats, made_of)]
    finals: list[Path] = []
    shares: list[list[tuple[Figure, Files]]] = [[] for _ in range(processes)]
    for index, (name, figure) in enumerate(drawn):
        places = [(*staging.reserve(f"{name}.{kind}", made_of), kind) for kind in formats]
        finals += [final for _, final, _ in places]
        shares[index % processes].append((figure, [(temporary, kind) for temporary, _, kind in places]))
    with TemporaryDirectory(prefix="sojourn-") as folder:
        running: list[subprocess.Popen[bytes]] = []
        try:
            for index, share in enumerate(shares[1:]):
                pickled = Path(folder) / f"{index}.pickle"
                pickled.write_bytes(pickle.dumps(share))
                # -P: a module in the user's folder must not take the place of one that is imported.
                command = [sys.executable, "-P", "-m", "sojourn.plots.render", str(pickled)]
                running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE))
            _save_each(shares[0])
            for process in running:
                _, errors = process.communicate()
                if process.returncode:
                    raise OSError(errors.decode(errors="replace").strip().rpartition("\n")[2] or "figures: not saved")
        except BaseException:
            for final in finals:
                staging.drop(final)
            raise
        finally:
            for process in running:
                process.kill()
                process.wait()
    return finals


def _save_each(share: Sequence[tuple[Figure, Files]]) -> None:
    for figure, files in share:
        settle(figure)
        for path, kind in files:
            figure.savefig(path, format=kind)


def _main(pickled: Sequence[str]) -> int:
    """Saves the figures of these files, which ``save_all`` has written for its own processes."""
    for name in pickled:
        try:
            _save_each(pickle.loads(Path(name).read_bytes()))
        except OSError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
