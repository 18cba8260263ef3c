"""Published and measured results: as a table, as Markdown, as JSON, and all files together in a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from sojourn.figure.filenames import FORMATS
from sojourn.figure.style import drawing_code
from sojourn.files.storage import Staging
from sojourn.files.typed import json_text
from sojourn.page.tables import titled
from sojourn.studies import kept, page, tabulate, variants
from sojourn.studies.claims import Verdict
from sojourn.studies.exhibits import FigureSpec, TableSpec
from sojourn.studies.figures import caption, stage_figures
from sojourn.studies.inputs import FILE, inputs_json
from sojourn.studies.recipe import Study
from sojourn.studies.runner import StudyResults
from sojourn.studies.variants import Tried
from sojourn.studies.verdict import Judgement


def basis(results: StudyResults, *, quick: bool) -> str:
    """The basis of the verdicts."""
    where = "" if results.backend == "sim" else f" on {results.backend}"
    return f"{results.planned} runs{where}" + (", quick: fewer or shorter than the paper's" if quick else "")


def departures(results: StudyResults) -> str:
    """The differences of the runs from the study's files, as a sentence; empty if there are none."""
    return f"On {results.backend}: {'; '.join(results.departures)}." if results.departures else ""


def claims_table(results: StudyResults, judgements: Sequence[Judgement], *, quick: bool) -> Table:
    """Every claim that was judged; those that could not be are only counted."""
    judged = [j for j in judgements if j.verdict in (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED)]
    title = f"{results.study.title}: published and measured ({basis(results, quick=quick)})"
    table = titled(title, "\n".join(closing(results, judgements)))
    for heading, ratio in (("claim", 5), ("published, or read as", 4), ("measured", 4)):
        table.add_column(heading, overflow="fold", ratio=ratio)
    table.add_column("verdict", no_wrap=True)
    for judgement in judged:
        claim = f"{judgement.statement} ({judgement.location})"
        cells = (claim, page.published(judgement), page.measured(judgement), judgement.verdict)
        # As text: rich would interpret the [ecn=true] of a relation as markup.
        table.add_row(*map(Text, cells))
    return table


def closing(results: StudyResults, judgements: Sequence[Judgement]) -> list[str]:
    """The last lines on the terminal: counts, and the misses by cause."""
    return [
        f"{len(judgements)} claims: {page.tally(judgements)}",
        *page.summary(judgements)[1:],
        *(
            f"not reproduced, {cause}: {', '.join(one.id for one in own)}"
            for cause, own in page.by_cause(judgements).items()
        ),
        *filter(None, [departures(results)]),
    ]


def markdown(
    results: StudyResults,
    judgements: Sequence[Judgement],
    *,
    quick: bool,
    tried: Sequence[Tried] = (),
    beside: page.Beside | None = None,
    picture: Callable[[FigureSpec], str] = lambda spec: f"{spec.name}.png",
    after_summary: Sequence[str] = (),
) -> str:
    """The page; ``picture`` returns a figure's path, ``beside`` names another backend and its judgements."""
    study, grids = results.study, results.grids
    drawn = [spec for spec in study.figures if spec.experiment in grids]
    of_tables = [spec for spec in study.tables if spec.experiment in grids]

    def exhibits(exhibit: str) -> str:
        figures = [
            f"![{page.escaped(spec.title)}]({picture(spec)})\n\n{page.escaped(caption(spec, study, grids))}"
            for spec in drawn
            if _exhibit(spec) == exhibit
        ]
        return "\n\n".join(
            figures + [tabulate.markdown(spec, study, grids) for spec in of_tables if _exhibit(spec) == exhibit]
        )

    text = page.markdown(
        results,
        judgements,
        basis=basis(results, quick=quick),
        departures=departures(results),
        exhibits=exhibits,
        known=list(dict.fromkeys([*map(_exhibit, drawn), *map(_exhibit, of_tables)])),
        tried=tried,
        beside=beside,
        after_summary=after_summary,
        quick=quick,
    )
    return text if quick else text + questions(results)


def _exhibit(spec: FigureSpec | TableSpec) -> str:
    return page.exhibit_of(spec.location) if spec.location else "Further figures"


def questions(results: StudyResults) -> str:
    """The answers to the paper's open questions, as Markdown; empty if there are none."""
    lines = [f"\n**{one.question}** ({one.location})\n\n{one.answer}\n" for one in results.answers()]
    return "".join(["\n## What the paper leaves open\n", *lines]) if lines else ""


def as_json(
    results: StudyResults,
    judgements: Sequence[Judgement],
    figures: Sequence[Path],
    *,
    quick: bool,
    tried: Sequence[Tried] = (),
) -> str:
    """The output of ``sojourn study run --json``."""
    document: dict[str, Any] = {
        "study": results.study.name,
        "backend": results.backend,
        "departures": list(results.departures),
        "quick": quick,
        "runs": results.planned,
        "claims": [judgement.as_json() for judgement in judgements],
        "questions": [asdict(answer) for answer in results.answers()],
        "figures": [str(figure) for figure in figures],
        "summary": page.summary(judgements),
        **({"variants": variants.as_document(judgements, tried)["variants"]} if tried else {}),
    }
    return json_text(document)


def files_of(study: Study) -> list[str]:
    """The files that running a study may write."""
    figures = [f"{figure.name}.{kind}" for figure in study.figures for kind in FORMATS]
    return [
        *figures,
        *(f"{table.name}.csv" for table in study.tables),
        FILE,
        kept.FILE,
        variants.FILE,
        "claims.md",
        "claims.json",
    ]


def save(
    results: StudyResults,
    judgements: Sequence[Judgement],
    directory: Path,
    *,
    quick: bool,
    tried: Sequence[Tried] = (),
    formats: Sequence[str] = FORMATS,
) -> list[Path]:
    """Writes figures, inputs.json, measured.json, claims.md and claims.json to a directory, all or none.

    With variants also variants.json. Returns the figures. Raises OSError if the directory cannot be written to, or the
    disk is full.
    """
    with Staging(directory, by="study", rescue=True) as staging:
        made_of = None if results.made_of is None else f"{results.made_of} {drawing_code()}"
        figures = stage_figures(staging, results.study, results.grids, formats, made_of)
        tabulate.stage_tables(staging, results.study, results.grids)
        staging.add_text(FILE, inputs_json(results, quick=quick))
        staging.add_text(kept.FILE, kept.as_json(results))
        staging.add_text("claims.md", markdown(results, judgements, quick=quick, tried=tried))
        staging.add_text("claims.json", as_json(results, judgements, figures, quick=quick, tried=tried))
        if tried:
            staging.add_text(variants.FILE, variants.as_json(judgements, tried))
    return figures
