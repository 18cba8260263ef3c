"""A study run otherwise than its paper says, or where the paper does not say: what each switch does to its claims.

A variant is never the set-up. It tells whether a miss hangs on something that the paper leaves open.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn.studies.claims import Verdict
from sojourn.studies.grid import AxisValue
from sojourn.typed import Strict, Texts

if TYPE_CHECKING:
    from sojourn.studies.verdict import Judgement

FILE = "variants.json"
"""Its name beside claims.json."""

_ENTRIES = {"queue": "aqm", "traffic": "kind"}
"""The lists of an experiment file whose entries may be named by what they are, and the key that says it."""


class Variant(Strict, frozen=True):
    """A switch, and why it was tried."""

    name: str
    because: str
    set: dict[str, str]
    """What is overridden in every experiment file: ``queue.pie.gains`` is of every queue that is a PIE."""
    claims: Texts = Texts()
    """The misses that it was tried for."""
    constants: dict[str, AxisValue] = {}
    """What it changes of the experiments' constants."""

    def overrides(self, file: Mapping[str, Any]) -> dict[str, str]:
        """What it overrides in an experiment file, of which this is the content."""
        found: dict[str, str] = {}
        for key, value in self.set.items():
            found |= dict.fromkeys(keys_in(file, key), value)
        return found


@dataclass(frozen=True)
class Tried:
    """What a variant did."""

    variant: Variant
    runs: int
    judgements: Mapping[str, Judgement]
    """By claim; all that were judged."""
    control: Mapping[str, Judgement]
    """The same of the set-up, from as many repeats: a verdict that these alone change is none of the variant's."""

    def turns(self, id_: str) -> bool:
        """Whether it reproduces what the set-up does not."""
        return self._changes(id_, Verdict.NOT_REPRODUCED, Verdict.REPRODUCED)

    def turned(self, base: Sequence[Judgement]) -> list[str]:
        """The misses that it reproduces."""
        return [one.id for one in base if one.verdict == Verdict.NOT_REPRODUCED and self.turns(one.id)]

    def lost(self, base: Sequence[Judgement]) -> list[str]:
        """What it does not reproduce, and the set-up does."""
        yes, no = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED
        return [one.id for one in base if one.verdict == yes and self._changes(one.id, yes, no)]

    def count(self) -> tuple[int, int]:
        """How many claims it reproduces, and how many could be judged."""
        verdicts = [one.verdict for one in self.judgements.values()]
        yes, no = (verdicts.count(verdict) for verdict in (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED))
        return yes, yes + no

    def _changes(self, id_: str, then: Verdict, now: Verdict) -> bool:
        return self.control[id_].verdict == then and self.judgements[id_].verdict == now


def as_json(base: Sequence[Judgement], tried: Sequence[Tried]) -> str:
    """The file beside claims.json."""
    return json.dumps(as_document(base, tried), indent=1, ensure_ascii=False) + "\n"


def as_document(base: Sequence[Judgement], tried: Sequence[Tried]) -> dict[str, Any]:
    """What every variant turned and lost, and what it measured of those claims and of every miss."""
    misses = [one.id for one in base if one.verdict == Verdict.NOT_REPRODUCED]
    return {
        "variants": [
            {
                "name": one.variant.name,
                "because": one.variant.because,
                "set": dict(one.variant.set),
                "tried_for": list(one.variant.claims),
                "runs": one.runs,
                "reproduced": one.count()[0],
                "judged": one.count()[1],
                "turned": one.turned(base),
                "lost": one.lost(base),
                "claims": [
                    {"id": id_, "verdict": str(now.verdict), "measured": now.measured, "numbers": now.numbers}
                    for id_ in (*misses, *one.lost(base))
                    for now in [one.judgements[id_]]
                ],
            }
            for one in tried
        ]
    }


_ALONE = "The variant does not reproduce it."


def explained(miss: Judgement, tried: Sequence[Tried]) -> str:
    """Which variants turn a miss, as a sentence; empty without variants."""
    turning = [one for one in tried if one.turns(miss.id)]
    others = [one for one in tried if one not in turning and one.judgements[miss.id].verdict != Verdict.NOT_RUN]
    if not turning:
        return f"None of the {len(others)} variants reproduces it." if len(others) > 1 else _ALONE if others else ""
    names = ", ".join(f'"{one.variant.name}" ({one.judgements[miss.id].measured})' for one in turning)
    rest = f", not with the {len(others)} other{'s' if len(others) > 1 else ''}" if others else ""
    return f"Reproduced with {names}{rest}."


def keys_in(file: Mapping[str, Any], key: str) -> list[str]:
    """A key as this file has it: ``queue.pie.target`` is ``queue.1.target`` if the second queue is a PIE."""
    head, _, rest = key.partition(".")
    kind, _, last = rest.partition(".")
    if head not in _ENTRIES or not last or kind.isdigit():
        return [key]
    of = _ENTRIES[head]
    entries = file.get(head, [])
    return [f"{head}.{index}.{last}" for index, entry in enumerate(entries) if entry.get(of) == kind]
