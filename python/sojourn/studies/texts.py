"""Texts with measured numbers in them: ``CoDel holds {codel.queue_delay.median[flows=4]:.1f} ms``.

In braces stands a formula of ``relation``, and after a colon how its number is printed, as Python formats numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from sojourn.studies.evaluate import Names, check_names, instances
from sojourn.studies.grid import AmbiguousPlaceError, Grid
from sojourn.studies.relation import RelationError

NOT_MEASURED = "(not run)"
"""In place of a number that was not measured."""
_PLACE = re.compile(r"\{([^{}:]*)(?::([^{}:]*))?\}")
_FORMAT = re.compile(r"(\.\d+)?[fg%]")


def check_form(text: str) -> None:
    """Checks what can be checked of a text by itself.

    Raises
    ------
    RelationError
        A brace lacks the other, or a format is none.
    """
    if "{" in (rest := _PLACE.sub("", text)) or "}" in rest:
        raise RelationError(f"a brace without the other in {text!r}; accepted: {{formula}} or {{formula:.1f}}")
    for _, form in _PLACE.findall(text):
        if form and not _FORMAT.fullmatch(form):
            raise RelationError(f'format: got "{form}"; must be like .1f, .3g or .0%')


def check(text: str, names: Names, derived: Mapping[str, str]) -> None:
    """Checks the formulas of a text against what its experiment has.

    Raises
    ------
    RelationError
        One of them is wrong.
    """
    check_form(text)
    for formula, _ in _PLACE.findall(text):
        check_names(formula, names, derived)


def fill(text: str, grids: Sequence[tuple[Grid, Grid]], derived: Mapping[str, str], schemes: Sequence[str] = ()) -> str:
    """Puts numbers in the place of formulas; where one has several values, the lowest and the highest.

    Parameters
    ----------
    grids
        The experiments: of each the places that the text is about, and everything that was run.
    derived, schemes
        As for ``instances``.
    """

    def number(match: re.Match[str]) -> str:
        values: list[float] = []
        for within, grid in grids:
            # Of several experiments one may lack what another has.
            with suppress(RelationError, AmbiguousPlaceError):
                found = instances(match[1], grid, schemes=schemes, derived=derived, within=within)
                values += [float(one.value) for one in found]
        return _span(values, _formatter(match[2]))

    return _PLACE.sub(number, text)


def short(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def _formatter(form: str | None) -> Callable[[float], str]:
    return (lambda value: format(value, form)) if form else short


def _span(values: Sequence[float], show: Callable[[float], str]) -> str:
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return NOT_MEASURED
    low, high = show(min(known)), show(max(known))
    return low if low == high else f"{low} to {high}"
