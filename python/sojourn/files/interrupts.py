"""Requests to stop: Ctrl-C, and other signals like it, as a counter instead of an exception.

So no file is left half-written.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

TYPE_CHECKING = False  # as in sojourn/__init__.py
if TYPE_CHECKING:
    from sys import UnraisableHookArgs

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name))
"""The signals that ask a command to stop: of the user, a supervisor, a terminal that is closed."""

AGAIN_S = 0.05
"""After this time an interruption that had no effect comes again."""

_received: list[int] = []
_lost = threading.Event()


def received(number: int) -> None:
    """Remembers a signal that asked to stop."""
    _received.append(number)
    _lost.clear()


def again(unraisable: UnraisableHookArgs) -> None:
    """For ``sys.unraisablehook``: a KeyboardInterrupt in a destructor ends nothing, so it comes again."""
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)
        return
    _lost.set()
    timer = threading.Timer(AGAIN_S, _thread.interrupt_main, _received[-1:])
    timer.daemon = True
    with suppress(RuntimeError):  # at the end of the program, which starts no threads
        timer.start()


def is_lost() -> bool:
    """True if an interruption had no effect yet."""
    return _lost.is_set()


def exit_status() -> int:
    """The exit status after a request to stop: 128 and the number of the first signal, 130 for Ctrl-C."""
    return 128 + (_received[0] if _received else signal.SIGINT)


Presses = list[int]
"""The signals by which the user has asked to stop."""


@contextmanager
def held() -> Iterator[Presses]:
    """Counts Ctrl-C, and other such signals, instead of raising KeyboardInterrupt. Only in the main thread."""
    presses = Presses()

    def count(number: int, _: object) -> None:
        received(number)
        presses.append(number)

    previous: dict[signal.Signals, Callable[..., object]] = {}
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                previous[number] = handler
                signal.signal(number, count)
    try:
        yield presses
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
