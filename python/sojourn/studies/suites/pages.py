"""The scorecard as a table on the terminal and as a page."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from sojourn import _core
from sojourn.frame.statistics import Interval
from sojourn.page.tables import titled
from sojourn.studies.suites.runner import AGAINST, Evaluation
from sojourn.studies.suites.scorecard import DONE, Line, Score, tally

ON_TERMINAL = ("goodput_mbps", "delay_mean_ms", "delay_p95_ms", "loss_percent", "jain")
"""The metrics of the table on the terminal; the page has all."""
MARKS = {"better": "+", "worse": "-", "same": "=", "": ""}


def command_of(evaluation: Evaluation) -> str:
    """The command that repeats the evaluation."""
    others = [arm.queue for arm in evaluation.arms if arm.role == "against"]
    return " ".join(
        [
            f"sojourn evaluate {evaluation.arms[0].queue} --suite {evaluation.suite.name}",
            *(["--against", ",".join(others)] if others else []),
            *(["--quick"] if evaluation.quick else []),
        ]
    )


def closing(evaluation: Evaluation, lines: Sequence[Line]) -> str:
    """The summary of a scorecard, in words."""
    count = tally(lines)
    done = sum(line.status == DONE for line in lines)
    reference = evaluation.suite.content.reference
    return (
        f"{done} of {len(lines)} scenarios apply. Against {reference} of the same limit: {count['better']} metrics "
        f"better, {count['same']} without a clear difference, {count['worse']} worse."
    )


def table(evaluation: Evaluation, lines: Sequence[Line]) -> Table:
    """The scorecard on a terminal: the main metrics with drop-tail's and the others' in brackets."""
    reference = evaluation.suite.content.reference
    others = [arm.queue for arm in evaluation.arms if arm.role == AGAINST]
    quick = ", quick" if evaluation.quick else ""
    caption = [
        f"In brackets {', '.join([reference, *others])}. + better than {reference}, - worse, = no clear difference.",
        closing(evaluation, lines),
        *(f"Not applicable: {one.section} {one.name}: {one.reason}" for one in lines if one.status != DONE),
    ]
    title = f"{evaluation.suite.content.title}: {evaluation.arms[0].queue} ({evaluation.runs} runs{quick})"
    found = titled(title, "\n".join(caption))
    found.add_column("section", no_wrap=True)
    found.add_column("scenario", overflow="fold", ratio=3)
    metrics = evaluation.suite.content.metrics
    shown = [name for name in ON_TERMINAL if name in metrics]
    for name in shown:
        found.add_column(f"{metrics[name].label} [{metrics[name].unit}]".replace(" [1]", ""), overflow="fold", ratio=2)
    for line in lines:
        if line.status == DONE:
            of = {score.name: score for score in line.scores}
            cells = [_short(of[name], others) if name in of else "" for name in shown]
            found.add_row(Text(line.section), Text(line.name), *map(Text, cells))
    return found


def page(evaluation: Evaluation, lines: Sequence[Line], figures: Sequence[str]) -> str:
    """The page, Markdown."""
    content = evaluation.suite.content
    arms = [arm.queue for arm in evaluation.arms[1:] if arm.role == "against"]
    text = [
        f"# {evaluation.arms[0].queue}: {content.title}\n",
        f"{closing(evaluation, lines)}\n",
        f"Sojourn {_core.version}, {evaluation.runs} runs, mean over the seeds with its 95 % interval (Student's t). "
        f"The last column compares with {content.reference}, seed by seed."
        + (" This is the quick version: fewer seeds." if evaluation.quick else "")
        + "\n",
        f"    {command_of(evaluation)}\n",
    ]
    for line in lines:
        text.append(f"## {line.section} {line.name}\n")
        text.append(f"The RFC's word: {line.weight}. It asks for {line.asks}.\n")
        if line.status != DONE:
            text.append(f"Not applicable: {line.reason}.\n")
            continue
        text.append(f"Decided here: {line.decided}\n")
        heads = ["metric", "unit", evaluation.arms[0].queue, *arms, content.reference, f"than {content.reference}"]
        text.append("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads))
        for score in line.scores:
            others = [spread(score.against[name]) if name in score.against else "–" for name in arms]
            cells = [score.label, score.unit, spread(score.value), *others, spread(score.reference)]
            text.append("| " + " | ".join([*cells, score.than_reference or "–"]) + " |")
        text.append("")
    if "overview.png" in figures:
        text.append(f"## Against {content.reference}\n")
        text.append(
            f"Medians over the seeds, as ratios to those of {content.reference} in the same scenario. Grey: not run, "
            "or nothing to compare.\n\n![Every discipline in every scenario](overview.png)\n"
        )
    tradeoffs = [figure for figure in figures if figure != "overview.png"]
    if tradeoffs:
        text.append("## Goodput against queueing delay\n")
        text.append(
            "Section 2.7: one dot per run, a mark at the medians, and the contour of the fitted normal distribution "
            "one standard deviation from its mean. Better is up and to the right.\n"
        )
        text += [f"![Goodput against queueing delay]({figure})\n" for figure in tradeoffs]
    return "\n".join(text) + "\n"


def _short(score: Score, others: Sequence[str]) -> str:
    beside = [score.reference, *(score.against.get(name) for name in others)]
    others_text = ", ".join("–" if one is None else number(one.middle) for one in beside)
    return f"{number(score.value.middle)} ({others_text}) {MARKS[score.than_reference]}".rstrip()


def spread(interval: Interval) -> str:
    """A mean with its interval: ``9.2 (9.1 to 9.3)``."""
    if math.isnan(interval.middle):
        return "–"
    return f"{number(interval.middle)} ({number(interval.low)} to {number(interval.high)})"


def number(value: float) -> str:
    """Three significant digits."""
    if math.isnan(value):
        return "–"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
