"""The section about an experiment, from summary.json and the files beside it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from sojourn.figure.plots import Drawing
from sojourn.figure.style import content
from sojourn.files import typed
from sojourn.frame.results import Results
from sojourn.page.flows import flows_sheet
from sojourn.page.html import Picture, picture
from sojourn.page.pairs import paired_groups_sheet, paired_sheet
from sojourn.page.sheet import Sheet, shortened
from sojourn.page.tables import (
    groups_sheet,
    inner_sheet,
    overview_sheet,
    repeats_of,
    results_sheet,
    stations_sheet,
    swept_keys,
)
from sojourn.store.folder import load

NEEDS = "summary.json"
WIDE_IN = 5.3
"""Wider figures have a drawing of their own for narrow screens."""
MOST_ROWS = 100
"""Most rows of a table in the page."""
PICTURES_SIZE = 1_000_000
"""Size of figures, in characters, above which the figures of further cells of a sweep are omitted."""


def context(folder: Path) -> dict[str, Any]:
    """The template's variables for an experiment's results."""
    results = load(folder)
    summary = results.summary
    _, repeats = repeats_of(results)
    baseline = results.arms[0].label if results.arms else ""
    rivals = {arm.label for arm in results.arms} - {baseline}
    cells = len(results.by_cell())
    overview = _pictures(results.plot.overviews())
    galleries = _galleries(results, _size(overview))
    is_paired = rivals and repeats > 1
    sheets = (
        results_sheet(results),
        paired_sheet(results, baseline) if is_paired else None,
        groups_sheet(results),
        paired_groups_sheet(results, baseline) if is_paired else None,
        stations_sheet(results),
        inner_sheet(results),
    )
    return {
        "template": "experiment.html",
        "title": summary["experiment"],
        "subtitle": "Experiment",
        "facts": _facts(results),
        "partial": f"Stopped early: {len(results.runs)} of {summary.get('planned_runs')} runs."
        if results.partial
        else "",
        "glance": _bounded(overview_sheet(results)),
        "overview": overview,
        "sheets": [_bounded(sheet) for sheet in sheets if sheet is not None],
        "flows": _bounded(flows_sheet(results), where="all flows are in summary.json"),
        "galleries": galleries,
        "cells_left_out": cells - len(galleries),
        "settings": _settings(results, folder),
    }


def _bounded(sheet: Sheet | None, where: str = "all are in summary.csv") -> Sheet | None:
    return None if sheet is None else shortened(sheet, MOST_ROWS, where)


def _facts(results: Results) -> dict[str, str]:
    """The facts that identify the runs."""
    summary = results.summary
    seeds = sorted({run.seed for run in results.runs})
    facts = {
        "sojourn": summary["sojourn"],
        "backend": summary["backend"],
        "runs": _runs(results),
        "seeds": ranges(seeds),
        "simulated": f"{sum(run.summary['simulated_s'] for run in results.runs):,.0f} s",
        "events": f"{sum(run.summary['events'] for run in results.runs):,}",
    }
    if results.resolved_json is not None:
        facts["SHA-256 of experiment.json"] = hashlib.sha256(results.resolved_json.encode()).hexdigest()
    return facts


def _runs(results: Results) -> str:
    """The number of runs, and what they are the product of."""
    arms, (_, repeats) = len(results.arms), repeats_of(results)
    # A case may have queues of its own.
    queues = max(Counter(str(arm.set) for arm in results.arms).values(), default=0)
    keys = swept_keys(results)
    cases = len({arm.set["case"] for arm in results.arms}) if "case" in keys else 0
    cells = len({str(arm.set | {"case": ""}) for arm in results.arms}) if len(keys) > bool(cases) else 0
    parts = [f"{queues} queue{'s' if queues > 1 else ''}"]
    parts += [f"{cases} cases"] if cases else []
    parts += [f"{cells} combinations of swept values"] if cells else []
    times = f"{repeats} repeats" if len(results.runs) == arms * repeats else f"up to {repeats} repeats"
    text = f"{len(results.runs)}: {' × '.join(parts)}"
    return f"{text}, {times} each" if repeats > 1 else text


def ranges(numbers: Sequence[int]) -> str:
    """``1–6, 9`` for 1, 2, 3, 4, 5, 6, 9."""
    parts = []
    for _, members in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        run = [number for _, number in members]
        parts.append(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}")
    return ", ".join(parts)


def _settings(results: Results, folder: Path) -> dict[str, dict[str, str]]:
    """The experiment as run, keys with their values by part: every key, from the first cell of the sweep."""
    if results.resolved_json is None:
        return {}
    cells: list[dict[str, Any]] = typed.read_json(folder / "experiment.json")
    cell = cells[0]
    swept: dict[str, list[str]] = {}
    for one in cells:
        for key, value in one.get("set", {}).items():
            if str(value) not in swept.setdefault(key, []):
                swept[key].append(str(value))
    settings = {"sweep": {key: ", ".join(values) for key, values in swept.items()}} if swept else {}
    settings |= _cases(cells)
    for name in ("experiment", "link", "queue", "traffic"):
        if isinstance(cell.get(name), dict):
            settings[name] = _plain(cell[name], [name], swept)
            continue
        for index, part in enumerate(cell.get(name, [])):
            title = part.get("label") or part.get("name") or part.get("kind") or name
            # A link and a named group can be swept by name or by index.
            names = [f"{name}.{index}", f"{name}.{part.get('name')}"]
            settings[f"{name} {index}: {title}"] = _plain(part, names, swept)
    return settings


def _cases(cells: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """What each ``[[case]]`` sets otherwise than the first one."""
    first: dict[str, Mapping[str, Any]] = {}
    for cell in cells:
        first.setdefault(str(cell.get("set", {}).get("case", "")), cell)
    base, *others = first.items()
    whole = _leaves(base[1])
    found = {}
    for label, cell in others:
        own = _leaves(cell)
        changed = {key: _value(own.get(key, "not given")) for key in {**whole, **own} if own.get(key) != whole.get(key)}
        found[f"case: {label}, where it differs from {base[0]}"] = changed
    return found


def _leaves(value: Any, path: str = "") -> dict[str, Any]:
    """The values of a document by dotted keys; entries of lists with names by these."""
    if isinstance(value, Mapping):
        inner = value.items()
    elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        inner = {str(one.get("name", index)): one for index, one in enumerate(value)}.items()
    else:
        return {path: value}
    return {
        key: leaf
        for name, one in inner
        if path or name != "set"
        for key, leaf in _leaves(one, f"{path}.{name}".strip(".")).items()
    }


def _plain(part: Mapping[str, Any], names: Sequence[str], swept: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Keys and values as text; a swept key, under any of its names, does not show the value of one cell."""
    return {
        key: "swept" if any(f"{name}.{key}" in swept for name in names) else _value(value)
        for key, value in part.items()
        if value not in (None, "")
    }


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {_value(inner)}" for key, inner in value.items())
    return str(value)


def _galleries(results: Results, taken: int) -> dict[str, list[Picture]]:
    """The figures with a line, box or mark per arm, by cell; of a sweep those of the first cells, up to a limit."""
    galleries: dict[str, list[Picture]] = {}
    size = taken
    for index, (name, cell) in enumerate(results.by_cell().items()):
        pictures = _pictures(cell.plot.per_arm(), str(index or ""))
        size += _size(pictures)
        if galleries and size > PICTURES_SIZE:
            break
        galleries[name] = pictures
    return galleries


def _size(pictures: Sequence[Picture]) -> int:
    return sum(len(one.source) + len(one.narrow) for one in pictures)


def _pictures(drawings: Iterable[Drawing], suffix: str = "") -> list[Picture]:
    pictures = []
    for one in drawings:
        drawn = one.draw()
        # On a phone the letters of a wide figure would be too small.
        narrow = partial(content, one.draw(width="column")) if drawn.get_figwidth() > WIDE_IN else None
        pictures.append(picture(f"{one.name}{suffix}", one.caption, partial(content, drawn), narrow))
    return pictures
