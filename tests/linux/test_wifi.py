"""The kernel's Wi-Fi queues above a radio of ours: needs a kernel of ``validation/wifi_radio/build.py``."""

from __future__ import annotations

import json
import re
import struct

import pytest

from sojourn import _core
from sojourn.linux import kernel, machine, programs
from sojourn.linux.programs import LinuxError

FOLDER = kernel.built_directory() / "wifi"
BUILT = [made for made in map(kernel.built_in, FOLDER.glob("[0-9]*")) if made is not None]
needs_radio = pytest.mark.skipif(
    not BUILT or programs.agent() is None, reason="needs a kernel: python validation/wifi_radio/build.py"
)
ARRIVAL, DONE, TRY = 1, 6, 11
"""A packet enters the interface, a transmission is over, and somebody begins to send, in the radio's log."""
RECORD = struct.Struct("=QBBBBHHIIII")
OPTIONS = ["mac80211_hwsim.radios=0"]


def job(**changes: object) -> str:
    """Two stations, one of them slow, with more traffic than the air carries."""
    flow = {"bytes": 1500, "every_ns": 250_000, "stop_ns": 10**9}
    told = {
        "seed": 1,
        "log": "sojourn_wifi",
        "stations": [{"mcs": 7}, {"mcs": 0}],
        "flows": [flow | {"station": 0}, flow | {"station": 1, "start_ns": 13_000}],
        "duration_ns": 10**9,
    }
    return json.dumps(told | changes)


def airtimes(answer: bytes) -> dict[int, int]:
    """Of each station in µs, from the radio's log."""
    (length,) = struct.unpack_from("<Q", answer)
    figures, sums = json.loads(answer[8 : 8 + length]), {1: 0, 2: 0}
    for record in RECORD.iter_unpack(answer[8 + length :]):
        if record[1] == DONE:
            sums[record[2]] += record[8]
    for (_, airtime), station in zip(figures["stations"], sums, strict=True):
        counted = re.search(r"TX: (\d+) us", airtime)
        assert counted is not None
        assert int(counted[1]) == sums[station]
    return sums


@needs_radio
def test_stations_share_airtime_and_the_same_seed_gives_the_same_bytes():
    one, same = (machine.run(job(), 0, BUILT[0], [], _core.Monitor(), radio=OPTIONS) for _ in range(2))
    assert one == same
    fast, slow = airtimes(one).values()
    assert abs(fast - slow) < 0.02 * (fast + slow)


@needs_radio
def test_every_datagram_enters_from_the_first_on():
    answer = machine.run(job(), 0, BUILT[0], [], _core.Monitor(), radio=OPTIONS)
    (length,) = struct.unpack_from("<Q", answer)
    records = RECORD.iter_unpack(answer[8 + length :])
    entered = [(record[2], record[7]) for record in records if record[1] == ARRIVAL]
    assert sorted(entered) == [(station, number) for station in (1, 2) for number in range(4000)]


@needs_radio
def test_airtime_fairness_alone_keeps_a_slow_station_from_the_airtime_of_full_aggregates():
    """The fast station's transmissions always have all frames that the radio takes."""
    told = job(stations=[{"mcs": 15}, {"mcs": 0}])
    options = [*OPTIONS, "sojourn_wifi.frames=8"]
    answers = [
        machine.run(told, 0, BUILT[0], [], _core.Monitor(), radio=[*options, *more])
        for more in ([], ["sojourn_wifi.fairness=0"])
    ]
    shares = []
    for answer in answers:
        (length,) = struct.unpack_from("<Q", answer)
        sums = dict.fromkeys((1, 2), 0)
        for record in RECORD.iter_unpack(answer[8 + length :]):
            if record[1] == DONE:
                sums[record[2]] += record[8]
        shares.append(sums[2] / sum(sums.values()))
    assert shares == pytest.approx([0.5, 0.8], abs=0.02)


@needs_radio
def test_senders_contend_as_the_standard_has_it():
    """Two stations send bulk data, and the access point acknowledges: EDCA of IEEE 802.11-2020, §10.23.2."""
    connection = {"congestion_control": "cubic", "up": True, "start_ns": 10**8}
    told = job(
        stations=[{"mcs": 7}, {"mcs": 7}],
        flows=[],
        connections=[connection | {"station": station} for station in range(2)],
        wire_ns=10**7,
        duration_ns=4 * 10**9,
    )
    radio = [*OPTIONS, "sojourn_wifi.edca=1", "sojourn_wifi.peers=2"]
    answers = [
        machine.run(told, 0, BUILT[0], [], _core.Monitor(), radio=[*radio, f"sojourn_wifi.seed={seed}"])
        for seed in (1, 1, 2)
    ]
    assert answers[0] == answers[1] != answers[2]
    (length,) = struct.unpack_from("<Q", answers[0])
    tries = [record for record in RECORD.iter_unpack(answers[0][8 + length :]) if record[1] == TRY]
    windows: dict[tuple[int, int], int] = {}
    repeated = 0
    for at, _, station, _, before, frames, slots, senders, _, up, _ in tries:
        sender = station if up else 0
        # The window is 15 at first and twice as large and one after each failure; the access point's is at most 63.
        assert slots <= min(16 * 2**before - 1, 1023 if up else 63)
        if before:
            assert windows.pop((sender, before)) == frames, "what collided is sent again as it was"
            repeated += 1
        if senders > 1:
            windows[sender, before + 1] = frames
            assert sum(other[0] == at for other in tries) == senders
    assert repeated > 50
    assert len({record[6] for record in tries if not record[4]}) == 16, "all slots from 0 to 15 are drawn"


@needs_radio
def test_a_flow_to_no_station_fails_the_run():
    told = job(flows=[{"station": 2, "bytes": 1500, "every_ns": 1, "stop_ns": 1}])
    with pytest.raises(LinuxError, match="flow 0: no such station"):
        machine.run(told, 0, BUILT[0], [], _core.Monitor(), radio=OPTIONS)
