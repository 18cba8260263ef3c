"""Finds studies, in the package or in any folder given by path."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import resources
from pathlib import Path

from sojourn._core import ExperimentError
from sojourn.studies.recipe import Study, load_study


def available() -> list[Study]:
    """The studies that come with the package, by name."""
    root = Path(str(resources.files("sojourn") / "_studies"))
    return [load_study(path.parent) for path in sorted(root.glob("*/study.toml"))]


def find(name: str) -> Study:
    """Finds a study by name, or by the path of its folder.

    Raises ExperimentError if there is no such study, or its recipe has an error.
    """
    known = {study.name: study for study in available()}
    if name in known:
        return known[name]
    folder = Path(name)
    if (folder / "study.toml").is_file():
        try:
            return load_study(folder.resolve())
        except (ValueError, OSError) as error:
            raise ExperimentError(f"study: {error}") from None
    near = get_close_matches(name, known, n=1)
    hint = f'; did you mean "{near[0]}"?' if near else ""
    raise ExperimentError(f'study: got "{name}"; must be one of {", ".join(known)} or a study\'s folder{hint}')
