"""User-defined disciplines and congestion controls in Python: slower than those in Rust, in the same experiments."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import runpy
import sys
import traceback
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Literal, NamedTuple, TypeVar

from sojourn import _core
from sojourn.files import bounded

Class = TypeVar("Class", bound=type)
Kind = Literal["aqm", "congestion_control"]

METHODS: dict[Kind, dict[str, tuple[str, ...]]] = {
    "aqm": {
        **dict.fromkeys(("enqueue", "dequeue"), ("packet", "queue", "now")),
        **dict.fromkeys(("update", "overflow", "empty"), ("queue", "now")),
        "state": (),
    },
    "congestion_control": {
        **dict.fromkeys(("ack", "delivery"), ("ack", "window")),
        "congestion": ("signal", "window"),
        "sample": ("ack", "sample", "window"),
        "pacing_rate": (),
        "recovered": ("window",),
        "timeout": ("now",),
        "undo": ("window", "prior_cwnd"),
        "restart": ("idle", "now"),
    },
}
"""The methods that a run calls, with their arguments besides ``self``."""

_files: dict[str, set[str]] = {}
"""The files that ``load`` ran, with the names that they registered."""
_classes: dict[str, Own] = {}
"""The registered classes."""


class Own(NamedTuple):
    """A registered class."""

    kind: Kind
    cls: type


class Registered(NamedTuple):
    """The data with which another process obtains the same algorithms."""

    files: tuple[str, ...]
    classes: tuple[tuple[str, Own], ...]
    """Classes that no file registered."""


def registered() -> Registered:
    """Everything that is registered."""
    of_files = set[str]().union(*_files.values())
    return Registered(tuple(_files), tuple(item for item in _classes.items() if item[0] not in of_files))


def register_aqm(name: str, cls: type) -> None:
    """Makes a class usable as ``aqm = "name"`` in experiments, replacing any user-defined one of the same name.

    An object of the class governs one FIFO. Times are in seconds of the run. Each method is optional, but the class
    needs ``enqueue`` or ``dequeue``:

    - ``enqueue(packet, queue, now)`` and ``dequeue(packet, queue, now)`` return ``"pass"`` (or None), ``"mark"``
      (a drop if the packet is not ECN-capable or the queue has no ``ecn = true``) or ``"drop"``. ``queue`` describes
      the queued packets without this one; ``queue.random()`` is the only source of random numbers that keeps runs
      reproducible.
    - ``update(queue, now)`` is called every ``self.update_interval`` seconds; this attribute may change.
    - ``overflow(queue, now)``: there was no room for an arrival. ``empty(queue, now)``: the queue was empty at dequeue.
    - ``state()`` returns numbers by name, for the recorded series.

    Parameters
    ----------
    name
        Lower-case letters, digits and underscores; not the name of a built-in discipline.
    cls
        The parameters of its constructor are the discipline's keys. A default determines the values that a key accepts
        and the unit that the object receives: ``"5 ms"`` a time (seconds), ``"10 Mbit/s"`` a rate (bit/s), ``"83
        packets"`` or ``"1514 B"`` a size (bytes), otherwise a number or a flag. ``mtu`` (bytes) and ``rate`` (bit/s)
        without a default are those of the link; ``ecn`` is the queue's.

    Raises
    ------
    ExperimentError
        The name is taken or malformed, a parameter has no default that determines its type, or a method does not accept
        these arguments or has almost one of these names, and no method of the class uses it.
    """
    register("aqm", name, cls)


def register_congestion_control(name: str, cls: type) -> None:
    """Makes a class usable as ``tcp = "name"`` in experiments, replacing any user-defined one of the same name.

    Every connection gets an object of the class. Windows are in segments, times in seconds. The class needs
    ``congestion``, and ``ack`` or ``sample``:

    - ``ack(ack, window)``: an acknowledgement arrived and the window may grow, so not in recovery.
    - ``congestion(signal, window)`` returns the new slow start threshold, at least 2. ``signal`` is ``"loss"``,
      ``"ecn"`` (a mark was echoed) or ``"timeout"``. The sender reduces the window to it during recovery.
    - ``sample(ack, sample, window)``: as ``ack``, on every acknowledgement and with the delivery rate. A class with
      ``governs_window = True`` sets ``window.cwnd`` here, in recovery too.
    - ``pacing_rate()`` returns bits of payload per second, or None before there is an estimate; called after each
      acknowledgement. A class without it is not paced.
    - ``delivery(ack, window)``: an acknowledgement delivered something, in recovery too. ``recovered(window)``: a
      reduction is complete. ``timeout(now)`` follows ``congestion("timeout", window)``. ``undo(window, prior_cwnd)``
      returns the window after a reduction that turned out to be wrong. ``restart(idle, now)``: data follows a pause.

    Parameters
    ----------
    name
        Lower-case letters, digits and underscores; not the name of a built-in congestion control or of another
        registered class.
    cls
        Its constructor may have the parameters ``mss`` (bytes) and ``initial_window`` (segments), which the connection
        gives; others need a default.

    Raises
    ------
    ExperimentError
        The name is taken or malformed, the class lacks a method, or a method is wrong as for ``register_aqm``.
    """
    register("congestion_control", name, cls)


def register(kind: Kind, name: str, cls: type) -> None:
    """Registers a class, as ``register_aqm`` or ``register_congestion_control``."""
    parameters = [
        (parameter.name, [] if parameter.default is parameter.empty else [parameter.default])
        for parameter in inspect.signature(cls).parameters.values()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    _check_methods(kind, cls)
    summary = (inspect.getdoc(cls) or "").partition("\n")[0].rstrip(".")
    core = _core.register_aqm if kind == "aqm" else _core.register_congestion_control
    core(name, cls, summary, parameters, _digest(cls))
    _forget(name)
    _classes[name] = Own(kind, cls)


def _check_methods(kind: Kind, cls: type) -> None:
    """Raises ExperimentError if a run cannot call a method, or never would since its name is misspelt."""
    methods = METHODS[kind]
    for name, arguments in methods.items():
        method = inspect.getattr_static(cls, name, None)
        if inspect.isfunction(method):
            signature = inspect.signature(method, follow_wrapped=False)
            try:
                signature.bind(cls, *arguments)
            except TypeError:
                must = ", ".join(("self", *arguments))
                what = f"{cls.__name__}.{name}: got {signature}; must accept ({must})"
                raise _core.ExperimentError(f"register_{kind}: {what}") from None
    functions = {name: member for name, member in vars(cls).items() if inspect.isfunction(member)}
    used = set[str]().union(*(_names_in(function.__code__) for function in functions.values()))
    for name in (name for name in functions if not name.startswith("_") and name not in {*used, *methods}):
        lacking = [known for known in methods if not hasattr(cls, known)]
        if near := get_close_matches(name.removeprefix("on_"), lacking, 1, 0.8):
            what = f'{cls.__name__}.{name}: got a name that is not called; did you mean "{near[0]}"?'
            ours = f"called are {', '.join(methods)}; begin the name of a method of your own with _"
            raise _core.ExperimentError(f"register_{kind}: {what} {ours}")


def _names_in(code: CodeType) -> set[str]:
    inner = (_names_in(const) for const in code.co_consts if inspect.iscode(const))
    return set(code.co_names).union(*inner)


def _forget(name: str) -> None:
    """Drops a name, and the file that registered it if that has no other."""
    _classes.pop(name, None)
    for file, names in list(_files.items()):
        names.discard(name)
        if not names:
            del _files[file]


def unregister_congestion_control(name: str) -> None:
    """Removes the congestion control registered under a name. Raises ExperimentError if there is none."""
    _core.unregister_congestion_control(name)
    _forget(name)


def unregister_aqm(name: str) -> None:
    """Removes the discipline registered under a name. Raises ExperimentError if there is none."""
    _core.unregister_aqm(name)
    _forget(name)


def aqm(name: str) -> Callable[[Class], Class]:
    """``register_aqm`` as a decorator of the class."""
    return partial(_registered, "aqm", name)


def congestion_control(name: str) -> Callable[[Class], Class]:
    """``register_congestion_control`` as a decorator of the class."""
    return partial(_registered, "congestion_control", name)


def _registered(kind: Kind, name: str, cls: Class) -> Class:
    register(kind, name, cls)
    return cls


def load(file: Path) -> tuple[str, ...]:
    """Runs a Python file that registers disciplines or congestion controls, and returns their names.

    Raises
    ------
    ExperimentError
        The file cannot be read, or raises an exception.
    """
    if not file.exists() and not file.is_symlink():
        raise _core.ExperimentError(f"{file}: No such file")
    bounded.read_given(file, bounded.LARGEST_TEXT)
    before = dict(_classes)
    try:
        # Named after the file, as an import would name it, so that messages about the class show the file.
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

    names = {name for name, registered in _classes.items() if before.get(name) is not registered}
    if names:
        _files[str(file.absolute())] = names
    return tuple(sorted(names))


def is_importable(cls: type) -> bool:
    """Whether another process can import a class."""
    import pickle

    try:
        pickle.dumps(cls)
    except (pickle.PicklingError, AttributeError):
        return False
    return cls.__module__ != "__main__" or hasattr(sys.modules["__main__"], "__file__")


def _digest(cls: type) -> str:
    """SHA-256 of the file that defines a class, or of its code if there is no file. Imported modules are excluded."""
    codes = [member.__code__ for member in vars(cls).values() if inspect.isfunction(member)]
    digest = hashlib.sha256()
    for file in dict.fromkeys(code.co_filename for code in codes):
        with contextlib.suppress(OSError):
            digest.update(bounded.read_bytes(Path(file), bounded.LARGEST_TEXT))
            continue
        for code in codes:
            digest.update(repr((code.co_name, code.co_code, code.co_names, code.co_varnames)).encode())
            digest.update(repr([const for const in code.co_consts if not inspect.iscode(const)]).encode())
    return digest.hexdigest()


def _line(error: BaseException, file: Path) -> int | str:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return (lines[-1] or "?") if lines else "?"
