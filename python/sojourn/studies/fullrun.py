"""The verdicts of a study's full run, kept beside its recipe, so that a quick run can be compared with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

from sojourn.files import typed
from sojourn.studies.claims import COMPARED, Verdict
from sojourn.studies.recipe import FEWER, Study
from sojourn.studies.verdict import Judgement

FILE = "verdicts.json"


class FullRun(TypedDict):
    """The whole document."""

    made: str
    """The day: ``2026-11-26``."""
    command: str
    verdicts: dict[str, Verdict]


def read(folder: Path) -> Mapping[str, Verdict]:
    """The verdicts of the full run; empty if none were kept. Raises ValueError if the file has an error."""
    path = folder / FILE
    if not path.is_file():
        return {}
    try:
        return typed.convert(typed.read_json(path), FullRun)["verdicts"]
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def as_json(judgements: Sequence[Judgement], made: str, command: str) -> str:
    """The file of a full run."""
    verdicts = {one.id: one.verdict for one in judgements}
    document: FullRun = {"made": made, "command": command, "verdicts": verdicts}
    return typed.json_text(document)


def beside(study: Study, judgements: Sequence[Judgement]) -> list[Judgement]:
    """The judgements of a quick run, which say where the full run decided otherwise, and why if it agrees."""
    full = read(study.folder)
    return [_beside(one, full.get(one.id)) for one in judgements]


def _beside(quick: Judgement, full: Verdict | None) -> Judgement:
    if quick.verdict not in COMPARED or quick.verdict == full:
        return quick
    if full is None:
        by_full = "" if quick.verdict == Verdict.REPRODUCED else "the verdict of the full run is not known"
    else:
        count = quick.runs_per_place
        by_full = f"{full} by the full run" + (f"; here {count} repeat{'s' if count > 1 else ''}" if count else "")
    cause = FEWER if quick.verdict == Verdict.NOT_REPRODUCED else ""
    return replace(quick, cause=cause, reason="; ".join(filter(None, [by_full, quick.reason])))
