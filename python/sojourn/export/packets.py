"""The recorded packets of every run and queue, for formats of events."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from sojourn._core import ExperimentError
from sojourn.frame.arrow import numbers
from sojourn.frame.results import Results, Run

Integers = npt.NDArray[np.int64]
_TEXTS = ("label", "run", "seed")


def tables(results: Results) -> Iterator[tuple[Run, int, str, dict[str, Integers]]]:
    """Each queue of each run: the link's number, the direction, and the columns of its packets.

    Raises ExperimentError if no packets were recorded.
    """
    has_any = False
    for run in results.runs:
        packets = run.packets()
        if packets is None:
            continue
        table = {name: numbers(packets, name).astype(np.int64) for name in packets.column_names if name not in _TEXTS}
        for link, direction in sorted(set(zip(table["link"].tolist(), table["direction"].tolist(), strict=True))):
            here = (table["link"] == link) & (table["direction"] == direction)
            has_any = True
            yield run, link, "up" if direction else "down", {name: column[here] for name, column in table.items()}
    if not has_any:
        raise ExperimentError("export: no packets were recorded; needs record.packets = true")
