"""Published studies as data: claims, experiments and figures of a paper, re-run and compared.

- ``available``, ``find``: the available studies
- ``run_study``: runs one and judges every claim of its paper
- ``Verdict``: reproduced, not reproduced, not comparable, not run

A study is a folder with ``claims.toml`` (the published results), ``study.toml`` (the recipe) and experiment files; it
has no code of its own.
"""

from importlib import resources
from pathlib import Path
from typing import Literal

from sojourn._core import ExperimentError
from sojourn.files.typed import near
from sojourn.studies.claims import Verdict
from sojourn.studies.recipe import Study, load_study
from sojourn.studies.runner import StudyResults, run_study
from sojourn.studies.verdict import Judgement

__all__ = ["Judgement", "Study", "StudyResults", "Verdict", "available", "find", "run_study"]

Kind = Literal["study", "suite"]


def folders(kind: Kind) -> dict[str, Path]:
    """The folders that come with the package, by name."""
    packaged = Path(str(resources.files("sojourn"))) / {"study": "_studies", "suite": "_suites"}[kind]
    return {path.parent.name: path.parent for path in sorted(packaged.glob(f"*/{kind}.toml"))}


def folder_of(given: str, kind: Kind, option: str) -> Path:
    """The folder of a name or a path; ``option`` is how it was given. Raises ExperimentError if there is none."""
    known = folders(kind)
    if given in known:
        return known[given]
    if (Path(given) / f"{kind}.toml").is_file():
        return Path(given).resolve()
    must = f"one of {', '.join(known)} or a {kind}'s folder{near(given, known)}"
    raise ExperimentError(f'{option}: got "{given}"; must be {must}')


def available() -> list[Study]:
    """The studies that come with the package, by name."""
    return list(map(load_study, folders("study").values()))


def find(name: str) -> Study:
    """The study of this name, or of the folder at this path. Raises ExperimentError if there is none."""
    folder = folder_of(name, "study", "study")
    try:
        return load_study(folder)
    except (ValueError, OSError) as error:
        raise ExperimentError(f"study: {error}") from None
