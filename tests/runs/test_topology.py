"""Experiments over several links, from the command line and from Python."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import pytest

import sojourn as sj
from conftest import ROOT

SHORT = {"experiment.duration": "6 s", "experiment.warmup": "2 s", "experiment.repeat": "1"}
PARKING_LOT = ROOT / "examples" / "parking-lot.toml"
MODEM = ROOT / "examples" / "modem.toml"
LINKS = ["west", "middle", "east"]


@pytest.fixture(scope="module")
def parking_lot() -> sj.Results:
    return sj.run(PARKING_LOT, set=SHORT | {"record.series": "500 ms", "record.packets": "true"})


def test_every_link_is_in_the_summary(parking_lot: sj.Results):
    for run in parking_lot.runs:
        assert list(run.summary["links"]) == LINKS
        assert run.summary["bottleneck_link"] == "west"
        assert run.summary["links"]["west"] == run.summary["bottleneck"]


def test_an_experiment_with_one_link_has_it_among_its_links():
    run = sj.run(ROOT / "examples" / "home.toml", set=SHORT).runs[0]
    assert run.summary["links"] == {"link": run.summary["bottleneck"]}


def test_tables_and_frames_have_a_row_per_link(parking_lot: sj.Results):
    assert parking_lot.queues == tuple(f"{link}/down" for link in LINKS)
    frame = parking_lot.to_arrow().to_pylist()
    assert [(row["label"], row["link"]) for row in frame] == [
        (label, link) for label in ("pfifo", "codel", "fq_codel") for link in LINKS
    ]
    by_link = {row["link"]: row for row in frame if row["label"] == "codel"}
    links = next(run for run in parking_lot.runs if run.label == "codel").summary["links"]
    for link in LINKS:
        assert by_link[link]["sojourn_p95_ms"] == links[link]["down"]["sojourn_ms"]["p95"]
        assert math.isnan(by_link[link]["goodput_bps"])
    shown = str(parking_lot)
    assert all(f"{link}/down" in shown for link in LINKS)


def test_recorded_tables_tell_links_apart(parking_lot: sj.Results):
    for run in parking_lot.runs:
        packets, series = run.packets(), run.queue_series()
        assert packets is not None
        assert series is not None
        for number, link in enumerate(LINKS):
            delivered = run.summary["links"][link]["down"]["delivered_packets"]
            rows = [row for row in packets.to_pylist() if row["link"] == number and row["fate"] < 2]
            assert len(rows) == delivered
        assert set(series["link"].to_pylist()) == {0, 1, 2}


def test_a_packet_has_the_same_number_at_every_link(parking_lot: sj.Results):
    """What leaves a link enters the next behind it; no two packets of a run have a number in common."""
    for run in parking_lot.runs:
        packets = run.packets()
        assert packets is not None
        rows = packets.select(["packet", "link", "direction", "time_ns", "sojourn_ns", "flow", "bytes", "returning"])
        courses: dict[int, list[dict[str, int]]] = {}
        for row in rows.sort_by("time_ns").to_pylist():
            courses.setdefault(row["packet"], []).append(row)
        assert max(map(len, courses.values())) == len(LINKS)
        for course in courses.values():
            assert len({(row["flow"], row["bytes"], row["returning"]) for row in course}) == 1
            links = [row["link"] for row in course]
            assert links == sorted(set(links), reverse=course[0]["direction"] == 1)
            for before, after in itertools.pairwise(course):
                assert after["time_ns"] - after["sojourn_ns"] > before["time_ns"]


def test_a_swept_link_is_called_by_its_name(tmp_path: Path):
    text = MODEM.read_text(encoding="utf-8") + '\n[sweep]\n"link.router.rate" = ["9.5 Mbit/s", "100 Mbit/s"]\n'
    file = tmp_path / "modem.toml"
    file.write_text(text, encoding="utf-8")
    results = sj.run(file, set=SHORT | {"queue": "[{ aqm = 'cake' }]"})
    at_modem = [run.summary["links"]["line"]["down"]["sojourn_ms"]["p95"] for run in results.runs]
    # Shaped below the modem's rate its queue is empty; above it fills.
    assert at_modem[0] < 5 < 100 < at_modem[1]


def test_the_glance_shows_the_delay_of_every_link(sojourn):
    """Above the modem's rate the home queue is empty, and all delay is the modem's."""
    flags = ("--set", "experiment.duration=6 s", "--set", "experiment.warmup=2 s", "--set", "experiment.repeat=1")
    ran = sojourn("run", MODEM, *flags, "--set", 'link.router.rate="100 Mbit/s"')
    glance = ran.stdout.partition("Results")[0]
    assert "router/down" in glance
    assert "line/down" in glance


def test_experiment_json_has_the_network(sojourn, tmp_path: Path):
    flags = [part for key, value in SHORT.items() for part in ("--set", f"{key}={value}")]
    ran = sojourn("run", PARKING_LOT, *flags, "--out", tmp_path / "out", "--figures", "none")
    assert ran.returncode == 0, ran.stderr
    (resolved,) = json.loads((tmp_path / "out" / "experiment.json").read_text(encoding="utf-8"))
    assert [link["name"] for link in resolved["link"]] == LINKS
    assert resolved["traffic"][0]["from"] == "a"


def test_a_report_has_every_link(sojourn, tmp_path: Path):
    text = MODEM.read_text(encoding="utf-8") + '\n[sweep]\n"link.router.rate" = ["9.5 Mbit/s", "100 Mbit/s"]\n'
    (tmp_path / "modem.toml").write_text(text, encoding="utf-8")
    flags = [part for key, value in SHORT.items() for part in ("--set", f"{key}={value}")]
    ran = sojourn("run", "modem.toml", *flags, "--out", "out", "--figures", "none")
    assert ran.returncode == 0, ran.stderr
    reported = sojourn("report", "out")
    assert reported.returncode == 0, reported.stderr
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "link 0: router" in page
    assert "link 1: line" in page
    assert "router/down" in page
