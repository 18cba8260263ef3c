"""A recorded queue's arrivals and departures through a discipline."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict, cast

import numpy as np
import numpy.typing as npt

from sojourn import _core

_FRAME = 1514
_EXPERIMENT = """\
[experiment]
duration = "1 s"
[link]
rate = "10 Mbit/s"
[[queue]]
aqm = {aqm}
[[traffic]]
kind = "ping"
rtt = "1 ms"
"""


class Divergence(TypedDict):
    """A departure that went otherwise than recorded."""

    event: int
    t_us: int
    expected: int
    got: int | None


class Outcome(TypedDict):
    """How far a discipline and a recording agree."""

    enqueued: int
    dequeued: int
    dropped_recorded: int
    dropped_ours: int
    agree: bool
    first_divergence: Divergence | None


class Events(NamedTuple):
    """A recording, an element per event."""

    departs: npt.NDArray[np.uint8]
    ids: npt.NDArray[np.uint64]
    t_us: npt.NDArray[np.uint64]
    bytes: npt.NDArray[np.uint32]


def replay(file: str | Path, aqm: str, settings: Sequence[tuple[str, str]] = ()) -> Outcome:
    """Drives a discipline with recorded events.

    Parameters
    ----------
    file
        A row per event, plain or gzip: ``E id t_us [bytes]`` or ``D id t_us``.
    aqm
        The discipline.
    settings
        Its keys and their values, or dotted keys of an experiment: ``link.rate`` (default 10 Mbit/s).

    Raises
    ------
    ExperimentError
        The file, the discipline or a setting is wrong.
    """
    overrides = [(key if "." in key else f"queue.0.{key}", value) for key, value in settings]
    plan = _core.Plan.read_text(_EXPERIMENT.format(aqm=json.dumps(aqm, ensure_ascii=False)), "replay", overrides)
    return cast("Outcome", json.loads(_core.replay_json(plan, *read_events(file))))


def read_events(file: str | Path) -> Events:
    """Reads a recording.

    Raises
    ------
    ExperimentError
        It cannot be read, or a row is no event or goes back in time.
    """
    try:
        data = Path(file).read_bytes()
        text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("ascii")
    except OSError as error:
        raise _core.ExperimentError(f"{file}: cannot be read: {error.strerror or error}") from None
    except (EOFError, zlib.error):
        raise _core.ExperimentError(f"{file}: not a whole gzip file") from None
    except UnicodeDecodeError as error:
        raise _core.ExperimentError(f"{file}: not a text of events (byte {error.start})") from None
    rows = list(_rows(text.splitlines(), file))
    if not rows:
        raise _core.ExperimentError(f"{file}: no events; must have rows like E 0 1500 or D 0 1600")
    departs, ids, t_us, sizes = zip(*rows, strict=True)
    return Events(
        np.array(departs, np.uint8), np.array(ids, np.uint64), np.array(t_us, np.uint64), np.array(sizes, np.uint32)
    )


def _rows(lines: Iterable[str], file: str | Path) -> Iterable[tuple[bool, int, int, int]]:
    latest = 0
    for number, line in enumerate(lines, start=1):
        match line.split():
            case []:
                continue
            case ["E", id_, t_us] | ["D", id_, t_us] if id_.isdigit() and t_us.isdigit():
                size = _FRAME
            case ["E", id_, t_us, bytes_] if id_.isdigit() and t_us.isdigit() and bytes_.isdigit():
                size = int(bytes_)
            case _:
                raise _core.ExperimentError(
                    f'{file}:{number}: got "{line[:80]}"; must be E id t_us [bytes] or D id t_us'
                )
        if max(int(id_), int(t_us)) >= 2**63 or not 0 < size < 2**31:
            raise _core.ExperimentError(f'{file}:{number}: got "{line[:80]}"; a number is out of range')
        if int(t_us) < latest:
            raise _core.ExperimentError(f"{file}:{number}: got {t_us} us after {latest} us; time must not go back")
        latest = int(t_us)
        yield line.split()[0] == "D", int(id_), latest, size
