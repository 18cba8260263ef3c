"""Wi-Fi from the command line and from Python."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import sojourn as sj
from conftest import ROOT
from sojourn.frame.series import transmissions

FILE = ROOT / "examples" / "wifi.toml"
SHORT = {"experiment.duration": "4 s", "experiment.warmup": "1 s", "experiment.repeat": "1"}
FLAGS = [part for key, value in SHORT.items() for part in ("--set", f"{key}={value}")]
STATIONS = ["laptop", "tablet", "phone"]


@pytest.fixture(scope="module")
def results() -> sj.Results:
    longer = {"experiment.duration": "22 s", "experiment.warmup": "2 s"}
    return sj.run(FILE, set=SHORT | longer | {"record.series": "500 ms", "record.packets": "true"})


def test_the_summary_has_stations_beside_queues(results: sj.Results):
    for run in results.runs:
        assert list(run.summary["bottleneck"]) == ["down", "up"]
        link = run.summary["links"]["wifi"]
        assert link["down"] == run.summary["bottleneck"]["down"]
        assert list(link["stations"]) == STATIONS
        keys = {"airtime_share", "aggregate_frames", "retries", "goodput_bps", "lost_packets", "latency_ms"}
        for station in link["stations"].values():
            assert set(station) == keys | {"down", "up"}
            assert set(station["down"]) == set(station["up"]) == keys
            assert station["goodput_bps"] == pytest.approx(
                station["down"]["goodput_bps"] + station["up"]["goodput_bps"]
            )
        medium = link["medium"]
        airtime = sum(station["airtime_share"] for station in link["stations"].values())
        assert 0.5 < airtime < 1.0
        assert airtime + medium["idle_share"] + medium["collision_share"] == pytest.approx(1.0)


def test_the_slow_station_takes_most_of_the_airtime_but_for_airtime_fairness(results: sj.Results):
    share = {
        (run.label, run.summary["set"]["link.wifi.queueing"]): run.summary["links"]["wifi"]["stations"]["phone"][
            "airtime_share"
        ]
        for run in results.runs
    }
    for label in ("pfifo", "fq_codel"):
        assert share[label, "mac80211"] < 0.35
        assert share[label, "qdisc"] > 1.3 * share[label, "mac80211"]


def test_goodput_of_flows_and_of_stations_agree(results: sj.Results):
    """Payload of 1448 bytes in 1500 of IP; what TCP sends again, the station may have received before."""
    for run in results.runs:
        stations = run.summary["links"]["wifi"]["stations"]
        for flow in run.summary["flows"]:
            if flow["kind"] == "bulk":
                seen = stations[flow["name"]]["down"]["goodput_bps"] * 1448 / 1500
                again = flow["retransmits"] * 1448 * 8 / 20
                assert 0.99 * flow["goodput_bps"] < seen < 1.01 * (flow["goodput_bps"] + again)


def test_tables_have_a_row_per_station(results: sj.Results):
    shown = str(results)
    assert "Wi-Fi stations" in shown
    lines = [line.split() for line in shown.partition("Wi-Fi stations")[2].splitlines()]
    rows = [line[2] for line in lines if len(line) > 2 and line[0] in ("pfifo", "fq_codel") and line[2] in STATIONS]
    assert rows == STATIONS * 4


def test_airtime_is_drawn_as_bars_that_reach_one(results: sj.Results):
    axes = results.plot.airtime().axes[0]
    assert {text.get_text() for text in axes.figure.legends[0].get_texts()} == {*STATIONS, "collisions", "nobody sends"}
    tops = {round(bar.get_x(), 3): bar.get_y() + bar.get_height() for bar in axes.patches}
    assert list(tops.values()) == pytest.approx([1.0] * 4)
    assert "airtime" in {drawing.name for drawing in results.plot.drawings()}
    with pytest.raises(ValueError, match="must be one that is Wi-Fi: wifi"):
        results.plot.airtime("line")
    with pytest.raises(ValueError, match="there is none"):
        sj.run(ROOT / "examples" / "home.toml", set=SHORT).plot.airtime()


ONE_STATION = """
[experiment]
duration = "3 s"
warmup   = "1 s"

[[link]]
name     = "wifi"
kind     = "wifi"
standard = "802.11g"
from     = "ap"
to       = "phone"
station  = { phone = { rate = "54 Mbit/s" } }

[[queue]]
aqm = "fq_codel"

[[traffic]]
kind   = "cbr"
from   = "ap"
to     = "phone"
rtt    = "2 ms"
packet = "1472 B"
rate   = "1 Mbit/s"
jitter = "0 s"

[record]
medium = true
"""


def test_latency_and_transmissions_of_a_single_flow_are_those_of_its_frames(tmp_path: Path):
    """1536 bytes at 54 Mbit/s: 20 us and 57 symbols of 4 us, with 6 us of silence 254; SIFS 10 and the ACK, 34."""
    file = tmp_path / "one.toml"
    file.write_text(ONE_STATION, encoding="utf-8")
    (run,) = sj.run(file).runs
    latency = run.summary["links"]["wifi"]["stations"]["phone"]["down"]["latency_ms"]
    assert latency["n"] == run.summary["flows"][0]["one_way_ms"]["n"] == 170
    assert (latency["min"], latency["max"]) == (0.254, 0.254)
    table = run.medium()
    assert table is not None
    rows = table.to_pylist()
    assert len(rows) == run.summary["bottleneck"]["down"]["delivered_packets"]
    for row in rows:
        assert row["end_ns"] - row["start_ns"] == 298_000
        # The first one comes when nothing is known of the medium, and waits DIFS.
        assert row["start_ns"] - row["waiting_since_ns"] == (28_000 if row is rows[0] else 0)
        assert {key: row[key] for key in ("link", "sender", "station", "access", "outcome", "tries")} == {
            "link": 0, "sender": 0, "station": 1, "access": 1, "outcome": 0, "tries": 0,
        }  # fmt: skip
        assert (row["frames"], row["received"], row["rate_bps"]) == (1, 1, 54_000_000)


@pytest.fixture(scope="module")
def on_air() -> sj.Results:
    return sj.run(FILE, set=SHORT | {"record.medium": "true"})


def test_recorded_transmissions_sum_to_the_airtime(on_air: sj.Results):
    """A collision is a row per node that collided; the medium counts it once, as long as its longest."""
    for run in on_air.runs:
        link = run.summary["links"]["wifi"]
        sent = transmissions(run, "wifi")
        assert sent is not None
        for name, station in link["stations"].items():
            for outcome in ("answered", "unanswered"):
                own = sent.where(outcome).of_station(name)
                assert (own.start_s >= own.waiting_since_s).all()
            own = sent.of_station(name)
            own = own.within(1.0, 4.0).where("answered")
            seconds = sum(np.minimum(own.end_s, 4.0) - np.maximum(own.start_s, 1.0).clip(max=own.end_s))
            assert seconds / 3.0 == pytest.approx(station["airtime_share"], abs=0.01)
        collided = sent.where("collision")
        assert len(np.unique(collided.start_s)) == link["medium"]["collisions"]


def test_what_was_on_the_air_is_drawn(on_air: sj.Results, results: sj.Results):
    names = {drawing.name for drawing in on_air.plot.drawings()}
    assert {"station_latency", "station_latency_up", "aggregates", "aggregates_up", "timeline"} <= names
    drawn = on_air.plot.timeline(from_s=2.0, for_s=0.1)
    assert [label.get_text() for label in drawn.axes[0].get_yticklabels()] == ["access point", *STATIONS]
    assert drawn.axes[0].get_xlim() == (0.0, 100.0)
    panel = on_air.plot.aggregates().axes[0]
    assert [line.get_label() for line in panel.lines] == STATIONS
    assert all(line.get_ydata()[-1] == pytest.approx(1.0) for line in panel.lines)
    medians = [
        float(np.interp(0.5, line.get_ydata(), line.get_xdata()))
        for line in on_air.plot.station_latency().axes[0].lines
    ]
    assert max(medians) == medians[STATIONS.index("phone")]
    with pytest.raises(ValueError, match=r"put medium = true into \[record\]"):
        results.plot.timeline()
    assert "timeline" not in {drawing.name for drawing in results.plot.drawings()}


def test_recorded_transmissions_are_saved_and_loaded(on_air: sj.Results, tmp_path: Path):
    on_air.save(tmp_path / "out", plots=False)
    assert sj.load(tmp_path / "out").medium().equals(on_air.medium())


def test_recorded_tables_have_both_queues(results: sj.Results):
    for run in results.runs:
        packets, series = run.packets(), run.queue_series()
        assert packets is not None
        assert series is not None
        for number, way in enumerate(("down", "up")):
            rows = [row for row in packets.to_pylist() if row["direction"] == number and row["fate"] < 2]
            assert len(rows) == run.summary["links"]["wifi"][way]["delivered_packets"]
        assert max(series["backlog_packets"].to_pylist()) > 10


def test_a_run_from_the_command_line_is_whole(sojourn, tmp_path: Path):
    ran = sojourn("run", FILE, *FLAGS, "--out", "out", "--figures", "none")
    assert ran.returncode == 0, ran.stderr
    assert "Wi-Fi stations" in ran.stdout
    resolved = json.loads((tmp_path / "out" / "experiment.json").read_text(encoding="utf-8"))
    ring, stations = (cell["link"][0] for cell in resolved)
    assert (ring["queueing"], stations["queueing"]) == ("qdisc", "mac80211")
    assert ring["station"]["phone"] == {"rate": "6500 kbit/s"}
    assert ring["to"] == STATIONS
    reported = sojourn("report", "out")
    assert reported.returncode == 0, reported.stderr
    assert "Wi-Fi stations" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_a_station_and_a_standard_are_set_by_their_names(sojourn):
    """The arm is written down with what mac80211 takes where mac80211 queues."""
    ran = sojourn(
        "run", FILE, *FLAGS, "--json", "--set", "link.wifi.standard=802.11g", "--set", "link.wifi.streams=1",
        "--set", "link.wifi.station.phone.rate=6 Mbit/s",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    for run in json.loads(ran.stdout)["runs"]:
        for station in run["links"]["wifi"]["stations"].values():
            assert station["aggregate_frames"] == 1.0


def test_the_same_file_gives_the_same_bytes(sojourn):
    def told() -> list[dict[str, object]]:
        runs = json.loads(sojourn("run", FILE, *FLAGS, "--json").stdout)["runs"]
        return [{**run, "wall_s": 0} for run in runs]

    assert told() == told()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("link.wifi.standard=802.11q", 'link.0.standard: got "802.11q"; did you mean "802.11b"?'),
        ("link.wifi.width=80 MHz", 'link.0.width: got "80 MHz"; must be "20 MHz" or "40 MHz" with 802.11n'),
        ("link.wifi.station.phone.rate=7 Mbit/s", 'link.0.station.phone.rate: got "7 Mbit/s"; must be'),
        ("link.wifi.station.phone.snr=-3 dB", 'link.0.station.phone.snr: got "-3 dB"; must be a ratio from'),
        ("link.wifi.station.fridge.rate=ideal", "link.0.station.fridge: unknown station; accepted as"),
        ("traffic.laptop.to=fridge", 'traffic.0.to: got "fridge"; accepted: ap, laptop, tablet, phone'),
        ("queue.fq_codel.memory_limit=1 MB", "must be left out at a link of Wi-Fi"),
    ],
)
def test_a_wrong_value_is_one_line(sojourn, setting: str, message: str):
    if setting.startswith("queue"):
        setting = setting.replace("queue.fq_codel", "queue.0")
    ran = sojourn("run", FILE, *FLAGS, "--set", setting)
    assert ran.returncode == 2
    assert message in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert ran.stdout == ""


def test_linux_has_no_wifi(sojourn):
    ran = sojourn("run", FILE, "--backend", "linux")
    assert ran.returncode == 2
    assert "a Wi-Fi link needs sim" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
