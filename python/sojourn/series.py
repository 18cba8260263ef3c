"""Time series and per-packet values out of the recorded tables, in the units of figures."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sojourn.results import Run
from sojourn.statistics import FloatArray


class Series(NamedTuple):
    """Values over time."""

    t_s: FloatArray
    """Where each value was taken, in seconds of simulated time."""
    value: FloatArray


def goodput(run: Run) -> Series | None:
    """Goodput of all flows together in bit/s, at the middle of each bin; None if no series was recorded."""
    table = run.flow_series()
    if table is None:
        return None
    start_ns, which = np.unique(table["t_ns"].to_numpy(), return_inverse=True)
    total = np.bincount(which, weights=table["goodput_bps"].to_numpy().astype(np.float64))
    return Series(_middle_s(start_ns), total)


def sojourn(run: Run) -> Series | None:
    """Mean sojourn time in ms of the packets that left the queue in each bin; None if no series was recorded."""
    table = run.queue_series()
    if table is None:
        return None
    return Series(_middle_s(table["t_ns"].to_numpy()), table["sojourn_mean_ms"].to_numpy().astype(np.float64))


def flow_sojourn(run: Run, *, traffic: int, flow: int) -> Series | None:
    """Sojourn time in ms of every packet of one flow, by departure; None if packets were not recorded."""
    table = run.packets()
    if table is None:
        return None
    own = (table["traffic"].to_numpy() == traffic) & (table["flow"].to_numpy() == flow)
    return Series(table["t_ns"].to_numpy()[own] / 1e9, table["sojourn_ns"].to_numpy()[own] / 1e6)


def _middle_s(start_ns: npt.NDArray[np.generic]) -> FloatArray:
    start_s = start_ns.astype(np.float64) / 1e9
    half_s = (start_s[1] - start_s[0]) / 2 if start_s.size > 1 else 0.0
    return start_s + half_s
