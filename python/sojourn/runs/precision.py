"""Repeats runs until a metric is precise enough."""

from __future__ import annotations

import contextlib
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sojourn import _core
from sojourn.files.typed import near
from sojourn.frame.groups import shown_groups
from sojourn.frame.metrics import METRICS, Metric, has_queue, queues
from sojourn.frame.registry import declared
from sojourn.frame.results import Run
from sojourn.frame.statistics import CONFIDENCE, mean_interval
from sojourn.schema import DIRECTIONS

FEWEST = 5
"""Repeats before the first test: the spread of fewer is too uncertain."""


@dataclass(frozen=True)
class Precision:
    """Repeat until the interval of a metric's mean is within a share of that mean.

    The interval is Student's t at 95 %. Because it is tested after every repeat, some sequences stop too early by
    chance, and its true coverage is slightly below that.
    """

    metric: Metric
    share: float

    def __str__(self) -> str:
        return f"{self.metric.name}={100 * self.share:g}%"

    @classmethod
    def parse(cls, text: str) -> Precision:
        """Reads ``"goodput_bps=2%"``. Raises ExperimentError if it is not METRIC=SHARE%, or there is no such metric."""
        name, _, share = text.partition("=")
        metric = _metric(name.strip())
        percent = math.nan
        with contextlib.suppress(ValueError):
            percent = float(share.strip().removesuffix("%"))
        if metric is None or not share.strip().endswith("%") or not 0.0 < percent < 100.0:
            of_groups = (metric.name for metric in declared("group"))
            known = dict.fromkeys([*(metric.name for metric in METRICS), *of_groups])
            hint = near(name.strip(), known) if metric is None else ""
            raise _core.ExperimentError(
                f'until: got "{text}"; must be METRIC=SHARE, like goodput_bps=2%, above 0% and below 100%, '
                f"METRIC one of {', '.join(known)}{hint}"
            )
        return cls(metric, percent / 100.0)

    def values(self, run: Run) -> dict[str, float]:
        """The metric of a run's queues, by name. Of several links, those that no packet passed are left out.

        One of groups of flows is that of every group that has it, or of the named one.
        """
        summary = run.summary
        if self.metric.declared.over == "group":
            groups = [group for group in shown_groups(summary) if self.metric.group in ("", group["name"])]
            found = {f"{one['name']} {one['direction']}": self.metric.declared.of(one) for one in groups}
            return {title: value for title, value in found.items() if not math.isnan(value)} or {"": math.nan}
        names: list[str] = [direction for direction in DIRECTIONS if has_queue(summary, direction)]
        if self.metric.declared.over == "queue" and len(summary["links"]) > 1:
            names = [name for name, queue in queues(summary).items() if queue["delivered_packets"]]
        return {name: self.metric.value(summary, name) for name in names}

    def reach(self, values: Mapping[str, Sequence[float]]) -> float | None:
        """Half the width of the widest interval as a share of the mean; None if it is narrow enough."""
        missed = []
        for sample in values.values():
            interval = mean_interval(sample)
            reach = interval.high - interval.middle
            if not reach <= self.share * abs(interval.middle):
                missed.append(reach / abs(interval.middle) if interval.middle else 1.0)
        return max(missed, default=None)


class Cell:
    """The repeats of one cell of a sweep."""

    def __init__(self, precision: Precision) -> None:
        self.set: Mapping[str, object] = {}
        """The swept keys and their values."""
        self.repeats: dict[str, int] = defaultdict(int)
        """Finished repeats of each queue."""
        self._precision = precision
        self._values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))

    def take(self, run: Run) -> None:
        """Takes a finished run."""
        self.set = run.summary["set"]
        self.repeats[run.label] += 1
        for direction, value in self._precision.values(run).items():
            self._values[run.label][direction].append(value)

    def missed(self) -> dict[str, float]:
        """The queues whose interval is still too wide, with its half width as a share of the mean."""
        found = {label: self._precision.reach(values) for label, values in self._values.items()}
        return {label: reach for label, reach in found.items() if reach is not None}


def _metric(name: str) -> Metric | None:
    """The metric of this name: of queues and runs, or of groups of flows, ``mos`` or ``meeting.frame_p95_ms``."""
    group, _, plain = name.rpartition(".")
    of_groups = [
        Metric(one, lambda _queue, runs: [math.nan] * len(runs), group)
        for one in declared("group")
        if one.name == plain
    ]
    return next((metric for metric in [*METRICS, *of_groups] if metric.name == name), None)


class Rounds:
    """The jobs of a plan in rounds: a cell is repeated, with all its queues, until it is precise enough."""

    def __init__(self, plan: _core.Plan, precision: Precision) -> None:
        """Raises ExperimentError if the plan has too few repeats to stop before its last, or no such group."""
        self.precision = precision
        self.number = 0
        """The number of the current round, from 1; 0 before the first."""
        self.taken = 0
        """Finished runs of all rounds."""
        if precision.metric.group:
            cells = {cell: plan[index] for index, (cell, _, _, _) in enumerate(plan.jobs)}
            known = dict.fromkeys(
                flow["name"] for one in cells.values() for flow in json.loads(one.parts_json)["flows"]
            )
            if precision.metric.group not in known:
                raise _core.ExperimentError(
                    f'until: got "{precision.metric.name}"; there is no group "{precision.metric.group}"; '
                    f"must be one of {', '.join(known)}"
                )
        self._waiting: dict[int, list[list[int]]] = {}
        by_seed: dict[tuple[int, int], list[int]] = defaultdict(list)
        for index, (cell, _, seed, _) in enumerate(plan.jobs):
            by_seed[cell, seed].append(index)
        for (cell, _), jobs in by_seed.items():
            self._waiting.setdefault(cell, []).append(jobs)
        most = max(len(repeats) for repeats in self._waiting.values())
        if most <= FEWEST:
            raise _core.ExperimentError(
                f"until: experiment.repeat, the maximum number of repeats, must be above {FEWEST}; got {most}"
            )
        self._repeated = {cell: Cell(precision) for cell in self._waiting}
        self._cells = [cell for cell, _, _, _ in plan.jobs]

    def __iter__(self) -> Iterator[list[int]]:
        """The jobs of each round; pass their runs to ``take`` before requesting the next round."""
        yield self._next(FEWEST)
        while jobs := self._next(1):
            yield jobs

    def take(self, job: int, run: Run) -> None:
        """Takes a run of the current round."""
        self.taken += 1
        self._repeated[self._cells[job]].take(run)

    def missed(self) -> list[str]:
        """The cells that are not precise enough, a line for each."""
        lines = []
        for cell in self._repeated.values():
            words = "".join(f", {key} {value}" for key, value in cell.set.items())
            for label, reach in cell.missed().items():
                if math.isnan(reach):
                    lines.append(f"{label}{words}: {self.precision.metric.name} has no value in these runs")
                    continue
                lines.append(
                    f"{label}{words}: the {CONFIDENCE:.0%} interval of {self.precision.metric.name} is "
                    f"±{100 * reach:.3g}% of its mean, not {100 * self.precision.share:g}%, "
                    f"after {cell.repeats[label]} repeats"
                )
        return lines

    def _next(self, repeats: int) -> list[int]:
        self.number += 1
        jobs: list[int] = []
        for cell, waiting in self._waiting.items():
            repeated = self._repeated[cell]
            if waiting and (not repeated.repeats or repeated.missed()):
                for _ in range(min(repeats, len(waiting))):
                    jobs += waiting.pop(0)
        return jobs
