"""The page of distribution against distribution."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pages
from comparison import JUDGED, Comparison, Figures, compare, over_seeds, verdict

PAGE = pages.RESULTS / "distributions.md"
SIGNIFICANT = 0.01
"""Two samples count as different below this probability. Of a hundred pairs that are alike, one is then called so."""
TARGET = 0.95
"""Share of the scenarios that should agree with Linux in every judged metric."""
EXACT = 120
"""The most values of which the probability is computed exactly, which takes time with the cube of their number."""
DIVISIONS = 200
"""Random divisions of our seeds in two, to see how well a simulator agrees with itself."""
STEPS = (5, 15, 30, 60, 120)
"""Numbers of seeds that are measured on Linux."""
SETTLED = 0.95
"""Seeds are enough if so large a share of the divisions agrees."""


def p_value(first: Sequence[float], second: Sequence[float]) -> float:
    """The two-sided probability of ranks as uneven as these, or more, of one distribution.

    The rank-sum test of Wilcoxon (1945), Mann and Whitney (1947): exact with equal values, up to ``EXACT`` values.
    With more it is the normal approximation with the correction for equal values.
    """
    values = sorted([*first, *second])
    if len(values) > EXACT:
        return _p_of_many(first, second, values)
    # Twice the mean rank, which is a whole number.
    doubled = {value: 2 * values.index(value) + 1 + values.count(value) for value in set(values)}
    # ways[taken, total]: of how many choices of so many values the doubled ranks sum up to that.
    ways = np.zeros((len(first) + 1, 1 + sum(doubled[value] for value in values)))
    ways[0, 0] = 1.0
    for value in values:
        rank = doubled[value]
        ways[1:, rank:] += ways[:-1, :-rank]
    totals = ways[len(first)]
    # Twice the mean of twice the sum of the ranks, again a whole number.
    middle = 2 * len(first) * (len(values) + 1)
    observed = abs(2 * sum(doubled[value] for value in first) - middle)
    uneven = np.abs(2 * np.arange(len(totals)) - middle) >= observed
    return float(totals[uneven].sum() / totals.sum())


def _p_of_many(first: Sequence[float], second: Sequence[float], values: Sequence[float]) -> float:
    begin = {value: place for place, value in reversed(list(enumerate(values)))}
    equal = Counter(values)
    total = sum(begin[value] + (1 + equal[value]) / 2 for value in first)
    number, chosen, others = len(values), len(first), len(second)
    ties = sum(count**3 - count for count in equal.values())
    variance = chosen * others / 12 * (number + 1 - ties / (number * (number - 1)))
    if variance <= 0:
        return 1.0
    # Sums of ranks are half a rank apart at least from what they are compared with.
    distance = max(abs(total - chosen * (number + 1) / 2) - 0.5, 0.0)
    return math.erfc(distance / math.sqrt(2 * variance))


def _p(pair: Comparison) -> float:
    """The probability of ranks as uneven, if both samples are of one distribution."""
    return p_value(pair.reference, pair.values)


def by_chance(name: str, ours: Sequence[Figures], seeds: int) -> float | None:
    """The share of random divisions of our seeds, so many against the others, whose medians all agree.

    None if there are too few seeds to divide.
    """
    if len(ours) <= seeds:
        return None
    draw = random.Random(name)
    shuffled = (draw.sample(ours, len(ours)) for _ in range(DIVISIONS))
    return statistics.fmean(
        all(pair.within for pair in compare(runs[:seeds], runs[seeds:], JUDGED)) for runs in shuffled
    )


def settling(name: str, ours: Sequence[Figures]) -> int:
    """How many seeds to measure on Linux: as many as settle the medians of ours, or the most that are measured.

    This looks at no figure of Linux, so that a verdict cannot decide how long is measured.
    """
    for seeds in STEPS:
        share = by_chance(name, ours, seeds)
        if share is not None and share >= SETTLED:
            return seeds
    return STEPS[-1]


@dataclass(frozen=True)
class Scenario:
    """A scenario: our figures, and the kernels', an entry per seed."""

    name: str
    ours: Mapping[str, Sequence[Figures]]
    """By the kernel whose TCP the simulator had."""
    linux: Mapping[str, Sequence[Mapping[str, Any]]]
    beyond: bool = False
    """It was chosen to find faults, with a built kernel; no other reference knows it."""

    def against(self, kernel: str) -> list[Comparison]:
        """Ours against a kernel's."""
        return compare(self.linux[kernel], self.ours[kernel], JUDGED)

    def within(self, kernel: str) -> bool:
        """Whether every median agrees with the kernel's."""
        return all(pair.within for pair in self.against(kernel))

    def differs(self, kernel: str) -> bool:
        """Whether a figure is beyond its tolerance and not by chance."""
        return any(_p(pair) < SIGNIFICANT for pair in self.against(kernel) if not pair.within)

    def by_chance(self, kernel: str) -> float | None:
        """How often our seeds agree with themselves, as many as Linux's against the others; see ``by_chance``."""
        return by_chance(self.name, self.ours[kernel], len(self.linux[kernel]))

    def is_unsettled(self, kernel: str) -> bool:
        """Whether more seeds should have been measured on a kernel."""
        share = self.by_chance(kernel)
        return share is not None and share < SETTLED and len(self.linux[kernel]) < STEPS[-1]

    @property
    def invalid(self) -> dict[str, int]:
        """By kernel: runs that are not to be trusted, if there are some."""
        counts = {kernel: sum("invalid" in run for run in runs) for kernel, runs in self.linux.items()}
        return {kernel: count for kernel, count in counts.items() if count}


def verdict_line(scenario: Scenario) -> str:
    """A line for the terminal."""
    said = [f"{kernel}: {verdict(scenario.against(kernel))}" for kernel in scenario.linux]
    return f"{scenario.name}: {'; '.join(said)}"


def page(scenarios: Sequence[Scenario], reasons: Mapping[str, str], *, of: int) -> str:
    """The page; ``reasons`` why scenarios fail, by name; ``of`` is the number of all scenarios."""
    kernels = sorted({kernel for scenario in scenarios for kernel in scenario.linux}, key=_version)
    parts = [_head(scenarios), _tally(scenarios, kernels, of)]
    parts.append("## What failed\n\nThe largest differences first, in tolerances.\n\n" + _table(_failed(scenarios)))
    parts.append(_why(scenarios, reasons))
    for older, newer in itertools.pairwise(kernels):
        parts.append(_between(scenarios, older, newer))
    parts.append(_all(scenarios, kernels))
    return "\n".join(parts)


def _head(scenarios: Sequence[Scenario]) -> str:
    """The page's own text, up to what was measured."""
    ours = sorted({len(runs) for scenario in scenarios for runs in scenario.ours.values()})
    theirs = sorted({len(runs) for scenario in scenarios for runs in scenario.linux.values()})
    text, _, _ = PAGE.read_text(encoding="utf-8").partition("\n**Linux ")
    words = {r"\(([\d or]+)\) as make": _listed(theirs), r"it has ([\d or]+)\. Linux": _listed(ours)}
    return pages.replaced(text, (), words)


def _tally(scenarios: Sequence[Scenario], kernels: Sequence[str], of: int) -> str:
    lines = []
    for kernel in kernels:
        measured = [scenario for scenario in scenarios if kernel in scenario.linux]
        within = sum(scenario.within(kernel) for scenario in measured)
        figures = [pair for scenario in measured for pair in scenario.against(kernel)]
        agreeing, differ = sum(pair.within for pair in figures), sum(_p(pair) < SIGNIFICANT for pair in figures)
        invalid = sum(scenario.invalid.get(kernel, 0) for scenario in measured)
        lines.append(
            f"**Linux {kernel}: {_share(within, len(measured))[:-1]}, target {TARGET:.0%}) scenarios have every median "
            f"within its tolerance**, and {_share(agreeing, len(figures))} figures. {_share(differ, len(figures))} "
            f"figures differ at all. {len(measured)} of {of} scenarios were "
            f"measured; {invalid or 'no'} runs are not to be trusted.\n"
        )
        for beyond, title in ((False, "the comparison with Linux"), (True, "`validation/beyond`")):
            some = [scenario for scenario in measured if scenario.beyond is beyond]
            if some:
                lines.append(f"- Of {title}: {_share(sum(one.within(kernel) for one in some), len(some))}.")
        certain = sum(scenario.differs(kernel) for scenario in measured)
        lines.append(
            f"- In {certain} of {len(measured)} a figure is beyond its tolerance and differs by the test, too."
        )
        itself = [one for one in (scenario.by_chance(kernel) for scenario in measured) if one is not None]
        unsettled = [one.name for one in measured if one.is_unsettled(kernel)]
        if unsettled:
            lines.append(f"- Fewer seeds than settle it, for want of time: {len(unsettled)} of {len(measured)}.")
        if itself:
            lines.append(
                "- As few seeds scatter: divided at random, as many as Linux's against the others, the simulator's own "
                f"seeds agree in {statistics.fmean(itself):.0%} of the scenarios. Against all of its seeds it would be "
                "some more."
            )
        lines.append("")
    return "\n".join(lines)


def _share(some: int, of: int) -> str:
    return f"{some} of {of} ({some / of:.0%})"


Row = tuple[float, list[str]]


def _failed(scenarios: Iterable[Scenario]) -> Iterator[Row]:
    for scenario in scenarios:
        for kernel in scenario.linux:
            for pair in scenario.against(kernel):
                if not pair.within:
                    yield pair.distance(pair.median), [scenario.name, kernel, *_cells(pair)]


def _why(scenarios: Iterable[Scenario], reasons: Mapping[str, str]) -> str:
    chance, lines = [], []
    for scenario in scenarios:
        off = [pair for kernel in scenario.linux for pair in scenario.against(kernel) if not pair.within]
        if any(_p(pair) < SIGNIFICANT for pair in off):
            lines.append(f"- {scenario.name}: {reasons.get(scenario.name, 'not explained yet.')}")
        elif off:
            chance.append(scenario.name)
    said = "## Why\n\n"
    if chance:
        said += (
            f"Of {len(chance)} of these scenarios ({', '.join(chance)}) no figure beyond its tolerance differs by the "
            "test: Linux's seeds and ours scatter by more than the tolerance, and their ranks are mixed.\n\n"
        )
    return said + ("The others:\n\n" + "\n".join(lines) + "\n" if lines else "")


def _between(scenarios: Sequence[Scenario], older: str, newer: str) -> str:
    both = [scenario for scenario in scenarios if {older, newer} <= scenario.linux.keys()]
    rows = [
        (pair.distance(pair.median), [scenario.name, newer, *_cells(pair)])
        for scenario in both
        for pair in compare(scenario.linux[older], scenario.linux[newer], JUDGED)
        if not pair.within
    ]
    return (
        f"## {older} and {newer}\n\nFigures of {newer} (here under *ours*) beyond the tolerance from {older}'s, in "
        f"{len(both)} scenarios measured on both.\n\n" + (_table(rows) if rows else "There are none.\n")
    )


def _table(rows: Iterable[Row]) -> str:
    cells = [cells for _, cells in sorted(rows, key=lambda row: row[0], reverse=True)]
    return pages.table(["scenario", "kernel", "figure", "Linux", "ours", "in tolerances", "p"], cells) + "\n"


def _cells(pair: Comparison) -> list[str]:
    title = f"{pair.metric.title} {pair.metric.unit}".strip()
    p, distance = _p(pair), pair.distance(pair.median)
    chance = "< 0.001" if p < 0.001 else f"{p:.3f}"
    samples = (over_seeds(sample, "{:.4g}".format, " to ") for sample in (pair.reference, pair.values))
    return [title, *samples, f"{distance:.1f}", chance]


def _all(scenarios: Sequence[Scenario], kernels: Sequence[str]) -> str:
    rows = []
    for scenario in scenarios:
        cells = []
        for kernel in kernels:
            found = scenario.against(kernel) if kernel in scenario.linux else []
            differ = [pair.metric.title for pair in found if pair.within and _p(pair) < SIGNIFICANT]
            invalid = scenario.invalid.get(kernel)
            cells.append(
                (verdict(found) if found else "not measured") + (f"; {invalid} runs invalid" if invalid else "")
            )
            cells.append(", ".join(differ))
        rows.append([scenario.name, *cells])
    headings = ["scenario", *(heading for kernel in kernels for heading in (kernel, "differs"))]
    return (
        "## All scenarios\n\nFigures beyond the tolerance, then those within it that differ nevertheless.\n\n"
        f"{pages.table(headings, rows)}\n"
    )


def _listed(counts: Sequence[int]) -> str:
    return " or ".join(map(str, counts))


def _version(release: str) -> list[int]:
    return [int(part) for part in release.split(".") if part.isdigit()]
