"""A study's recipe, study.toml: the files of each experiment, the metrics, the figures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta, structs

from sojourn.files import typed
from sojourn.files.typed import Strict, Texts, all_must_be, must_be
from sojourn.frame.results import Run, arms_of
from sojourn.frame.swept import quantity
from sojourn.studies import texts
from sojourn.studies.claims import Claim, load_claims
from sojourn.studies.grid import Alias, AxisValue, Cell, Grid
from sojourn.studies.measures import SERIES, Measure, is_statistic
from sojourn.studies.relation import RelationError
from sojourn.studies.variants import Variant

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
FEWER = "fewer runs"
"""The cause of a miss of a quick run that the full run does not have."""
MEANINGS = {
    **CAUSES,
    FEWER: "a quick run makes fewer or shorter runs; the full run reproduces it, or has not been kept",
}
SCHEME = "scheme"
"""The name for the discipline in tables, beside the names of axes."""
KINDS = {
    "box": "boxes over ``x``, a panel per value of ``panels``",
    "series": "a metric over time",
    "bars": "the mean over the repeats with its interval, one bar per scheme, in groups of ``x``",
    "cdf": "the distribution function of a metric, one line per scheme and value of ``x``",
    "ellipse": "a metric over another, ``x``: a dot per run and their 1-sigma ellipse",
    "spread": "a metric's mean over the distribution of another, ``x``: median, box and whiskers lie flat",
    "packets": "every packet as it came to the queue and left it, from the metric's ``from_s`` to its ``to_s``",
}
"""The kinds of figures and their content."""
OVER_METRIC = ("ellipse", "spread")
_NUMBER = r"\\d+(?:\\.\\d+)?|true|false"  # as a replacement of `re.sub`
_IN_AXIS = {"ms": ("ms", 1.0), "s": ("ms", 1e3), "kbps": ("bps", 1e3), "mbps": ("bps", 1e6), "bytes": ("bytes", 1.0)}
"""The unit of ``quantity`` for the suffix of an axis' name, and how many of it are one of the axis'."""


class ExperimentFile(Strict, frozen=True):
    """An experiment file, and axis values common to all of its runs."""

    file: Path
    at: dict[str, AxisValue] = {}


class Published(Strict, frozen=True):
    """An experiment of the paper, and how it is run here."""

    id: str
    title: str = ""
    parts: tuple[ExperimentFile, ...] = ()
    """Empty if it cannot be run; ``unavailable`` then says why."""
    arms: str = "{scheme}"
    """The pattern of the labels in its files: ``"{scheme} {target_ms} ms"``."""
    axes: dict[str, str] = {}
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
    experiments: tuple[str, ...] | None = None
    schemes: tuple[str, ...] | None = None
    not_comparable: bool = False
    not_run: bool = False
    """The necessary quantity cannot be measured; ``because`` says what is missing."""
    only_where: str | None = None
    """A relation: the claim covers only the places where it holds."""
    effect: int | float | None = None
    """The size of the effect that a number is about, in its unit: a tolerance of half of it shows only a direction."""
    cause: Annotated[str, Meta(extra_json_schema={"enum": list(CAUSES)})] = ""

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
    experiment: str
    answer: str


class Elsewhere(Strict, frozen=True):
    """Changes for a backend other than the simulator, because it lacks a feature that the study needs."""

    set: dict[str, str] = {}
    quick: dict[str, str] = {}
    constants: dict[str, AxisValue] = {}
    without: Texts = Texts()
    departures: Texts = Texts()


class Exhibit(Strict, frozen=True, kw_only=True):
    """A figure or a table of the paper."""

    name: str
    title: str
    experiment: str
    where: dict[str, Any] = {}
    shows: str = ""
    """Its location in the paper; by default derived from its name, ``Fig 3`` for ``fig3a``."""

    def __post_init__(self) -> None:
        # The name is used in file names, which must stay in the folder of results.
        if not re.fullmatch(r"\w[\w.+-]{0,99}", self.name):
            raise ValueError(f"name: got {self.name!r}; must be letters, digits, _ . + - and no longer than 100")

    @property
    def location(self) -> str:
        """Its location in the paper; empty for a name without a number."""
        found = re.match(r"(fig|table)(\d+)", self.name)
        return self.shows or (f"{found.group(1).title()} {found.group(2)}" if found else "")


class FigureSpec(Exhibit, frozen=True, kw_only=True):
    """A figure to draw."""

    kind: Annotated[str, Meta(extra_json_schema={"enum": list(KINDS)})]
    metric: str
    x: str = ""
    panels: str = ""
    schemes: tuple[str, ...] = ()
    whiskers: tuple[int | float, ...] = (10, 90)
    of_runs: bool = False
    """Draw boxes of one number per run instead of the distribution within each run."""
    statistic: str = "value"
    bin_s: int | float = 0.0
    """Draw a series as means over bins of this many seconds; 0 to draw it as recorded."""
    from_zero: bool = True
    """Whether the metric's axis begins at zero, if it is not logarithmic."""
    log: bool = False
    """Whether the metric's axis is logarithmic, so that one scheme does not hide the differences of the others."""
    below: tuple[str, ...] = ()
    """Metrics drawn below the first one, in the same way and over the same axis."""
    beside: tuple[str, ...] = ()
    """For bars: metrics drawn beside the first one, in the same group."""
    label: str = ""
    """Label of the first metric's axis; default: the metric's own."""
    published: tuple[str, ...] = ()
    """Further metrics whose published values are drawn: other measures of the same quantity."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """All metrics on its vertical axes, from above."""
        return (self.metric, *self.below)

    def is_called(self, name: str) -> bool:
        """True if a user's name means this figure: ``fig3``, ``Fig 3``, ``3``; ``3`` also means ``fig3a``."""
        wanted = name.lower().replace(" ", "").removeprefix("fig").removeprefix("ure")
        own = self.name.removeprefix("fig")
        return own == wanted or own.rstrip("abcd") == wanted


class Value(Strict, frozen=True):
    """A number in every row of a table."""

    heading: str
    metric: str
    statistic: str = "value"


class TableSpec(Exhibit, frozen=True, kw_only=True):
    """A table of the paper: published and measured numbers in the paper's rows and columns."""

    rows: Texts
    """Axes, or ``scheme``, whose values are the rows."""
    values: tuple[Value, ...]
    across: str = ""
    """An axis, or ``scheme``; there is a column of every value for each of its values."""


class Recipe(Strict, frozen=True, kw_only=True):
    """study.toml."""

    title: str
    source: str
    summary: str = ""
    """What holds and why; with formulas in braces, each with its experiment."""
    quick: dict[str, str] = {}
    labels: dict[str, str] = {}
    measures: dict[str, Measure] = msgspec.field(default_factory=dict, name="metrics")
    derived: dict[str, str] = {}
    elsewhere: dict[str, Elsewhere] = msgspec.field(default_factory=dict, name="backend")
    experiments: tuple[Published, ...] = msgspec.field(default=(), name="experiment")
    reading: tuple[ReadingOf, ...] = ()
    figures: tuple[FigureSpec, ...] = msgspec.field(default=(), name="figure")
    tables: tuple[TableSpec, ...] = msgspec.field(default=(), name="table")
    questions: tuple[Question, ...] = msgspec.field(default=(), name="question")
    variants: tuple[Variant, ...] = msgspec.field(default=(), name="variant")

    def __post_init__(self) -> None:
        read: set[str] = set()
        for index, reading in enumerate(self.reading):
            if twice := read.intersection(reading.claim):
                raise ValueError(f"reading.{index}: claim: {', '.join(sorted(twice))} has a reading already")
            read.update(reading.claim)
        for kind, named in (("figure", self.figures), ("table", self.tables), ("variant", self.variants)):
            names = [one.name.casefold() for one in named]
            for index, name in enumerate(names):
                if name in names[:index]:
                    raise ValueError(f'{kind}.{index}: name: got "{name}" twice')


class Study(Recipe, frozen=True, kw_only=True, dict=True):
    """A paper, as data: claims, experiment files and figures in one folder."""

    name: str
    folder: Path

    @cached_property
    def readings(self) -> dict[str, Reading]:
        """The readings, by claim."""
        return {id_: reading for reading in self.reading for id_ in reading.claim}

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
        labelled = {
            name: structs.replace(one, label=name if one.label is None else one.label)
            for name, one in recipe.measures.items()
        }
        study = Study(**{**structs.asdict(recipe), "measures": labelled}, name=folder.name, folder=folder)
        _check_exhibits(study)
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


class RecipeText(NamedTuple):
    """A text of a recipe that may contain formulas."""

    where: str
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


def _check_exhibits(study: Study) -> None:
    """Checks that the names used by figures and tables exist."""
    known = [experiment.id for experiment in study.experiments]
    for index, spec in enumerate(study.figures):
        must_be(spec.kind, KINDS, f"figure.{index}: kind")
        must_be(spec.experiment, known, f"figure.{index}: experiment")
        _check_figure(spec, f"figure.{index}", study)
    for index, one in enumerate(study.tables):
        where = f"table.{index}"
        must_be(one.experiment, known, f"{where}: experiment")
        axes = axes_of(study, one.experiment) | constants_of(study, one.experiment)
        for axis in [*one.rows, *filter(None, [one.across])]:
            must_be(axis, axes | {SCHEME}, f"{where}: {'across' if axis == one.across else 'rows'}")
        all_must_be(one.where, axes, f"{where}: where")
        for number, value in enumerate(one.values):
            must_be(value.metric, {*study.measures, *study.derived}, f"{where}: values.{number}: metric")
            _check_statistic(value.statistic, f"{where}: values.{number}")


def _check_figure(spec: FigureSpec, where: str, study: Study) -> None:
    for key in ("below", "beside", "published"):
        all_must_be(getattr(spec, key), study.measures, f"{where}: {key}")
    must_be(spec.metric, study.measures, f"{where}: metric")
    needed = {"series": tuple(SERIES), "packets": ("packet_sojourn_ms",)}.get(spec.kind)
    for metric in spec.metrics:
        source = study.measures[metric].source
        if needed is not None and source not in needed:
            got = f'{where}: metric: "{metric}" is from {source}'
            raise ValueError(f"{got}; of kind {spec.kind} must be from {', '.join(needed)}")
    if spec.beside and spec.kind != "bars":
        raise ValueError(f"{where}: beside: is for figures of kind bars")
    if spec.below and spec.kind not in ("box", "bars", "series", "cdf"):
        raise ValueError(f"{where}: below: a figure of kind {spec.kind} has one metric")
    _check_statistic(spec.statistic, where)
    axes = axes_of(study, spec.experiment)
    all_must_be(spec.where, axes | constants_of(study, spec.experiment), f"{where}: where")
    if spec.x or spec.kind in OVER_METRIC:
        must_be(spec.x, study.measures if spec.kind in OVER_METRIC else axes, f"{where}: x")
    all_must_be(filter(None, [spec.panels]), axes, f"{where}: panels")


def _check_statistic(name: str, where: str) -> None:
    if not is_statistic(name):
        raise ValueError(f'{where}: statistic: got "{name}"; must be value, mean, median, min, max, p90, …')


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


def constants_of(study: Study, id_: str) -> set[str]:
    """The constants of an experiment's runs."""
    return {name for experiment in experiments_with(study, id_) for name in experiment.constants}


def grids_of(
    study: Study, cells: Mapping[str, list[Cell]], measures: Mapping[str, Measure], backend: str
) -> dict[str, Grid]:
    """The grids of a study's experiments, from the cells of each."""
    different = study.on(backend).constants
    grids = {}
    for experiment in study.experiments:
        own = [cell for id_ in experiment.runs_of for cell in cells.get(id_, [])] or cells.get(experiment.id)
        if own:
            constants = {**experiment.constants, **different}
            grids[experiment.id] = Grid(own, measures, experiment.aliases, constants)
    return grids


def cells_of(experiment: Published, part: ExperimentFile, runs: Sequence[Run]) -> list[Cell]:
    """Groups repeats by scheme and place, which follow from labels and swept values."""
    pattern = re.escape(experiment.arms).replace(re.escape("{scheme}"), r"(?P<scheme>[\w+]+)")
    arms = re.compile(re.sub(r"\\\{(\w+)\\\}", rf"(?P<\1>{_NUMBER})", pattern))

    def named(run: Run) -> tuple[str, dict[str, AxisValue]]:
        match = arms.fullmatch(run.label)
        if match is None:
            raise ValueError(f"{part.file}: label {run.label!r} is not like {experiment.arms!r}")
        words = match.groupdict()
        scheme, swept = words.pop("scheme"), run.summary["set"]
        of_label = {axis: word == "true" if word in ("true", "false") else float(word) for axis, word in words.items()}
        of_keys = {axis: in_axis_unit(swept[key], axis) for axis, key in experiment.axes.items() if key in swept}
        return scheme, dict(sorted({**of_label, **of_keys, **part.at}.items()))

    return arms_of(runs, named)


def in_axis_unit(value: object, axis: str) -> AxisValue:
    """A swept value in the unit of the axis' name: ``"0.1 s"`` on ``rtt_ms`` is 100."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return float(value)
    found = quantity(value)
    unit, per = _IN_AXIS.get(axis.rpartition("_")[2], ("", 1.0))
    return round(found.value / per, 9) if found is not None and unit and found.unit == unit else str(value)
