"""The scorecard: each metric of each scenario with its interval, beside that of drop-tail.

It is a table on the terminal, a page, and data of every run with a dictionary (a Data Package of the Frictionless
standard), written to a folder with the figures: all files or none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sojourn import _core
from sojourn.files.storage import Staging
from sojourn.files.typed import json_text
from sojourn.frame.statistics import Interval, mean_interval, or_none, three_digits
from sojourn.page.sheet import Sheet, csv_of, markdown
from sojourn.studies.suites import figures
from sojourn.studies.suites.suite import Better, Evaluation, Measured, Planned, Scenario, Shown, Suite

DONE = "done"
NOT_APPLICABLE = "not applicable"
Than = Literal["better", "worse", "same", ""]
ON_TERMINAL = ("goodput_mbps", "delay_mean_ms", "delay_p95_ms", "loss_percent", "jain")
"""The metrics of the table on the terminal; the page has all."""
MARKS = {"better": "+", "worse": "-", "same": "=", "": ""}
CARD, PAGE, DATA, DICTIONARY = "scorecard.json", "scorecard.md", "data.csv", "datapackage.json"
COLUMNS = {
    "section": ("string", "section of the suite's document"),
    "scenario": ("string", "name of the scenario, with its case"),
    "weight": ("string", "the document's word: must, should or may"),
    "queue": ("string", "the discipline, with parameters after a colon"),
    "role": ("string", "under test, reference (drop-tail) or against"),
    "seed": ("integer", "seed of the run"),
    "metric": ("string", "name of the metric; the list is under metrics"),
    "unit": ("string", "unit of the value"),
    "value": ("number", "the metric of this run; empty if the run does not have it"),
}
"""The columns of the data, with their types and meanings."""


@dataclass(frozen=True)
class Score:
    """A metric of the discipline under test in a scenario."""

    name: str
    metric: Shown
    value: Interval
    reference: Interval
    than_reference: Than
    """Against drop-tail: better or worse if the interval of the difference, seed by seed, leaves out zero."""
    against: Mapping[str, Interval]


@dataclass(frozen=True)
class Line:
    """A scenario of the scorecard."""

    section: str
    name: str
    scenario: Scenario
    reason: str
    scores: tuple[Score, ...]

    @property
    def status(self) -> str:
        """In words."""
        return NOT_APPLICABLE if self.reason else DONE


def scorecard(evaluation: Evaluation) -> list[Line]:
    """Every scenario, in the suite's order."""
    lines, tested = [], evaluation.tested
    for index, one in enumerate(evaluation.planned):
        runs, reason = evaluation.measured.get(index, []), one.reason
        is_marking = any(run.values.get("marks") for run in runs if run.queue == tested.queue)
        if not reason and one.scenario.needs == "ecn" and not is_marking:
            reason = f"{tested.aqm} marked no packet with ECN on"
        scores = () if reason else tuple(_scores(evaluation, one, runs))
        lines.append(Line(one.scenario.section, one.scenario.title(one.case), one.scenario, reason, scores))
    return lines


def _scores(evaluation: Evaluation, one: Planned, runs: Sequence[Measured]) -> Iterator[Score]:
    for name, metric in evaluation.suite.metrics_of(one.scenario).items():
        of = {
            arm.queue: {run.seed: run.values[name] for run in runs if run.queue == arm.queue} for arm in evaluation.arms
        }
        own, base = of[evaluation.tested.queue], of[evaluation.reference]
        means = {queue: mean_interval(list(values.values())).within(*metric.bounds) for queue, values in of.items()}
        than = compared([own[seed] - base[seed] for seed in own if seed in base], metric.better)
        others = {queue: means[queue] for queue in evaluation.against if of[queue]}
        yield Score(name, metric, means[evaluation.tested.queue], means[evaluation.reference], than, others)


def compared(differences: Sequence[float], better: Better) -> Than:
    """Whether a metric is better, by the 95 % interval of the mean difference on the same seeds; empty if unknown."""
    known = [one for one in differences if not math.isnan(one)]
    if not better or len(known) < 2:
        return ""
    interval = mean_interval(known)
    if interval.low <= 0.0 <= interval.high:
        return "same"
    return "better" if (interval.middle > 0.0) == (better == "higher") else "worse"


def tally(lines: Sequence[Line]) -> dict[Than, int]:
    """The number of metrics by their comparison with drop-tail."""
    found = [score.than_reference for line in lines for score in line.scores]
    return {than: found.count(than) for than in ("better", "same", "worse")}


def as_json(evaluation: Evaluation, lines: Sequence[Line], figures: Sequence[str]) -> str:
    """The output of ``--json``, and scorecard.json. A number that no run has is null."""
    document: dict[str, Any] = {
        "suite": evaluation.suite.name,
        "aqm": evaluation.tested.queue,
        "against": evaluation.against,
        "reference": evaluation.reference,
        "sojourn": _core.version,
        "quick": evaluation.quick,
        "runs": evaluation.runs,
        "scenarios": [_line_json(line) for line in lines],
        "figures": list(figures),
    }
    return json_text(document)


def _line_json(line: Line) -> dict[str, Any]:
    found: dict[str, Any] = {
        "section": line.section,
        "name": line.name,
        "weight": line.scenario.weight,
        "status": line.status,
        **({"reason": line.reason} if line.reason else {}),
        "metrics": {},
    }
    for score in line.scores:
        found["metrics"][score.name] = {
            **_interval(score.value),
            "reference": or_none(score.reference.middle),
            "reference_ci95": _interval(score.reference)["ci95"],
            "unit": score.metric.unit,
            "than_reference": score.than_reference,
            **({"against": {name: _interval(one) for name, one in score.against.items()}} if score.against else {}),
        }
    return found


def _interval(interval: Interval) -> dict[str, Any]:
    return {"value": or_none(interval.middle), "ci95": [or_none(interval.low), or_none(interval.high)]}


def closing(evaluation: Evaluation, lines: Sequence[Line]) -> str:
    """The summary of a scorecard, in words."""
    count = tally(lines)
    done = sum(line.status == DONE for line in lines)
    reference = evaluation.reference
    return (
        f"{done} of {len(lines)} scenarios apply. Against {reference} of the same limit: {count['better']} metrics "
        f"better, {count['same']} without a clear difference, {count['worse']} worse."
    )


def sheet(evaluation: Evaluation, lines: Sequence[Line]) -> Sheet:
    """The scorecard on a terminal: the main metrics with drop-tail's and the others' in brackets."""
    reference = evaluation.reference
    others = evaluation.against
    quick = ", quick" if evaluation.quick else ""
    caption = [
        f"In brackets {', '.join([reference, *others])}. + better than {reference}, - worse, = no clear difference.",
        closing(evaluation, lines),
        *(f"Not applicable: {one.section} {one.name}: {one.reason}" for one in lines if one.status != DONE),
    ]
    title = f"{evaluation.suite.content.title}: {evaluation.tested.queue} ({evaluation.runs} runs{quick})"
    metrics = evaluation.suite.content.metrics
    shown = {name: metrics[name] for name in ON_TERMINAL if name in metrics}
    headings = [f"{metric.label} [{metric.unit}]".replace(" [1]", "") for metric in shown.values()]
    rows = []
    for line in lines:
        if line.status == DONE:
            of = {score.name: score for score in line.scores}
            rows.append((line.section, line.name, *(_short(of[name], others) if name in of else "" for name in shown)))
    shares = (0, 3, *(2 for _ in shown))
    return Sheet(title, "\n".join(caption), ("section", "scenario", *headings), tuple(rows), shares=shares)


def page(evaluation: Evaluation, lines: Sequence[Line], figures: Sequence[str], command: str) -> str:
    """The page, Markdown; ``command`` repeats the evaluation."""
    content, arms, reference = evaluation.suite.content, evaluation.against, evaluation.reference
    text = [
        f"# {evaluation.tested.queue}: {content.title}\n",
        f"{closing(evaluation, lines)}\n",
        f"Sojourn {_core.version}, {evaluation.runs} runs, mean over the seeds with its 95 % interval (Student's t). "
        f"The last column compares with {reference}, seed by seed."
        + (" This is the quick version: fewer seeds." if evaluation.quick else "")
        + "\n",
        f"    {command}\n",
    ]
    for line in lines:
        text.append(f"## {line.section} {line.name}\n")
        text.append(f"The RFC's word: {line.scenario.weight}. It asks for {line.scenario.asks}.\n")
        if line.status != DONE:
            text.append(f"Not applicable: {line.reason}.\n")
            continue
        text.append(f"Decided here: {line.scenario.decided}\n")
        heads = ["metric", "unit", evaluation.tested.queue, *arms, reference, f"than {reference}"]
        rows = []
        for score in line.scores:
            others = [_spread(score.against.get(name)) for name in arms]
            label = score.name if score.metric.label is None else score.metric.label
            cells = [label, score.metric.unit, _spread(score.value), *others, _spread(score.reference)]
            rows.append([*cells, score.than_reference or "–"])
        text += [*markdown(heads, rows), ""]
    if "overview.png" in figures:
        text.append(f"## Against {reference}\n")
        text.append(
            f"Medians over the seeds, as ratios to those of {reference} in the same scenario. Grey: not run, "
            "or nothing to compare.\n\n![Every discipline in every scenario](overview.png)\n"
        )
    if tradeoffs := [figure for figure in figures if figure != "overview.png"]:
        text.append("## Goodput against queueing delay\n")
        text.append(
            "Section 2.7: one dot per run, a mark at the medians, and the contour of the fitted normal distribution "
            "one standard deviation from its mean. Better is up and to the right.\n"
        )
        text += [f"![Goodput against queueing delay]({figure})\n" for figure in tradeoffs]
    return "\n".join(text) + "\n"


def _short(score: Score, others: Sequence[str]) -> str:
    beside = [score.reference, *(score.against.get(name) for name in others)]
    others_text = ", ".join("–" if one is None else three_digits(one.middle) for one in beside)
    return f"{three_digits(score.value.middle)} ({others_text}) {MARKS[score.than_reference]}".rstrip()


def _spread(one: Interval | None) -> str:
    """A mean with its interval: ``9.2 (9.1 to 9.3)``."""
    if one is None or math.isnan(one.middle):
        return "–"
    return f"{three_digits(one.middle)} ({three_digits(one.low)} to {three_digits(one.high)})"


def files_of(suite: Suite) -> list[str]:
    """The files that an evaluation may write."""
    drawn = (figures.OVERVIEW, *figures.names(suite).values())
    return [CARD, PAGE, DATA, DICTIONARY, *(f"{name}.png" for name in drawn)]


def save(evaluation: Evaluation, lines: Sequence[Line], directory: Path, command: str) -> list[Path]:
    """Writes the scorecard, the page, the data with its dictionary, and the figures. Returns the figures.

    ``command`` repeats the evaluation.
    """
    with Staging(directory, by="evaluate", replaces={"evaluate"}, rescue=True) as staging:
        drawn = figures.stage(staging, evaluation)
        staging.add_text(DATA, _data_csv(evaluation))
        staging.add_text(DICTIONARY, _dictionary_json(evaluation, command))
        staging.add_text(PAGE, page(evaluation, lines, [path.name for path in drawn], command))
        staging.add_text(CARD, as_json(evaluation, lines, [str(path) for path in drawn]))
    return drawn


def _data_csv(evaluation: Evaluation) -> str:
    """One row per run and metric."""
    roles = {arm.queue: arm.role for arm in evaluation.arms}
    rows: list[Sequence[object]] = []
    for index, one in enumerate(evaluation.planned):
        scenario = one.scenario
        for run in evaluation.measured.get(index, []):
            for name, value in run.values.items():
                unit = evaluation.suite.content.metrics[name].unit
                shown = "" if math.isnan(value) else f"{value:.9g}"
                where = (scenario.section, scenario.title(one.case), scenario.weight)
                rows.append([*where, run.queue, roles[run.queue], run.seed, name, unit, shown])
    return csv_of(COLUMNS, rows)


def _dictionary_json(evaluation: Evaluation, command: str) -> str:
    """datapackage.json: what the columns and metrics of data.csv mean."""
    fields = [{"name": name, "type": kind, "description": words} for name, (kind, words) in COLUMNS.items()]
    metrics = [
        {"name": name, "unit": metric.unit, "description": metric.label, "better": metric.better}
        for name, metric in evaluation.suite.content.metrics.items()
    ]
    document = {
        "name": f"{evaluation.suite.name}-evaluation",
        "title": f"{evaluation.suite.content.title}: {evaluation.tested.queue}",
        "version": _core.version,
        "command": command,
        "resources": [{"name": "data", "path": "data.csv", "format": "csv", "schema": {"fields": fields}}],
        "metrics": metrics,
    }
    return json_text(document)
