"""Quantities that a user gave as options or arguments."""

from __future__ import annotations

from sojourn import _core

_MUST = {
    "bps": ("a rate above 0 like 20mbit, 20 Mbit/s or 1 Gbit/s", 1.0),
    "ms": ('a time above 0 like "100 ms"', 1000.0),
}


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
