"""Plans the runs of an evaluation, and executes them as one batch."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sojourn import _core
from sojourn.frame.results import Run
from sojourn.runs.comparison import overrides_for_queues
from sojourn.runs.execution import Report
from sojourn.store import Store
from sojourn.store.runner import Runner
from sojourn.studies.suites.suite import Case, Scenario, Suite

UNDER_TEST = "under test"
REFERENCE = "reference"
AGAINST = "against"


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
    """The arms that can run it."""
    plan: _core.Plan | None
    reason: str = ""
    """Why there is no plan: the scenario is not applicable."""


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
    """The discipline under test first, then drop-tail."""
    planned: list[Planned]
    quick: bool
    measured: dict[int, list[Measured]] = field(default_factory=dict)
    """By index in ``planned``."""
    runs: int = 0
    """The number of runs planned."""
    stopped_by: BaseException | None = None

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
    jobs: int | None = None,
    store: Store | None = None,
    report: Report | None = None,
) -> Evaluation:
    """Runs every scenario of a suite; ``quick``: with fewer repeats.

    ``queue`` is the discipline under test: a name, with parameters after a colon as for ``compare``. ``against`` are
    others to show beside it and drop-tail. A ``store`` keeps the runs; those that it has are not made again. Raises
    ExperimentError if a discipline or one of its keys is wrong, or an experiment file has an error.
    """
    arms = arms_of(queue, suite, against)
    planned = plan(arms, suite, quick=quick)
    batch: list[_core.RunSpec] = []
    owners: list[int] = []
    for index, one in enumerate(planned):
        for spec in one.plan or ():
            batch.append(spec)
            owners.append(index)
    evaluation = Evaluation(suite, arms, planned, quick, runs=len(batch))

    def measure(index: int, run: Run) -> Measured:
        metrics = suite.metrics_of(planned[owners[index]].scenario)
        return Measured(run.label, run.seed, {name: metric.value(run, name) for name, metric in metrics.items()})

    def take(index: int, measured: Measured) -> None:
        evaluation.measured.setdefault(owners[index], []).append(measured)

    runner = Runner(jobs=jobs, store=store, report=report)
    evaluation.stopped_by = runner.run(f"{suite.name}, {queue}", batch, take, finish=measure)
    return evaluation


def arms_of(queue: str, suite: Suite, against: Sequence[str]) -> tuple[Arm, ...]:
    """The disciplines of an evaluation, each once."""
    roles = {queue: UNDER_TEST}
    roles.setdefault(suite.content.reference, REFERENCE)
    for other in against:
        roles.setdefault(other, AGAINST)
    return tuple(Arm(name, role) for name, role in roles.items())


def plan(arms: Sequence[Arm], suite: Suite, *, quick: bool) -> list[Planned]:
    """The runs of every case.

    Raises ExperimentError if a discipline or one of its keys is wrong, or an experiment file has an error.
    """
    with_target = {
        entry["name"]
        for entry in json.loads(_core.disciplines_json())
        for key in entry["keys"]
        # sfb's target is a number of packets.
        if key["name"] == "target" and key["accepts"].startswith("a time")
    }
    _check(arms, suite)
    return [
        _plan_case(arms, suite, scenario, case, with_target, quick=quick)
        for scenario in suite.content.scenario
        for case in scenario.case
    ]


def _check(arms: Sequence[Arm], suite: Suite) -> None:
    """Reads an experiment with the disciplines, for errors in their names and parameters."""
    text = '[experiment]\nduration = "1 s"\n[link]\nrate = "1 Mbit/s"\n[[traffic]]\nkind = "bulk"\nrtt = "10 ms"\n'
    for arm in arms:
        overrides = [("queue.0.aqm", arm.aqm), *overrides_for_queues([arm.queue], "evaluate")]
        try:
            _core.Plan.read_text(text + '[[queue]]\naqm = "pfifo"\n', "evaluate", overrides)
        except _core.ExperimentError as error:
            message = str(error).removeprefix("compare: ").replace("--set queue.0.", "")
            raise _core.ExperimentError(f"evaluate: {message}") from None


def _plan_case(
    arms: Sequence[Arm], suite: Suite, scenario: Scenario, case: Case, with_target: Collection[str], *, quick: bool
) -> Planned:
    if scenario.unmeasured:
        return Planned(scenario, case, (), None, scenario.unmeasured)
    disciplines = {arm.queue: _discipline(arm, suite, scenario) for arm in arms}
    able = tuple(
        arm
        for arm in arms
        if arm.role == REFERENCE or (disciplines[arm.queue] and (scenario.needs != "target" or arm.aqm in with_target))
    )
    if not able or able[0].role == REFERENCE:
        return Planned(scenario, case, (), None, _lacking(scenario, arms[0]))
    queues = [disciplines[arm.queue] + arm.queue[len(arm.aqm) :] for arm in able]
    text = [suite.experiment(scenario, case)]
    for arm, queue in zip(able, queues, strict=True):
        text += ["[[queue]]", f"aqm = {json.dumps(disciplines[arm.queue])}", f"label = {json.dumps(arm.queue)}"]
        if arm.role != REFERENCE:
            text += [f"{key} = {json.dumps(value)}" for key, value in case.queue.items() if f"{key}=" not in queue]
    overrides = [*case.set.items(), *(suite.content.quick.items() if quick else ()), *overrides_for_queues(queues)]
    name = f"{suite.name}: {scenario.title(case)}"
    return Planned(scenario, case, able, _core.Plan.read_text("\n".join(text) + "\n", name, overrides))


def _discipline(arm: Arm, suite: Suite, scenario: Scenario) -> str:
    """The discipline that an arm has in a scenario; empty if none."""
    if scenario.needs == "scheduler" and arm.role != REFERENCE:
        return suite.content.scheduled.get(arm.aqm, "")
    return arm.aqm


def _lacking(scenario: Scenario, arm: Arm) -> str:
    if scenario.needs == "scheduler":
        return f"{arm.aqm} has no separate version with scheduling"
    return f"{arm.aqm} has no target delay to set"
