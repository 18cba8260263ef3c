"""A study's recipe, study.toml: which files stand for which experiment, what is measured, what is drawn."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from sojourn.studies.claims import Claim, load_claims
from sojourn.studies.grid import Alias, AxisValue
from sojourn.studies.measures import SOURCES, Measure
from sojourn.studies.measures import Part as RunPart


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


@dataclass(frozen=True)
class FigureSpec:
    """A figure to draw."""

    name: str
    title: str
    kind: str
    """``box``: boxes over ``x``, one panel per value of ``panels``; ``series``: a metric over time."""
    experiment: str
    metric: str
    x: str = ""
    panels: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    whiskers: Sequence[int] = (10, 90)
    """Percentiles that a box's whiskers reach to."""
    of_runs: bool = False
    """A box is of one number per run, not of a distribution within each."""
    from_zero: bool = True
    """Whether the vertical axis begins at zero."""

    def is_called(self, name: str) -> bool:
        """Whether a user means this figure: ``fig3``, ``Fig 3``, ``3``; ``3`` also means ``fig3a``."""
        wanted = name.lower().replace(" ", "").removeprefix("fig").removeprefix("ure")
        own = self.name.removeprefix("fig")
        return own == wanted or own.rstrip("abcd") == wanted


@dataclass(frozen=True)
class Elsewhere:
    """What a backend other than the simulator needs changed, because it lacks something that the study has."""

    set: Mapping[str, str] = field(default_factory=dict)
    """What is overridden in every experiment file."""
    quick: Mapping[str, str] = field(default_factory=dict)
    """What ``--quick`` overrides further there."""
    constants: Mapping[str, AxisValue] = field(default_factory=dict)
    """What is different there of the experiments' constants."""
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
    recipe = tomllib.loads(path.read_text(encoding="utf-8"))
    try:
        return Study(
            name=folder.name,
            folder=folder,
            title=recipe["title"],
            source=recipe["source"],
            quick=recipe.get("quick", {}),
            measures={name: _measure(name, table) for name, table in recipe.get("metrics", {}).items()},
            derived=recipe.get("derived", {}),
            experiments=tuple(_experiment(table, folder) for table in recipe.get("experiment", [])),
            readings={id_: _reading(table) for table in recipe.get("reading", []) for id_ in _claims(table)},
            figures=tuple(FigureSpec(**table) for table in recipe.get("figure", [])),
            labels=recipe.get("labels", {}),
            elsewhere={name: _elsewhere(table) for name, table in recipe.get("backend", {}).items()},
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None


def _measure(name: str, table: dict[str, Any]) -> Measure:
    if table["from"] not in SOURCES:
        raise ValueError(f"metrics.{name}: got from = {table['from']!r}; must be one of {', '.join(SOURCES)}")
    of_run = {key: table[key] for key in ("traffic", "direction", "from_s", "to_s", "column", "reason") if key in table}
    return Measure(
        name,
        table["from"],
        table.get("unit", "1"),
        table.get("label", name),
        _factor(table.get("factor", 1.0)),
        plus if isinstance(plus := table.get("plus", ()), dict) else dict.fromkeys(_names(plus), 1.0),
        table.get("at_least"),
        table.get("tell", "share"),
        RunPart(**of_run),
    )


def _names(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _factor(value: float | str) -> float:
    """A number, or a fraction written out to show where it comes from: ``"1500/1448"``."""
    if isinstance(value, str):
        numerator, _, denominator = value.partition("/")
        return float(numerator) / float(denominator)
    return float(value)


def _experiment(table: dict[str, Any], folder: Path) -> Published:
    return Published(
        id=table["id"],
        title=table.get("title", ""),
        parts=tuple(Part(folder / part["file"], part.get("at", {})) for part in table.get("parts", [])),
        arms=table.get("arms", "{scheme}"),
        axes=table.get("axes", {}),
        aliases={name: Alias(alias["axis"], alias["factor"]) for name, alias in table.get("aliases", {}).items()},
        constants=table.get("constants", {}),
        unavailable=table.get("unavailable", ""),
        runs_of=_names(table.get("runs_of", ())),
    )


def _elsewhere(table: dict[str, Any]) -> Elsewhere:
    return Elsewhere(**{**table, "departures": _names(table.get("departures", ()))})


def _claims(table: dict[str, Any]) -> tuple[str, ...]:
    """The claims that a reading is of: one, or several that are read alike."""
    return _names(table["claim"])


def _reading(table: dict[str, Any]) -> Reading:
    fields = {key: value for key, value in table.items() if key != "claim"}
    for key in ("relations", "cells", "experiments", "schemes"):
        if key in fields:
            fields[key] = tuple(fields[key])
    return Reading(**fields)
