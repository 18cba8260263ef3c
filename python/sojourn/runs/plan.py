"""The runs of an experiment file, or of a comparison of queues, to be made here or elsewhere."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sojourn import _core
from sojourn.files import bounded
from sojourn.files.typed import must_be
from sojourn.frame.swept import as_file, as_in_file
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


def arm_of(plan: _core.Plan, label: str | None) -> list[int]:
    """The runs of the arm with this label, by default the first. Raises ExperimentError if no arm has this label."""
    arms: dict[str, list[int]] = {}
    for index, (_, _, _, of) in enumerate(plan.jobs):
        arms.setdefault(of, []).append(index)
    if label is None:
        return next(iter(arms.values()))
    must_be(label, arms, "queue")
    return arms[label]


def compare_plan(queues: Sequence[str], *, dashes: str = "", **options: Any) -> _core.Plan:
    """Returns the plan that ``compare`` runs, with the same options; messages have ``dashes`` before their names.

    Raises ExperimentError if one is not accepted.
    """
    if not queues:
        raise _core.ExperimentError("compare: got no queue; must name at least one discipline, see sojourn list aqm")
    value = {key: option if isinstance(option, int) else str(option) for key, option in options.items()}
    # Flows that start at the same time would make the runs of a deterministic queue equal for all seeds.
    traffic = {"kind": "bulk", "start": "0..100 ms"} | {key: value[key] for key in ("flows", "tcp", "rtt", "ecn")}
    experiment = {key: value[key] for key in ("duration", "warmup", "repeat", "seed")}
    link = {key: value[key] for key in ("rate", "buffer")}
    text = as_file(
        {
            "experiment": experiment,
            "link": link,
            "traffic": [traffic],
            "queue": [
                {"aqm": queue.partition(":")[0]} | ({"ecn": True} if options["ecn"] and "ecn=" not in queue else {})
                for queue in queues
            ],
        }
    )
    made_of = {
        f"{section}.{key}": dashes + key
        for section, keys in (("experiment", experiment), ("link", link), ("traffic.0", traffic))
        for key in keys
    }
    with naming_options("compare", queues, made_of):
        # Bytes of a command line that are no text have no place in one either.
        return _core.Plan.read_text(text.encode(errors="replace").decode(), "compare", overrides_for_queues(queues))


@contextlib.contextmanager
def naming_options(command: str, queues: Sequence[str], options: Mapping[str, str]) -> Iterator[None]:
    """Makes errors in an experiment of options, which no user has seen, name the options, by key, and the queues."""
    try:
        yield
    except _core.ExperimentError as error:
        text = re.sub(rf"^(--set|{command}:\d+:) ", "", str(error))
        if text == str(error):
            raise
        if queues and (of := re.match(r"queue\.(\d+)[.:] ?", text)):
            text = f'in queue "{queues[int(of[1])]}": {text[of.end() :]}'
        for key, option in options.items():
            text = text.replace(key, option)
        raise _core.ExperimentError(text if text.startswith("--") else f"{command}: {text}") from None


def overrides_for_queues(queues: Sequence[str], command: str = "compare") -> list[tuple[str, str]]:
    """The parameters after each queue's colon, as overrides of the experiment. Messages name the ``command``."""
    overrides = []
    for index, queue in enumerate(queues):
        _, colon, parameters = queue.partition(":")
        given: set[str] = set()
        for parameter in parameters.split(",") if colon else []:
            key, equals, value = parameter.partition("=")
            if not (key.strip() and equals and value.strip()):
                raise _core.ExperimentError(
                    f'{command}: got queue "{queue}"; must be a name or name:key=value,… like "codel:target=10ms"'
                )
            if key.strip() == "aqm":
                raise _core.ExperimentError(
                    f'{command}: got "{parameter}" in queue "{queue}"; the discipline goes before the colon'
                )
            if key.strip() in given:
                raise _core.ExperimentError(
                    f'{command}: got {key.strip()} twice in queue "{queue}"; must be given once'
                )
            given.add(key.strip())
            overrides.append((f"queue.{index}.{key.strip()}", value.strip()))
    return overrides
