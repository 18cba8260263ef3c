"""`sojourn export --format mahimahi`, and mahimahi's command lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sojourn as sj
from conftest import Cli
from sojourn import _core
from sojourn.cli import mahimahi

EXPERIMENT = """
experiment = { duration = "3 s" }
record = { packets = true }
link = { rate = "4 Mbit/s", delay = "10 ms", up = { rate = { trace = "up.trace" } } }
queue = [{ aqm = "pfifo", limit = "20 packets" }]
traffic = [{ kind = "bulk", rtt = "20 ms" }]
"""


@pytest.fixture
def recorded(sojourn: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "up.trace").write_text("2\n4\n4\n10\n", encoding="utf-8")
    (tmp_path / "line.toml").write_text(EXPERIMENT, encoding="utf-8")
    done = sojourn("run", "line.toml", "--out", "out", "--figures", "none")
    assert done.returncode == 0, done.stderr
    return tmp_path / "out"


def events(log: Path) -> list[tuple[int, str, list[int]]]:
    lines = [line.split() for line in log.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return [(int(at), kind, [int(number) for number in rest]) for at, kind, *rest in lines]


def test_logs_have_what_mahimahis_have(sojourn: Cli, recorded: Path):
    done = sojourn("export", recorded, "--format", "mahimahi")
    assert done.returncode == 0, done.stderr
    folder = recorded / "mahimahi"
    assert sorted(path.name for path in folder.iterdir()) == ["pfifo-seed1-link0-down.log", "pfifo-seed1-link0-up.log"]
    down, up = (events(folder / f"pfifo-seed1-link0-{way}.log") for way in ("down", "up"))
    (run,) = sj.load(recorded).runs
    for log, way in ((down, "down"), (up, "up")):
        assert [at for at, *_ in log] == sorted(at for at, *_ in log)
        kinds = [kind for _, kind, _ in log]
        queue = run.summary["bottleneck"][way]
        assert kinds.count("-") == queue["delivered_packets"]
        assert kinds.count("d") == queue["dropped_overflow"]
        delays = [rest[1] for _, kind, rest in log if kind == "-"]
        assert sum(delays) / len(delays) == pytest.approx(queue["sojourn_ms"]["mean"], abs=0.5)
    assert run.summary["bottleneck"]["down"]["dropped_overflow"] > 0
    # A full segment has 1500 bytes, and mahimahi counts four more.
    assert {rest[0] for _, kind, rest in down if kind == "-"} >= {1504}
    # 4 Mbit/s are a packet each 3 ms; the trace has four in 10 ms and begins anew.
    assert [at for at, kind, _ in down if kind == "#"][:4] == [3, 6, 9, 12]
    assert [(at, rest) for at, kind, rest in up if kind == "#"][:6] == [
        (2, [1504]),
        (4, [1504]),
        (4, [1504]),
        (10, [1504]),
        (12, [1504]),
        (14, [1504]),
    ]


def test_logs_need_packets(sojourn: Cli, experiment: Path):
    assert sojourn("run", experiment, "--out", "out", "--figures", "none").returncode == 0
    done = sojourn("export", "out", "--format", "mahimahi")
    assert (done.returncode, done.stderr) == (
        2,
        "export: no packets were recorded; needs record.packets = true\n",
    )


def test_a_command_line_of_mahimahi_is_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for name in ("up", "down"):
        (tmp_path / name).write_text("1\n2\n", encoding="utf-8")
    words = "mm-delay 20 mm-loss uplink 0.01 mm-link up down --uplink-queue=droptail --uplink-queue-args=packets=100 "
    words += (
        "--downlink-queue codel --downlink-queue-args=packets=50,target=7,interval=90 --uplink-log=log -- curl -v x"
    )
    line = mahimahi.read(words.split())
    assert line.program == ["curl", "-v", "x"]
    assert {way: link.log for way, link in line.links.items()} == {"up": "log", "down": None}
    plan = _core.Plan.for_programs(line.text(), "mm-delay", [], None)
    (cell,) = json.loads(plan.resolved_json())
    link, (queue,) = cell["link"], cell["queue"]
    assert (link["delay"], link["overhead"], link["rate"]) == ("20 ms", "4 B", {"trace": "down"})
    assert (link["up"]["rate"], link["up"]["loss"]) == ({"trace": "up"}, 0.01)
    assert (link["up"]["queue"]["aqm"], link["up"]["queue"]["limit"]) == ("pfifo", "100 packets")
    assert [queue[key] for key in ("aqm", "limit", "target", "interval")] == ["codel", "50 packets", "7 ms", "90 ms"]
    assert cell["record"]["packets"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("mm-delay", "mm-delay: MILLISECONDS is missing"),
        ("mm-delay x ls", 'mm-delay: got "x"; must be a number from 0'),
        ("mm-delay -5 ls", 'mm-delay: got "-5"; must be a number from 0'),
        ("mm-loss both 0.1", 'mm-loss: got "both"; must be uplink or downlink'),
        ("mm-loss uplink 2", "mm-loss: got 2; must be from 0 to 1"),
        ("mm-link up", "mm-link: must have two traces"),
        ("mm-link up down --once", "mm-link: got --once; the trace repeats here"),
        ("mm-link up down --uplink-queue=red", '--uplink-queue: got "red"; must be one of infinite, droptail'),
        ("mm-link up down --uplink-queue=droptail", '--uplink-queue-args: not given; must have a limit: "packets=100"'),
        ("mm-onoff uplink 1 1", 'shell: got "mm-onoff"; must be mm-delay, mm-loss or mm-link'),
    ],
)
def test_what_mahimahi_has_and_this_has_not_is_refused(words: str, message: str):
    with pytest.raises(_core.ExperimentError) as refused:
        mahimahi.read(words.split()).text()
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("mm-link good bad", 'bad:3: got "x"; must be a time in whole milliseconds, at most 86400000'),
        ("mm-link bad good", 'bad:3: got "x"; must be a time in whole milliseconds, at most 86400000'),
        ("mm-delay 1 mm-link none good", "none: cannot be read: No such file or directory (os error 2)"),
        ("mm-delay 99999999999", 'mm-delay: got "99999999999 ms"; must be at most "1000000 s"'),
        ("mm-link good good --uplink-queue=codel --uplink-queue-args=target=0",
         '--uplink-queue-args: target: got "0 ms"; must be above 0'),
        ("mm-link good good --downlink-queue=codel --downlink-queue-args=packets=0",
         '--downlink-queue-args: limit: got "0 packets"; must be at least "1 packet"'),
    ],
)  # fmt: skip
def test_a_mistake_is_told_where_it_was_made(words: str, message: str, sojourn: Cli, tmp_path: Path):
    (tmp_path / "good").write_text("1\n2\n", encoding="utf-8")
    (tmp_path / "bad").write_text("1\n2\nx\n", encoding="utf-8")
    done = sojourn("shell", "--", *words.split(), "--", "true")
    assert (done.returncode, done.stderr) == (2, f"{message}\n")
