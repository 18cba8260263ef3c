"""Replays recorded queues through disciplines, to test whether they send the same packets at the same times."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NotRequired, TypeAlias, TypedDict, cast

from sojourn import _core
from sojourn.files import bounded
from sojourn.frame.later import np, npt
from sojourn.runs.plan import override_pairs

Columns: TypeAlias = "dict[str, npt.NDArray[np.generic]]"
"""Columns by name, of equal length."""


class Divergence(TypedDict):
    """The first departure of a packet other than the recorded one, or with another mark."""

    event: int
    """Row of the recording, from 0."""
    t_us: int
    expected: int
    """The packet that left in the recording."""
    got: int | None
    """The packet that the discipline sent; None if it had none."""
    expected_ce: NotRequired[bool]
    """Whether it left with CE in the recording, if that is the difference."""
    got_ce: NotRequired[bool]


class ReplayResult(TypedDict):
    """The agreement of a discipline with a recording, in packets."""

    enqueued: int
    dequeued: int
    dropped_recorded: int
    dropped_ours: int
    agree: bool
    """True if it sent the recorded packet, with its mark, at every departure and dropped as many packets."""
    marked_recorded: NotRequired[int]
    """Packets that left with CE, if the recording tells."""
    marked_ours: NotRequired[int]
    first_divergence: Divergence | None


def replay(events: str | Path, *, aqm: str, set: Mapping[str, object] | None = None) -> ReplayResult:
    """Offers a discipline the recorded arrivals and requests a packet at each recorded departure.

    Parameters
    ----------
    events
        A recording, plain or gzip: a row ``E id t_us [bytes [flow [ecn]]]`` per arrival, with increasing ids, and
        ``D id t_us [ce]`` per departure; times never decrease. A packet without bytes has 1514.
    aqm, set
        The discipline and its keys: ``{"target": "10 ms", "limit": "1000 packets"}``; also ``link.rate`` (by default
        10 Mbit/s, for disciplines that depend on it) and ``experiment.seed``.

    Raises
    ------
    ExperimentError
        The recording or a key has an error; the message names file and line, or the key.
    RunError
        A discipline in Python failed.
    """
    with _recording(events, set) as (recording, overrides):
        return cast("ReplayResult", json.loads(recording.replay(aqm, overrides)))


def follow(events: str | Path, *, aqm: str, every: str, set: Mapping[str, object] | None = None) -> Columns:
    """Shows a discipline's algorithm the recorded queue, ignoring its decisions, and reads its variables.

    For algorithms that drop arrivals: a recording of the packets that entered does not determine them packet by packet.
    Only for algorithms that govern one FIFO.

    Parameters
    ----------
    events, aqm, set
        As for ``replay``.
    every
        Interval between two samples, from the first row on: ``"100 ms"``.

    Returns
    -------
    dict of ndarray
        ``t_us`` on the recording's clock, and each variable by the name of its defining document.
    """
    with _recording(events, set) as (recording, overrides):
        return recording.follow(aqm, overrides, every)


@contextmanager
def _recording(
    events: str | Path, set: Mapping[str, object] | None
) -> Iterator[tuple[_core.Recording, list[tuple[str, str]]]]:
    """The recording, and the keys with their values as in a file. Errors name the options."""
    if set and "aqm" in set:
        raise _core.ExperimentError(f'--set aqm: got "{set["aqm"]}"; must be given by --aqm')
    path = Path(events)
    content = bounded.unzipped(bounded.read_given(path, bounded.LARGEST_EVENTS), path, bounded.LARGEST_EVENTS)
    recording = _core.Recording.read(content, str(events))
    try:
        yield recording, override_pairs(set or {})
    except _core.ExperimentError as error:
        # The queue was parsed as part of an experiment that the user does not see.
        text = re.sub(r"^--set queue\.0\.aqm: ", "--aqm: ", str(error))
        text = re.sub(r"^replay: queue\.0\.(\w+): ", r"\1: ", text)
        raise _core.ExperimentError(re.sub(r"^--set queue\.0\.", "--set ", text)) from None
