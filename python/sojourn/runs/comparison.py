"""The experiment behind ``compare``: one group of bulk flows, one arm per queue."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sojourn._core import ExperimentError, Plan
from sojourn.frame.swept import as_file


def compare_plan(queues: Sequence[str], **options: Any) -> Plan:
    """Returns the plan that ``compare`` runs, with the same options. Raises ExperimentError if one is not accepted."""
    if not queues:
        raise ExperimentError("compare: got no queue; must name at least one discipline, see sojourn list aqm")
    value = {key: option if isinstance(option, int) else str(option) for key, option in options.items()}
    # Flows that start at the same time would make the runs of a deterministic queue equal for all seeds.
    traffic = {"kind": "bulk", "start": "0..100 ms"} | {key: value[key] for key in ("flows", "tcp", "rtt", "ecn")}
    text = as_file(
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
    try:
        # Bytes of a command line that are no text have no place in one either.
        return Plan.read_text(text.encode(errors="replace").decode(), "compare", overrides_for_queues(queues))
    except ExperimentError as error:
        override = re.match(r"--set queue\.(\d+)\.(.*)", str(error), re.DOTALL)
        if override:
            message = f'compare: in queue "{queues[int(override[1])]}": {override[2]}'
        else:
            message = re.sub(r"^compare:\d+:", "compare:", str(error))
        raise ExperimentError(message) from None


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
