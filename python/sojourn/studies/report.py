"""Published against measured: as a table, as Markdown, as JSON, and everything together in a folder."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from sojourn.storage import Staging
from sojourn.studies.figures import stage_figures
from sojourn.studies.inputs import FILE, inputs_json
from sojourn.studies.runner import StudyResults
from sojourn.studies.verdict import Judgement, Verdict


def tally(judgements: Sequence[Judgement]) -> str:
    """``54 reproduced, 12 not reproduced, …``."""
    counts = Counter(judgement.verdict for judgement in judgements)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])


def basis(results: StudyResults, *, quick: bool) -> str:
    """What the verdicts rest on."""
    return f"{results.planned} runs" + (", quick: fewer or shorter than the paper's" if quick else "")


def claims_table(results: StudyResults, judgements: Sequence[Judgement], *, quick: bool) -> Table:
    """Every claim that was judged; those that could not be are only counted."""
    judged = [j for j in judgements if j.verdict in (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED)]
    table = Table(
        title=Text(f"{results.study.title}: published and measured ({basis(results, quick=quick)})"),
        caption=f"{len(judgements)} claims: {tally(judgements)}",
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


def markdown(results: StudyResults, judgements: Sequence[Judgement], *, quick: bool) -> str:
    """All claims as a Markdown document."""
    lines = [
        f"# {results.study.title}",
        "",
        f"{results.study.source}. {basis(results, quick=quick)}. {len(judgements)} claims: {tally(judgements)}.",
        "",
        "| id | claim | published | measured | verdict | reason |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for one in judgements:
        cells = (one.id, f"{one.statement} ({one.location})", one.published, one.measured, one.verdict, one.reason)
        lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def as_json(results: StudyResults, judgements: Sequence[Judgement], figures: Sequence[Path], *, quick: bool) -> str:
    """What ``sojourn study run --json`` prints."""
    document: dict[str, Any] = {
        "study": results.study.name,
        "quick": quick,
        "runs": results.planned,
        "claims": [judgement.as_json() for judgement in judgements],
        "figures": [str(figure) for figure in figures],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def save(results: StudyResults, judgements: Sequence[Judgement], directory: Path, *, quick: bool) -> list[Path]:
    """Writes figures, inputs.json, claims.md and claims.json to a directory, all or none.

    Returns
    -------
    list of Path
        The figures.

    Raises
    ------
    OSError
        The directory cannot be written to, or the disk is full.
    """
    with Staging(directory) as staging:
        figures = stage_figures(staging, results.study, results.grids)
        staging.add_text(FILE, inputs_json(results, quick=quick))
        staging.add_text("claims.md", markdown(results, judgements, quick=quick))
        staging.add_text("claims.json", as_json(results, judgements, figures, quick=quick))
    return figures
