"""Texts with measured numbers in them: ``CoDel holds {codel.queue_delay.median[flows=4]:.1f} ms``.

Braces contain a formula of ``relation``; after ``@`` the experiment of the formula, if it differs from the text's;
after a colon the number's format, as in Python but for halves, which ``f`` rounds away from zero.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from sojourn.frame.rounding import fixed
from sojourn.studies.evaluate import Names, check_names, instances
from sojourn.studies.grid import AmbiguousPlaceError, Grid
from sojourn.studies.relation import RelationError

NOT_MEASURED = "(not run)"
"""Replaces a number that was not measured."""
_PLACE = re.compile(r"\{([^{}:@]*)(?:@ *([^{}:@]*))?(?::([^{}:]*))?\}")
_FORMAT = re.compile(r"(\.\d+)?[fg%]")


def check_form(text: str) -> None:
    """Checks a text as far as possible without an experiment.

    Raises RelationError if a brace has no counterpart, or a format is invalid.
    """
    if "{" in (rest := _PLACE.sub("", text)) or "}" in rest:
        raise RelationError(f"a brace without the other in {text!r}; accepted: {{formula}} or {{formula:.1f}}")
    for _, _, form in _PLACE.findall(text):
        if form and not _FORMAT.fullmatch(form):
            raise RelationError(f'format: got "{form}"; must be like .1f, .3g or .0%')


def experiments_named(text: str) -> set[str]:
    """The experiments that formulas of a text name."""
    return {experiment.strip() for _, experiment, _ in _PLACE.findall(text)} - {""}


def check(text: str, names: Names, derived: Mapping[str, str], others: Mapping[str, Names] | None = None) -> None:
    """Checks the formulas of a text against the names of its experiment, or of the one in ``others`` that they name.

    Raises RelationError if one of them has an error.
    """
    check_form(text)
    for formula, experiment, _ in _PLACE.findall(text):
        own = (others or {}).get(experiment.strip()) if experiment else names
        if own is not None:
            check_names(formula, own, derived)


def fill(
    text: str,
    grids: Sequence[tuple[Grid, Grid]],
    derived: Mapping[str, str],
    schemes: Sequence[str] = (),
    others: Mapping[str, Grid] | None = None,
) -> str:
    """Replaces formulas by numbers; if a formula has several values, by the lowest and the highest.

    ``grids`` has for each experiment the places of the text, and everything that was run; ``others`` are the
    experiments that formulas may name. ``derived`` and ``schemes`` are as for ``instances``.
    """

    def number(match: re.Match[str]) -> str:
        values: list[float] = []
        other = (others or {}).get(match[2].strip()) if match[2] else None
        for within, grid in [(other, other)] if other is not None else () if match[2] else grids:
            # Some of several experiments may lack a value.
            with suppress(RelationError, AmbiguousPlaceError):
                found = instances(match[1], grid, schemes=schemes, derived=derived, within=within)
                values += [float(one.value) for one in found]
        return span(values, _formatter(match[3] or ""))

    return _PLACE.sub(number, text)


def short(value: float) -> str:
    """Three digits, or all before the decimal point."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def _formatter(form: str) -> Callable[[float], str]:
    def show(value: float) -> str:
        text = fixed(value, int(form[1:-1])) if form.endswith("f") and form != "f" else format(value, form)
        return text.removeprefix("-") if not text.strip("-0.%") else text

    return show if form else short


def span(values: Sequence[float], show: Callable[[float], str]) -> str:
    """The lowest and the highest of some values."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return NOT_MEASURED
    low, high = show(min(known)), show(max(known))
    return low if low == high else f"{low} to {high}"
