"""Progress on standard error, for anything that takes longer than a second."""

from __future__ import annotations

import sys

from sojourn.frame.later import rich_console
from sojourn.frame.later import rich_progress as bars
from sojourn.runs.execution import Progress

QUIET_S = 1.0  # seconds before anything is shown
LINE_EVERY_S = 5.0  # seconds between lines if standard error is not a terminal


class Display:
    """Shows progress: a live bar on a terminal, otherwise an occasional line. Call it with each report."""

    def __init__(self, what: str = "runs", *, then: str = "", again: str = "stops at once", keeps: bool = True) -> None:
        """After a Ctrl-C: whether finished runs are kept, and what happens ``then``; what it does ``again``."""
        self._what = what
        self._then = then
        self._again = again
        self._keeps = keeps
        self._bar: bars.Progress | None = None
        self._last_line_s = -LINE_EVERY_S

    def __call__(self, progress: Progress) -> None:
        """Shows the progress of the runs once they have run long enough."""
        if progress.stopping:
            self._hide()
            done = f"{progress.finished} finished of {progress.runs} {self._what}"
            kept = f"keeping {done}{self._then}" if self._keeps else f"{done}, nothing kept"
            print(f"interrupted: {kept}; another Ctrl-C {self._again}", file=sys.stderr, flush=True)
            return
        if progress.elapsed_s < QUIET_S or progress.finished == progress.runs:
            return
        left = "time left unknown"
        if progress.left_s is not None:
            minutes, seconds = divmod(max(0, round(progress.left_s)), 60)
            hours, minutes = divmod(minutes, 60)
            left = f"{hours}:{minutes:02}:{seconds:02} left" if hours else f"{minutes}:{seconds:02} left"
        if sys.stderr.isatty():
            self._draw(progress, left)
        # The time begins again with each round of repeats.
        elif not 0.0 <= progress.elapsed_s - self._last_line_s < LINE_EVERY_S:
            self._last_line_s = progress.elapsed_s
            done = f"{progress.finished} of {progress.runs} {self._what}"
            print(f"{done}, {progress.fraction:.0%}, {left}", file=sys.stderr, flush=True)

    def _draw(self, progress: Progress, left: str) -> None:
        if self._bar is None:
            console = rich_console.Console(stderr=True)
            left_column = bars.TextColumn("{task.fields[left]}")
            columns = (bars.TextColumn(self._what), bars.BarColumn(), bars.MofNCompleteColumn(), left_column)
            self._bar = bars.Progress(*columns, console=console, transient=True)
            self._bar.add_task(self._what, total=progress.runs, left=left)
            self._bar.start()
        # Rounds of repeats have different numbers of runs.
        task, total = self._bar.task_ids[0], progress.runs
        self._bar.update(task, total=total, completed=progress.fraction * total, left=left)

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *_: object) -> None:
        self._hide()

    def _hide(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
