"""Rows as CSV: texts in quotes, numbers with as many digits as tell them apart, an empty field for no value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal


def csv_text(rows: Sequence[Mapping[str, object]]) -> str:
    """The rows under a line of their keys; a row may lack keys of others.

    A text that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [",".join(_quoted(name) for name in names)]
    # A column with a fraction in it has no whole numbers.
    whole = {name for name in names if all(isinstance(row.get(name), int | None) for row in rows)}
    lines += [",".join(_field(row.get(name), name in whole) for name in names) for row in rows]
    return "".join(f"{line}\n" for line in lines)


def plain(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _field(value: object, whole: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value) if whole else _number(float(value))
    return _quoted(plain(str(value)))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _number(value: float) -> str:
    """The shortest digits that give the number back; with an exponent below 1e-6 and from 1e10 on."""
    if 1e-4 <= abs(value) < 1e10 or not math.isfinite(value):
        return repr(value).removesuffix(".0")
    shortest = Decimal(repr(value)).normalize()
    sign, digits, power = shortest.as_tuple()
    if value == 0.0:
        return "-0" if sign else "0"
    exponent = len(digits) - 1 + int(power)
    if -7 < exponent < 10:
        return format(shortest, "f")
    whole, rest = str(digits[0]), "".join(map(str, digits[1:]))
    return f"{'-' * sign}{whole}{'.' * bool(rest)}{rest}e{exponent:+}"
