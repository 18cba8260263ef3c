"""Reads files into types, and writes JSON. An error names the key, the given value and the accepted values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Set
from difflib import get_close_matches
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

import msgspec

from sojourn._core import ExperimentError
from sojourn.files import bounded

T = TypeVar("T")
LONGEST = 200
"""Most letters of a value that a message repeats."""
Hook = Callable[[type, Any], Any]
"""Converts a value in a file to a type of ours; raises ValueError with what it must be."""


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of a file that accepts only these keys."""


class Texts(tuple[str, ...]):
    """Texts, which a file may give as a single one without a list."""


def texts(kind: type, value: object) -> object:
    """Converts a value to ``Texts``; a single text is accepted."""
    if kind is object:
        return value
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise ValueError(f"must be {_WORDS[Texts]}")
    return Texts(given)


def must_be(name: str, accepted: Collection[str], where: str) -> None:
    """Raises ExperimentError, which is a ValueError, unless a name is among the accepted ones."""
    if name not in accepted:
        known = sorted(accepted) if isinstance(accepted, Set) else accepted
        raise ExperimentError(f'{where}: got "{name}"; must be one of {", ".join(known)}{near(name, accepted)}')


def near(name: str, accepted: Iterable[str]) -> str:
    """The end of a message about a misspelt name: ``; did you mean "codel"?``; empty if none is close."""
    close = get_close_matches(name, list(accepted), 1)
    return f'; did you mean "{close[0]}"?' if close else ""


def all_must_be(names: Iterable[str], accepted: Collection[str], where: str) -> None:
    """``must_be`` for each of some names."""
    for name in names:
        must_be(name, accepted, where)


_STEP = re.compile(r"\.([\w-]+)|\[(\d+|\.\.\.)\]")


def read_toml(path: Path) -> dict[str, Any]:
    """Reads a TOML file. Raises ExperimentError if it is not TOML, and OSError if it cannot be read."""
    import tomllib

    try:
        return tomllib.loads(bounded.read_text(path, bounded.LARGEST_TEXT))
    except tomllib.TOMLDecodeError as error:
        raise ExperimentError(f"{path}: not TOML: {error}") from None
    except RecursionError:
        raise ExperimentError(f"{path}: not TOML: nested too deeply") from None


def read_json(path: Path) -> Any:
    """Reads a JSON file that Sojourn wrote; errors as for ``read_toml``."""
    try:
        return json.loads(bounded.read_bytes(path, bounded.LARGEST_RESULTS).decode("utf-8"))
    except json.JSONDecodeError as error:
        problem = f"not JSON from line {error.lineno}, column {error.colno} on"
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 text (byte {error.start})"
    except RecursionError:
        problem = "nested too deeply"
    raise ExperimentError(f"{path}: the results are damaged: {problem}")


def json_text(document: object) -> str:
    """A document as JSON that people can read; Python's own indentation would take ten times as long."""
    return msgspec.json.format(json.dumps(document, ensure_ascii=False, allow_nan=False), indent=1) + "\n"


def convert(data: object, kind: type[T], where: str = "", hook: Hook = texts) -> T:
    """Converts a file's data to a type. Raises ValueError like ``experiment.0: id: missing; must be a text``."""
    try:
        return msgspec.convert(data, kind, dec_hook=hook)
    except msgspec.ValidationError as error:
        raise ValueError(_message(str(error), data, kind, where, hook)) from None


def _message(message: str, data: Any, kind: Any, where: str, hook: Hook) -> str:
    """Rewrites msgspec's message about data of the wrong type in the form of our other messages."""
    problem, _, at = message.partition(" - at `$")
    path: list[str] = []
    is_key = False
    value = data
    for name, index in _STEP.findall(at):
        kind = _holding(kind, value)
        if name:
            kind, value = _fields(kind)[name], value.get(name)
        elif index == "...":
            kind = get_args(kind)[1]
            name, value = next(item for item in value.items() if not _fits(item[1], kind, hook))
        else:
            kind, value = get_args(kind)[0], value[int(index)]
        is_key = not index
        path.append(name or index)
    own = ".".join(path)
    if found := re.match(r"Object missing required field `(.+)`", problem):
        accepted = _accepted(_fields(_holding(kind, {}))[found[1]])
        return _line(own or where, found[1], f"missing; must be {accepted}")
    if found := re.match(r"Object contains unknown field `(.+)`", problem):
        return _line(own or where, found[1], f"unknown key; accepted: {', '.join(_fields(_holding(kind, {})))}")
    if not problem.startswith(("Expected", "Invalid enum", "must be")):
        return _line(own or where, problem)  # of a type's own check, which names the key
    accepted = problem.removeprefix("must be ") if problem.startswith("must be") else _accepted(kind)
    last = path.pop() if is_key else ""
    return _line(".".join(path) or where, last, f"got {_short(value)}; must be {accepted}")


def _line(*parts: str) -> str:
    return ": ".join(filter(None, parts))


def _short(value: object) -> str:
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    return text if len(text) < LONGEST else f"{text[:LONGEST]}…"


def _fits(value: object, kind: Any, hook: Hook) -> bool:
    try:
        msgspec.convert(value, kind, dec_hook=hook)
    except msgspec.ValidationError:
        return False
    return True


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _holding(kind: Any, value: object) -> Any:
    """The alternative of a union that contains other types as this value does: by key, or by index."""
    is_list = isinstance(value, list)
    return next(one for one in _alternatives(kind) if (get_origin(one) in (list, tuple) if is_list else _is_table(one)))


def _is_table(kind: Any) -> bool:
    return get_origin(kind) is dict or hasattr(kind, "__struct_fields__") or is_typeddict(kind)


def _fields(kind: Any) -> dict[str, Any]:
    """A table's keys, with the type of each."""
    if is_typeddict(kind):
        return get_type_hints(kind)
    return {field.encode_name: field.type for field in msgspec.structs.fields(kind)}


_WORDS: dict[Any, str] = {
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    Texts: "a text or a list of texts",
}


def _accepted(kind: Any) -> str:
    """The accepted values of a type, in words."""
    kinds = [one for one in _alternatives(kind) if one is not NoneType]
    if len(kinds) > 1:
        return " or ".join(dict.fromkeys(map(_accepted, kinds)))
    (one,) = kinds
    if get_origin(one) is Annotated:
        return _accepted(get_args(one)[0])
    if get_origin(one) is Literal:
        return f"one of {', '.join(get_args(one))}"
    if _is_table(one):
        return "a table"
    return "a list" if get_origin(one) in (list, tuple) else _WORDS.get(one, "a text")
