"""The command line: ``sojourn run``, ``compare``, ``advise``, ``report``, ``export``, ``replay``, ``study``.

Data goes to standard output, everything else to standard error. Exit status: 0 success, 1 a run failed, 2 wrong
input (one line on standard error), 128 and the number of a signal that stopped it: 130 after Ctrl-C, 143 after SIGTERM.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from io import TextIOWrapper

from sojourn.cli.outcome import INTERRUPTED, complain
from sojourn.files import interrupts

TYPE_CHECKING = False  # as in sojourn/__init__.py
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn


def main() -> NoReturn:
    """Runs the command line and exits with its status."""
    try:
        sys.unraisablehook = interrupts.again
        for number in interrupts.SIGNALS:
            # A program started by nohup ignores SIGHUP.
            if number == signal.SIGTERM or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, _stop)
        # Interactive Matplotlib backends, such as a notebook's, cannot save files.
        os.environ["MPLBACKEND"] = "agg"
        if not {"serve", "shell"}.intersection(sys.argv):  # Their programs have the user's settings.
            # The threads with which NumPy multiplies matrices take longer to start than all else of it.
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
            # Arrow's own allocator takes 45 MB more from the system, and the time to clear them.
            os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
        # Results have no cycles: looking for some among the objects of many runs would take a tenth of the time.
        gc.set_threshold(200_000)
        if sys.stdout is None:  # closed by the calling process, which wants no output
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                # Replace characters that the terminal cannot show by a question mark, without a traceback.
                stream.reconfigure(errors="replace")
        if sys.argv[1:] == ["--version"]:
            # Answer without loading the command-line parser.
            from sojourn import _core

            print(f"sojourn {_core.version}")
            _leave(0)
        # Import here: loading the commands takes so long that a Ctrl-C may arrive meanwhile.
        from sojourn.cli.app import status

        code = status()
        if interrupts.is_lost():
            raise KeyboardInterrupt
        _leave(code)
    except KeyboardInterrupt:
        complain("sojourn: interrupted")
        _leave(INTERRUPTED)


def _leave(status: int) -> NoReturn:
    """Exits without waiting for threads that hang in a user's Python code."""
    status = interrupts.exit_status() if status == INTERRUPTED else status
    # Do not import modules now: the interrupt may have arrived during an import.
    left_behind = getattr(sys.modules.get("sojourn.runs.executors"), "left_behind", None)
    if left_behind is not None and left_behind():
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, AttributeError, ValueError):
                stream.flush()
        os._exit(status)
    # At its end Python looks for cycles among all objects, which takes longer than loading them.
    gc.freeze()
    sys.exit(status)


def _stop(number: int, _frame: FrameType | None) -> None:
    interrupts.received(number)
    raise KeyboardInterrupt
