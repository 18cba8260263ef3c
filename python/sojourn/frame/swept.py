"""Keys of an experiment file and their values: as text for people and for files, as numbers for programs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S*)\s*")
_RATES = {"bit": 1.0, "bps": 1.0, "bit/s": 1.0}
_TIMES = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "μs": 1e-3, "ms": 1.0, "s": 1e3, "min": 60e3, "h": 3600e3}
_BYTES = {
    **dict.fromkeys(("b", "byte", "bytes"), 1.0),
    **{"kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30},
}
_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}


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


def quantity(value: object) -> Quantity | None:
    """A value of an experiment file as a number; None if it is not numeric, such as a name, a flag or a list."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return Quantity(float(value), "")
    found = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    number, unit = float(found[1]), found[2].lower()
    if not unit:
        return Quantity(number, "")
    for prefix, factor in _PREFIXES.items():
        if unit.startswith(prefix) and unit[len(prefix) :] in _RATES:
            return Quantity(number * factor, "bps")
    for units, name in ((_TIMES, "ms"), (_BYTES, "bytes")):
        if unit in units:
            return Quantity(number * units[unit], name)
    if unit in ("packet", "packets"):
        return Quantity(number, "packets")
    if unit == "bdp":
        return Quantity(number, "bdp")
    return Quantity(number, "percent") if unit == "%" else None


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
    """A value as written in an experiment file, without quotes."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def setting_text(settings: Mapping[str, object]) -> str:
    """The values of a cell for a legend: ``rate 10 Mbit/s, 4 flows``; empty without a sweep."""
    called = words(list(settings))
    return ", ".join(_phrase(called[key], value) for key, value in settings.items())


def _phrase(name: str, value: object) -> str:
    if isinstance(value, bool):
        return name if value else f"no {name}"
    if name == "flows":
        return f"{value} flow{'' if value == 1 else 's'}"
    return f"{name} {value}"


def axis_label(name: str, units: Iterable[str]) -> str:
    """A name of ``words`` with its unit: ``rate [Mbit/s]``."""
    unit = next(iter(set(units)), "")
    return f"{name} [{SHOWN[unit][1]}]" if unit in SHOWN else name
