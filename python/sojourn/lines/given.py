"""Quantities that a user gave as options."""

from __future__ import annotations

from sojourn import _core
from sojourn._core import ExperimentError

_MUST = {
    "bps": ("a rate above 0 like 20mbit, 20 Mbit/s or 1 Gbit/s", 1.0),
    "ms": ('a time above 0 like "250 ms"', 1e-3),
}


def rate_bps(option: str, given: str) -> float:
    """A rate in bit/s. Raises ExperimentError if it is none, or 0."""
    return _quantity(option, given, "bps")


def time_s(option: str, given: str) -> float:
    """A time in seconds; errors as for ``rate_bps``."""
    return _quantity(option, given, "ms")


def _quantity(option: str, given: str, unit: str) -> float:
    found = _core.quantity(given)
    must, per = _MUST[unit]
    if found is None or found[1] != unit or not 0 < found[0] < 1e13:
        raise ExperimentError(f'{option}: got "{given}"; must be {must}')
    return found[0] * per
