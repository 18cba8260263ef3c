"""The published claims of a paper, read from its claims.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from sojourn import typed
from sojourn.studies import tables

Bound = Literal["<", "<=", ">", ">="]


class Verdict(StrEnum):
    """What became of a claim."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    NOT_COMPARABLE = "not comparable"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Claim:
    """One published result, in our words."""

    id: str
    experiment: str
    kind: str
    """``number``, ``ordering`` or ``trend``."""
    check: str
    """``auto``: computable from runs; else ``derived``, ``setup``, ``cited`` or ``manual``."""
    statement: str
    location: str
    metric: str
    statistic: str
    unit: str
    schemes: tuple[str, ...]
    condition: Mapping[str, Any]
    relation: str | None
    low: float | None
    """A published value, or the lower end of a published range, or of a bound."""
    high: float | None
    bound: Bound | None
    approximate: bool
    tol_rel: float
    tol_abs: float
    tol_margin: float
    hold_min: float
    tol_reason: str

    @property
    def published(self) -> str:
        """The published result, short: a value with its tolerance, or a relation."""
        if self.relation is not None:
            return self.relation
        if self.low is None and self.high is None:
            return self.statement
        about = "about " if self.approximate else ""
        unit = "" if self.unit in ("", "1") else f" {self.unit}"
        if self.bound is not None:
            return f"{self.bound} {self.low:g}{unit}"
        number = f"{self.low:g}" if self.low == self.high else f"{self.low:g} to {self.high:g}"
        return f"{about}{number}{unit}{self._tolerance(unit)}"

    def _tolerance(self, unit: str) -> str:
        if self.tol_rel:
            return f" (±{self.tol_rel:.0%})"
        return f" (±{self.tol_abs:g}{unit})" if self.tol_abs else ""

    @property
    def tolerance(self) -> str:
        """What is accepted beyond what ``published`` says: ``inequalities relaxed by 5%``."""
        unit = "" if self.unit in ("", "1") else f" {self.unit}"
        is_said = self.relation is None and self.low is not None and self.bound is None
        parts = [
            *([f"± {self.tol_rel:.0%}"] if self.tol_rel and not is_said else []),
            *([f"± {self.tol_abs:g}{unit}"] if self.tol_abs and not is_said else []),
            *([f"inequalities relaxed by {self.tol_margin:.0%}"] if self.tol_margin else []),
            *([f"in {self.hold_min:.0%} of the places"] if self.hold_min < 1.0 else []),
        ]
        return ", ".join(parts)

    @property
    def exact(self) -> Claim:
        """The claim without tolerance, where that can be met: one number is never measured to the last digit."""
        is_one_number = self.relation is None and self.bound is None and self.low == self.high
        if is_one_number:
            return self
        if self.relation is not None:
            # What is about equal is so within a tolerance; an inequality needs none.
            return replace(self, tol_margin=0.0)
        return replace(self, tol_rel=0.0, tol_abs=0.0)

    def accepts(self, value: float) -> bool:
        """Whether a measured number agrees with the published one, within the tolerance."""
        if self.low is None or self.high is None:
            raise ValueError(f"claim {self.id} publishes no number")
        floor = self.low - max(self.tol_rel * abs(self.low), self.tol_abs)
        ceiling = self.high + max(self.tol_rel * abs(self.high), self.tol_abs)
        if self.bound in ("<", "<="):
            return value <= ceiling
        if self.bound in (">", ">="):
            return value >= floor
        return floor <= value <= ceiling


_KEYS: dict[str, tables.Kinds] = {
    **dict.fromkeys(
        ("id", "experiment", "kind", "check", "statement", "location", "metric", "statistic", "unit", "qdisc",
         "relation", "bound", "tol_reason"),
        tables.TEXT,
    ),
    **dict.fromkeys(("value", "min", "max", "tol_rel", "tol_abs", "tol_margin", "hold_min"), tables.NUMBER),
    "condition": tables.TABLE,
    "approx": tables.FLAG,
}  # fmt: skip
_WORDS = {
    "kind": ("number", "ordering", "trend"),
    "check": ("auto", "derived", "setup", "cited", "manual"),
    "bound": ("<", "<=", ">", ">="),
}


def load_claims(path: Path) -> list[Claim]:
    """Reads all ``[[claim]]`` tables of a file, in its order.

    Raises
    ------
    ValueError
        A claim lacks a field or has one that is wrong, or two have the same id.
    """
    document = typed.read_toml(path)
    if not isinstance(document.get("claim", []), list):
        raise ValueError(f"{path}: claim: must be tables [[claim]]")
    claims = [_claim(table, path) for table in document.get("claim", [])]
    ids = [claim.id for claim in claims]
    for id_ in ids:
        if ids.count(id_) > 1:
            raise ValueError(f"{path}: two claims are called {id_}")
    return claims


def _claim(table: dict[str, Any], path: Path) -> Claim:
    if not isinstance(table, dict):
        raise ValueError(f"{path}: claim: must be tables [[claim]]")
    where = f"{path}: claim {table.get('id', '?')}"
    for field in ("id", "experiment", "kind", "check", "statement"):
        if field not in table:
            raise ValueError(f"{where} has no {field}")
    tables.check(table, where, _KEYS, others=True)
    for field, accepted in _WORDS.items():
        if field in table and table[field] not in accepted:
            raise ValueError(f'{where}: {field}: got "{table[field]}"; must be one of {", ".join(accepted)}')
    for field, other in (("min", "max"), ("max", "min")):
        if field in table and not {other, "value"} & table.keys():
            raise ValueError(f"{where}: {other}: missing; {field} needs it")
    if "bound" in table and not {"value", "min"} & table.keys():
        raise ValueError(f"{where}: value: missing; bound needs it")
    value = table.get("value")
    return Claim(
        id=table["id"],
        experiment=table["experiment"],
        kind=table["kind"],
        check=table["check"],
        statement=table["statement"],
        location=table.get("location", ""),
        metric=table.get("metric", ""),
        statistic=table.get("statistic", ""),
        unit=table.get("unit", ""),
        schemes=tuple(name.strip() for name in table.get("qdisc", "").replace(" vs ", ",").split(",") if name.strip()),
        condition=table.get("condition", {}),
        relation=table.get("relation"),
        low=table.get("min", value),
        high=table.get("max", value),
        bound=table.get("bound"),
        approximate=table.get("approx", False),
        tol_rel=table.get("tol_rel", 0.0),
        tol_abs=table.get("tol_abs", 0.0),
        tol_margin=table.get("tol_margin", 0.0),
        hold_min=table.get("hold_min", 1.0),
        tol_reason=table.get("tol_reason", ""),
    )
