"""How commands end: exit statuses, and one line on standard error."""

from __future__ import annotations

import sys

from sojourn.files import extras

TYPE_CHECKING = False  # as in sojourn/__init__.py
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn import _core
    from sojourn.frame.results import Run
    from sojourn.runs.backends import Backend

DONE = 0
FAILED = 1
WRONG_INPUT = 2
INTERRUPTED = 130
"""By Ctrl-C. ``interrupts.exit_status`` is the status after another signal."""
LONGEST = 2000
"""The longest error message in characters; only a user's code produces longer ones."""


class Stopped(Exception):
    """Ends a command with a status and a line for the user."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def complain(message: str) -> None:
    """Prints an error on one line of standard error, without control characters."""
    line = " ".join(message.split())
    if len(line) > LONGEST:
        line = f"{line[:LONGEST]}… ({len(line)} characters)"
    print("".join(one if one.isprintable() else repr(one)[1:-1] for one in line), file=sys.stderr)


def announce_notes(backend: Backend, plan: _core.Plan) -> None:
    """Prints on standard error how a backend differs from the plan's requirements."""
    for note in backend.notes(plan):
        print(f"note: {note}", file=sys.stderr)


def announce_lacking(figures: Sequence[str]) -> None:
    """Prints on standard error what a folder of results will lack, because a package is not installed."""
    if not figures and not extras.is_installed("matplotlib"):
        print(f"note: no figures: {extras.needed('matplotlib')}", file=sys.stderr)
    if not extras.is_installed("pyarrow"):
        print(f"note: no recorded tables: {extras.needed('pyarrow')}", file=sys.stderr)


def announce_unkept(plan: _core.Plan) -> None:
    """Prints on standard error what a run without ``--out`` records in vain."""
    if plan.recorded:
        print(f"note: [record]: {', '.join(plan.recorded)} will not be kept; --out DIR keeps them", file=sys.stderr)


def stop_reason(stopped_by: BaseException, kept: str) -> Stopped:
    """The error for runs that were stopped early; ``kept`` tells which results exist."""
    if isinstance(stopped_by, KeyboardInterrupt):
        return Stopped(INTERRUPTED, f"interrupted; {kept}")
    if isinstance(stopped_by, OSError) and stopped_by.filename is not None:
        return Stopped(FAILED, f"{stopped_by.filename}: {stopped_by.strerror}; {kept}")
    return Stopped(FAILED, f"{stopped_by}; {kept}")


def refuse_invalid(runs: Sequence[Run]) -> None:
    """Ends the command if some of its runs are invalid. Raises Stopped if a run is invalid; the message says why."""
    invalid = [run for run in runs if "invalid" in run.summary]
    if invalid:
        first = invalid[0]
        reason = "; ".join(first.summary["invalid"])
        count = f"{len(invalid)} of {len(runs)} runs are invalid"
        raise Stopped(FAILED, f"{count}: {first.label}, seed {first.seed}: {reason}")
