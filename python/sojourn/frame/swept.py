"""Keys of an experiment file and their values: as text for people and for files, as numbers for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sojourn import _core

_MUST = {
    "bps": ("a rate above 0 like 20mbit, 20 Mbit/s or 1 Gbit/s", 1.0),
    "ms": ('a time above 0 like "100 ms"', 1000.0),
}


class Quantity(NamedTuple):
    """A value as a number, with the unit for the suffix of a column's name."""

    value: float
    unit: str
    """``bps``, ``ms``, ``bytes``, ``packets``, ``bdp`` or ``percent``; empty for a bare number."""


SHOWN: dict[str, tuple[float, str]] = {
    "bps": (1e6, "Mbit/s"),
    "ms": (1.0, "ms"),
    "bytes": (1e3, "kB"),
    "packets": (1.0, "packets"),
    "bdp": (1.0, "BDP"),
    "percent": (1.0, "%"),
}
"""How a unit is displayed: its divisor and its name."""


def links_in(experiment: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The links of an experiment: those of ``[[link]]``, or the one of ``[link]``."""
    links: Any = experiment["link"]
    return links if isinstance(links, list) else [links]


def quantity(value: object) -> Quantity | None:
    """A value of an experiment file as a number; None if it is not numeric, such as a name, a flag or a list."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return Quantity(float(value), "")
    found = _core.quantity(value) if isinstance(value, str) else None
    return None if found is None else Quantity(*found)


def number_of(value: object) -> float:
    """A value of an experiment file in its unit: bytes, milliseconds, bits per second; 0 if it is not numeric."""
    found = quantity(value)
    return 0.0 if found is None else found.value


def plain_settings(settings: Mapping[str, object]) -> dict[str, object]:
    """Swept values as columns: numbers and flags as they are, anything else as the text of the file."""
    return {key: value if isinstance(value, int | float) else str(value) for key, value in settings.items()}


def number_columns(settings: Mapping[str, object]) -> dict[str, float]:
    """Swept values as numbers, with units in the column names: ``link.rate_bps``. Bare numbers keep their key."""
    columns = {}
    for key, value in settings.items():
        found = quantity(value)
        if found is not None:
            columns[f"{key}_{found.unit}" if found.unit else key] = found.value
    return columns


OF_LINK = ("link.rate", "link.buffer", "link.delay", "link.burst", "link.overhead")
"""Keys of the link with the same last part as other keys."""


def words(keys: Sequence[str]) -> dict[str, str]:
    """The display name of each dotted key: its last part, with as many parts before it as distinguish it from others.

    The keys of the link count even if they are not swept, so that the rate of a CBR flow is not taken for the link's.

    >>> words(["link.rate", "link.up.rate", "queue.0.target"])
    {'link.rate': 'link rate', 'link.up.rate': 'up rate', 'queue.0.target': 'target'}
    """
    parts = {key: key.split(".") for key in (*keys, *OF_LINK)}

    def tail(key: str, count: int) -> str:
        return " ".join(parts[key][-count:]).replace("_", " ")

    called = {}
    for key in keys:
        count = 1
        while count < len(parts[key]) and (
            parts[key][-count].isdigit()
            or any(tail(other, count) == tail(key, count) for other in {*keys, *OF_LINK} if other != key)
        ):
            count += 1
        called[key] = tail(key, count)
    return called


def as_in_file(value: object) -> str:
    """A value as written in an experiment file, a text without quotes."""
    return value if isinstance(value, str) else as_toml(value)


def as_toml(value: object) -> str:
    """A value as TOML on one line: a table of tables, lists, texts, numbers and flags."""
    if isinstance(value, Mapping):
        plain = re.compile(r"[A-Za-z0-9_-]+")
        keys = [key if plain.fullmatch(key) else as_toml(key) for key in map(str, value)]
        return f"{{ {', '.join(f'{key} = {as_toml(of)}' for key, of in zip(keys, value.values(), strict=True))} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(as_toml, value))}]"
    if isinstance(value, str):
        # JSON strings are TOML strings, except that TOML requires DEL to be escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_file(sections: Mapping[str, object]) -> str:
    """An experiment file, a section a line."""
    return "".join(f"{key} = {as_toml(value)}\n" for key, value in sections.items())


def setting_text(settings: Mapping[str, object]) -> str:
    """The values of a cell for a legend: ``rate 10 Mbit/s, 4 flows``; empty without a sweep."""
    called = words(list(settings))
    return ", ".join(
        str(value) if called[key] == "case" else phrase(called[key], str(value)) for key, value in settings.items()
    )


def phrase(name: str, text: str) -> str:
    """A value with its key's name: ``4 flows``, ``no ecn``, ``rate 10 Mbit/s``."""
    if text in ("True", "False"):
        return name if text == "True" else f"no {name}"
    return f"{text} flow{'' if text == '1' else 's'}" if name == "flows" else f"{name} {text}"


def rate_bps(option: str, given: str) -> float:
    """A rate in bit/s. Raises ExperimentError if it is none, or 0."""
    return _quantity(option, given, "bps")


def time_s(option: str, given: str | float) -> float:
    """A time in seconds; a number is one already. Errors as for ``rate_bps``."""
    if isinstance(given, int | float) and 0 < given < 1e13:
        return float(given)
    return _quantity(option, str(given), "ms")


def _quantity(option: str, given: str, unit: str) -> float:
    found = _core.quantity(given)
    must, per = _MUST[unit]
    if found is None or found[1] != unit or not 0 < found[0] < 1e13:
        raise _core.ExperimentError(f'{option}: got "{given}"; must be {must}')
    return found[0] / per
