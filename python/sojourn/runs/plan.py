"""Reads an experiment file: its runs, to be made here or elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from sojourn import _core
from sojourn.files import bounded
from sojourn.frame.swept import as_in_file
from sojourn.runs.backends import Backend, backend_of
from sojourn.runs.designs import with_points


def plan(file: str | Path, *, set: Mapping[str, object] | None = None) -> _core.Plan:
    """Returns the runs of an experiment file, to be run elsewhere: ``len(plan)``, ``plan[0]``, ``for spec in plan``.

    Parameters are those of ``run``.

    Raises
    ------
    ExperimentError
        The file, a key or a value has an error.

    Examples
    --------
    >>> import pickle
    >>> import sojourn as sj
    >>> spec = sj.plan("examples/home.toml")[0]
    >>> pickle.loads(pickle.dumps(spec)) == spec
    True
    """
    return read_plan(file, override_pairs(set or {}))


def read_plan(
    file: str | Path, overrides: Sequence[tuple[str, str]] = (), *, backend: str | Backend = "sim"
) -> _core.Plan:
    """Reads and checks an experiment file for a backend.

    Raises ExperimentError if the file or an override has an error, or the backend does not exist or does not support
    the experiment, and RunError if the backend's requirements are not met.
    """
    where = backend_of(backend)
    with contextlib.suppress(OSError):  # The reader reports files that cannot be read.
        bounded.check(Path(file), bounded.LARGEST_TEXT)
    plan = _core.Plan.read_file(str(file), with_points(file, overrides))
    where.check(plan)
    return plan


def override_pairs(overrides: Mapping[str, object]) -> list[tuple[str, str]]:
    """Values by key, as the pairs of texts that a file would have."""
    return [(key, as_in_file(value)) for key, value in overrides.items()]


def one_of(plan: _core.Plan, label: str | None) -> _core.RunSpec:
    """The first run of the arm with this label, by default of the first arm.

    Raises ExperimentError if no arm has this label.
    """
    labels = dict.fromkeys(of for _, _, _, of in plan.jobs)
    for index, (_, _, _, of) in enumerate(plan.jobs):
        if label in (None, of):
            return plan[index]
    raise _core.ExperimentError(f'queue: got "{label}"; must be one of {", ".join(labels)}')
