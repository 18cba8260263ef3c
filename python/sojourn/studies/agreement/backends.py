"""The agreement of results of the same experiment: per arm, direction and metric, and by distribution.

The results are those of two backends, or of several kernels and the simulator. Each has a name; the others are compared
with the first. ``tolerances`` has the rule of the verdicts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from sojourn import _core, schema
from sojourn.figure import style
from sojourn.figure.distributions import sojourn_curve
from sojourn.figure.filenames import FORMATS
from sojourn.files.storage import Staging
from sojourn.files.typed import json_text
from sojourn.frame.metrics import METRICS, Metric, group_metrics, has_queue, of_queues
from sojourn.frame.results import Arm, Direction, Results
from sojourn.frame.statistics import Interval, fixed, median_interval, or_none
from sojourn.frame.swept import links_in
from sojourn.page.sheet import Sheet
from sojourn.studies.agreement import courses
from sojourn.studies.tolerances import MOST, TOLERANCES, Equivalence, EquivalenceTest, Sample, judge, needed, overall

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Named: TypeAlias = Mapping[str, Results]
"""Results by name; the first is the reference."""


@dataclass(frozen=True)
class Agreement:
    """One metric of one arm in two results, and the verdict."""

    arm: str
    direction: str
    """``down`` or ``up``; with several links ``home/down`` and so on."""
    metric: str
    """The metric's name, with the unit as suffix."""
    samples: tuple[Sample, Sample]
    judgement: EquivalenceTest | None = None
    """None if the metric is not judged, or neither result has it."""

    @cached_property
    def first(self) -> float:
        """The median over the first result's repeats."""
        return median_interval(self.samples[0]).middle

    @cached_property
    def second(self) -> float:
        """The median over the second result's repeats."""
        return median_interval(self.samples[1]).middle

    @property
    def relative(self) -> float:
        """(second - first) / first; NaN if undefined."""
        return (self.second - self.first) / self.first if self.first else math.nan

    @property
    def is_judged(self) -> bool:
        """True if there is a tolerance for it, and evidence."""
        # What is zero in every run of both, as the goodput of acknowledgements, is no evidence.
        has_values = any(value != 0.0 and not math.isnan(value) for sample in self.samples for value in sample)
        return self.metric in TOLERANCES and has_values


def compare(first: Results, second: Results, look: int = 1) -> list[Agreement]:
    """All metrics of all arms. Both results are of the same plan, so their arms are the same.

    Metrics of groups of flows, such as ``movie.goodput_bps``, are included if both results have them, with the
    direction of the group's data. RTTs of TCP are not compared across backends: the simulator has every sample, Linux
    the smoothed value ten times a second (TCP_INFO). The last metric of each bottleneck queue, ``sojourn_distance``, is
    the largest vertical distance between the two distribution functions of the sojourn time (Kolmogorov and Smirnov's):
    0 if they are equal. ``look`` is that of ``judge``.
    """
    rows = list(_rows_of(first, second))
    judged = [row for row in rows if row.is_judged]
    # Runs that are the same for every seed need no statistics.
    is_same = all(repr(one) == repr(other) for one, other in (row.samples for row in judged))
    same = EquivalenceTest(Equivalence.AGREES, Interval(0.0, 0.0, 0.0, 0), None) if is_same else None

    def judgement(row: Agreement) -> EquivalenceTest | None:
        return same or judge(*row.samples, TOLERANCES[row.metric], len(judged), look)

    return [replace(row, judgement=judgement(row)) if row.is_judged else row for row in rows]


def _rows_of(first: Results, second: Results) -> Iterator[Agreement]:
    of_second = {metric.name: metric for metric in group_metrics(second)}
    # The metrics of groups of flows in both results.
    groups = [(one, of_second[one.name]) for one in group_metrics(first) if one.name in of_second]
    across = first.summary["backend"] != second.summary["backend"]
    for one, other in zip(first.arms, second.arms, strict=True):
        run = one.runs[0].summary
        for queue in first.queues:
            if has_queue(run, queue):
                for metric in of_queues(first):
                    samples = _values(one, metric, queue), _values(other, metric, queue)
                    yield Agreement(one.name, queue, metric.name, samples)
                yield Agreement(one.name, queue, "sojourn_distance", ([0.0], [distance(one, other, queue)]))
        for mine, its in groups:
            group = first.groups.at(run, mine.group)
            if group is None:
                continue
            # RTTs of TCP are another quantity on another backend; a ping's are every sample on both.
            is_other = across and mine.name.startswith(f"{mine.group}.rtt_") and group["kind"] != "ping"
            if not is_other:
                way = group["direction"]
                yield Agreement(one.name, way, mine.name, (_values(one, mine, way), _values(other, its, way)))


def _values(arm: Arm, metric: Metric, queue: str) -> Sample:
    return [metric.value(run.summary, queue) for run in sorted(arm.runs, key=lambda run: run.seed)]


def distance(one: Arm, other: Arm, queue: str) -> float:
    """The largest vertical distance between the distribution functions of two arms' sojourn times; NaN without any."""
    curves = [sojourn_curve(arm, queue) for arm in (one, other)]
    if any(values.size == 0 for values, _ in curves):
        return math.nan
    at = np.concatenate([values for values, _ in curves])
    shares = [np.interp(at, values, levels, left=0.0, right=1.0) for values, levels in curves]
    return float(np.max(np.abs(shares[0] - shares[1])))


@dataclass(frozen=True)
class ResultVerdict:
    """The verdict on all figures of a result, compared with the reference."""

    verdict: Equivalence
    repeats: int | None
    """Repeats that a verdict takes, if there are too few; None if the scatter is too large to say."""
    off: Sequence[Agreement]
    """The figures that the verdict rests on: those that differ, or those that are open."""
    judged: int


def verdict_on(reference: Results, results: Results, look: int = 1) -> ResultVerdict:
    """Judges a result by the reference."""
    rows = [(row, row.judgement) for row in compare(reference, results, look) if row.judgement is not None]
    judgements = [judgement for _, judgement in rows]
    verdict = overall(judgements)
    off = [row for row, judgement in rows if judgement.verdict is verdict and verdict is not Equivalence.AGREES]
    return ResultVerdict(verdict, needed(judgements) if verdict is Equivalence.UNDECIDED else None, off, len(rows))


def verdicts(named: Named, look: int = 1) -> dict[str, ResultVerdict]:
    """By name: the verdict on each result but the reference."""
    reference, *others = named.items()
    return {name: verdict_on(reference[1], results, look) for name, results in others}


def sentences(named: Named, look: int = 1) -> list[str]:
    """The verdict on each result as a line, whose TCP each has, and a hint where the simulator follows other rules."""
    reference = next(iter(named))
    lines = [_sentence(reference, name, one) for name, one in verdicts(named, look).items()]
    return [*lines, *filter(None, [_releases(named), _hint(named)])]


def _releases(named: Named) -> str:
    """The version of Linux whose TCP each result has; empty if none is of a kernel."""
    of_kernels = {name: results.runs[0].summary.get("kernel") for name, results in named.items() if results.runs}
    if not any(of_kernels.values()):
        return ""
    for name, results in named.items():
        if of_kernels.get(name) is None and results.resolved_json:
            of_kernels[name] = json.loads(results.resolved_json)[0]["experiment"]["kernel"]
    return f"TCP: {', '.join(f'{name} as Linux {of_kernels[name]}' for name in named if of_kernels.get(name))}"


def _hint(named: Named) -> str:
    """The disciplines that follow their own document where the kernel's rules are to be had; empty if none does."""
    simulated = [results for results in named.values() if results.summary["backend"] == "sim"]
    if all(results.summary["backend"] != "linux" for results in named.values()):
        return ""
    queues = [
        queue
        for results in simulated
        for cell in json.loads(results.resolved_json or "[]")
        for queue in [*cell["queue"], *(link["queue"] for link in links_in(cell) if link.get("queue"))]
    ]
    have = {
        discipline["name"]
        for discipline in json.loads(_core.disciplines_json())
        for key in discipline["keys"]
        if key["name"] == "variant" and '"linux"' in key["accepts"]
    }
    own = {queue["aqm"] for queue in queues if queue["aqm"] in have and queue["variant"] != "linux"}
    if not own:
        return ""
    names = ", ".join(sorted(own))
    return f'in the simulator these follow their own documents: {names}; variant = "linux" follows the kernel'


def _sentence(reference: str, name: str, found: ResultVerdict) -> str:
    """What the verdict is, in how many figures, how many repeats another takes."""
    figures = f"{len(found.off)} of {found.judged} judged figures"
    if found.verdict is Equivalence.AGREES:
        return f"{name} agrees with {reference}: {found.judged} judged figures"
    if found.verdict is Equivalence.DIFFERS:
        return f"{name} differs from {reference}: {figures} beyond the tolerance"
    takes = f"more than {MOST}" if found.repeats is None else f"about {found.repeats}"
    return (
        f"{name} and {reference}: not enough repeats to say; {figures} may lie on either side of the tolerance "
        f"(experiment.repeat: {takes} would decide, or --until decided)"
    )


def overlay(named: Named) -> Results:
    """All results as one, with the name behind every arm's, to be drawn in the same figures."""
    runs = []
    for several in zip(*(results.runs for results in named.values()), strict=True):
        for name, run in zip(named, several, strict=True):
            summary = cast("schema.Run", {**run.summary, "label": f"{run.label} ({name})"})
            runs.append(replace(run, summary=summary))
    return next(iter(named.values())).of_runs(runs)


def _caption(named: Named) -> str:
    reference, *others = named
    other = others[0] if len(others) == 1 else "other"
    judged = ", ".join(metric.declared.heading.partition(" ")[0] for metric in METRICS if metric.name in TOLERANCES)
    return (
        f"judged: {judged}; difference: ({other} - {reference}) / {reference}, with ! if its interval is beyond the "
        "tolerance, with ? if more repeats are needed to say; "
        "distance: the largest vertical distance between the two distribution functions of the sojourn time, 0 to 1"
    )


def _rows(named: Named, look: int) -> dict[tuple[str, str, str], dict[str, Agreement]]:
    """By arm, queue and metric: the comparison of each result with the reference."""
    reference, *others = named.items()
    rows: dict[tuple[str, str, str], dict[str, Agreement]] = {}
    for name, results in others:
        for row in compare(reference[1], results, look):
            rows.setdefault((row.arm, row.direction, row.metric), {})[name] = row
    return rows


def sheet(named: Named, look: int = 1) -> Sheet:
    """The agreement as a table before it is drawn: a row per arm, queue and metric."""
    reference, *others = named
    first = named[reference]
    metrics = {metric.name: metric for metric in (*METRICS, *group_metrics(first))}
    rows: list[tuple[str, ...]] = []
    before: tuple[str, str] | None = None
    for (arm, direction, key), of_others in _rows(named, look).items():
        cells = ["", ""] if (arm, direction) == before else [arm, direction]
        before = (arm, direction)
        metric, first_of = metrics.get(key), next(iter(of_others.values()))
        heading = "distance" if metric is None else f"{metric.group} {metric.declared.heading}".strip()
        cells += [heading, "" if metric is None else _metric_text(first_of.first, metric)]
        for name in others:
            cells += _cells(of_others.get(name), metric)
        rows.append(tuple(cells))
    return Sheet(
        f"{first.summary['experiment']}: {', '.join((reference, *others[:-1]))} and {others[-1]}",
        _caption(named),
        ("queue", "way", "metric", reference, *(heading for name in others for heading in (name, "difference"))),
        tuple(rows),
        3,
    )


_MARKS = {Equivalence.AGREES: "", Equivalence.DIFFERS: " !", Equivalence.UNDECIDED: " ?"}


def _cells(row: Agreement | None, metric: Metric | None) -> list[str]:
    """A result's figure and its difference from the reference."""
    if row is None:
        return ["", ""]
    if metric is None:
        return ["", _number(row.second, 3)]
    difference = "–" if math.isnan(row.relative) else f"{row.relative:+.1%}"
    mark = "" if row.judgement is None else _MARKS[row.judgement.verdict]
    return [_metric_text(row.second, metric), f"{difference}{mark}"]


def _metric_text(value: float, metric: Metric) -> str:
    return _number(value / metric.declared.per, metric.declared.digits)


def _number(value: float, digits: int) -> str:
    if math.isnan(value):
        return "–"
    # The median of two counts may be a half.
    return fixed(value, digits or (0 if value.is_integer() else 1))


def as_json(named: Named, look: int = 1, *, packets: bool = False) -> str:
    """The agreement as JSON: the verdict per name, and a row per arm, direction and metric; NaN is null.

    ``relative``, ``verdict`` and ``interval`` (of the difference, in the metric's unit) are those of the second result;
    with more results they are objects, by name. The verdict of a metric that is not judged is null. ``packets``
    adds the first packet that differs in every run.
    """
    reference, *others = named
    pair = len(others) == 1

    rows: list[dict[str, object]] = []
    for (arm, direction, metric), of_others in _rows(named, look).items():
        first = next(iter(of_others.values())).first
        values: dict[str, object] = {"arm": arm, "direction": direction, "metric": metric, reference: or_none(first)}
        values |= {name: or_none(row.second) for name, row in of_others.items()}
        judged = {name: row.judgement for name, row in of_others.items()}
        ends = {name: one and (one.difference.low, one.difference.high) for name, one in judged.items()}
        by_name: dict[str, dict[str, object]] = {
            "relative": {name: or_none(row.relative) for name, row in of_others.items()},
            "verdict": {name: one and one.verdict for name, one in judged.items()},
            "interval": {name: of and [*map(or_none, of)] for name, of in ends.items()},
        }
        rows.append(values | {key: of[others[0]] if pair else of for key, of in by_name.items()})
    judged_all = verdicts(named, look)
    kernels = {name: results.runs[0].summary.get("kernel") for name, results in named.items() if results.runs}
    document = {
        "experiment": named[reference].summary["experiment"],
        "look": look,
        "backends": list(named),
        "kernels": {name: kernel for name, kernel in kernels.items() if kernel is not None},
        "repeats": {name: len({run.seed for run in results.runs}) for name, results in named.items()},
        "verdict": {name: one.verdict for name, one in judged_all.items()},
        "repeats_needed": {name: one.repeats for name, one in judged_all.items()},
        "agreement": rows,
        **({"packets": courses.as_rows(named)} if packets else {}),
    }
    return json_text(document)


def figure(named: Named, direction: Direction = "down") -> Figure:
    """The distribution functions of the sojourn time in one figure."""
    return overlay(named).plot.cdf(direction)


def files() -> list[str]:
    """The files that ``save`` may write besides the folders of the results."""
    return ["agreement.json", *(f"agreement_cdf{suffix}.{kind}" for suffix in ("", "_up") for kind in FORMATS)]


def save(named: Named, *, directory: Path, look: int = 1, packets: bool = False) -> list[Path]:
    """Writes agreement.json, the figure, and each result in a folder of its name."""
    written = []
    for name, results in named.items():
        written += results.save(directory / name)
    with Staging(directory) as staging:
        for direction in next(iter(named.values())).directions:
            suffix = "" if direction == "down" else "_up"
            written += style.save(staging, f"agreement_cdf{suffix}", figure(named, direction))
        written.append(staging.add_text("agreement.json", as_json(named, look, packets=packets)))
    return written
