"""The scorecard of congestion controls: on the terminal, as a page and as data."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table
from rich.text import Text

from sojourn import _core
from sojourn.files.storage import Staging
from sojourn.files.typed import json_text
from sojourn.page.tables import titled
from sojourn.studies.suites.controls import MET, MISSED, Case, Judged, Verdict, criteria_of

CARD, PAGE = "scorecard.json", "scorecard.md"
FILES = (CARD, PAGE)
BY = {"draft": "the draft's", "sojourn": "ours"}


def command_of(judged: Judged) -> str:
    """The command that repeats the evaluation."""
    first, *others = judged.controls
    against = f" --against {','.join(others)}" if others else ""
    return f"sojourn evaluate {first} --suite {judged.suite.name}{against}{' --quick' if judged.quick else ''}"


def _text(verdict: Verdict | None) -> str:
    if verdict is None:
        return "–"
    runs = verdict.met + verdict.missed
    return f"{verdict.word}: {verdict.met} of {runs}" if verdict.word in (MET, MISSED) else verdict.word


def _rows(judged: Judged, case: Case) -> list[list[str]]:
    columns = [judged.verdicts(case, control) for control in judged.controls]
    return [
        [criterion.text, BY[criterion.by], *(_text(column[index]) for column in columns)]
        for index, criterion in enumerate(criteria_of(case))
    ]


def tally(judged: Judged, by: str) -> dict[str, tuple[int, int]]:
    """By control: how many criteria of this origin are met, and how many were judged."""
    found = {}
    for control in judged.controls:
        verdicts = [one for case in judged.suite.content.case for one in judged.verdicts(case, control)]
        of = [one for one in verdicts if one is not None and one.criterion.by == by and one.met + one.missed]
        found[control] = (sum(one.word == MET for one in of), len(of))
    return found


def _summary(judged: Judged) -> str:
    def of(by: str) -> str:
        found = tally(judged, by).items()
        return ", ".join(f"{control} {met} of {known}" for control, (met, known) in found if known) or "none"

    drafts = f"Criteria of the draft that are met, of those that a seed got to: {of('draft')}."
    return f"{drafts} With thresholds of ours: {of('sojourn')}."


def table(judged: Judged) -> Table:
    """The verdicts on a terminal."""
    quick = ", quick" if judged.quick else ""
    found = titled(
        f"{judged.suite.content.title} ({judged.runs} runs{quick})",
        f"Met by so many of the seeds that got to it; –: not a criterion for this control.\n{_summary(judged)}",
    )
    for name in ("case", "criterion", "whose", *judged.controls):
        found.add_column(name, overflow="fold")
    for case in judged.suite.content.case:
        for index, row in enumerate(_rows(judged, case)):
            found.add_row(*map(Text, ["" if index else case.id, *row]))
    return found


def page(judged: Judged) -> str:
    """The page, Markdown."""
    content = judged.suite.content
    head = f"| criterion | whose | {' | '.join(judged.controls)} |\n|{' --- |' * (2 + len(judged.controls))}\n"
    text = [
        f"# {content.title}\n",
        f"Sojourn {_core.version}, {judged.runs} runs. {_summary(judged)}\n",
        "A criterion is met if every seed that got to it meets it; behind the verdict is how many of them did. Not "
        "reached: no seed got to what it is about. A criterion of BBR's state (–: not one for this control) reads what "
        "the sender recorded in its qlog after every acknowledgement; the others are seen from outside.\n",
        f"    {command_of(judged)}\n",
        "What the draft leaves open, and what was decided:\n",
        "\n".join(f"- {one}" for one in content.open) + "\n",
    ]
    for number, case in enumerate(content.case, 1):
        rows = "\n".join(f"| {' | '.join(row)} |" for row in _rows(judged, case))
        text += [f"## {number}. {case.id}\n", f"The draft: {case.draft}.\n", f"Path: {case.path}.\n", f"{head}{rows}\n"]
    return "\n".join(text)


def as_json(judged: Judged) -> str:
    """The scorecard as data."""
    cases = []
    for case in judged.suite.content.case:
        columns = {control: judged.verdicts(case, control) for control in judged.controls}
        criteria = [
            {
                "text": one.text,
                "by": one.by,
                "verdicts": {control: _verdict(of[index]) for control, of in columns.items()},
            }
            for index, one in enumerate(criteria_of(case))
        ]
        cases.append({"id": case.id, "draft": case.draft, "path": case.path, "criteria": criteria})
    document = {
        "suite": judged.suite.name, "controls": judged.controls, "sojourn": _core.version, "quick": judged.quick,
        "runs": judged.runs, "cases": cases,
    }  # fmt: skip
    return json_text(document)


def _verdict(verdict: Verdict | None) -> dict[str, object] | None:
    return None if verdict is None else {"verdict": verdict.word, "met": verdict.met, "missed": verdict.missed}


def save(judged: Judged, directory: Path) -> None:
    """Writes the page and the data. Raises OSError if the directory cannot be written to, or the disk is full."""
    with Staging(directory, by="evaluate", replaces={"evaluate"}, rescue=True) as staging:
        staging.add_text(PAGE, page(judged))
        staging.add_text(CARD, as_json(judged))
