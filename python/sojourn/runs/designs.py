"""Designs of experiments: the points of a ``[sweep]`` with ranges.

SALib samples them (Iwanaga, Usher and Herman 2022).
"""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sojourn import _core
from sojourn.frame.swept import as_toml

POINTS = "sweep.points"
"""The key that holds the values of the cells, in their order."""
_DIGITS = 4
"""Significant digits of a sampled value; six if the range is narrower than a factor of two."""


def with_points(file: str | Path, overrides: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The overrides, and the points of the file's design if it has one, always the same with a version of SALib.

    Raises ExperimentError if the file, an override or the design is wrong, or SALib is not installed.
    """
    design = json.loads(_core.design_json(str(file), list(overrides)))
    if design is None:
        return list(overrides)
    rows = _sample(design["kind"], len(design["keys"]), design["samples"], design["seed"])
    columns = (
        f"{as_toml(key['key'])} = [{', '.join(_written(key, row[index]) for row in rows)}]"
        for index, key in enumerate(design["keys"])
    )
    return [*overrides, (POINTS, f"{{ {', '.join(columns)} }}")]


def salib(what: str) -> Any:
    """Imports a module of SALib, which has no type annotations. Raises ExperimentError if it is not installed."""
    try:
        return importlib.import_module(f"SALib.{what}")
    except ImportError:
        raise _core.ExperimentError("design: needs the package SALib: pip install 'sojourn[designs]'") from None


def problem(keys: Sequence[str]) -> dict[str, object]:
    """The factors in SALib's form, each from 0 to 1."""
    return {"num_vars": len(keys), "names": list(keys), "bounds": [[0.0, 1.0]] * len(keys)}


def _sample(kind: str, keys: int, samples: int, seed: int) -> list[list[float]]:
    """The points of a design, from 0 to 1: ``samples`` × (``keys`` + 2) of a Sobol design, ``samples`` of another."""
    name, options = ("sobol", {"calc_second_order": False}) if kind == "sobol" else ("latin", {})
    drawn = salib(f"sample.{name}").sample(problem([str(key) for key in range(keys)]), samples, seed=seed, **options)
    rows: list[list[float]] = drawn.tolist()
    return rows


def _written(key: dict[str, Any], at: float) -> str:
    """The value of a key at a point from 0 to 1, as TOML."""
    if "values" in key:
        values = key["values"]
        return as_toml(values[min(int(at * len(values)), len(values) - 1)])
    low, high = key["from"], key["to"]
    if key["whole"] and not key["log"]:
        # The first and the last number have as much room as the others.
        low, high = low - 0.5, high + 0.5
    value = low * (high / low) ** at if key["log"] else low + (high - low) * at
    if key["whole"]:
        value = min(max(float(math.floor(value + 0.5)), key["from"]), key["to"])
        text = f"{value:.0f}"
    else:
        digits = _DIGITS if key["from"] * 2.0 <= key["to"] or key["from"] <= 0.0 else _DIGITS + 2
        value = min(max(float(f"{value:.{digits}g}"), key["from"]), key["to"])
        text = f"{value:.12f}".rstrip("0").rstrip(".")  # without an exponent
    return as_toml(text + key["unit"]) if key["unit"] else text
