"""Numbers as people round them: a half away from zero, so that 132.5 is 133 and -132.5 is -133."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

_LARGEST = 1e15
"""From here on no number of a result has decimal places."""


def fixed(value: float, digits: int, sign: str = "") -> str:
    """``value`` with so many decimal places; ``sign="+"`` is that of format. Python itself rounds halves to even."""
    if not math.isfinite(value) or abs(value) >= _LARGEST:
        return f"{value:{sign}.{digits}f}"
    exact = Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{exact:{sign}.{digits}f}"
