"""A suite of scenarios, suite.toml: what each asks for, its experiment files, the metrics shown; and its runs."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from sojourn import _core
from sojourn._core import ExperimentError
from sojourn.files import bounded
from sojourn.files.typed import Strict, must_be
from sojourn.frame.registry import declared
from sojourn.frame.results import Run
from sojourn.runs.plan import naming_options, overrides_for_queues
from sojourn.store.runner import Runner
from sojourn.studies.measures import SHARES, Measure, is_statistic

Better = Literal["higher", "lower", ""]
Weight = Literal["must", "should", "may"]


_SCALES = {one.name: one.scale for one in declared("group") if one.scale is not None}
UNDER_TEST = "under test"
REFERENCE = "reference"
AGAINST = "against"


class Shown(Measure, frozen=True, kw_only=True):
    """A metric as in a study's recipe, with the statistic that is shown."""

    shown: str = msgspec.field(default="mean", name="statistic")
    better: Better = ""
    """Which way is better; empty where neither is."""
    over_traffic: int | None = None
    """Divide by the same of this ``[[traffic]]`` entry."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_statistic(self.shown):
            raise ValueError(f'statistic: got "{self.shown}"; must be mean, max, p95 or the like')

    @property
    def bounds(self) -> tuple[float, float]:
        """Between what a value can be: a share ends at one, a score with its scale; nothing measured is below zero."""
        factor = self.scale
        if self.plus or factor <= 0.0:
            return -math.inf, math.inf
        if self.over_traffic is not None:
            return 0.0, math.inf
        if self.at_least is not None and self.tell in (None, "share"):
            return 0.0, 1.0
        low, high = (0.0, 1.0) if self.source in SHARES else _SCALES.get(self.source, (0.0, math.inf))
        return low * factor, high * factor

    def value(self, run: Run) -> float:
        """The metric of a run; NaN if the run does not have it."""
        found = self.statistic(run, self.shown, {}) if self.applies_to(run, {}) else math.nan
        if self.over_traffic is None:
            return found
        base = msgspec.structs.replace(self, traffic=self.over_traffic, over_traffic=None).value(run)
        return found / base if base else math.nan


class Case(Strict, frozen=True, kw_only=True):
    """One setting of a scenario."""

    name: str = ""
    file: str = ""
    set: dict[str, str] = {}
    queue: dict[str, str | bool] = {}
    """Keys of the disciplines, drop-tail excepted."""


class Scenario(Strict, frozen=True, kw_only=True):
    """A scenario of the suite's document."""

    section: str
    name: str
    weight: Weight
    asks: str
    decided: str
    file: str = ""
    metrics: tuple[str, ...] = ()
    """Metrics shown besides the suite's default ones."""
    instead: dict[str, str] = {}
    """A metric by name, and the one that measures it here: flows of different lengths have no sum of goodputs."""
    case: tuple[Case, ...] = (Case(),)
    needs: Literal["", "ecn", "target", "scheduler"] = ""
    """What a discipline needs for the scenario: that it marks packets, a key ``target``, a version with scheduling."""
    unmeasured: str = ""
    """Why it is not a matter of runs."""

    def title(self, case: Case) -> str:
        """The name of the scenario with that of a case."""
        return f"{self.name}: {case.name}" if case.name else self.name


class SuiteFile(Strict, frozen=True, kw_only=True):
    """suite.toml."""

    title: str
    reference: str
    default: tuple[str, ...]
    quick: dict[str, str] = {}
    scheduled: dict[str, str] = {}
    metrics: dict[str, Shown]
    scenario: tuple[Scenario, ...]

    def __post_init__(self) -> None:
        for name in self.default:
            must_be(name, self.metrics, "default")
        for index, one in enumerate(self.scenario):
            for name in (*one.metrics, *one.instead.values()):
                must_be(name, self.metrics, f"scenario.{index}: metrics")
            if not one.unmeasured and not all(case.file or one.file for case in one.case):
                raise ValueError(f"scenario.{index}: file: missing; must be an experiment file")


@dataclass(frozen=True)
class Suite:
    """A suite, with its folder."""

    name: str
    folder: Path
    content: SuiteFile

    def metrics_of(self, scenario: Scenario) -> dict[str, Shown]:
        """The metrics of a scenario, by name."""
        names = dict.fromkeys((*self.content.default, *scenario.metrics))
        return {name: self.content.metrics[scenario.instead.get(name, name)] for name in names}

    def experiment(self, scenario: Scenario, case: Case) -> str:
        """The text of a case's experiment, without queues."""
        path = self.folder / (case.file or scenario.file)
        try:
            return bounded.read_text(path, bounded.LARGEST_TEXT)
        except FileNotFoundError:
            raise ExperimentError(f"{path}: no such file; section {scenario.section} of the suite names it") from None


@dataclass(frozen=True)
class Arm:
    """A discipline in an evaluation."""

    queue: str
    """As given: a name, with parameters after a colon."""
    role: str

    @property
    def aqm(self) -> str:
        """The discipline's name."""
        return self.queue.partition(":")[0]


@dataclass(frozen=True)
class Planned:
    """A case of a scenario with its runs."""

    scenario: Scenario
    case: Case
    arms: tuple[Arm, ...]
    plan: _core.Plan | None
    reason: str = ""


@dataclass(frozen=True)
class Measured:
    """The metrics of one run."""

    queue: str
    seed: int
    values: Mapping[str, float]


@dataclass
class Evaluation:
    """The runs of an evaluation, measured."""

    suite: Suite
    arms: tuple[Arm, ...]
    planned: list[Planned]
    quick: bool
    measured: dict[int, list[Measured]] = field(default_factory=dict)
    runs: int = 0
    stopped_by: BaseException | None = None

    @property
    def tested(self) -> Arm:
        """The discipline under test."""
        return self.arms[0]

    @property
    def reference(self) -> str:
        """The discipline that all are measured against, drop-tail; it may itself be under test."""
        return self.suite.content.reference

    @property
    def against(self) -> list[str]:
        """The other disciplines, which are compared with the reference too."""
        return [arm.queue for arm in self.arms if arm.role == AGAINST]

    @property
    def finished(self) -> int:
        """The number of finished runs."""
        return sum(map(len, self.measured.values()))


def evaluate(
    queue: str,
    suite: Suite,
    *,
    against: Sequence[str] = (),
    quick: bool = False,
    runner: Runner | None = None,
) -> Evaluation:
    """Runs every scenario of a suite; ``quick``: with fewer repeats.

    ``queue`` is the discipline under test: a name, with parameters after a colon as for ``compare``. ``against`` are
    others to show beside it and drop-tail. Raises ExperimentError if a discipline or one of its keys is wrong, or an
    experiment file has an error.
    """
    arms = arms_of(queue, suite, against)
    planned = plan(arms, suite, quick=quick)
    batch = [spec for one in planned for spec in one.plan or ()]
    owners = [index for index, one in enumerate(planned) for _ in one.plan or ()]
    evaluation = Evaluation(suite, arms, planned, quick, runs=len(batch))

    def take(index: int, run: Run) -> None:
        metrics = suite.metrics_of(planned[owners[index]].scenario)
        measured = Measured(run.label, run.seed, {name: metric.value(run) for name, metric in metrics.items()})
        evaluation.measured.setdefault(owners[index], []).append(measured)

    evaluation.stopped_by = (runner or Runner()).run(f"{suite.name}, {queue}", batch, take)
    return evaluation


def arms_of(queue: str, suite: Suite, against: Sequence[str]) -> tuple[Arm, ...]:
    """The disciplines of an evaluation, each once."""
    roles = {queue: UNDER_TEST}
    roles.setdefault(suite.content.reference, REFERENCE)
    for other in against:
        roles.setdefault(other, AGAINST)
    return tuple(Arm(name, role) for name, role in roles.items())


def plan(arms: Sequence[Arm], suite: Suite, *, quick: bool) -> list[Planned]:
    """The runs of every case."""
    with_target = {
        entry["name"]
        for entry in json.loads(_core.disciplines_json())
        for key in entry["keys"]
        # sfb's target is a number of packets.
        if key["name"] == "target" and key["accepts"].startswith("a time")
    }
    # Errors in names and parameters of the disciplines are told of any experiment.
    text = '[experiment]\nduration = "1 s"\n[link]\nrate = "1 Mbit/s"\n[[traffic]]\nkind = "bulk"\nrtt = "10 ms"\n'
    for arm in arms:
        overrides = [("queue.0.aqm", arm.aqm), *overrides_for_queues([arm.queue], "evaluate")]
        with naming_options("evaluate", [arm.queue], {}):
            _core.Plan.read_text(text + '[[queue]]\naqm = "pfifo"\n', "evaluate", overrides)
    return [
        _plan_case(arms, suite, scenario, case, with_target, quick=quick)
        for scenario in suite.content.scenario
        for case in scenario.case
    ]


def _plan_case(
    arms: Sequence[Arm], suite: Suite, scenario: Scenario, case: Case, with_target: Collection[str], *, quick: bool
) -> Planned:
    if scenario.unmeasured:
        return Planned(scenario, case, (), None, scenario.unmeasured)
    by_scheduler = scenario.needs == "scheduler"
    disciplines = {arm.queue: suite.content.scheduled.get(arm.aqm, "") if by_scheduler else arm.aqm for arm in arms}
    disciplines |= {arm.queue: arm.aqm for arm in arms if arm.role == REFERENCE}
    lacking = {arm for arm in arms if scenario.needs == "target" and arm.aqm not in with_target}
    lacking |= {arm for arm in arms if not disciplines[arm.queue]}
    able = tuple(arm for arm in arms if arm.role == REFERENCE or arm not in lacking)
    if not able or able[0].role == REFERENCE:
        lacks = "no separate version with scheduling" if by_scheduler else "no target delay to set"
        return Planned(scenario, case, (), None, f"{arms[0].aqm} has {lacks}")
    queues = [disciplines[arm.queue] + arm.queue[len(arm.aqm) :] for arm in able]
    text = [suite.experiment(scenario, case)]
    for arm, queue in zip(able, queues, strict=True):
        text += ["[[queue]]", f"aqm = {json.dumps(disciplines[arm.queue])}", f"label = {json.dumps(arm.queue)}"]
        if arm.role != REFERENCE:
            text += [f"{key} = {json.dumps(value)}" for key, value in case.queue.items() if f"{key}=" not in queue]
    overrides = [*case.set.items(), *(suite.content.quick.items() if quick else ()), *overrides_for_queues(queues)]
    name = f"{suite.name}: {scenario.title(case)}"
    return Planned(scenario, case, able, _core.Plan.read_text("\n".join(text) + "\n", name, overrides))
