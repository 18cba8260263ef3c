"""`sojourn replay`: recorded queues through disciplines."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import sojourn as sj
from conftest import ROOT, Cli

RECORDED = ROOT / "crates" / "aqm" / "tests" / "data"

# Three packets enter; the first and the third leave, so the second was dropped.
EVENTS = "E 0 0\nE 1 100\nE 2 200 60\nD 0 1000\nD 2 2000\n"


@pytest.mark.parametrize(("name", "dropped"), [("codel-udp12m", 1338), ("codel-cubic4", 110)])
def test_codel_agrees_with_linux_packet_by_packet(sojourn: Cli, name, dropped):
    result = sojourn("replay", RECORDED / f"{name}.txt.gz", "--aqm", "codel", "--set", "variant=linux", "--json")
    assert result.returncode == 0, result.stderr
    outcome = json.loads(result.stdout)
    assert outcome["dropped_recorded"] == outcome["dropped_ours"] == dropped
    assert outcome["agree"] is True
    assert outcome["first_divergence"] is None


def test_a_divergence_names_the_event(sojourn: Cli, tmp_path: Path):
    (tmp_path / "events.txt").write_text(EVENTS)
    outcome = json.loads(sojourn("replay", "events.txt", "--aqm", "pfifo", "--json").stdout)
    assert outcome == {
        "enqueued": 3, "dequeued": 2, "dropped_recorded": 1, "dropped_ours": 0, "agree": False,
        "first_divergence": {"event": 4, "t_us": 2000, "expected": 2, "got": 1},
    }  # fmt: skip
    text = sojourn("replay", "events.txt", "--aqm", "pfifo").stdout
    assert "event 4 at 0.002000 s: packet 2 left, pfifo sends packet 1" in text
    assert "do not agree" in text


MARKED = "E 0 0 1514 1 2\nE 1 0 1514 2 2\nD 0 1000\nD 1 2000 ce\n"


def test_a_mark_that_is_missing_is_told(sojourn: Cli, tmp_path: Path):
    (tmp_path / "events.txt").write_text(MARKED)
    outcome = json.loads(sojourn("replay", "events.txt", "--aqm", "fq_codel", "--json").stdout)
    assert (outcome["marked_recorded"], outcome["marked_ours"], outcome["agree"]) == (1, 0, False)
    assert outcome["first_divergence"] == {
        "event": 3, "t_us": 2000, "expected": 1, "got": 1, "expected_ce": True, "got_ce": False,
    }  # fmt: skip
    text = sojourn("replay", "events.txt", "--aqm", "fq_codel").stdout
    assert "packet 1 left with CE, fq_codel sends it without" in text


FLOWS = """
[experiment]
duration = "3 s"
[link]
rate = "10 Mbit/s"
[[queue]]
aqm = "sfq"
variant = "linux"
limit = "30 packets"
[[traffic]]
kind = "bulk"
flows = 3
ecn = true
rtt = "20 ms"
stop = "2500 ms"
[record]
packets = true
"""


def test_recorded_packets_are_exported_as_events(sojourn: Cli, tmp_path: Path):
    (tmp_path / "flows.toml").write_text(FLOWS)
    assert sojourn("run", "flows.toml", "--out", "out", "--figures", "none").returncode == 0
    exported = sojourn("export", "out", "--format", "events")
    assert exported.returncode == 0, exported.stderr
    (events,) = exported.stdout.split()
    rows = gzip.decompress((tmp_path / events).read_bytes()).decode().splitlines()
    assert rows[0].startswith("# sfq ") and 'variant="linux"' in rows[0]
    arrivals = [row.split() for row in rows if row.startswith("E")]
    assert {row[4] for row in arrivals} == {"0", "1", "2"}
    assert {row[5] for row in arrivals if row[3] == "1514"} == {"2"}
    keys = ["--set", "variant=linux", "--set", "limit=30 packets"]
    outcome = json.loads(sojourn("replay", events, "--aqm", "sfq", *keys, "--json").stdout)
    assert outcome["dropped_recorded"] > 0
    assert outcome["agree"] is True, outcome


def test_results_without_packets_have_no_events(sojourn: Cli, tmp_path: Path):
    (tmp_path / "flows.toml").write_text(FLOWS.replace("packets = true", 'series = "1 s"'))
    assert sojourn("run", "flows.toml", "--out", "out", "--figures", "none").returncode == 0
    refused = sojourn("export", "out", "--format", "events")
    assert refused.returncode == 2
    assert "no packets were recorded; needs record.packets = true" in refused.stderr


def test_plain_and_gzip_are_the_same(sojourn: Cli, tmp_path: Path):
    (tmp_path / "events.txt").write_text(EVENTS)
    (tmp_path / "events.gz").write_bytes(gzip.compress(EVENTS.encode()))
    plain, packed = (sojourn("replay", name, "--aqm", "codel", "--json").stdout for name in ("events.txt", "events.gz"))
    assert plain == packed != ""


@pytest.mark.parametrize(
    ("data", "parts"),
    [(b"E 0 0\nX 1 2\n", (":2: ", "X 1 2")), (b"E 0\n", (":1: ",)), (b"E 0 zero\n", (":1: ",)),
     (b"E 0 5\nE 1 4\n", (":2: ", "time")), (b"", ("no events",)), (b"\xff\xfe", ("not a text",)),
     (b"\x1f\x8b\x08\x00", ("gzip",)), (b"D 0 5 60\n", (":1: ",)), (b"E 0 99999999999999999999\n", (":1: ", "t_us")),
     (b"D 0 5\n", (":1: ", "id", "entered")), (b"E 3 5\nE 3 6\n", (":2: ", "id", "above"))],
    ids=["unknown event", "no time", "no number", "back in time", "empty", "binary", "cut gzip", "size of a departure",
         "too large", "departure of nobody", "an id twice"],
)  # fmt: skip
def test_a_wrong_recording_is_one_line(sojourn: Cli, tmp_path: Path, data, parts):
    (tmp_path / "events.txt").write_bytes(data)
    result = sojourn("replay", "events.txt", "--aqm", "codel")
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert result.stderr.startswith("events.txt")
    for part in parts:
        assert part in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [("--aqm", "codle"), ("--aqm", "codel", "--set", "targt=5ms"), ("--aqm", "codel", "--set", "target=soon"), (),
     ("--aqm", "pfifo", "--set", "limit=1 bdp"), ("--aqm", "codel", "--set", "aqm=pie"),
     ("--aqm", "codel", "--set", "aqm=pie", "--follow", "1ms")],
    ids=" ".join,
)  # fmt: skip
def test_a_wrong_discipline_or_setting_is_one_line(sojourn: Cli, tmp_path: Path, arguments):
    (tmp_path / "events.txt").write_text(EVENTS)
    result = sojourn("replay", "events.txt", *arguments)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)


def test_the_probability_that_linux_held_is_followed(sojourn: Cli):
    # `tc -s qdisc` printed it every 207.5 ms or a little earlier or later, first 250 ms before the first packet.
    lines = (RECORDED / "pie-prob.txt").read_text().splitlines()
    (held,) = [[float(p) for p in line.split()[1:]] for line in lines if line.startswith("pie-udp ")]
    result = sojourn(
        "replay", RECORDED / "pie-udp.txt.gz", "--aqm", "pie", "--set", "variant=linux", "--follow", "5ms", "--json"
    )
    assert result.returncode == 0, result.stderr
    ours = json.loads(result.stdout)["probability"]
    places = {round((207.5 * sample - 250) / 5): p for sample, p in enumerate(held) if p >= 1e-3}
    errors = [min(abs(ours[at] / p - 1) for at in (place - 1, place, place + 1)) for place, p in places.items()]
    assert len(errors) == 93
    assert max(errors) < 0.01


def test_following_shows_a_table_without_json(sojourn: Cli, tmp_path: Path):
    (tmp_path / "events.txt").write_text(EVENTS)
    lines = sojourn("replay", "events.txt", "--aqm", "red", "--follow", "1ms").stdout.splitlines()
    assert lines[0].split("\t")[:2] == ["t_us", "avg"]
    assert [line.split("\t")[0] for line in lines[1:]] == ["0", "1000", "2000"]


@pytest.mark.parametrize(("aqm", "follow"), [("sfq", "1ms"), ("pie", "soon"), ("pie", "1ns")])
def test_what_cannot_be_followed_is_one_line(sojourn: Cli, tmp_path: Path, aqm, follow):
    (tmp_path / "events.txt").write_text("E 0 0\nD 0 10000000\n")
    result = sojourn("replay", "events.txt", "--aqm", aqm, "--follow", follow)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert result.stderr.startswith("--follow: ")


def test_python_replays_as_the_command_does(tmp_path: Path):
    (tmp_path / "events.txt").write_text(EVENTS)
    outcome = sj.replay(tmp_path / "events.txt", aqm="codel", set={"variant": "linux", "ecn": True})
    assert (outcome["enqueued"], outcome["dropped_recorded"]) == (3, 1)
    series = sj.follow(tmp_path / "events.txt", aqm="pie", every="1 ms")
    assert series["probability"].tolist() == [0.0, 0.0, 0.0]
