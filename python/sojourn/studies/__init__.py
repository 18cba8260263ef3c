"""Published studies as data: claims, experiments and figures of a paper, re-run and compared.

- ``available``, ``find``: the available studies
- ``run_study``: runs one and judges every claim of its paper
- ``Verdict``: reproduced, not reproduced, not comparable, not run

A study is a folder with ``claims.toml`` (the published results), ``study.toml`` (the recipe) and experiment files; it
has no code of its own.
"""

from sojourn.studies.catalogue import available, find
from sojourn.studies.claims import Verdict
from sojourn.studies.recipe import Study
from sojourn.studies.runner import StudyResults, run_study
from sojourn.studies.verdict import Judgement

__all__ = ["Judgement", "Study", "StudyResults", "Verdict", "available", "find", "run_study"]
