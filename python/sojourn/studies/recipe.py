"""A study's recipe, study.toml: the files of each experiment, the metrics, the figures."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from sojourn.files import typed
from sojourn.files.typed import Strict, Texts, must_be
from sojourn.frame.registry import declared
from sojourn.studies import exhibits, texts
from sojourn.studies.claims import Claim, load_claims
from sojourn.studies.exhibits import FigureSpec, TableSpec
from sojourn.studies.grid import Alias, AxisValue
from sojourn.studies.measures import DROP_REASONS, QUEUE_COLUMNS, SERIES, SOURCES, VALUES, Measure
from sojourn.studies.measures import Part as RunPart
from sojourn.studies.relation import RelationError
from sojourn.studies.variants import Variant

_ALL_SOURCES = sorted(
    {*SOURCES, *(one.name for one in declared("run", "direction", "queue", "inner_queue", "station"))}
)
UNEXPLAINED = "unexplained"
CAUSES: dict[str, str] = {
    "set-up": "the paper's set-up is not stated or ambiguous, and the outcome depends on it",
    "code": "the paper's kernel or simulator behaved differently from ours, or its behaviour is not known",
    "model": "our model omits something, or does it differently",
    "chance": "the difference is smaller than that between repeats, or a single run can take several courses",
    "contradiction": "the paper contradicts itself, its own original or its own code",
    "band": "the direction agrees; the tolerance was chosen by us, or is tight",
    UNEXPLAINED: "no explanation was found",
}
"""The causes of a miss."""
FEWER = "fewer runs"
"""The cause of a miss of a quick run that the full run does not have."""
MEANINGS = {
    **CAUSES,
    FEWER: "a quick run makes fewer or shorter runs; the full run reproduces it, or has not been kept",
}
"""What each cause on a page means."""


class Part(Strict, frozen=True):
    """An experiment file, and axis values common to all of its runs."""

    file: Path
    at: dict[str, AxisValue] = {}


class Published(Strict, frozen=True):
    """An experiment of the paper, and how it is run here."""

    id: str
    title: str = ""
    parts: tuple[Part, ...] = ()
    """Empty if it cannot be run; ``unavailable`` then says why."""
    arms: str = "{scheme}"
    """The pattern of the labels in its files: ``"{scheme} {target_ms} ms"``."""
    axes: dict[str, str] = {}
    """The swept key of each axis."""
    aliases: dict[str, Alias] = {}
    constants: dict[str, AxisValue] = {}
    unavailable: str = ""
    runs_of: Texts = Texts()
    """The experiments whose runs together also serve this one."""


class Reading(Strict, frozen=True, kw_only=True):
    """How to read a claim that is not fully formal, or why it cannot be judged."""

    because: str
    measure: str | None = None
    """A formula for the number of a ``number`` claim."""
    relation: str | None = None
    relations: tuple[str, ...] = ()
    """Several relations instead of one, each of which counts: for metrics that differ where the paper has an axis."""
    condition: dict[str, Any] | None = None
    cells: tuple[dict[str, Any], ...] | None = None
    """Places to evaluate, instead of a condition."""
    experiments: tuple[str, ...] | None = None
    schemes: tuple[str, ...] | None = None
    """The schemes, if the claim does not name them."""
    not_comparable: bool = False
    not_run: bool = False
    """The necessary quantity cannot be measured; ``because`` says what is missing."""
    only_where: str | None = None
    """A relation: the claim covers only the places where it holds."""
    effect: int | float | None = None
    """The size of the effect that a number is about, in its unit: a tolerance of half of it shows only a direction."""
    cause: Annotated[str, Meta(extra_json_schema={"enum": list(CAUSES)})] = ""
    """The cause, if the claim is not reproduced."""

    def __post_init__(self) -> None:
        if self.cause:
            must_be(self.cause, CAUSES, "cause")


class ReadingOf(Reading, frozen=True, kw_only=True):
    """A reading with its claim, or with the claims that share it."""

    claim: Texts


class Question(Strict, frozen=True):
    """An open question of the paper, with an experiment about it."""

    asks: str
    location: str
    """Section of the paper."""
    experiment: str
    answer: str
    """The measured answer, in words with formulas in braces."""


class Elsewhere(Strict, frozen=True):
    """Changes for a backend other than the simulator, because it lacks a feature that the study needs."""

    set: dict[str, str] = {}
    """Overrides of every experiment file."""
    quick: dict[str, str] = {}
    """Further overrides for ``--quick``."""
    constants: dict[str, AxisValue] = {}
    """Changed constants of the experiments."""
    without: Texts = Texts()
    """Experiments that it cannot run."""
    departures: Texts = Texts()
    """The differences from the study, in words."""


class Metric(Strict, frozen=True, kw_only=True):
    """How a metric is measured: a ``Measure`` as written in the recipe, under its name."""

    source: Annotated[str, Meta(extra_json_schema={"enum": _ALL_SOURCES})] = msgspec.field(name="from")
    unit: str = "1"
    label: str | None = None
    factor: int | float | str = 1.0
    """A number, or a fraction that shows where it comes from: ``"1500/1448"``."""
    plus: str | tuple[str, ...] | dict[str, int | float] = ()
    at_least: int | float | None = None
    tell: Literal["share", "first", "last", "until"] | None = None
    traffic: int | None = None
    direction: Literal["down", "up", "both"] = "down"
    from_s: int | float = 0.0
    to_s: int | float | None = None
    column: str | None = None
    reason: str | None = None
    link: str = ""
    queue: str = ""
    station: str = ""
    pooled: bool = False

    def __post_init__(self) -> None:
        self._check_source()
        for key, accepted, sources in (
            ("column", QUEUE_COLUMNS, ("queue_series",)),
            ("reason", DROP_REASONS, ("drops_for_reason", "drop_reason_delay_ms")),
        ):
            given = getattr(self, key)
            if given is not None:
                must_be(given, accepted, key)
            if (given is not None) != (self.source in sources):
                problem = "missing" if given is None else "unknown key"
                raise ValueError(f"{key}: {problem}; it belongs to a metric from {', '.join(sources)}")
        if self.pooled and (self.source not in VALUES or self.at_least is not None):
            raise ValueError(f"pooled: must be of values from one of {', '.join(sorted(VALUES))}")
        if self.at_least is not None and self.source not in SERIES:
            raise ValueError(f"at_least: must be from one of {', '.join(SERIES)}")
        if self.tell is not None and self.at_least is None:
            raise ValueError("at_least: missing; tell needs it")
        self.number()

    def _check_source(self) -> None:
        part = RunPart(link=self.link, queue=self.queue, station=self.station)
        numbers = [one.name for one in part.metrics]
        must_be(self.source, numbers if self.queue or self.station else [*SOURCES, *numbers], "from")
        if self.queue and self.station:
            raise ValueError("station: unknown key; a metric is of a queue or of a station")
        if self.direction == "both" and not part.can_add(self.source):
            raise ValueError(f'direction: got "both"; must be one of down, up for {self.source}, which cannot be added')

    def number(self) -> float:
        """The factor."""
        numerator, _, denominator = str(self.factor).partition("/")
        try:
            return float(numerator) / float(denominator or 1)
        except (ValueError, ZeroDivisionError):
            raise ValueError(f'factor: got "{self.factor}"; must be a number or "1500/1448"') from None

    def measure(self, name: str) -> Measure:
        """The measure."""
        plus = (self.plus,) if isinstance(self.plus, str) else self.plus
        to_s = math.inf if self.to_s is None else self.to_s
        part = RunPart(
            self.traffic,
            self.direction,
            self.from_s,
            to_s,
            self.column or "",
            self.reason or "",
            self.link,
            self.queue,
            self.station,
        )
        return Measure(
            name,
            self.source,
            self.unit,
            name if self.label is None else self.label,
            self.number(),
            plus if isinstance(plus, dict) else dict.fromkeys(plus, 1.0),
            self.at_least,
            self.tell or "share",
            part,
            self.pooled,
        )


class Recipe(Strict, frozen=True, kw_only=True):
    """study.toml."""

    title: str
    source: str
    summary: str = ""
    quick: dict[str, str] = {}
    labels: dict[str, str] = {}
    metrics: dict[str, Metric] = {}
    derived: dict[str, str] = {}
    backend: dict[str, Elsewhere] = {}
    experiment: tuple[Published, ...] = ()
    reading: tuple[ReadingOf, ...] = ()
    figure: tuple[FigureSpec, ...] = ()
    table: tuple[TableSpec, ...] = ()
    question: tuple[Question, ...] = ()
    variant: tuple[Variant, ...] = ()

    def __post_init__(self) -> None:
        read: set[str] = set()
        for index, reading in enumerate(self.reading):
            if twice := read.intersection(reading.claim):
                raise ValueError(f"reading.{index}: claim: {', '.join(sorted(twice))} has a reading already")
            read.update(reading.claim)
        for kind, named in (("figure", self.figure), ("table", self.table), ("variant", self.variant)):
            names = [one.name.casefold() for one in named]
            for index, name in enumerate(names):
                if name in names[:index]:
                    raise ValueError(f'{kind}.{index}: name: got "{name}" twice')


@dataclass(frozen=True)
class Study:
    """A paper, as data: claims, experiment files and figures in one folder."""

    name: str
    folder: Path
    title: str
    source: str
    quick: Mapping[str, str]
    """Overrides of ``--quick`` for every experiment file."""
    measures: Mapping[str, Measure]
    derived: Mapping[str, str]
    experiments: tuple[Published, ...]
    readings: Mapping[str, Reading]
    figures: tuple[FigureSpec, ...]
    labels: Mapping[str, str]
    """The schemes' names in figures."""
    elsewhere: Mapping[str, Elsewhere] = field(default_factory=dict)
    """By backend."""
    questions: tuple[Question, ...] = ()
    tables: tuple[TableSpec, ...] = ()
    variants: tuple[Variant, ...] = ()
    summary: str = ""
    """The summary of what holds and why; with formulas in braces, each with its experiment."""

    @cached_property
    def claims(self) -> list[Claim]:
        """Every claim of the paper, in order."""
        return load_claims(self.folder / "claims.toml")

    def experiment(self, id_: str) -> Published | None:
        """The experiment with this id."""
        return next((experiment for experiment in self.experiments if experiment.id == id_), None)

    def on(self, backend: str) -> Elsewhere:
        """The changes for a backend."""
        return self.elsewhere.get(backend, Elsewhere())

    def overrides(self, backend: str, *, quick: bool) -> dict[str, str]:
        """The overrides of every experiment file."""
        there = self.on(backend)
        return {**there.set, **(self.quick if quick else {}), **(there.quick if quick else {})}


def load_study(folder: Path) -> Study:
    """Reads a study's folder. Raises ValueError if its recipe has an error, and OSError if it cannot be read."""
    path = folder / "study.toml"
    data = typed.read_toml(path)
    try:
        recipe = typed.convert(data, Recipe, "study", partial(_of_file, folder))
        study = Study(
            name=folder.name,
            folder=folder,
            title=recipe.title,
            source=recipe.source,
            quick=recipe.quick,
            measures={name: metric.measure(name) for name, metric in recipe.metrics.items()},
            derived=recipe.derived,
            experiments=recipe.experiment,
            readings={id_: reading for reading in recipe.reading for id_ in reading.claim},
            figures=recipe.figure,
            tables=recipe.table,
            variants=recipe.variant,
            summary=recipe.summary,
            labels=recipe.labels,
            elsewhere=recipe.backend,
            questions=recipe.question,
        )
        exhibits.check_names(study.figures, study.tables, _names_of(study))
        _check_texts(study)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return study


def _of_file(folder: Path, kind: type, value: object) -> object:
    """Converts ``Texts``, and files of the study's folder; files elsewhere are not accepted."""
    if kind is not Path:
        return typed.texts(kind, value)
    if not isinstance(value, str) or not (folder / value).resolve().is_relative_to(folder.resolve()):
        raise ValueError("must be a file inside of the study's folder")
    return folder / value


def json_schema() -> dict[str, Any]:
    """The JSON schema of study.toml, for editors."""

    def of_ours(kind: type) -> dict[str, Any]:
        a_text = {"type": "string"}
        return a_text if kind is Path else {"anyOf": [a_text, {"type": "array", "items": a_text}]}

    return msgspec.json.schema(Recipe, schema_hook=of_ours)


class RecipeText(NamedTuple):
    """A text of a recipe that may contain formulas."""

    where: str
    """Its key."""
    text: str
    experiments: tuple[str, ...]
    """The places of the text; empty for those of its claim."""
    claim: str = ""


def texts_of(study: Study) -> list[RecipeText]:
    """Every such text of a recipe."""
    reasons = [
        RecipeText(f"reading of {claim}: because", reading.because, reading.experiments or (), claim)
        for claim, reading in study.readings.items()
    ]
    answers = [
        RecipeText(f"question.{index}: answer", question.answer, (question.experiment,))
        for index, question in enumerate(study.questions)
    ]
    return [*reasons, *answers, RecipeText("summary", study.summary, ())]


def _check_texts(study: Study) -> None:
    for one in texts_of(study):
        try:
            texts.check_form(one.text)
        except RelationError as error:
            raise ValueError(f"{one.where}: {error}") from None
    known = tuple(experiment.id for experiment in study.experiments)
    named = [(one.where, id_) for one in texts_of(study) for id_ in sorted(texts.experiments_named(one.text))]
    named += [(f"question.{index}: experiment", one.experiment) for index, one in enumerate(study.questions)]
    named += [(f"backend.{name}: without", id_) for name, there in study.elsewhere.items() for id_ in there.without]
    for where, id_ in named:
        must_be(id_, known, where)


def _names_of(study: Study) -> exhibits.Names:
    """The names that figures and tables may use."""
    return exhibits.Names(
        study.measures,
        frozenset(study.derived),
        {experiment.id: frozenset(axes_of(study, experiment.id)) for experiment in study.experiments},
        {
            experiment.id: frozenset(name for one in experiments_with(study, experiment.id) for name in one.constants)
            for experiment in study.experiments
        },
    )


def axes_of(study: Study, id_: str) -> set[str]:
    """The axes of an experiment's runs."""
    known: set[str] = set()
    for experiment in experiments_with(study, id_):
        known |= {*experiment.axes, *experiment.aliases, *re.findall(r"{(\w+)}", experiment.arms)} - {"scheme"}
        known |= {axis for part in experiment.parts for axis in part.at}
    return known


def experiments_with(study: Study, id_: str) -> tuple[Published, ...]:
    """An experiment, and those whose runs it shares."""
    own = study.experiment(id_)
    return () if own is None else (own, *filter(None, map(study.experiment, own.runs_of)))
