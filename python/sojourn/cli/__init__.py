"""The command line: ``sojourn run``, ``compare``, ``report``, ``export``, ``replay``, ``list``, ``doctor``, ``study``.

Data goes to standard output, everything else to standard error. Exit status: 0 done, 1 a run failed, 2 the input is
wrong (one line on standard error), 130 interrupted.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from io import TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import NoReturn

from sojourn.cli.outcome import INTERRUPTED, complain


def main() -> NoReturn:
    """Runs the command line and exits with its status."""
    try:
        signal.signal(signal.SIGTERM, _terminate)
        # Backends that draw on a screen, as in a notebook, cannot save files.
        os.environ["MPLBACKEND"] = "agg"
        if sys.stdout is None:  # closed by the calling process, which does not want the output
            sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                # A terminal that cannot show a character shows a question mark; there is no traceback.
                stream.reconfigure(errors="replace")
        # Loading the commands takes long enough for a Ctrl-C to arrive meanwhile.
        from sojourn.cli.app import status

        _leave(status())
    except KeyboardInterrupt:
        complain("sojourn: interrupted")
        _leave(INTERRUPTED)


def _leave(status: int) -> NoReturn:
    """Ends the process without waiting for threads that hang in a user's Python code."""
    # Do not load modules now: an interrupt may have come while one was being loaded.
    left_behind = getattr(sys.modules.get("sojourn.executors"), "left_behind", None)
    if left_behind is not None and left_behind():
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, AttributeError, ValueError):
                stream.flush()
        os._exit(status)
    sys.exit(status)


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
