"""Advice for a line at home: runs what its router may do, and compares what each activity gets."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from sojourn import _core
from sojourn.frame.registry import declared_as
from sojourn.frame.results import Results
from sojourn.frame.statistics import FEWEST, Interval, apart, median_interval
from sojourn.lines import household
from sojourn.lines.household import AS_IT_IS, Home, Setting
from sojourn.runs.execution import Report
from sojourn.schema import Run
from sojourn.store.runner import Runner

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Element = Mapping[str, Any]
PER_MS, PER_LOST = 1.0, 10.0
"""Points of cost per millisecond of a call's, meeting's or game's delay, and per percent of its packets that is lost.

A percent of the best rate or load time is one too.
"""
CLEAR = 2.0
"""Settings whose costs differ by at most so many points are equally good."""


@dataclass(frozen=True)
class Indicator:
    """A number that somebody who does the activity perceives, of the direction where it is worse."""

    words: str
    unit: str
    digits: int
    worst: Callable[[Sequence[float]], float]
    of: Callable[[Element], float]


def _registered(name: str, worst: Callable[[Sequence[float]], float], words: str = "") -> Indicator:
    """A metric of the registry, in the unit that people see."""
    metric = declared_as(name, "group")
    assert metric is not None
    return Indicator(words or metric.words, metric.unit, metric.digits, worst, lambda of: metric.of(of) / metric.per)


def _delay(group: Element, level: str) -> float:
    value = group["one_way_ms"][level]
    return math.nan if value is None else value


_P99 = Indicator("delay, p99", "ms", 1, max, lambda one: _delay(one, "p99"))
_LOST = Indicator("lost", "%", 2, max, lambda one: 100.0 * one["dropped"] / one["sent"] if one["sent"] else math.nan)
_REAL_TIME = [
    _P99,
    Indicator("jitter, p99 less median", "ms", 1, max, lambda one: _delay(one, "p99") - _delay(one, "p50")),
    _LOST,
    _registered("qoo", min),
]
_MEDIA_RATE, _GOODPUT = _registered("video_rate_bps", min, "media rate"), _registered("goodput_bps", min)
_STALLED_MS, _LOAD_MS = _registered("video_stalled_ms", max), _registered("page_load_p50_ms", max)
_STALLED = Indicator("stalled", "s", 1, max, lambda one: _STALLED_MS.of(one) / 1e3)
INDICATORS: dict[str, list[Indicator]] = {
    "calls": [*_REAL_TIME, _registered("mos", min, "opinion score")],
    "meeting": [_P99, replace(_MEDIA_RATE, of=_GOODPUT.of), _STALLED, _LOST],
    "game": _REAL_TIME,
    "web": [Indicator("page load, median", "s", 2, max, lambda one: _LOAD_MS.of(one) / 1e3)],
    "video": [_MEDIA_RATE, _STALLED],
    "download": [_GOODPUT],
    "upload": [_GOODPUT],
}
"""What is compared for each activity; the first decides, with what is lost of calls, meetings and games.

The media rate of a meeting is its goodput, which is counted after the warm-up: its rate grows slowly at first.
"""
_REAL_TIMES = ("calls", "meeting", "game")


@dataclass(frozen=True)
class Gain:
    """An indicator as it is, with a setting, and the difference seed by seed."""

    activity: str
    indicator: Indicator
    before: Interval
    after: Interval
    difference: Interval


class Advice:
    """The settings that were run, and the one to choose."""

    def __init__(self, home: Home, tried: Sequence[Setting], text: str, results: Results) -> None:
        self.home = home
        self.tried = tuple(tried)
        self.experiment = text
        self.results = results
        self._runs: dict[str, list[Run]] = {one.label: [] for one in tried}
        for run in results.runs:
            self._runs[str(run.summary["set"]["case"])].append(run.summary)

    def values(self, setting: Setting, activity: str, indicator: Indicator) -> list[float]:
        """A number per seed."""
        return [
            indicator.worst([indicator.of(_with_losses(one, run)) for one in run["groups"] if one["name"] == activity])
            for run in self._runs[setting.label]
        ]

    @cached_property
    def costs(self) -> dict[str, list[float]]:
        """The cost of each setting per seed, in points, of all activities together."""
        costs = {one.label: [0.0] * len(self._runs[one.label]) for one in self.tried}
        for activity in self.home.doing:
            indicator = INDICATORS[activity][0]
            found = {one.label: self.values(one, activity, indicator) for one in self.tried}
            # A page that did not load or a call without a packet is worse than all that did.
            known = [value for values in found.values() for value in values if not math.isnan(value)] or [0.0]
            better = max if indicator.worst is min else min
            best = better(median(_filled(values, indicator.worst(known))) for values in found.values())
            lost = {one.label: self.values(one, activity, _LOST) for one in self.tried if activity in _REAL_TIMES}
            for label, values in found.items():
                for index, value in enumerate(_filled(values, indicator.worst(known))):
                    if activity in _REAL_TIMES:
                        costs[label][index] += PER_MS * value + PER_LOST * _filled(lost[label], 100.0)[index]
                    elif best:
                        costs[label][index] += 100.0 * abs(value - best) / best
        return costs

    def cost(self, setting: Setting) -> float:
        """The median of its cost over the seeds."""
        return median(self.costs[setting.label])

    @cached_property
    def chosen(self) -> Setting:
        """The first setting whose cost is within ``CLEAR`` of the least; nothing if its gain is not clear by seed."""
        least = min(self.cost(one) for one in self.tried)
        found = next(one for one in self.tried if self.cost(one) <= least + CLEAR)
        pairs = zip(self.costs[found.label], self.costs[AS_IT_IS], strict=True)
        gain = median_interval([new - old for new, old in pairs])
        return found if gain.is_clear and gain.high < 0.0 else self.tried[0]

    @property
    def helps(self) -> bool:
        """True if a setting is better than doing nothing."""
        return bool(self.chosen.discipline)

    def gains(self, setting: Setting | None = None) -> list[Gain]:
        """What each activity has as it is and with a setting, by default the chosen one."""
        after = setting or self.chosen
        rows = []
        for activity in self.home.doing:
            for indicator in INDICATORS[activity]:
                old, new = (self.values(one, activity, indicator) for one in (self.tried[0], after))
                difference = median_interval([apart(b, a) for a, b in zip(old, new, strict=True)])
                rows.append(Gain(activity, indicator, median_interval(old), median_interval(new), difference))
        return rows

    def picture(self) -> Figure:
        """As it is and with the chosen setting: what decides for each activity."""
        rows = [gain for gain in self.gains() if gain.indicator is INDICATORS[gain.activity][0]]
        shown = [self.tried[0], *([self.chosen] if self.helps else [])]
        words = [f"{gain.activity}: {gain.indicator.words} [{gain.indicator.unit}]" for gain in rows]
        values = [[gain.before, gain.after][: len(shown)] for gain in rows]
        panels = list(zip(words, (gain.indicator.digits for gain in rows), values, strict=True))
        arms = [(one.label, one.discipline or "pfifo") for one in shown]
        return self.results.plot.gains(self.home.title, arms, panels)


def _with_losses(group: Element, run: Run) -> Element:
    """A group with its packets in the whole run, and those that a queue dropped."""
    flows = [one for one in run["flows"] if (one["name"], one["direction"]) == (group["name"], group["direction"])]
    sent, dropped = (sum(one[key] for one in flows) for key in ("bottleneck_packets", "dropped_packets"))
    return {**group, "sent": sent, "dropped": dropped}


def _filled(values: Sequence[float], missing: float) -> list[float]:
    return [missing if math.isnan(value) else value for value in values]


def advise(
    home: Home,
    *,
    tried: Sequence[Setting] | None = None,
    file: Path = Path("advice.toml"),
    command: str = "",
    seed: int = 1,
    repeat: int = FEWEST,
    jobs: int | None = None,
    report: Report | None = None,
) -> Advice:
    """Runs what a home's router may do: ``repeat`` seeds of each setting, from ``seed`` on.

    ``tried`` are the settings, doing nothing first. By default each discipline at the middle of ``home.shares``, then
    the best of them at each share down and up. The experiment is not written; ``file`` is its path, to which a
    recording's traces are relative, ``command`` its first line, a comment. Raises RunError if a run failed, and
    KeyboardInterrupt if the user stopped it.
    """

    def text(some: Sequence[Setting]) -> str:
        return household.experiment(home, some, command=command, seed=seed, repeat=repeat)

    def made(some: Sequence[Setting]) -> Results:
        return Runner(jobs=jobs, report=report).results(_core.Plan.read_text(text(some), str(file), []))

    first = tuple(tried or household.settings(home))
    found = Advice(home, first, text(first), made(first))
    if tried is not None or not found.helps:
        return found
    own = household.each_way(home, found.chosen.discipline)
    runs = [*found.results.runs, *made([one for one in own if one not in first]).runs]
    results = found.results.of_runs(runs)
    # Of equally good settings the first is chosen: one of the discipline that was best at the middle share.
    every = [first[0], *own, *(one for one in first[1:] if one not in own)]
    return Advice(home, every, text(every), results)
