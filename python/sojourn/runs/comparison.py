"""The experiment behind ``compare``: one group of bulk flows, one arm per queue."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sojourn._core import ExperimentError
from sojourn.frame.swept import as_file


def experiment_text(queues: Sequence[str], options: Mapping[str, object]) -> str:
    """The experiment as TOML. ``options`` are the keyword arguments of ``compare``."""
    value = {key: option if isinstance(option, int) else str(option) for key, option in options.items()}
    # Flows that start at the same time would make the runs of a deterministic queue equal for all seeds.
    traffic = {"kind": "bulk", "start": "0..100 ms"} | {key: value[key] for key in ("flows", "tcp", "rtt", "ecn")}
    return as_file(
        {
            "experiment": {key: value[key] for key in ("duration", "warmup", "repeat", "seed")},
            "link": {key: value[key] for key in ("rate", "buffer")},
            "traffic": [traffic],
            "queue": [
                {"aqm": queue.partition(":")[0]} | ({"ecn": True} if options["ecn"] and "ecn=" not in queue else {})
                for queue in queues
            ],
        }
    )


def overrides_for_queues(queues: Sequence[str], command: str = "compare") -> list[tuple[str, str]]:
    """The parameters after each queue's colon, as overrides of the experiment. Messages name the ``command``."""
    overrides = []
    for index, queue in enumerate(queues):
        _, colon, parameters = queue.partition(":")
        given: set[str] = set()
        for parameter in parameters.split(",") if colon else []:
            key, equals, value = parameter.partition("=")
            if not (key.strip() and equals and value.strip()):
                raise ExperimentError(
                    f'{command}: got queue "{queue}"; must be a name or name:key=value,… like "codel:target=10ms"'
                )
            if key.strip() == "aqm":
                raise ExperimentError(
                    f'{command}: got "{parameter}" in queue "{queue}"; the discipline goes before the colon'
                )
            if key.strip() in given:
                raise ExperimentError(f'{command}: got {key.strip()} twice in queue "{queue}"; must be given once')
            given.add(key.strip())
            overrides.append((f"queue.{index}.{key.strip()}", value.strip()))
    return overrides


def as_in_compare(message: str, queues: Sequence[str]) -> str:
    """Rewrites a message about the experiment for the arguments of ``compare``, from which it was generated."""
    override = re.match(r"--set queue\.(\d+)\.(.*)", message, re.DOTALL)
    if override:
        return f'compare: in queue "{queues[int(override[1])]}": {override[2]}'
    return re.sub(r"^compare:\d+:", "compare:", message)
