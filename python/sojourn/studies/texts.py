"""Texts with measured numbers in them: ``CoDel holds {codel.queue_delay.median[flows=4]:.1f} ms``.

Braces contain a formula of ``relation``; after ``@`` the experiment of the formula, if it differs from the text's;
after a colon the number's format, as in Python but for halves, which ``f`` rounds away from zero. The values that a
relation compares are ``6.2 < 8.1 and 3 > 2.4``.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from sojourn.frame.statistics import fixed, three_digits
from sojourn.studies.evaluate import Missing, Outcome, Side, check_names, instances
from sojourn.studies.grid import AmbiguousPlaceError, Grid
from sojourn.studies.relation import RelationError

NOT_MEASURED = "(not run)"
_PLACE = re.compile(r"\{([^{}:@]*)(?:@ *([^{}:@]*))?(?::([^{}:]*))?\}")
_FORMAT = re.compile(r"(\.\d+)?[fg%]")
_MOST_SIDES = 4
_MOST_PLACES = 3


def check_form(text: str) -> None:
    """Checks braces and formats of a text. Raises RelationError if one is wrong."""
    if "{" in (rest := _PLACE.sub("", text)) or "}" in rest:
        raise RelationError(f"a brace without the other in {text!r}; accepted: {{formula}} or {{formula:.1f}}")
    for _, _, form in _PLACE.findall(text):
        if form and not _FORMAT.fullmatch(form):
            raise RelationError(f'format: got "{form}"; must be like .1f, .3g or .0%')


def experiments_named(text: str) -> set[str]:
    """The experiments that formulas of a text name."""
    return {experiment.strip() for _, experiment, _ in _PLACE.findall(text)} - {""}


def check(text: str, grid: Grid | None, derived: Mapping[str, str], others: Mapping[str, Grid] | None = None) -> None:
    """Checks the formulas of a text against the planned runs of its experiment, or of the one that they name."""
    check_form(text)
    for formula, experiment, _ in _PLACE.findall(text):
        own = (others or {}).get(experiment.strip()) if experiment else grid
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

    ``grids`` has for each experiment the places of the text, and all that was run; ``others`` those it may name.
    """

    def number(match: re.Match[str]) -> str:
        values: list[float] = []
        other = (others or {}).get(match[2].strip()) if match[2] else None
        for within, grid in [(other, other)] if other is not None else () if match[2] else grids:
            # Some of several experiments may lack a value.
            with suppress(RelationError, AmbiguousPlaceError):
                found = instances(match[1], grid, schemes=schemes, derived=derived, within=within)
                values += [float(one.value) for one in found]
        return span(values, partial(_shown, form=match[3] or ""))

    return _PLACE.sub(number, text)


def _shown(value: float, form: str) -> str:
    if not form:
        return three_digits(value)
    text = fixed(value, int(form[1:-1])) if form.endswith("f") and form != "f" else format(value, form)
    return text.removeprefix("-") if not text.strip("-0.%") else text


def span(values: Sequence[float], show: Callable[[float], str]) -> str:
    """The lowest and the highest of some values."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return NOT_MEASURED
    low, high = show(min(known)), show(max(known))
    return low if low == high else f"{low} to {high}"


def in_numbers(outcomes: Sequence[Outcome]) -> str:
    """The values of each side of a relation: at the places where it fails or, if it holds, over all places."""
    judged = [one for one in outcomes if not isinstance(one.value, Missing)]
    failed = [one for one in judged if not one.value]
    if not failed:
        places = [one.sides for one in judged]
        if len({tuple(side.signs for side in sides) for sides in places}) != 1:
            return ""
        return _joined([_span([sides[index] for sides in places]) for index in range(len(places[0]))])
    shown = []
    for one in failed[:_MOST_PLACES]:
        where = place_of(one) if len(outcomes) > 1 else ""
        sides = _joined([_side(side) for side in one.sides if not side.holds])
        shown.append(": ".join(filter(None, [where, sides])))
    return "; ".join([*shown, *_more(len(failed) - _MOST_PLACES, "place")])


def place_of(outcome: Outcome) -> str:
    """``codel flows=4 target_ms=5``."""
    point = [f"{axis}={plain(value)}" for axis, value in outcome.point.items()]
    which = [f"relation {outcome.relation}"] if outcome.relation else []
    return " ".join([*which, *([outcome.scheme] if outcome.scheme else []), *point])


def plain(value: float | bool | str) -> str:
    """A value on an axis."""
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def _joined(parts: Sequence[str]) -> str:
    return " and ".join([*parts[:_MOST_SIDES], *_more(len(parts) - _MOST_SIDES, "comparison")])


def _more(count: int, what: str) -> list[str]:
    return [f"{count} more {what}{'s' if count > 1 else ''}"] if count > 0 else []


def _span(sides: Sequence[Side]) -> str:
    if len(sides) == 1:
        return _side(sides[0])
    terms = [span([side.values[index] for side in sides], three_digits) for index in range(len(sides[0].values))]
    return _alternating(terms, sides[0].signs)


def _side(side: Side) -> str:
    """The values in short, with more digits where neighbours differ and would look the same; how they really relate."""
    values = side.values
    shown = [three_digits(value) for value in values]
    equal = [math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12) for left, right in itertools.pairwise(values)]
    alike = [left == right and not same for (left, right), same in zip(itertools.pairwise(shown), equal, strict=True)]
    terms = [f"{value:.6g}" if any(alike[max(at - 1, 0) : at + 1]) else shown[at] for at, value in enumerate(values)]
    signs = [
        ("≈" if side.holds else "≠") if sign == "~=" else "=" if same else "<" if left < right else ">"
        for sign, same, (left, right) in zip(side.signs, equal, itertools.pairwise(values), strict=True)
    ]
    return _alternating(terms, signs)


def _alternating(terms: Sequence[str], signs: Sequence[str]) -> str:
    words: Mapping[str, str] = {"~=": "≈", "==": "=", "<=": "≤", ">=": "≥"}
    return terms[0] + "".join(f" {words.get(sign, sign)} {term}" for sign, term in zip(signs, terms[1:], strict=True))
