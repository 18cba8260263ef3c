"""Judges congestion controls by a suite of test cases: each case's criteria, by runs of one sender.

What a case does when the sender enters a phase takes a first run of the same seed, which is the same up to that moment.
The verdicts are a table on the terminal, a page and data.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from sojourn import _core
from sojourn.files import bounded
from sojourn.files.storage import Staging
from sojourn.files.typed import Strict, json_text, must_be
from sojourn.frame.results import Run
from sojourn.frame.swept import quantity
from sojourn.page.sheet import Sheet, markdown
from sojourn.runs.plan import naming_options
from sojourn.store.runner import Runner
from sojourn.studies.suites.criteria import INSIDE, OUTSIDE, Answer, Seen

BBR = ("bbr", "bbr3")
"""The controls whose state is judged."""
MET, MISSED, NOT_REACHED = "met", "missed", "not reached"
CARD, PAGE = "scorecard.json", "scorecard.md"
FILES = (CARD, PAGE)
BY = {"draft": "the draft's", "sojourn": "ours"}


class Criterion(Strict, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """What a run must show. The keys that are not here are arguments of the check."""

    check: str
    by: Literal["draft", "sojourn"]
    text: str
    controls: tuple[str, ...] = ()
    """The controls that have this state; empty: it is seen from outside, of any control."""


class Act(Strict, frozen=True, kw_only=True):
    """What changes at the moment at which the sender enters a phase."""

    phase: str
    after_s: float = 0.0
    default_s: float | None = None
    """When it changes for a control without this phase; by default the case is not one for it."""
    set: dict[str, str]
    """Overrides; {at} is that moment."""


class Case(Strict, frozen=True, kw_only=True):
    """A test case."""

    id: str
    draft: str
    path: str
    file: str = "path.toml"
    set: dict[str, str] = {}
    act: Act | None = None
    rate: str = ""
    """The link's rate at last, if it changes."""
    criteria: tuple[dict[str, Any], ...]


class ControlSuiteFile(Strict, frozen=True, kw_only=True):
    """suite.toml of a suite for congestion controls."""

    title: str
    controls: Literal[True]
    open: tuple[str, ...]
    quick: dict[str, str] = {}
    case: tuple[Case, ...]

    def __post_init__(self) -> None:
        for index, case in enumerate(self.case):
            for given in case.criteria:
                criterion = msgspec.convert(given, Criterion)
                known = INSIDE if criterion.controls else OUTSIDE
                must_be(criterion.check, known, f"case.{index}: criteria: check")
                try:
                    inspect.signature(known[criterion.check]).bind(None, **_arguments(given))
                except TypeError as error:
                    raise ValueError(f"case.{index}: criteria: {criterion.check}: {error}") from None


@dataclass(frozen=True)
class ControlSuite:
    """A suite, with its folder."""

    name: str
    folder: Path
    content: ControlSuiteFile

    def spec_of(self, case: Case, control: str, more: Mapping[str, str]) -> _core.Plan:
        """The runs of a control in a case, with more overrides."""
        text = bounded.read_text(self.folder / case.file, bounded.LARGEST_TEXT)
        record = {"record.qlog": "true"} if control in BBR else {}
        overrides = {**case.set, "traffic.0.tcp": control, **record, **more}
        in_folder = lambda trace: json.dumps(str(self.folder / trace[1]))  # noqa: E731
        written = [(key, re.sub(r'"(\w[\w-]*\.trace)"', in_folder, value)) for key, value in overrides.items()]
        with naming_options("evaluate", (), {"traffic.0.tcp": "TCP"}):
            return _core.Plan.read_text(text, f"{self.name}: {case.id}", written)


def criteria_of(case: Case) -> list[Criterion]:
    """The criteria of a case."""
    return [msgspec.convert(given, Criterion) for given in case.criteria]


def _arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key not in Criterion.__struct_fields__}


@dataclass(frozen=True)
class CriterionResult:
    """A criterion of a case for a control, over the seeds."""

    criterion: Criterion
    met: int
    missed: int

    @property
    def word(self) -> str:
        """In words: met by every run that got to it, or not."""
        if not self.met + self.missed:
            return NOT_REACHED
        return MISSED if self.missed else MET

    def __str__(self) -> str:
        return self.word + (f": {self.met} of {self.met + self.missed}" if self.word != NOT_REACHED else "")


@dataclass
class Judged:
    """The verdicts of every case and control."""

    suite: ControlSuite
    controls: tuple[str, ...]
    quick: bool
    answers: dict[tuple[str, str], list[list[Answer]]] = field(default_factory=dict)
    """Of a case and a control: per run the answers to its criteria."""
    runs: int = 0
    stopped_by: BaseException | None = None

    def verdicts(self, case: Case, control: str) -> list[CriterionResult | None]:
        """A verdict per criterion; None where it is not one for this control."""
        runs = self.answers.get((case.id, control), [])
        found: list[CriterionResult | None] = []
        for index, criterion in enumerate(criteria_of(case)):
            if criterion.controls and control not in criterion.controls:
                found.append(None)
                continue
            answers = [run[index] for run in runs]
            found.append(CriterionResult(criterion, answers.count(True), answers.count(False)))
        return found


@dataclass(frozen=True)
class _Job:
    """A run to make."""

    case: Case
    control: str
    spec: _core.RunSpec
    acted_s: float | None

    def judge(self, run: Run) -> list[Answer]:
        """The answers to the case's criteria, in their order."""
        experiment = json.loads(self.spec.document)["experiment"]
        rate = quantity(self.case.rate or experiment["link"]["rate"])
        rtt = quantity(experiment["traffic"][0]["rtt"])
        assert rate is not None and rtt is not None
        seen = Seen(run, rate.value, rtt.value / 1000.0, self.acted_s)
        return [
            None
            if (controls := given.get("controls", ())) and self.control not in controls
            else (INSIDE if controls else OUTSIDE)[given["check"]](seen, **_arguments(given))
            for given in self.case.criteria
        ]

    def entered_s(self, run: Run) -> float | None:
        """When the sender enters the phase at which the case acts."""
        act = self.case.act
        assert act is not None
        stays = Seen(run, 1.0, 1.0, None).all_of(act.phase) if self.control in BBR else []
        times = (stay.moments[0].at_s for stay in stays if stay.moments[0].at_s >= act.after_s)
        return next(times, act.default_s)


def judge(controls: Sequence[str], suite: ControlSuite, runner: Runner, *, quick: bool = False) -> Judged:
    """Runs every case for every control. Raises ExperimentError if a control or the suite's experiment is wrong."""
    judged = Judged(suite, tuple(dict.fromkeys(controls)), quick)
    more = suite.content.quick if quick else {}
    first = [
        _Job(case, control, spec, None)
        for case in suite.content.case
        for control in judged.controls
        for spec in suite.spec_of(case, control, more)
    ]
    second: list[_Job] = []

    def take(job: _Job, run: Run) -> None:
        act = job.case.act
        if act is None or job.acted_s is not None:
            judged.answers.setdefault((job.case.id, job.control), []).append(job.judge(run))
        elif (found := job.entered_s(run)) is not None:
            seed = {"experiment.seed": str(job.spec.seed), "experiment.repeat": "1"}
            changed = {key: _at(value, found) for key, value in act.set.items()}
            plan = suite.spec_of(job.case, job.control, {**more, **seed, **changed})
            second.extend(_Job(job.case, job.control, spec, found) for spec in plan)

    # A batch before the next, which the first finds.
    for name, batch in ((suite.name, first), (f"{suite.name}, acting", second)):
        if batch and judged.stopped_by is None:
            judged.stopped_by = runner.run(
                name,
                [job.spec for job in batch],
                lambda index, run, batch=batch: take(batch[index], run),  # type: ignore[misc]
            )
    judged.runs = len(first) + len(second)
    return judged


def _at(value: str, at_s: float) -> str:
    """An override with its {at}, or {at + 40 ms}, as a time to the nanosecond."""

    def written(found: re.Match[str]) -> str:
        return f"{round(at_s * 1e9) / 1e6 + float(found[1] or 0.0):.6f} ms"

    return re.sub(r"\{at(?: \+ (\d+) ms)?\}", written, value)


def _rows(judged: Judged, case: Case) -> list[list[str]]:
    rows = zip(criteria_of(case), *(judged.verdicts(case, control) for control in judged.controls), strict=True)
    return [
        [criterion.text, BY[criterion.by], *("–" if one is None else str(one) for one in of)] for criterion, *of in rows
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
        return ", ".join(f"{control} {met} of {known}" for control, (met, known) in found if known)

    drafts = f"Criteria of the draft that are met, of those that a seed got to: {of('draft')}."
    if not of("draft"):
        drafts = "Of the draft's own criteria none is for these controls, or no seed got to it."
    return f"{drafts} With thresholds of ours: {of('sojourn') or 'none'}."


def sheet(judged: Judged) -> Sheet:
    """The verdicts on a terminal."""
    quick = ", quick" if judged.quick else ""
    headings = ("case", "criterion", "whose", *judged.controls)
    return Sheet(
        f"{judged.suite.content.title} ({judged.runs} runs{quick})",
        f"Met by so many of the seeds that got to it; –: not a criterion for this control.\n{_summary(judged)}",
        headings,
        tuple(
            ("" if index else case.id, *row)
            for case in judged.suite.content.case
            for index, row in enumerate(_rows(judged, case))
        ),
        shares=(None,) * len(headings),
    )


def page(judged: Judged, command: str) -> str:
    """The page, Markdown; ``command`` repeats the evaluation."""
    content = judged.suite.content
    text = [
        f"# {content.title}\n",
        f"Sojourn {_core.version}, {judged.runs} runs. {_summary(judged)}\n",
        "A criterion is met if every seed that got to it meets it; behind the verdict is how many of them did. Not "
        "reached: no seed got to what it is about. A criterion of BBR's state (–: not one for this control) reads what "
        "the sender recorded in its qlog after every acknowledgement; the others are seen from outside.\n",
        f"    {command}\n",
        "What the draft leaves open, and what was decided:\n",
        "\n".join(f"- {one}" for one in content.open) + "\n",
    ]
    for number, case in enumerate(content.case, 1):
        text += [f"## {number}. {case.id}\n", f"The draft: {case.draft}.\n", f"Path: {case.path}.\n"]
        text += [*markdown(["criterion", "whose", *judged.controls], _rows(judged, case)), ""]
    return "\n".join(text)


def as_json(judged: Judged) -> str:
    """The scorecard as data."""
    cases = []
    for case in judged.suite.content.case:
        criteria: list[dict[str, Any]] = [{"text": one.text, "by": one.by, "verdicts": {}} for one in criteria_of(case)]
        for control in judged.controls:
            for criterion, one in zip(criteria, judged.verdicts(case, control), strict=True):
                known = one and {"verdict": one.word, "met": one.met, "missed": one.missed}
                criterion["verdicts"][control] = known
        cases.append({"id": case.id, "draft": case.draft, "path": case.path, "criteria": criteria})
    document = {
        "suite": judged.suite.name, "controls": judged.controls, "sojourn": _core.version, "quick": judged.quick,
        "runs": judged.runs, "cases": cases,
    }  # fmt: skip
    return json_text(document)


def save(judged: Judged, directory: Path, command: str) -> None:
    """Writes the page and the data; ``command`` repeats the evaluation.

    Raises OSError if the directory cannot be written to, or the disk is full.
    """
    with Staging(directory, by="evaluate", replaces={"evaluate"}, rescue=True) as staging:
        staging.add_text(PAGE, page(judged, command))
        staging.add_text(CARD, as_json(judged))
