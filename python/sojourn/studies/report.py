"""Published against measured: as a table, as Markdown, as JSON, and everything together in a folder."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from sojourn.plots.style import FORMATS
from sojourn.storage import Staging
from sojourn.studies import kept
from sojourn.studies.figures import stage_figures
from sojourn.studies.inputs import FILE, inputs_json
from sojourn.studies.recipe import Study
from sojourn.studies.runner import StudyResults
from sojourn.studies.verdict import Judgement, Verdict


def tally(judgements: Sequence[Judgement]) -> str:
    """``54 reproduced, 12 not reproduced, …``."""
    counts = Counter(judgement.verdict for judgement in judgements)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])


def basis(results: StudyResults, *, quick: bool) -> str:
    """What the verdicts rest on."""
    where = "" if results.backend == "sim" else f" on {results.backend}"
    return f"{results.planned} runs{where}" + (", quick: fewer or shorter than the paper's" if quick else "")


def departures(results: StudyResults) -> str:
    """How the runs depart from the study's files, as a sentence; empty if they do not."""
    return f"On {results.backend}: {'; '.join(results.departures)}." if results.departures else ""


def claims_table(results: StudyResults, judgements: Sequence[Judgement], *, quick: bool) -> Table:
    """Every claim that was judged; those that could not be are only counted."""
    judged = [j for j in judgements if j.verdict in (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED)]
    table = Table(
        title=Text(f"{results.study.title}: published and measured ({basis(results, quick=quick)})"),
        caption=Text("\n".join(filter(None, [f"{len(judgements)} claims: {tally(judgements)}", departures(results)]))),
        box=box.SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
        padding=(0, 1, 0, 0),
    )
    for heading, ratio in (("claim", 5), ("published", 4), ("measured", 4)):
        table.add_column(heading, overflow="fold", ratio=ratio)
    table.add_column("verdict", no_wrap=True)
    for judgement in judged:
        claim = f"{judgement.statement} ({judgement.location})"
        cells = (claim, judgement.published, judgement.measured, judgement.verdict)
        # As text: rich would take the [ecn=true] of a relation for markup.
        table.add_row(*map(Text, cells))
    return table


def markdown(
    results: StudyResults,
    judgements: Sequence[Judgement],
    *,
    quick: bool,
    beside: tuple[str, Sequence[Judgement]] | None = None,
) -> str:
    """All claims as a Markdown document; ``beside`` names another place and what was judged there."""
    lines = [
        f"# {results.study.title}",
        "",
        f"{results.study.source}. {basis(results, quick=quick)}. {len(judgements)} claims: {tally(judgements)}.",
        "",
        *([departures(results), ""] if results.departures else []),
    ]
    headings = ["id", "claim", "published", "measured", "verdict"]
    rows = [
        [one.id, f"{one.statement} ({one.location})", one.published, one.measured, one.verdict] for one in judgements
    ]
    if beside is not None:
        place, others = beside
        headings.append(place)
        there = {other.id: ": ".join(filter(None, [other.verdict, other.measured])) for other in others}
        rows = [[*row, there[row[0]]] for row in rows]
    headings.append("reason")
    rows = [[*row, one.reason] for row, one in zip(rows, judgements, strict=True)]
    lines += map(_row, (headings, ["---"] * len(headings), *rows))
    return "\n".join(lines) + "\n"


def questions(results: StudyResults) -> str:
    """What was measured of the questions that the paper leaves open, as Markdown; empty if there are none."""
    lines = [f"\n**{one.question}** ({one.location})\n\n{one.answer}\n" for one in results.answers()]
    return "".join(["\n## What the paper leaves open\n", *lines]) if lines else ""


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_escaped(cell).replace("|", "\\|") for cell in cells) + " |"


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is: no tag, no link, no line of its own."""
    words = " ".join(text.split())
    return words.replace("&", "&amp;").replace("<", "&lt;").replace("](", "\\](")


def as_json(results: StudyResults, judgements: Sequence[Judgement], figures: Sequence[Path], *, quick: bool) -> str:
    """What ``sojourn study run --json`` prints."""
    document: dict[str, Any] = {
        "study": results.study.name,
        "backend": results.backend,
        "departures": list(results.departures),
        "quick": quick,
        "runs": results.planned,
        "claims": [judgement.as_json() for judgement in judgements],
        "questions": [asdict(answer) for answer in results.answers()],
        "figures": [str(figure) for figure in figures],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def files_of(study: Study) -> list[str]:
    """The files that running a study may write."""
    figures = [f"{figure.name}.{kind}" for figure in study.figures for kind in FORMATS]
    return [*figures, FILE, kept.FILE, "claims.md", "claims.json"]


def save(results: StudyResults, judgements: Sequence[Judgement], directory: Path, *, quick: bool) -> list[Path]:
    """Writes figures, inputs.json, measured.json, claims.md and claims.json to a directory, all or none.

    Returns
    -------
    list of Path
        The figures.

    Raises
    ------
    OSError
        The directory cannot be written to, or the disk is full.
    """
    with Staging(directory, by="study", rescue=True) as staging:
        figures = stage_figures(staging, results.study, results.grids)
        staging.add_text(FILE, inputs_json(results, quick=quick))
        staging.add_text(kept.FILE, kept.as_json(results))
        staging.add_text("claims.md", markdown(results, judgements, quick=quick) + questions(results))
        staging.add_text("claims.json", as_json(results, judgements, figures, quick=quick))
    return figures
