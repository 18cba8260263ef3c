"""A study's recipe, study.toml: which files stand for which experiment, what is measured, what is drawn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from sojourn import typed
from sojourn.studies import exhibits, tables, texts, variants
from sojourn.studies.claims import Claim, load_claims
from sojourn.studies.exhibits import FigureSpec, TableSpec
from sojourn.studies.grid import Alias, AxisValue
from sojourn.studies.measures import DROP_REASONS, QUEUE_COLUMNS, SERIES, SOURCES, VALUES, Measure
from sojourn.studies.measures import Part as RunPart
from sojourn.studies.relation import RelationError
from sojourn.studies.variants import Variant

UNEXPLAINED = "unexplained"
CAUSES: dict[str, str] = {
    "set-up": "the paper does not say, or says in two ways, how it was set up, and the outcome depends on it",
    "code": "the kernel or simulator of the paper behaved in a way that is not, or not known to be, ours",
    "model": "ours leaves something out, or does it otherwise",
    "chance": "the difference is smaller than that between repeats, or one run has more than one course",
    "contradiction": "the paper contradicts itself, its own original or its own code",
    "band": "the direction agrees; the number that counts as agreeing was chosen by us, or is tight",
    UNEXPLAINED: "no explanation was found",
}
"""What a miss may be put down to."""


@dataclass(frozen=True)
class Part:
    """An experiment file, and the axis values that all of its runs share."""

    file: Path
    at: Mapping[str, AxisValue]


@dataclass(frozen=True)
class Published:
    """An experiment of the paper, and how it is run here."""

    id: str
    title: str
    parts: tuple[Part, ...]
    """Empty if it cannot be run; then ``unavailable`` says why."""
    arms: str
    """What the labels in its files look like: ``"{scheme} {target_ms} ms"``."""
    axes: Mapping[str, str]
    """Axis by axis, the swept key that it is."""
    aliases: Mapping[str, Alias]
    constants: Mapping[str, AxisValue]
    unavailable: str
    runs_of: tuple[str, ...] = ()
    """The experiments whose runs, together, are also those of this one."""


@dataclass(frozen=True)
class Reading:
    """How a claim that is not fully formal is read, or why it cannot be judged."""

    because: str
    measure: str | None = None
    """A formula for the number that a ``number`` claim publishes."""
    relation: str | None = None
    relations: tuple[str, ...] = ()
    """Instead of one relation several, each of which counts: of metrics that differ where the paper has an axis."""
    condition: Mapping[str, Any] | None = None
    cells: tuple[Mapping[str, Any], ...] | None = None
    """Places to look at, instead of a condition."""
    experiments: tuple[str, ...] | None = None
    schemes: tuple[str, ...] | None = None
    """What the claim is about, where it does not name schemes."""
    not_comparable: bool = False
    not_run: bool = False
    """What it would take cannot be measured; ``because`` says what is missing."""
    only_where: str | None = None
    """A relation: the claim is about the places where it holds, and says nothing about others."""
    cause: str = ""
    """If the claim is not reproduced: one of ``CAUSES``."""


@dataclass(frozen=True)
class Question:
    """Something that the paper asks and leaves open, with an experiment about it."""

    asks: str
    location: str
    """Section of the paper."""
    experiment: str
    answer: str
    """What was measured, in words with formulas in braces."""


@dataclass(frozen=True)
class Elsewhere:
    """What a backend other than the simulator needs changed, because it lacks something that the study has."""

    set: Mapping[str, str] = field(default_factory=dict)
    """What is overridden in every experiment file."""
    quick: Mapping[str, str] = field(default_factory=dict)
    """What ``--quick`` overrides further there."""
    constants: Mapping[str, AxisValue] = field(default_factory=dict)
    """What is different there of the experiments' constants."""
    without: tuple[str, ...] = ()
    """Experiments that it cannot run."""
    departures: tuple[str, ...] = ()
    """How that departs from the study, in words."""


@dataclass(frozen=True)
class Study:
    """A paper, as data: claims, experiment files and figures in one folder."""

    name: str
    folder: Path
    title: str
    source: str
    quick: Mapping[str, str]
    """What ``--quick`` overrides in every experiment file."""
    measures: Mapping[str, Measure]
    derived: Mapping[str, str]
    experiments: tuple[Published, ...]
    readings: Mapping[str, Reading]
    figures: tuple[FigureSpec, ...]
    labels: Mapping[str, str]
    """Schemes as figures name them."""
    elsewhere: Mapping[str, Elsewhere] = field(default_factory=dict)
    """By backend."""
    questions: tuple[Question, ...] = ()
    tables: tuple[TableSpec, ...] = ()
    variants: tuple[Variant, ...] = ()
    summary: str = ""
    """What holds, what does not, and why; with formulas in braces, each with its experiment."""

    @cached_property
    def claims(self) -> list[Claim]:
        """Every claim of the paper, in its order."""
        return load_claims(self.folder / "claims.toml")

    def experiment(self, id_: str) -> Published | None:
        """The experiment called so."""
        return next((experiment for experiment in self.experiments if experiment.id == id_), None)

    def on(self, backend: str) -> Elsewhere:
        """What is different on a backend."""
        return self.elsewhere.get(backend, Elsewhere())

    def overrides(self, backend: str, *, quick: bool) -> dict[str, str]:
        """What replaces values of every experiment file."""
        there = self.on(backend)
        return {**there.set, **(self.quick if quick else {}), **(there.quick if quick else {})}


def load_study(folder: Path) -> Study:
    """Reads a study's folder.

    Raises
    ------
    ValueError
        Its recipe is wrong.
    OSError
        It has none.
    """
    path = folder / "study.toml"
    recipe = typed.read_toml(path)
    try:
        _check(recipe)
        study = Study(
            name=folder.name,
            folder=folder,
            title=recipe["title"],
            source=recipe["source"],
            quick=recipe.get("quick", {}),
            measures={name: _measure(name, table) for name, table in recipe.get("metrics", {}).items()},
            derived=recipe.get("derived", {}),
            experiments=tuple(_experiment(table, folder) for table in recipe.get("experiment", [])),
            readings={id_: _reading(table) for table in recipe.get("reading", []) for id_ in _claims(table)},
            figures=tuple(map(exhibits.figure, recipe.get("figure", []))),
            tables=tuple(map(exhibits.table, recipe.get("table", []))),
            variants=variants.read(recipe),
            summary=recipe.get("summary", ""),
            labels=recipe.get("labels", {}),
            elsewhere={name: _elsewhere(table) for name, table in recipe.get("backend", {}).items()},
            questions=tuple(Question(**table) for table in recipe.get("question", [])),
        )
        exhibits.check_names(study.figures, study.tables, _names_of(study))
        _check_texts(study)
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
        raise ValueError(f"{path}: {error}") from None
    return study


_RECIPE: dict[str, tables.Kinds] = {
    "title": tables.TEXT, "source": tables.TEXT, "quick": tables.TABLE, "labels": tables.TABLE,
    "derived": tables.TABLE, "metrics": tables.TABLE, "backend": tables.TABLE, "experiment": tables.LIST,
    "reading": tables.LIST, "figure": tables.LIST, "table": tables.LIST, "question": tables.LIST,
    "variant": tables.LIST, "summary": tables.TEXT,
}  # fmt: skip
_METRIC: dict[str, tables.Kinds] = {
    "from": tables.TEXT, "unit": tables.TEXT, "label": tables.TEXT, "factor": (int, float, str),
    "plus": (str, list, dict), "at_least": tables.NUMBER, "tell": tables.TEXT, "traffic": (int,),
    "direction": tables.TEXT, "from_s": tables.NUMBER, "to_s": tables.NUMBER, "column": tables.TEXT,
    "reason": tables.TEXT, "pooled": tables.FLAG,
}  # fmt: skip
_EXPERIMENT: dict[str, tables.Kinds] = {
    "id": tables.TEXT, "title": tables.TEXT, "parts": tables.LIST, "arms": tables.TEXT, "axes": tables.TABLE,
    "aliases": tables.TABLE, "constants": tables.TABLE, "unavailable": tables.TEXT, "runs_of": tables.TEXTS,
}  # fmt: skip
_READING: dict[str, tables.Kinds] = {
    "claim": tables.TEXTS, "because": tables.TEXT, "measure": tables.TEXT, "relation": tables.TEXT,
    "relations": tables.LIST, "condition": tables.TABLE, "cells": tables.LIST, "experiments": tables.LIST,
    "schemes": tables.LIST, "not_comparable": tables.FLAG, "not_run": tables.FLAG, "only_where": tables.TEXT,
    "cause": tables.TEXT,
}  # fmt: skip
_QUESTION: dict[str, tables.Kinds] = {
    "asks": tables.TEXT, "location": tables.TEXT, "experiment": tables.TEXT, "answer": tables.TEXT,
}  # fmt: skip
_ELSEWHERE: dict[str, tables.Kinds] = {
    "set": tables.TABLE, "quick": tables.TABLE, "constants": tables.TABLE, "without": tables.TEXTS,
    "departures": tables.TEXTS,
}  # fmt: skip


def _check(recipe: dict[str, Any]) -> None:
    tables.check(recipe, "study", _RECIPE, needs=("title", "source"))
    for key in ("quick", "labels", "derived"):
        tables.check_each(recipe.get(key), key, tables.TEXT)
    for name, table in recipe.get("metrics", {}).items():
        tables.check(table, f"metrics.{name}", _METRIC, needs=("from",))
    for name, table in recipe.get("backend", {}).items():
        tables.check(table, f"backend.{name}", _ELSEWHERE)
    for index, table in enumerate(recipe.get("experiment", [])):
        where = f"experiment.{index}"
        tables.check(table, where, _EXPERIMENT, needs=("id",))
        tables.check_each(table.get("axes"), f"{where}.axes", tables.TEXT)
        for number, part in enumerate(table.get("parts", [])):
            keys = {"file": tables.TEXT, "at": tables.TABLE}
            tables.check(part, f"{where}.parts.{number}", keys, needs=("file",))
        for name, alias in table.get("aliases", {}).items():
            keys = {"axis": tables.TEXT, "factor": tables.NUMBER}
            tables.check(alias, f"{where}.aliases.{name}", keys, needs=("axis", "factor"))
    read: set[str] = set()
    for index, table in enumerate(recipe.get("reading", [])):
        tables.check(table, f"reading.{index}", _READING, needs=("claim", "because"))
        if twice := read.intersection(_claims(table)):
            raise ValueError(f"reading.{index}: claim: {', '.join(sorted(twice))} has a reading already")
        read.update(_claims(table))
        if "cause" in table and table["cause"] not in CAUSES:
            raise ValueError(f'reading.{index}: cause: got "{table["cause"]}"; must be one of {", ".join(CAUSES)}')
        for key in ("relations", "experiments", "schemes"):
            tables.check_each(table.get(key), f"reading.{index}.{key}", tables.TEXT)
        tables.check_each(table.get("cells"), f"reading.{index}.cells", tables.TABLE)
    exhibits.check_keys(recipe)
    for index, table in enumerate(recipe.get("question", [])):
        tables.check(table, f"question.{index}", _QUESTION, needs=tuple(_QUESTION))


class RecipeText(NamedTuple):
    """A text of a recipe that may have formulas in it."""

    where: str
    """Its key."""
    text: str
    experiments: tuple[str, ...]
    """What it is about; empty: what its claim is."""
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
    known = [experiment.id for experiment in study.experiments]
    named = [(one.where, id_) for one in texts_of(study) for id_ in sorted(texts.experiments_named(one.text))]
    named += [(f"question.{index}: experiment", one.experiment) for index, one in enumerate(study.questions)]
    named += [(f"backend.{name}: without", id_) for name, there in study.elsewhere.items() for id_ in there.without]
    for where, id_ in named:
        if id_ not in known:
            raise ValueError(f'{where}: got "{id_}"; must be one of {", ".join(known)}')


def _names_of(study: Study) -> exhibits.Names:
    """What figures and tables may name."""
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
    """What an experiment's runs may differ in."""
    known: set[str] = set()
    for experiment in experiments_with(study, id_):
        known |= {*experiment.axes, *experiment.aliases, *re.findall(r"{(\w+)}", experiment.arms)} - {"scheme"}
        known |= {axis for part in experiment.parts for axis in part.at}
    return known


def experiments_with(study: Study, id_: str) -> tuple[Published, ...]:
    """An experiment, and those whose runs it shares."""
    own = study.experiment(id_)
    return () if own is None else (own, *filter(None, map(study.experiment, own.runs_of)))


_OF_METRIC: dict[str, tuple[Iterable[str], tuple[str, ...]]] = {
    "from": (SOURCES, ()),
    "direction": (("down", "up", "both"), ()),
    "tell": (("share", "first", "last", "until"), ()),
    "column": (QUEUE_COLUMNS, ("queue_series",)),
    "reason": (DROP_REASONS, ("drops_for_reason", "drop_reason_delay_ms")),
}
"""What the words of a metric may be; and of which sources alone it has that key, which they must have."""


def _check_metric(name: str, table: dict[str, Any]) -> None:
    for key, (accepted, sources) in _OF_METRIC.items():
        if key in table and table[key] not in accepted:
            raise ValueError(f'metrics.{name}: {key}: got "{table[key]}"; must be one of {", ".join(sorted(accepted))}')
        if sources and (key in table) != (table["from"] in sources):
            problem = "unknown key" if key in table else "missing"
            raise ValueError(f"metrics.{name}: {key}: {problem}; it belongs to a metric from {', '.join(sources)}")
    if table.get("pooled") and (table["from"] not in VALUES or "at_least" in table):
        raise ValueError(f"metrics.{name}: pooled: must be of values from one of {', '.join(sorted(VALUES))}")
    if "at_least" in table and table["from"] not in SERIES:
        raise ValueError(f"metrics.{name}: at_least: must be from one of {', '.join(SERIES)}")
    if "tell" in table and "at_least" not in table:
        raise ValueError(f"metrics.{name}: at_least: missing; tell needs it")


def _measure(name: str, table: dict[str, Any]) -> Measure:
    _check_metric(name, table)
    of_run = {key: table[key] for key in ("traffic", "direction", "from_s", "to_s", "column", "reason") if key in table}
    return Measure(
        name,
        table["from"],
        table.get("unit", "1"),
        table.get("label", name),
        _factor(name, table.get("factor", 1.0)),
        plus if isinstance(plus := table.get("plus", ()), dict) else dict.fromkeys(_names(plus), 1.0),
        table.get("at_least"),
        table.get("tell", "share"),
        RunPart(**of_run),
        table.get("pooled", False),
    )


def _names(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _factor(name: str, value: float | str) -> float:
    """A number, or a fraction written out to show where it comes from: ``"1500/1448"``."""
    if isinstance(value, str):
        numerator, _, denominator = value.partition("/")
        try:
            return float(numerator) / float(denominator)
        except (ValueError, ZeroDivisionError):
            raise ValueError(f'metrics.{name}: factor: got "{value}"; must be a number or "1500/1448"') from None
    return float(value)


def _experiment(table: dict[str, Any], folder: Path) -> Published:
    return Published(
        id=table["id"],
        title=table.get("title", ""),
        parts=tuple(Part(_inside(folder, part["file"]), part.get("at", {})) for part in table.get("parts", [])),
        arms=table.get("arms", "{scheme}"),
        axes=table.get("axes", {}),
        aliases={name: Alias(alias["axis"], alias["factor"]) for name, alias in table.get("aliases", {}).items()},
        constants=table.get("constants", {}),
        unavailable=table.get("unavailable", ""),
        runs_of=_names(table.get("runs_of", ())),
    )


def _inside(folder: Path, name: str) -> Path:
    """A file of the study's folder: what lies elsewhere is none of its business."""
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f'parts: got file = "{name}"; must be inside of the study\'s folder')
    return path


def _elsewhere(table: dict[str, Any]) -> Elsewhere:
    return Elsewhere(**{**table, **{key: _names(table.get(key, ())) for key in ("without", "departures")}})


def _claims(table: dict[str, Any]) -> tuple[str, ...]:
    """The claims that a reading is of: one, or several that are read alike."""
    return _names(table["claim"])


def _reading(table: dict[str, Any]) -> Reading:
    fields = {key: value for key, value in table.items() if key != "claim"}
    for key in ("relations", "cells", "experiments", "schemes"):
        if key in fields:
            fields[key] = tuple(fields[key])
    return Reading(**fields)
