"""The values compared in a relation: ``6.2 < 8.1 and 3 > 2.4``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from sojourn.studies import texts
from sojourn.studies.evaluate import Missing, Outcome, Side

_MOST_SIDES = 4
_MOST_PLACES = 3


def in_numbers(outcomes: Sequence[Outcome]) -> str:
    """The values of each side of a relation: at the places where it fails or, if it holds, over all places."""
    judged = [one for one in outcomes if not isinstance(one.value, Missing)]
    failed = [one for one in judged if not one.value]
    if not failed:
        return _over_places([one.sides for one in judged])
    shown = [
        ": ".join(filter(None, [place_of(one) if len(outcomes) > 1 else "", _failing(one.sides)]))
        for one in failed[:_MOST_PLACES]
    ]
    return "; ".join([*shown, *_more(len(failed) - _MOST_PLACES, "place")])


def place_of(outcome: Outcome) -> str:
    """``codel flows=4 target_ms=5``."""
    point = [f"{axis}={plain(value)}" for axis, value in outcome.point.items()]
    which = [f"relation {outcome.relation}"] if outcome.relation else []
    return " ".join([*which, *([outcome.scheme] if outcome.scheme else []), *point])


def plain(value: float | bool | str) -> str:
    """A value on an axis."""
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def _failing(sides: Sequence[Side]) -> str:
    return _joined([_side(side) for side in sides if not side.holds])


def _over_places(places: Sequence[Sequence[Side]]) -> str:
    """The range of each side's values over the places, for a relation that holds at all of them."""
    if len({tuple(side.signs for side in sides) for sides in places}) != 1:
        return ""
    return _joined([_span([sides[index] for sides in places]) for index in range(len(places[0]))])


def _joined(parts: Sequence[str]) -> str:
    return " and ".join([*parts[:_MOST_SIDES], *_more(len(parts) - _MOST_SIDES, "comparison")])


def _more(count: int, what: str) -> list[str]:
    return [f"{count} more {what}{'s' if count > 1 else ''}"] if count > 0 else []


def _span(sides: Sequence[Side]) -> str:
    if len(sides) == 1:
        return _side(sides[0])
    terms = [texts.span([side.values[index] for side in sides], texts.short) for index in range(len(sides[0].values))]
    return _alternating(terms, sides[0].signs)


def _side(side: Side) -> str:
    pairs = zip(side.values, side.signs, side.values[1:], strict=False)
    signs = [_actual(left, sign, right, holds=side.holds) for left, sign, right in pairs]
    return _alternating(_distinct(side.values), signs)


def _distinct(values: Sequence[float]) -> list[str]:
    """The values in short, with more digits where neighbours differ and would look the same."""
    short = [texts.short(value) for value in values]
    alike = [
        left == right and not math.isclose(*values[at : at + 2], rel_tol=1e-9, abs_tol=1e-12)
        for at, (left, right) in enumerate(itertools.pairwise(short))
    ]
    return [f"{value:.6g}" if any(alike[max(at - 1, 0) : at + 1]) else short[at] for at, value in enumerate(values)]


def _actual(left: float, sign: str, right: float, *, holds: bool) -> str:
    """The actual relation between two values, whatever was claimed."""
    if sign == "~=":
        return "≈" if holds else "≠"
    if math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12):
        return "="
    return "<" if left < right else ">"


def _alternating(terms: Sequence[str], signs: Sequence[str]) -> str:
    words: Mapping[str, str] = {"~=": "≈", "==": "=", "<=": "≤", ">=": "≥"}
    return terms[0] + "".join(f" {words.get(sign, sign)} {term}" for sign, term in zip(signs, terms[1:], strict=True))
