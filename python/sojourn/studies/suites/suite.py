"""A suite of scenarios, suite.toml: what each asks for, its experiment files, and the metrics shown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Literal

import msgspec

from sojourn._core import ExperimentError
from sojourn.files import bounded, typed
from sojourn.files.typed import Strict, must_be
from sojourn.frame.registry import declared
from sojourn.frame.results import Run
from sojourn.studies.measures import SHARES, Measure, is_statistic
from sojourn.studies.recipe import Metric
from sojourn.studies.suites import controls

Better = Literal["higher", "lower", ""]
Weight = Literal["must", "should", "may"]


_SCALES = {one.name: one.scale for one in declared("group") if one.scale is not None}


class Shown(Metric, frozen=True, kw_only=True):
    """A metric as in a study's recipe, with the statistic that is shown."""

    statistic: str = "mean"
    better: Better = ""
    """Which way is better; empty where neither is."""
    over_traffic: int | None = None
    """Divide by the same of this ``[[traffic]]`` entry."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_statistic(self.statistic):
            raise ValueError(f'statistic: got "{self.statistic}"; must be mean, max, p95 or the like')

    @property
    def bounds(self) -> tuple[float, float]:
        """Between what a value can be: a share ends at one, a score with its scale; nothing measured is below zero."""
        factor = self.number()
        if self.plus or factor <= 0.0:
            return -math.inf, math.inf
        if self.over_traffic is not None:
            return 0.0, math.inf
        if self.at_least is not None and self.tell in (None, "share"):
            return 0.0, 1.0
        low, high = (0.0, 1.0) if self.source in SHARES else _SCALES.get(self.source, (0.0, math.inf))
        return low * factor, high * factor

    def value(self, run: Run, name: str) -> float:
        """The metric of a run; NaN if the run does not have it."""
        found = _statistic(self.measure(name), run, self.statistic)
        if self.over_traffic is None:
            return found
        other = msgspec.structs.replace(self, traffic=self.over_traffic, over_traffic=None)
        base = other.value(run, name)
        return found / base if base else math.nan


def _statistic(measure: Measure, run: Run, statistic: str) -> float:
    return measure.statistic(run, statistic, {}) if measure.applies_to(run, {}) else math.nan


class Case(Strict, frozen=True, kw_only=True):
    """One setting of a scenario."""

    name: str = ""
    file: str = ""
    """Its experiment file; default: the scenario's."""
    set: dict[str, str] = {}
    """Overrides of the experiment file."""
    queue: dict[str, str | bool] = {}
    """Keys of the disciplines, drop-tail excepted."""


class Scenario(Strict, frozen=True, kw_only=True):
    """A scenario of the suite's document."""

    section: str
    name: str
    weight: Weight
    asks: str
    """What the document asks for."""
    decided: str
    """How its freedom was decided."""
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
    """The discipline with which every other is compared."""
    default: tuple[str, ...]
    """The metrics of every scenario."""
    quick: dict[str, str] = {}
    """Overrides for ``--quick``."""
    scheduled: dict[str, str] = {}
    """The version with scheduling of a discipline."""
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
        """The text of a case's experiment, without queues.

        Raises ExperimentError if the suite does not have the file.
        """
        path = self.folder / (case.file or scenario.file)
        try:
            return bounded.read_text(path, bounded.LARGEST_TEXT)
        except FileNotFoundError:
            raise ExperimentError(f"{path}: no such file; section {scenario.section} of the suite names it") from None


def load_suite(folder: Path) -> Suite | controls.Suite:
    """Reads a suite's folder. Raises ExperimentError if its file has an error, and OSError if it cannot be read."""
    path = folder / "suite.toml"
    try:
        content = typed.read_toml(path)
        if content.get("controls"):
            return controls.Suite(folder.name, folder, typed.convert(content, controls.SuiteFile, "suite"))
        return Suite(folder.name, folder, typed.convert(content, SuiteFile, "suite"))
    except ValueError as error:
        raise ExperimentError(f"{path}: {error}") from None


def available() -> list[Path]:
    """The folders of the suites that come with the package, by name."""
    root = Path(str(resources.files("sojourn") / "_suites"))
    return [path.parent for path in sorted(root.glob("*/suite.toml"))]


def find(name: str) -> Suite | controls.Suite:
    """Finds a suite by name, or by the path of its folder.

    Raises ExperimentError if there is no such suite, or its file has an error.
    """
    known = {folder.name: folder for folder in available()}
    folder = known.get(name, Path(name))
    if (folder / "suite.toml").is_file():
        return load_suite(folder.resolve())
    near = get_close_matches(name, known, n=1)
    hint = f'; did you mean "{near[0]}"?' if near else ""
    raise ExperimentError(f'--suite: got "{name}"; must be one of {", ".join(known)} or a suite\'s folder{hint}')
