"""Recorded packets of a queue as logs of mahimahi's mm-link, for the scripts that read them.

A file per run and queue. Each line begins with whole milliseconds since the run's beginning:

- ``TIME + BYTES``: a packet arrived
- ``TIME - BYTES DELAY``: it left after so many milliseconds
- ``TIME d PACKETS BYTES``: it was dropped
- ``TIME # BYTES``: the link could have sent so much

As mahimahi does, a packet counts four bytes beyond its IP length.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from sojourn import _core
from sojourn.export.events import Integers, cells_of, tables
from sojourn.files import bounded
from sojourn.files.storage import Staging, file_name
from sojourn.frame.results import Results, Run
from sojourn.frame.series import FATES
from sojourn.frame.swept import links_in, number_of

_MS = 1_000_000
_TUN = 4  # bytes that mahimahi counts for a packet beyond its IP length
_OPPORTUNITY = 1500
_CAME, _COULD, _LEFT = range(3)


def stage(results: Results, staging: Staging) -> list[Path]:
    """Stages the logs. Raises ExperimentError if no packets were recorded."""
    written = []
    for run, link, way, table in tables(results):
        name = file_name(f"{run.label}-seed{run.seed}-link{link}-{way}.log")
        written.append(staging.add_text(name, log(results, run, (link, way), table)))
    return written


def log(results: Results, run: Run, hop: tuple[int, str], table: Mapping[str, Integers], name: str = "") -> str:
    """A queue's packets as a log. ``name``: what the first line says of the trace."""
    link, way = hop
    # Empty if the results lack experiment.json.
    cells = cells_of(results)
    described = links_in(cells[0])[link] if cells else {}
    of_way = described if way == "down" else described.get("up", {})
    beyond = int(number_of(described.get("overhead", "14 B")))
    return "\n".join(
        [
            f"# mahimahi mm-link ({way.capitalize()}link) [{name or run.label}] > sojourn {_core.version}",
            f"# queue: {run.label}",
            "# init timestamp: 0",
            "# base timestamp: 0",
            *_lines(table, _TUN - beyond, of_way.get("rate")),
            "",
        ]
    )


def _lines(table: Mapping[str, Integers], beyond: int, rate: object) -> Iterator[str]:
    left, fate, sizes = table["time_ns"], table["fate"], table["bytes"] + beyond
    came = left - table["sojourn_ns"]
    is_sent = fate <= FATES["marked"]
    is_settled = fate <= FATES["dropped, reason unknown"]
    could = np.array(list(_opportunities(rate, int(left.max()) // _MS)), dtype=np.int64)
    packets = np.arange(left.size)
    times = np.concatenate([came, could * _MS, left[is_settled]])
    kinds = np.repeat([_CAME, _COULD, _LEFT], [came.size, could.size, int(is_settled.sum())])
    which = np.concatenate([packets, np.full(could.size, -1), packets[is_settled]])
    for event in np.lexsort((kinds, times)):
        ms, packet = int(times[event]) // _MS, which[event]
        if kinds[event] == _CAME:
            yield f"{ms} + {sizes[packet]}"
        elif kinds[event] == _COULD:
            yield f"{ms} # {_OPPORTUNITY + _TUN}"
        elif is_sent[packet]:
            yield f"{ms} - {sizes[packet]} {ms - int(came[packet]) // _MS}"
        else:
            yield f"{ms} d 1 {sizes[packet]}"


def _opportunities(rate: object, end_ms: int) -> Iterator[int]:
    """When a link could send a packet, until the end: as its trace says, if the file is still there, or by its rate."""
    if isinstance(rate, dict):
        path = Path(rate["trace"])
        times = [int(line) for line in bounded.read_text(path, bounded.LARGEST_TEXT).split()] if path.is_file() else []
        begin = 0
        while times and begin <= end_ms:
            yield from (begin + ms for ms in times if begin + ms <= end_ms)
            begin += times[-1]
    elif rate is not None:
        steps: list[list[str]] = rate if isinstance(rate, list) else [["0 s", str(rate)]]
        begins = [number_of(begin) for begin, _ in steps]
        of_ms = [number_of(of) / 8e3 / _OPPORTUNITY for _, of in steps]
        credit = 0.0
        for ms in range(1, end_ms + 1):
            credit += of_ms[bisect_left(begins, ms) - 1]
            yield from [ms] * int(credit)
            credit %= 1.0
