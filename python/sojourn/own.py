"""Queue disciplines of one's own, written in Python: slower than ours, in the same experiments."""

from __future__ import annotations

import hashlib
import inspect
import runpy
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sojourn import _core, bounded
from sojourn.bounded import LARGEST_TEXT

Class = TypeVar("Class", bound=type)

LOADED: dict[str, str] = {}
"""SHA-256 of the files that ``load`` ran, which say what own disciplines do."""


def register_aqm(name: str, cls: type) -> None:
    """Makes a class usable as ``aqm = "name"`` in experiments; an own one of the same name is replaced.

    An object of the class governs one FIFO. Times are in seconds of the run; each method is optional, but the class
    needs ``enqueue`` or ``dequeue``:

    - ``enqueue(packet, queue, now)`` and ``dequeue(packet, queue, now)`` return ``"pass"`` (or None), ``"mark"``
      (a drop if the packet is not ECN-capable or the queue has no ``ecn = true``) or ``"drop"``. ``queue`` holds what
      is queued besides the packet; ``queue.random()`` is the only source of random numbers that keeps runs repeatable.
    - ``update(queue, now)`` is called every ``self.update_interval`` seconds, an attribute that may change.
    - ``overflow(queue, now)``: an arrival found no room. ``empty(queue, now)``: there was nothing to dequeue.
    - ``state()`` returns numbers by name, for the recorded series.

    Parameters
    ----------
    name
        Lower-case letters, digits and underscores; not that of a discipline of Sojourn.
    cls
        Its constructor's parameters are the discipline's keys. A default says what a key accepts and in which unit
        the object gets it: ``"5 ms"`` a time (seconds), ``"10 Mbit/s"`` a rate (bit/s), ``"83 packets"`` or
        ``"1514 B"`` a size (bytes), else a number or a flag. ``mtu`` (bytes) and ``rate`` (bit/s) without a default
        are those of the link; ``ecn`` is the queue's.

    Raises
    ------
    ExperimentError
        The name is taken or malformed, or a parameter has no default that says what it is.
    """
    parameters = [
        (parameter.name, [] if parameter.default is parameter.empty else [parameter.default])
        for parameter in inspect.signature(cls).parameters.values()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    summary = (inspect.getdoc(cls) or "").partition("\n")[0].rstrip(".")
    _core.register_aqm(name, cls, summary, parameters)


def unregister_aqm(name: str) -> None:
    """Forgets the class registered under a name.

    Raises
    ------
    ExperimentError
        There is none.
    """
    _core.unregister_aqm(name)


def aqm(name: str) -> Callable[[Class], Class]:
    """``register_aqm`` as a decorator of the class."""

    def register(cls: Class) -> Class:
        register_aqm(name, cls)
        return cls

    return register


def load(file: Path) -> None:
    """Runs a Python file that registers disciplines.

    Raises
    ------
    ExperimentError
        The file cannot be read, or raises an exception.
    """
    if not file.exists() and not file.is_symlink():
        raise _core.ExperimentError(f"{file}: No such file")
    try:
        LOADED[str(file)] = hashlib.sha256(bounded.read_bytes(file, LARGEST_TEXT)).hexdigest()
    except OSError as error:
        raise _core.ExperimentError(f"{file}: cannot be read: {error.strerror or error}") from None
    try:
        # Named after the file, as an import would: the class is shown as what defines it.
        runpy.run_path(str(file), run_name=file.stem)
    except _core.ExperimentError as error:
        raise _core.ExperimentError(f"{file}:{_line(error, file)}: {error}") from error
    except SyntaxError as error:
        line = f":{error.lineno}" if error.lineno else ""
        raise _core.ExperimentError(f"{file}{line}: not Python: {error.msg}") from error
    except SystemExit as error:
        code = "" if error.code is None else f" with {error.code!r}"
        raise _core.ExperimentError(f"{file}:{_line(error, file)}: ends the program{code}; must return") from error
    except Exception as error:
        raise _core.ExperimentError(f"{file}:{_line(error, file)}: {type(error).__name__}: {error}") from error


def _line(error: BaseException, file: Path) -> int | str:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return (lines[-1] or "?") if lines else "?"
