"""Writes an evaluation to a folder: all files or none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sojourn.files.storage import Staging
from sojourn.studies.suites import dataset, figures, pages, scorecard
from sojourn.studies.suites.runner import Evaluation
from sojourn.studies.suites.suite import Suite

CARD, PAGE, DATA, DICTIONARY = "scorecard.json", "scorecard.md", "data.csv", "datapackage.json"


def files_of(suite: Suite) -> list[str]:
    """The files that an evaluation may write."""
    return [
        CARD,
        PAGE,
        DATA,
        DICTIONARY,
        *(f"{name}.png" for name in (figures.OVERVIEW, *figures.names(suite).values())),
    ]


def save(evaluation: Evaluation, lines: Sequence[scorecard.Line], directory: Path) -> list[Path]:
    """Writes the scorecard, the page, the data with its dictionary, and the figures. Returns the figures.

    Raises OSError if the directory cannot be written to, or the disk is full.
    """
    with Staging(directory, by="evaluate", replaces={"evaluate"}, rescue=True) as staging:
        drawn = figures.stage(staging, evaluation)
        staging.add_text(DATA, dataset.data_csv(evaluation))
        staging.add_text(DICTIONARY, dataset.dictionary_json(evaluation))
        staging.add_text(PAGE, pages.page(evaluation, lines, [path.name for path in drawn]))
        staging.add_text(CARD, scorecard.as_json(evaluation, lines, [str(path) for path in drawn]))
    return drawn
