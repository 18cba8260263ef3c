"""The published claims of a paper, read from its claims.toml."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, TypedDict

import msgspec

from sojourn.files import typed
from sojourn.studies.tolerances import Tolerance

Bound = Literal["<", "<=", ">", ">="]
Number = int | float


class Verdict(StrEnum):
    """The verdict on a claim."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    NOT_COMPARABLE = "not comparable"
    NOT_RUN = "not run"


COMPARED = (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED)


class Further(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A second number of a claim, published with the first, at the same places."""

    metric: str
    value: Number
    statistic: str = ""
    unit: str = ""
    tol_rel: Number = 0.0
    tol_abs: Number = 0.0


class Claim(msgspec.Struct, frozen=True):
    """One published result, in our words: a ``[[claim]]`` table, which may have additional notes."""

    id: str
    experiment: str
    kind: Literal["number", "ordering", "trend"]
    check: Literal["auto", "derived", "setup", "cited", "manual"]
    """``auto``: computable from runs."""
    statement: str
    location: str = ""
    metric: str = ""
    statistic: str = ""
    unit: str = ""
    qdisc: str = ""
    """The schemes of the claim, separated by commas or ``vs``."""
    condition: dict[str, Any] = {}
    relation: str | None = None
    value: Number | None = None
    least: Number | None = msgspec.field(default=None, name="min")
    most: Number | None = msgspec.field(default=None, name="max")
    bound: Bound | None = None
    approximate: bool = msgspec.field(default=False, name="approx")
    tol_rel: Number = 0.0
    tol_abs: Number = 0.0
    tol_margin: Number = 0.0
    hold_min: Number = 1.0
    tol_reason: str = ""
    also: tuple[Further, ...] = ()
    """Its further numbers; each has to agree."""

    def __post_init__(self) -> None:
        if self.value is None and (self.least is None) != (self.most is None):
            given, lacking = ("min", "max") if self.most is None else ("max", "min")
            raise ValueError(f"{lacking}: missing; {given} needs it")
        if self.bound is not None and self.low is None:
            raise ValueError("value: missing; bound needs it")

    @property
    def further(self) -> list[Claim]:
        """Its further numbers, each as a claim."""
        plain = msgspec.structs.replace(self, also=(), relation=None, least=None, most=None, bound=None, tol_reason="")
        return [msgspec.structs.replace(plain, **msgspec.structs.asdict(one)) for one in self.also]

    @property
    def schemes(self) -> tuple[str, ...]:
        """The names of its schemes."""
        return tuple(name.strip() for name in self.qdisc.replace(" vs ", ",").split(",") if name.strip())

    @property
    def unit_text(self) -> str:
        """Its unit behind a number: `` ms``."""
        return "" if self.unit in ("", "1") else f" {self.unit}"

    @property
    def low(self) -> Number | None:
        """The published value, or the lower end of a published range or bound."""
        return self.value if self.least is None else self.least

    @property
    def high(self) -> Number | None:
        """The published value, or the upper end of a range."""
        return self.value if self.most is None else self.most

    @property
    def published(self) -> str:
        """The published result in short: values with their tolerances, or a relation."""
        return "; ".join([self._published, *(f"{one.metric} {one._published}" for one in self.further)])

    @property
    def _published(self) -> str:
        if self.relation is not None:
            return self.relation
        if self.low is None and self.high is None:
            return self.statement
        about, unit = "about " if self.approximate else "", self.unit_text
        if self.bound is not None:
            return f"{self.bound} {self.low:g}{unit}"
        number = f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"
        tolerance = " or ".join(self._tolerances("±", unit))
        return f"{about}{number}{unit}" + (f" ({tolerance})" if tolerance else "")

    def _tolerances(self, sign: str, unit: str) -> list[str]:
        """The relative and the absolute tolerance, of which the wider counts."""
        return [
            *([f"{sign}{self.tol_rel:.0%}"] if self.tol_rel else []),
            *([f"{sign}{self.tol_abs:g}{unit}"] if self.tol_abs else []),
        ]

    @property
    def tolerance(self) -> str:
        """The tolerance that ``published`` does not show: ``inequalities relaxed by 5%``."""
        is_said = self.relation is None and self.low is not None and self.bound is None
        either = " or ".join(self._tolerances("± ", self.unit_text))
        parts = [
            *([either] if either and not is_said else []),
            *([f"inequalities relaxed by {self.tol_margin:.0%}"] if self.tol_margin else []),
            *([f"in {self.hold_min:.0%} of the places"] if self.hold_min < 1.0 else []),
        ]
        return ", ".join(parts)

    @property
    def exact(self) -> Claim:
        """The claim without tolerance, except for single numbers, which can never be measured to the last digit."""
        if self.relation is None and self.bound is None and self.low == self.high:
            return self
        if self.relation is not None:
            # Approximate equality needs a tolerance; an inequality needs none.
            return msgspec.structs.replace(self, tol_margin=0.0)
        return msgspec.structs.replace(self, tol_rel=0.0, tol_abs=0.0)

    def accepts(self, value: float) -> bool:
        """True if a measured number agrees with the published one within the tolerance."""
        floor, ceiling = self._ends()
        return (value >= floor or self.bound in ("<", "<=")) and (value <= ceiling or self.bound in (">", ">="))

    def _ends(self) -> tuple[float, float]:
        """The least and the largest number within the tolerance."""
        if self.low is None or self.high is None:
            raise ValueError(f"claim {self.id} publishes no number")
        return self.low - self._bound(self.low), self.high + self._bound(self.high)

    def _bound(self, end: Number) -> float:
        return Tolerance(self.tol_rel, self.tol_abs).bound(end)

    def wide(self, effect: float | None = None) -> str:
        """What a number's tolerance accepts, ``140 to 1260 ms``, if it is half of the effect (or number) or more."""
        if self.low is None or self.high is None:
            return ""
        floor, ceiling = self._ends()
        below, above = self.bound in ("<", "<="), self.bound in (">", ">=")
        ends = [end for end, counts in ((self.low, not below), (self.high, not above)) if counts]
        if not any(self._bound(end) and self._bound(end) >= 0.5 * abs(effect or end) - 1e-9 for end in ends):
            return ""
        ends_text = (
            f"{self.bound} {ceiling if below else floor:.3g}" if below or above else f"{floor:.3g} to {ceiling:.3g}"
        )
        return ends_text + self.unit_text


def load_claims(path: Path) -> list[Claim]:
    """All ``[[claim]]`` tables of a file, in its order. Raises ValueError if one is wrong, or two have the same id."""
    tables = typed.read_toml(path).get("claim", [])
    try:
        found = typed.convert({"claim": tables}, _File)["claim"]
        claims = [typed.convert(table, Claim, f"claim {table.get('id', '?')}") for table in found]
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    ids = [claim.id for claim in claims]
    if twice := [id_ for id_ in ids if ids.count(id_) > 1]:
        raise ValueError(f"{path}: two claims are called {twice[0]}")
    return claims


class _File(TypedDict):
    claim: list[dict[str, Any]]
