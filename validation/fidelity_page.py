"""The comparison as a page and as a table of figures."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap

import pages
from comparison import JUDGED, METRICS, Comparison, Figures, Metric, mean_distance, verdict

from sojourn.page.sheet import csv_of
from sojourn.runs.replays import ReplayResult

PAGE = pages.RESULTS / "fidelity.md"
TARGET = 0.9
"""Share of the scenarios that should agree with Linux in every judged metric."""
COLUMNS = (
    *("scenario", "metric", "linux", "sojourn_median", "sojourn_min", "sojourn_max"),
    *("error", "tolerance", "within", "ns3_dev", "ns3_dev_error"),
)
"""Of the CSV. Figures are in the metric's unit, errors and tolerance shares of Linux's figure."""


@dataclass(frozen=True)
class ScenarioResult:
    """One scenario, compared; or why it was not run."""

    name: str
    tc: str
    """The arguments of ``tc qdisc`` on Linux."""
    comparisons: Sequence[Comparison] = ()
    ns3: Figures | None = None
    """ns-3-dev's figures, if it can run the scenario."""
    not_run: str | None = None
    again: Sequence[Figures] = ()
    """The figures of Linux's other runs, if there were any."""
    further: bool = False
    """It was measured after the model had been fitted together, to see what that had missed."""

    @property
    def judged(self) -> list[Comparison]:
        """The comparisons that count for the verdict."""
        return [one for one in self.comparisons if one.metric in JUDGED]

    @property
    def within(self) -> bool:
        """Whether every judged metric agrees."""
        return self.not_run is None and all(one.within for one in self.judged)

    @property
    def verdict(self) -> str:
        """``within``, or the metrics that are off."""
        if self.not_run is not None:
            return f"not run: {self.not_run}"
        return verdict(self.judged)

    @property
    def linux_again(self) -> list[Comparison]:
        """Linux's other runs against its reference run."""
        return [replace(one, values=again) for one in self.judged if (again := self._again(one.metric))]

    @property
    def ours_against_again(self) -> list[Comparison]:
        """Ours against the median of Linux's other runs."""
        return [replace(one, reference=again) for one in self.judged if (again := self._again(one.metric))]

    def _again(self, metric: Metric) -> tuple[float, ...]:
        return tuple(value for run in self.again if (value := run.get(metric.key)) is not None)

    @property
    def distances(self) -> tuple[float, float] | None:
        """Mean error in tolerances, ours and ns-3-dev's; None if one of the two has no figures."""
        if self.ns3 is None or not self.comparisons:
            return None
        comparisons = [one for one in self.comparisons if one.metric.key in self.ns3]
        return mean_distance(comparisons), mean_distance(comparisons, self.ns3)


def verdict_line(outcome: ScenarioResult) -> str:
    """A scenario in two lines, for the terminal: ours/Linux's, an exclamation mark where they are too far apart."""
    figures = []
    for one in outcome.comparisons:
        ours, linux = (amount(value, one.metric.unit) for value in (one.median, one.linux))
        mark = "!" if one.within is False else ""
        figures.append(f"{one.metric.short} {ours}/{linux}{mark}")
    return "\n    ".join([f"{outcome.name:24} {outcome.verdict}", "  ".join(figures)]).rstrip()


def tally(outcomes: Sequence[ScenarioResult]) -> str:
    """How many scenarios agree with Linux, and how many are closer to it than ns-3-dev."""
    first, further = _groups(outcomes)
    within = sum(outcome.within for outcome in first)
    word = "reached" if within >= TARGET * len(first) else "missed"
    text = f"{within} of {len(first)} scenarios within every tolerance (target {percent(TARGET)}: {word})"
    if further:
        text += f"; of further ones {sum(outcome.within for outcome in further)} of {len(further)}"
    rivals = [distances for outcome in outcomes if (distances := outcome.distances)]
    if rivals:
        closer = sum(ours < theirs for ours, theirs in rivals)
        text += f"; closer to Linux than ns-3-dev in {closer} of {len(rivals)}"
    return text


def _groups(outcomes: Sequence[ScenarioResult]) -> tuple[list[ScenarioResult], list[ScenarioResult]]:
    """The scenarios that the model was built by, and the further ones."""
    return [one for one in outcomes if not one.further], [one for one in outcomes if one.further]


def table(outcomes: Iterable[ScenarioResult]) -> str:
    """Every comparison as CSV, a row each."""
    rows = []
    for outcome in outcomes:
        for one in outcome.comparisons:
            theirs = (outcome.ns3 or {}).get(one.metric.key)
            row = [one.linux, one.median, min(one.values), max(one.values), one.error(one.median)]
            tolerance = one.metric.tolerance
            row += [tolerance.bound(one.linux) / abs(one.linux) if tolerance and one.linux else None]
            row += [one.within, theirs, None if theirs is None else one.error(theirs)]
            rows.append([outcome.name, one.metric.key, *map(cell, row)])
    return csv_of(COLUMNS, rows)


def cell(value: float | bool | None) -> str:
    """A value of the CSV; empty for None."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else f"{value:.6g}"


def page(outcomes: Sequence[ScenarioResult], replays: Mapping[str, ReplayResult], *, seeds: int, version: str) -> str:
    """docs/results/fidelity.md."""
    first, further = _groups(outcomes)
    again = [outcome for outcome in first if outcome.again]
    words = {
        r"Sojourn (\S+), \d+ seeds": version,
        r"(\d+) seeds per scenario": seeds,
        r"each scenario (\d+) times more": min(len(outcome.again) for outcome in again),
    }
    parts: list[pages.Part] = [
        ("**", f"**{tally(outcomes)}.**"),
        ("| metric", map(partial(_metric_row, first), JUDGED)),
        *_scenario_parts(first),
        *_scenario_parts(further),
        *_again_parts([outcome for outcome in further if outcome.again]),
        *_again_parts(again),
        ("| scenario", _ns3_rows(outcomes)),
        ("| recording", starmap(_replay_row, replays.items())),
    ]
    return pages.replaced(PAGE.read_text(encoding="utf-8"), parts, words)


def _metric_row(outcomes: Sequence[ScenarioResult], metric: Metric) -> list[str]:
    found = [one for outcome in outcomes for one in outcome.comparisons if one.metric == metric]
    errors = sorted(abs(error) for one in found if (error := one.error(one.median)) is not None)
    within = f"{sum(bool(one.within) for one in found)} of {len(found)}"
    error = percent(statistics.median(errors), 1) if errors else "in further scenarios only"
    return [metric.title, metric.tolerated, within, error]


def _scenario_parts(outcomes: Sequence[ScenarioResult]) -> Iterator[pages.Part]:
    rows = []
    for outcome in outcomes:
        found = {one.metric.key: one for one in outcome.comparisons}
        cells = [_comparison(found[metric.key]) if metric.key in found else "" for metric in METRICS]
        rows.append([outcome.name, *cells, outcome.verdict])
    yield "| scenario", rows
    yield "| scenario", [[outcome.name, f"`{outcome.tc}`"] for outcome in outcomes]


def _again_parts(outcomes: Sequence[ScenarioResult]) -> Iterator[pages.Part]:
    linux = [verdict(outcome.linux_again) for outcome in outcomes]
    ours = [verdict(outcome.ours_against_again) for outcome in outcomes]
    yield (
        "**",
        f"**Linux with its own reference run in {linux.count('within')} of {len(outcomes)} scenarios, the simulator "
        f"with Linux's other runs in {ours.count('within')} of {len(outcomes)}.**",
    )
    yield "| scenario", list(zip((outcome.name for outcome in outcomes), linux, ours, strict=True))


def _comparison(one: Comparison) -> str:
    linux, least, middle, most = (
        amount(value, one.metric.unit) for value in (one.linux, min(one.values), one.median, max(one.values))
    )
    pair = f"{linux} → {middle}"
    return f"{f'**{pair}**' if one.within is False else pair} ({least}–{most})"


def _ns3_rows(outcomes: Sequence[ScenarioResult]) -> Iterator[list[str]]:
    keys = [metric for metric in METRICS if any(metric.key in (outcome.ns3 or {}) for outcome in outcomes)]
    for outcome in outcomes:
        if (distances := outcome.distances) is None or outcome.ns3 is None:
            continue
        found = {one.metric.key: one for one in outcome.comparisons}
        cells = []
        for metric in keys:
            one, theirs = found.get(metric.key), outcome.ns3.get(metric.key)
            if one is None or theirs is None:
                cells.append("")
            else:
                cells.append(" / ".join(percent(one.error(value), 1, sign="+") for value in (one.median, theirs)))
        ours, theirs_distance = distances
        closer = "Sojourn" if ours < theirs_distance else "ns-3-dev"
        yield [outcome.name, *cells, f"{ours:.2f} / {theirs_distance:.2f}", closer]


def _replay_row(name: str, replay: ReplayResult) -> list[str]:
    agreement = "every decision" if replay["agree"] else "no"
    return [name, "codel", str(replay["dropped_recorded"]), str(replay["dropped_ours"]), agreement]


def amount(value: float, unit: str = "") -> str:
    """A figure, to what can be told apart."""
    if unit in ("packets", "segments") or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def percent(share: float | None, digits: int = 0, *, sign: str = "") -> str:
    """A share as a percentage; a dash for None."""
    return "–" if share is None else f"{100 * share:{sign}.{digits}f} %"
