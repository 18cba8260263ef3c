"""Runs a study with changes to its set-up, to find the effect of each change on its claims.

A variant is never the set-up. It shows whether a miss depends on something that the paper leaves open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn.files.typed import Strict, Texts
from sojourn.studies.claims import Verdict
from sojourn.studies.grid import AxisValue

if TYPE_CHECKING:
    from sojourn.studies.verdict import Judgement

FILE = "variants.json"

REPEAT = "experiment.repeat"
_ENTRIES = {"queue": ("aqm",), "traffic": ("kind", "name")}
"""The lists of an experiment file whose entries can be selected by the value of a key, with these keys."""


class Variant(Strict, frozen=True):
    """A change of the set-up, and why it was tried."""

    name: str
    because: str
    set: dict[str, str]
    """Overrides for every experiment file: ``queue.pie.gains`` applies to every queue with PIE, ``link.wifi.width`` to
    every link of that name. Experiments whose files have none of these keys are not run again."""
    claims: Texts = Texts()
    constants: dict[str, AxisValue] = {}
    without: Texts = Texts()

    def overrides(self, file: Mapping[str, Any]) -> dict[str, str]:
        """Its overrides for an experiment file with this content."""
        found: dict[str, str] = {}
        for key, value in self.set.items():
            found |= dict.fromkeys(keys_in(file, key), value)
        return found

    def changes(self, file: Mapping[str, Any]) -> bool:
        """True if it changes the set-up of this file: fewer repeats are no change."""
        return any(key != REPEAT for key in self.overrides(file))


@dataclass(frozen=True)
class Tried:
    """The results of a variant."""

    variant: Variant
    runs: int
    judgements: Mapping[str, Judgement]
    control: Mapping[str, Judgement]
    """The same for the set-up with as many repeats: a verdict that fewer repeats change is no effect of the variant."""

    def turns(self, id_: str) -> bool:
        """True if it reproduces a claim that the set-up does not."""
        return self._changes(id_, Verdict.NOT_REPRODUCED, Verdict.REPRODUCED)

    def turned(self, base: Sequence[Judgement]) -> list[str]:
        """The misses that it reproduces."""
        return [one.id for one in base if one.verdict == Verdict.NOT_REPRODUCED and self.turns(one.id)]

    def lost(self, base: Sequence[Judgement]) -> list[str]:
        """The claims that the set-up reproduces and it does not."""
        yes, no = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED
        return [one.id for one in base if one.verdict == yes and self._changes(one.id, yes, no)]

    def count(self) -> tuple[int, int]:
        """The number of claims that it reproduces, and the number that could be judged."""
        verdicts = [one.verdict for one in self.judgements.values()]
        yes, no = (verdicts.count(verdict) for verdict in (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED))
        return yes, yes + no

    def _changes(self, id_: str, then: Verdict, now: Verdict) -> bool:
        return self.control[id_].verdict == then and self.judgements[id_].verdict == now


def as_document(base: Sequence[Judgement], tried: Sequence[Tried]) -> dict[str, Any]:
    """The claims that every variant turned and lost, with its results for those and for every miss."""
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


def explained(miss: Judgement, tried: Sequence[Tried]) -> str:
    """The variants that turn a miss, as a sentence; empty without variants."""
    turning = [one for one in tried if one.turns(miss.id)]
    others = [one for one in tried if one not in turning and one.judgements[miss.id].verdict != Verdict.NOT_RUN]
    if not turning:
        if any(one.judgements[miss.id].verdict == Verdict.REPRODUCED for one in others):
            return "With as few repeats as the variants have, the set-up reproduces it too."
        alone = "The variant does not reproduce it." if others else ""
        return f"None of the {len(others)} variants reproduces it." if len(others) > 1 else alone
    names = ", ".join(f'"{one.variant.name}" ({one.judgements[miss.id].measured})' for one in turning)
    rest = f", not with the {len(others)} other{'s' if len(others) > 1 else ''}" if others else ""
    return f"Reproduced with {names}{rest}."


def keys_in(file: Mapping[str, Any], key: str) -> list[str]:
    """The actual keys in this file: ``queue.pie.target`` is ``queue.1.target`` if the second queue is a PIE.

    It is ``link.up.queue.target`` too, if the link has a PIE upstream. Traffic is selected by its kind or its name. A
    key of ``[link]`` is not in a file with several links, ``link.wifi.width`` only in one with a link of that name.
    """
    head, _, rest = key.partition(".")
    kind, _, last = rest.partition(".")
    if head == "link" and isinstance(links := file.get("link"), list):
        return [key] if last and kind in [one.get("name") for one in links] else []
    if head == "link" and last and kind != "up":
        return []
    if head not in _ENTRIES or not last or kind.isdigit():
        return [key]
    entries = enumerate(file.get(head, []))
    found = [f"{head}.{index}.{last}" for index, entry in entries if kind in map(entry.get, _ENTRIES[head])]
    return found + [f"{place}.{last}" for place, aqm in _queues_of_links(file) if head == "queue" and aqm == kind]


def _queues_of_links(file: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The queues that links have besides the one under test: their keys and disciplines."""
    links = file.get("link", {})
    named = [(f"link.{one.get('name')}", one) for one in links] if isinstance(links, list) else [("link", links)]
    sides = [side for key, one in named for side in ((f"{key}.queue", one), (f"{key}.up.queue", one.get("up", {})))]
    return [(key, of["queue"]["aqm"]) for key, of in sides if isinstance(of, Mapping) and "queue" in of]
