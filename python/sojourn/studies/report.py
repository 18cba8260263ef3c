"""Published and measured results: on the terminal, as a page in Markdown, as JSON, and all files together in a folder.

The page has a summary, the misses by cause, and every claim beside its figure.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sojourn import _core
from sojourn.figure.filenames import FORMATS
from sojourn.figure.style import drawing_code
from sojourn.files import bounded
from sojourn.files.storage import Staging
from sojourn.files.typed import json_text
from sojourn.page.sheet import Sheet, escaped
from sojourn.page.sheet import markdown as table
from sojourn.studies import kept, tabulate, variants
from sojourn.studies.claims import COMPARED, Verdict
from sojourn.studies.figures import caption, stage_figures
from sojourn.studies.grid import Grid
from sojourn.studies.recipe import MEANINGS, FigureSpec, Study
from sojourn.studies.runner import StudyResults
from sojourn.studies.variants import Tried
from sojourn.studies.verdict import Judgement

INPUTS = "inputs.json"
"""The file with the inputs of the verdicts, beside claims.json."""
Beside = tuple[str, Sequence[Judgement]]
_PUBLISHED = "published, or read as"
"""The heading of the published values; a statement without a number is read as a relation."""
_OF_VARIANTS = (
    "Each variant changes one thing of the set-up and shows whether a miss depends on it. The verdicts above do not "
    "use them."
)
_OF_MISSES = (
    "The results of each variant for every miss; **bold** if it reproduces a claim "
    "that as many repeats of the set-up do not."
)
OF_QUICK = (
    "A quick look, not a verdict: the study's conclusions are omitted. Where the full run decides otherwise, a claim's "
    "reason says so; the other causes and reasons are those of its full run."
)
Exhibits = Callable[[str], str]


def claims_sheet(results: StudyResults, judgements: Sequence[Judgement]) -> Sheet:
    """Every claim that was judged; those that could not be are only counted."""
    judged = [one for one in judgements if one.verdict in COMPARED]
    return Sheet(
        f"{results.study.title}: published and measured ({basis(results)})",
        "\n".join(closing(results, judgements)),
        ("claim", _PUBLISHED, "measured", "verdict"),
        tuple((f"{one.statement} ({one.location})", published(one), measured(one), one.verdict) for one in judged),
        shares=(5, 4, 4, 0),
    )


def closing(results: StudyResults, judgements: Sequence[Judgement]) -> list[str]:
    """The last lines on the terminal: counts, and the misses by cause."""
    return [
        f"{len(judgements)} claims: {tally(judgements)}",
        *summary(judgements, quick=results.quick)[1:],
        *(
            f"not reproduced, {cause}: {', '.join(one.id for one in own)}"
            for cause, own in by_cause(judgements).items()
        ),
        *filter(None, [departures(results)]),
    ]


def as_json(
    results: StudyResults, judgements: Sequence[Judgement], figures: Sequence[Path], *, tried: Sequence[Tried] = ()
) -> str:
    """The output of ``sojourn study run --json``."""
    document: dict[str, Any] = {
        "study": results.study.name,
        "backend": results.backend,
        "departures": list(results.departures),
        "quick": results.quick,
        "runs": results.planned,
        "claims": [judgement.as_json() for judgement in judgements],
        "questions": [asdict(answer) for answer in results.answers()],
        "figures": [str(figure) for figure in figures],
        "summary": summary(judgements, quick=results.quick),
        **({"variants": variants.as_document(judgements, tried)["variants"]} if tried else {}),
    }
    return json_text(document)


def files_of(study: Study) -> list[str]:
    """The files that running a study may write."""
    exhibits = [f"{figure.name}.{kind}" for figure in study.figures for kind in FORMATS]
    exhibits += [f"{table.name}.csv" for table in study.tables]
    return [*exhibits, INPUTS, kept.FILE, variants.FILE, "claims.md", "claims.json"]


def save(
    results: StudyResults,
    judgements: Sequence[Judgement],
    directory: Path,
    *,
    tried: Sequence[Tried] = (),
    formats: Sequence[str] = FORMATS,
) -> list[Path]:
    """Writes figures, tables and documents to a directory, all or none. Returns the figures."""
    with Staging(directory, by="study", rescue=True) as staging:
        made_of = None if results.made_of is None else f"{results.made_of} {drawing_code()}"
        figures = stage_figures(staging, results.study, results.grids, formats, made_of)
        for spec in results.study.tables:
            if spec.experiment in results.grids:
                staging.add_text(f"{spec.name}.csv", tabulate.as_csv(spec, results.study, results.grids))
        staging.add_text(INPUTS, _inputs_json(results))
        staging.add_text(kept.FILE, kept.as_json(results))
        staging.add_text("claims.md", markdown(results, judgements, tried=tried))
        staging.add_text("claims.json", as_json(results, judgements, figures, tried=tried))
        if tried:
            staging.add_text(variants.FILE, json_text(variants.as_document(judgements, tried)))
    return figures


def _inputs_json(results: StudyResults) -> str:
    """What the verdicts rest on: files with their hashes, experiments with their seeds, tolerances."""
    study = results.study
    experiments: list[dict[str, Any]] = []
    for one in study.experiments:
        if one.id in results.grids:
            seeds = [run.seed for cell in results.grids[one.id].cells for run in cell.runs]
            files = [part.file.name for part in one.parts]
            counted = {"files": files, "runs": len(seeds), "seeds": sorted(set(seeds))}
            experiments.append({"id": one.id, "title": one.title, **counted})
    run_files = dict.fromkeys(name for experiment in experiments for name in experiment["files"])
    document = {
        "sojourn": _core.version,
        "title": study.title,
        "source": study.source,
        "backend": results.backend,
        "departures": list(results.departures),
        "overrides": study.overrides(results.backend, quick=results.quick),
        "files": [
            *(_input(study.folder / name, with_text=False) for name in ("claims.toml", "study.toml")),
            *(_input(study.folder / name, with_text=True) for name in run_files),
        ],
        "experiments": experiments,
        "figures": {figure.name: figure.title for figure in study.figures},
        "tolerances": {claim.id: claim.tolerance for claim in study.claims},
    }
    return json_text(document)


def _input(path: Path, *, with_text: bool) -> dict[str, str]:
    content = bounded.read_bytes(path, bounded.LARGEST_TEXT)
    known = {"file": path.name, "sha256": hashlib.sha256(content).hexdigest()}
    if with_text:
        known["text"] = content.decode("utf-8")
    return known


def tally(judgements: Sequence[Judgement]) -> str:
    """``54 reproduced, 12 not reproduced, …``."""
    counts = Counter(judgement.verdict for judgement in judgements)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])


def by_cause(judgements: Iterable[Judgement]) -> dict[str, list[Judgement]]:
    """The misses by cause."""
    misses = [one for one in judgements if one.verdict == Verdict.NOT_REPRODUCED]
    found = {cause: [one for one in misses if one.cause == cause] for cause in MEANINGS}
    return {cause: own for cause, own in found.items() if own}


def summary(judgements: Sequence[Judgement], *, quick: bool = False) -> list[str]:
    """A summary of the verdicts in a few sentences; a ``quick`` run may have fewer runs than the paper."""
    compared = [one for one in judgements if one.verdict in COMPARED]
    held = [one for one in compared if one.verdict == Verdict.REPRODUCED]
    lines = [f"{len(held)} of the {len(compared)} claims that could be compared are reproduced."]
    if by_tolerance := [one for one in held if one.only_by_tolerance]:
        lines.append(f"{len(by_tolerance)} of them only by their tolerance: {_ids(by_tolerance)}.")
    if once := [one for one in compared if one.judged == one.runs_per_place == 1]:
        rest = "rests" if len(once) == 1 else "rest"
        lines.append(f"{len(once)} {rest} on one place that was run once{'' if quick else ', as in the paper'}.")
    lines += [
        f"Single runs go either way, and the mean decides, for {len(split)} {verdict}: {_ids(split)}."
        for verdict in COMPARED
        if (split := [one for one in compared if one.is_split and one.verdict == verdict])
    ]
    if wide := [one for one in held if one.wide]:
        lines.append(
            f"{len(wide)} {'is' if len(wide) == 1 else 'are'} reproduced within a tolerance of half of the effect or "
            f"more, which shows a direction or an order of magnitude, not a size: {_ids(wide)}."
        )
    return lines


def alike(grids: Mapping[str, Grid]) -> list[str]:
    """A sentence per experiment about cells whose repeats are equal, because nothing in them is random."""
    lines: list[str] = []
    seen: set[int] = set()
    for id_, grid in grids.items():
        cells = [cell for cell in grid.cells if len(cell.runs) > 1 and id(cell) not in seen]
        seen |= {id(cell) for cell in cells}
        # What was measured, without the seed and the cost.
        same = [
            cell
            for cell in cells
            if len({json.dumps({**run.summary, "seed": 0, "wall_s": 0, "events": 0}) for run in cell.runs}) == 1
        ]
        if same:
            schemes = ", ".join(dict.fromkeys(cell.label for cell in same))
            of = f"{len(same)} of the {len(cells)} cells of {id_} ({schemes})"
            lines.append(f"Nothing is random in {of}: their repeats are one run.")
    return lines


def _ids(found: Sequence[Judgement]) -> str:
    return ", ".join(one.id for one in found)


def misses(judgements: Sequence[Judgement], tried: Sequence[Tried]) -> list[str]:
    """Every miss by cause, with its numbers, its reason and the effect of each variant."""
    lines: list[str] = []
    for cause, own in by_cause(judgements).items():
        lines += [f"### {cause}: {MEANINGS[cause]}", ""]
        for one in own:
            lines += [f"**{one.id}**: {escaped(one.statement)} ({escaped(one.location)})", ""]
            what = "read as" if one.is_reading else "published"
            said = [
                f"{what}: {published(one)}",
                f"measured: {measured(one)}",
                one.reason,
                variants.explained(one, tried),
            ]
            lines += [*(f"- {escaped(text)}" for text in said if text), ""]
    return lines


def tried_tables(judgements: Sequence[Judgement], tried: Sequence[Tried]) -> list[str]:
    """The variants, and every miss beside each of them."""
    if not tried:
        return []
    lines = ["## Variants", "", _OF_VARIANTS, ""]
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
        if one.verdict in COMPARED:
            groups.setdefault(_exhibit_of(one.location), []).append(one)
    lines: list[str] = []
    for exhibit in [*groups, *(exhibit for exhibit in known if exhibit not in groups)]:
        lines += [f"### {escaped(exhibit)}", ""]
        if shown := exhibits(exhibit):
            lines += [shown.rstrip("\n"), ""]
        if exhibit in groups:
            lines += [*_claims(groups[exhibit], beside), ""]
    return lines


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


def basis(results: StudyResults) -> str:
    """The basis of the verdicts."""
    where = "" if results.backend == "sim" else f" on {results.backend}"
    return f"{results.planned} runs{where}" + (", quick: fewer or shorter than the paper's" if results.quick else "")


def departures(results: StudyResults) -> str:
    """The differences of the runs from the study's files, as a sentence; empty if there are none."""
    return f"On {results.backend}: {'; '.join(results.departures)}." if results.departures else ""


def markdown(
    results: StudyResults,
    judgements: Sequence[Judgement],
    *,
    tried: Sequence[Tried] = (),
    beside: Beside | None = None,
    picture: Callable[[FigureSpec], str] = lambda spec: f"{spec.name}.png",
    after_summary: Sequence[str] = (),
) -> str:
    """The page; ``picture`` returns a figure's path, ``beside`` has another backend's judgements."""
    study, grids = results.study, results.grids
    shown: dict[str, list[str]] = {}
    exhibits: list[tuple[str, str]] = [
        (one.location, f"![{escaped(one.title)}]({picture(one)})\n\n{escaped(caption(one, study, grids))}")
        for one in study.figures
        if one.experiment in grids
    ]
    exhibits += [
        (one.location, tabulate.markdown(one, study, grids)) for one in study.tables if one.experiment in grids
    ]
    for location, text in exhibits:
        shown.setdefault(_exhibit_of(location) if location else "Further figures", []).append(text)
    said = departures(results)
    causes = [[cause, str(len(own)), MEANINGS[cause], _ids(own)] for cause, own in by_cause(judgements).items()]
    lines = [
        f"# {study.title}",
        "",
        f"{study.source}. {basis(results)}. {len(judgements)} claims: {tally(judgements)}.",
        "",
        *([said, ""] if said else []),
        "## Summary",
        "",
        *([OF_QUICK, ""] if results.quick else [results.summary(), ""] if study.summary else []),
        " ".join([*summary(judgements, quick=results.quick), *alike(grids)]),
        "",
        *(table(["cause", "misses", "meaning", "claims"], causes) if causes else []),
        "",
        *after_summary,
    ]
    if found := misses(judgements, tried):
        lines += ["## Claims not reproduced, by cause", "", *found]
    lines += tried_tables(judgements, tried)
    of_exhibits = by_exhibit(judgements, lambda exhibit: "\n\n".join(shown.get(exhibit, [])), list(shown), beside)
    lines += ["## All compared claims, by figure", "", *of_exhibits]
    if others := [one for one in judgements if one.verdict not in COMPARED]:
        lines += ["## Claims not compared", "", *_claims(others, beside)]
    page = "\n".join(lines).rstrip() + "\n"
    answers = [] if results.quick else results.answers()
    of_answers = [f"\n**{one.question}** ({one.location})\n\n{one.answer}\n" for one in answers]
    return "".join([page, *(["\n## What the paper leaves open\n"] if answers else []), *of_answers])


def _exhibit_of(location: str) -> str:
    """The figure or table of a claim: ``Fig 3`` for ``sec 4.1.1, Fig 3(a)``; otherwise the whole location."""
    found = re.search(r"(Fig|Table) \d+", location)
    return found.group() if found else location or "elsewhere"


def _claims(judgements: Sequence[Judgement], beside: Beside | None) -> list[str]:
    name, others = beside or ("", ())
    there = {other.id: ": ".join(filter(None, [other.verdict, other.measured])) for other in others}
    rows = []
    for one in judgements:
        row = [one.id, f"{one.statement} ({one.location})", published(one), measured(one), one.verdict]
        rows.append([*row, *([there[one.id]] if beside else []), one.reason])
    return table(["id", "claim", _PUBLISHED, "measured", "verdict", *([name] if beside else []), "reason"], rows)


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
