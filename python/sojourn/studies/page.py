"""A study's page in Markdown: a summary, the misses by cause, and every claim beside its figure."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from sojourn.frame.results import Run
from sojourn.studies import variants
from sojourn.studies.claims import Verdict
from sojourn.studies.grid import Grid
from sojourn.studies.recipe import MEANINGS
from sojourn.studies.runner import StudyResults
from sojourn.studies.variants import Tried
from sojourn.studies.verdict import Judgement

Beside = tuple[str, Sequence[Judgement]]
"""Another backend, and the judgements there."""
_PUBLISHED = "published, or read as"
"""The heading of the published values; a statement without a number is read as a relation."""
_OF_MISSES = (
    "The results of each variant for every miss; **bold** if it reproduces a claim "
    "that as many repeats of the set-up do not."
)
OF_QUICK = (
    "A quick look, not a verdict: the study's conclusions are omitted. Where the full run decides otherwise, a claim's "
    "reason says so; the other causes and reasons are those of its full run."
)
Exhibits = Callable[[str], str]
"""The Markdown of the figures and tables for a location in the paper, ``Fig 3``."""

_COMPARED = (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED)


def tally(judgements: Sequence[Judgement]) -> str:
    """``54 reproduced, 12 not reproduced, …``."""
    counts = Counter(judgement.verdict for judgement in judgements)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])


def by_cause(judgements: Iterable[Judgement]) -> dict[str, list[Judgement]]:
    """The misses by cause."""
    misses = [one for one in judgements if one.verdict == Verdict.NOT_REPRODUCED]
    found = {cause: [one for one in misses if one.cause == cause] for cause in MEANINGS}
    return {cause: own for cause, own in found.items() if own}


def summary(judgements: Sequence[Judgement]) -> list[str]:
    """A summary of the verdicts in a few sentences."""
    compared = [one for one in judgements if one.verdict in _COMPARED]
    held = [one for one in compared if one.verdict == Verdict.REPRODUCED]
    by_tolerance = [one.id for one in held if one.only_by_tolerance]
    lines = [f"{len(held)} of the {len(compared)} claims that could be compared are reproduced."]
    if by_tolerance:
        lines.append(f"{len(by_tolerance)} of them only by their tolerance: {', '.join(by_tolerance)}.")
    once = [one for one in compared if one.judged == one.runs_per_place == 1]
    if once:
        lines.append(f"{_count(once, 'rest')} on one place that was run once, as in the paper.")
    for split, verdict in (
        ([one for one in compared if one.is_split and one.verdict == own], own) for own in _COMPARED
    ):
        if split:
            lines.append(f"Single runs go either way, and the mean decides, for {len(split)} {verdict}: {_ids(split)}.")
    if wide := [one for one in held if one.wide]:
        lines.append(
            f"{_count(wide, 'are')} reproduced within a tolerance of half of the effect or more, which shows a "
            f"direction or an order of magnitude, not a size: {_ids(wide)}."
        )
    return lines


def alike(grids: Mapping[str, Grid]) -> list[str]:
    """A sentence per experiment about cells whose repeats are equal, because nothing in them is random."""
    lines: list[str] = []
    seen: set[int] = set()
    for id_, grid in grids.items():
        cells = [cell for cell in grid.cells if len(cell.runs) > 1 and id(cell) not in seen]
        seen |= {id(cell) for cell in cells}
        same = [cell for cell in cells if len({_outcome(run) for run in cell.runs}) == 1]
        if same:
            schemes = ", ".join(dict.fromkeys(cell.scheme for cell in same))
            of = f"{len(same)} of the {len(cells)} cells of {id_} ({schemes})"
            lines.append(f"Nothing is random in {of}: their repeats are one run.")
    return lines


def _outcome(run: Run) -> str:
    """What was measured in a run, without its seed and its cost."""
    return json.dumps({key: value for key, value in run.summary.items() if key not in ("seed", "wall_s", "events")})


def _ids(found: Sequence[Judgement]) -> str:
    return ", ".join(one.id for one in found)


def _count(found: Sequence[Judgement], verb: str) -> str:
    """``1 holds``, ``2 hold``; ``1 is``, ``2 are``."""
    of_one = "is" if verb == "are" else f"{verb}s"
    return f"{len(found)} {of_one if len(found) == 1 else verb}"


def causes_table(judgements: Sequence[Judgement]) -> list[str]:
    """The misses counted by cause."""
    found = by_cause(judgements)
    if not found:
        return []
    rows = [[cause, str(len(own)), MEANINGS[cause], ", ".join(one.id for one in own)] for cause, own in found.items()]
    return table(["cause", "misses", "meaning", "claims"], rows)


def misses(judgements: Sequence[Judgement], tried: Sequence[Tried]) -> list[str]:
    """Every miss by cause, with its numbers, its reason and the effect of each variant."""
    lines: list[str] = []
    for cause, own in by_cause(judgements).items():
        lines += [f"### {cause}: {MEANINGS[cause]}", ""]
        for one in own:
            lines += [f"**{one.id}**: {escaped(one.statement)} ({escaped(one.location)})", ""]
            what = "read as" if one.is_reading else "published"
            lines += [f"- {what}: {escaped(published(one))}"]
            lines += [f"- measured: {escaped(measured(one))}"]
            lines += [f"- {escaped(one.reason)}"] if one.reason else []
            explained = variants.explained(one, tried)
            lines += [f"- {escaped(explained)}"] if explained else []
            lines += [""]
    return lines


def tried_tables(judgements: Sequence[Judgement], tried: Sequence[Tried]) -> list[str]:
    """The variants, and every miss beside each of them."""
    if not tried:
        return []
    lines = [
        "## Variants",
        "",
        "Each variant changes one thing of the set-up and shows whether a miss depends on it. "
        "The verdicts above do not use them.",
        "",
    ]
    rows = []
    for number, one in enumerate(tried, 1):
        reproduced, compared = one.count()
        what = ", ".join(f"`{key} = {value}`" for key, value in one.variant.set.items())
        turned, lost = (_few(ids) for ids in (one.turned(judgements), one.lost(judgements)))
        why = f"{one.variant.because}; {what}"
        rows.append([str(number), one.variant.name, why, str(one.runs), f"{reproduced} of {compared}", turned, lost])
    lines += table(
        ["", "variant", "reason and settings", "runs", "reproduced", "now reproduced", "no longer reproduced"], rows
    )
    lines += ["", _OF_MISSES, ""]
    headings = ["miss", _PUBLISHED, "set-up", *(str(number) for number in range(1, len(tried) + 1))]
    found = [one for one in judgements if one.verdict == Verdict.NOT_REPRODUCED]
    lines += table(
        headings,
        [[one.id, one.published, _in_short(one), *(_tried(one.id, other) for other in tried)] for one in found],
    )
    return [*lines, ""]


def by_exhibit(
    judgements: Sequence[Judgement], exhibits: Exhibits, known: Sequence[str], beside: Beside | None = None
) -> list[str]:
    """Every claim that was compared, by figure, table or section of the paper, with the corresponding exhibits."""
    groups: dict[str, list[Judgement]] = {}
    for one in judgements:
        if one.verdict in _COMPARED:
            groups.setdefault(exhibit_of(one.location), []).append(one)
    lines: list[str] = []
    for exhibit in [*groups, *(exhibit for exhibit in known if exhibit not in groups)]:
        lines += [f"### {escaped(exhibit)}", ""]
        if shown := exhibits(exhibit):
            lines += [shown.rstrip("\n"), ""]
        if exhibit in groups:
            lines += [*_claims(groups[exhibit], beside), ""]
    return lines


def exhibit_of(location: str) -> str:
    """The figure or table of a claim: ``Fig 3`` for ``sec 4.1.1, Fig 3(a)``; otherwise the whole location."""
    found = re.search(r"(Fig|Table) \d+", location)
    return found.group() if found else location or "elsewhere"


def measured(judgement: Judgement) -> str:
    """The measured result, with the numbers of a relation and the basis of the verdict."""
    numbers = f" ({judgement.numbers})" if judgement.numbers else ""
    return "; ".join(filter(None, [judgement.measured + numbers, judgement.basis]))


def published(judgement: Judgement) -> str:
    """The published number or the relation that was judged, its tolerance, what was measured for it, and where."""
    tolerance = f" [{judgement.tolerance}]" if judgement.tolerance else ""
    sign = ", " if judgement.is_reading else ", as "
    judged_as = f"{', ' if judgement.judged_as.startswith('at ') else sign}{judgement.judged_as}"
    return judgement.published + tolerance + (judged_as if judgement.judged_as else "")


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table in Markdown."""
    return [_row(cells) for cells in (headings, ["---"] * len(headings), *rows)]


def markdown(
    results: StudyResults,
    judgements: Sequence[Judgement],
    *,
    basis: str,
    departures: str = "",
    exhibits: Exhibits = lambda _: "",
    known: Sequence[str] = (),
    tried: Sequence[Tried] = (),
    beside: Beside | None = None,
    after_summary: Sequence[str] = (),
    quick: bool = False,
) -> str:
    """The page up to its last table; ``known`` are the locations of the paper that ``exhibits`` covers.

    The page of a ``quick`` run omits the recipe's summary, which is about the full run.
    """
    lines = [
        f"# {results.study.title}",
        "",
        f"{results.study.source}. {basis}. {len(judgements)} claims: {tally(judgements)}.",
        "",
        *([departures, ""] if departures else []),
        "## Summary",
        "",
        *([OF_QUICK, ""] if quick else [results.summary(), ""] if results.study.summary else []),
        " ".join([*summary(judgements), *alike(results.grids)]),
        "",
        *causes_table(judgements),
        "",
        *after_summary,
    ]
    if found := misses(judgements, tried):
        lines += ["## Claims not reproduced, by cause", "", *found]
    lines += tried_tables(judgements, tried)
    lines += ["## All compared claims, by figure", "", *by_exhibit(judgements, exhibits, known, beside)]
    if others := [one for one in judgements if one.verdict not in _COMPARED]:
        lines += ["## Claims not compared", "", *_claims(others, beside)]
    return "\n".join(lines).rstrip() + "\n"


def _claims(judgements: Sequence[Judgement], beside: Beside | None) -> list[str]:
    headings = ["id", "claim", _PUBLISHED, "measured", "verdict"]
    rows = [
        [one.id, f"{one.statement} ({one.location})", published(one), measured(one), one.verdict] for one in judgements
    ]
    if beside is not None:
        name, others = beside
        headings.append(name)
        there: Mapping[str, str] = {
            other.id: ": ".join(filter(None, [other.verdict, other.measured])) for other in others
        }
        rows = [[*row, there[row[0]]] for row in rows]
    return table([*headings, "reason"], [[*row, one.reason] for row, one in zip(rows, judgements, strict=True)])


def _tried(id_: str, tried: Tried) -> str:
    text = _in_short(tried.judgements[id_])
    return f"**{text}**" if tried.turns(id_) else text


def _in_short(judgement: Judgement) -> str:
    """The measured result in short, with the numbers of a relation at one place; without a result, the verdict."""
    if judgement.expected == 1 and judgement.numbers:
        return judgement.numbers
    return judgement.measured.partition("; not at")[0] or str(judgement.verdict)


def _few(ids: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(ids[:most])
    return (f"{len(ids)}: {shown}" + (f" and {len(ids) - most} more" if len(ids) > most else "")) if ids else "none"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(escaped(cell).replace("|", "\\|") for cell in cells) + " |"


def escaped(text: str) -> str:
    """Text that Markdown shows unchanged: without tags, links or line breaks."""
    words = " ".join(text.split())
    return words.replace("&", "&amp;").replace("<", "&lt;").replace("](", "\\](")
