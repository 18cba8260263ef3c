"""Recordings of links in other programs' formats; the files were made from the formats' descriptions."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import sojourn as sj
from conftest import Cli, wrong
from sojourn._core import ExperimentError
from sojourn.lines import course, formats

FILES = Path(__file__).parent / "files"
CELL = FILES / "cell.down"
FORMATS = [
    ("rrul.flent.gz", {}),
    ("cell.down", {"up": FILES / "cell.up"}),
    ("cell.down", {"up": FILES / "cell.up", "delay": FILES / "down-delay-light-pdo"}),
    ("cake-autorate.primary.log", {}),
    ("speedtest-cli.csv", {}),
    ("speedtest.csv", {}),
    ("librespeed.csv", {}),
]


@pytest.mark.parametrize(("name", "also"), FORMATS)
def test_every_format_makes_an_experiment_that_runs(name, also, tmp_path):
    found = formats.read(FILES / name, beside=tmp_path, **also)
    file = tmp_path / "line.toml"
    file.write_text(course.experiment(found, 1.0))
    results = sj.run(file)
    assert results.directions == ("down", "up")
    assert all(run.summary["bottleneck"]["down"]["delivered_packets"] > 0 for run in results.runs)


def test_rates_and_delays_are_those_of_the_recording():
    # rrul: four downloads of 20 to 21 Mbit/s of payload, 1514 bytes on the link per 1448; the least ping is 24.1 ms.
    flent = formats.read(FILES / "rrul.flent.gz")
    assert flent.down[0][0] == 0.0
    assert all(80e6 <= rate / formats.ON_THE_LINK <= 84e6 for _, rate in flent.down)
    assert flent.delay_ms == [(0.0, 12.05)]
    # Four lines a second, of which the median counts: 40000 to 40002 kbit/s in the first second.
    log = formats.read(FILES / "cake-autorate.primary.log")
    assert log.down[:2] == [(0.0, 40_000_500.0), (1.0, 39_501_000.0)]
    assert log.up[-1] == (10.0, 9_500_000.0)
    assert (log.delay_ms, log.seconds) == ([(0.0, 21.0), (4.0, 21.5), (8.0, 22.0)], 12.0)
    # Bytes per second at Ookla, bits at speedtest-cli, Mbit/s at librespeed-cli; half the ping.
    ookla, cli, libre = (
        formats.read(FILES / name, hold_s=5.0) for name in ("speedtest.csv", "speedtest-cli.csv", "librespeed.csv")
    )
    assert (ookla.down, ookla.up, ookla.delay_ms) == ([(0.0, 300e6)], [(0.0, 20e6)], [(0.0, 5.6)])
    assert (cli.down, cli.seconds) == ([(0.0, 94071279.72), (5.0, 61071279.72)], 10.0)
    assert (libre.down[0][1], libre.delay_ms) == (pytest.approx(93.45e6), [(0.0, 9.0)])
    trains = formats.read(CELL, delay=FILES / "down-delay-light-pdo")
    assert trains.delay_ms[:3] == [(0.0, 20.0), (0.4, 24.0), (0.8, 28.0)]


def test_a_trace_is_named_relative_to_the_experiment(tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "trace").write_text("1\n2\n")
    assert formats.read(tmp_path / "t" / "trace", beside=tmp_path).down == "t/trace"


def _log(line: str) -> str:
    header = "DATA_HEADER; PROC_TIME_US; CAKE_DL_RATE_KBPS; CAKE_UL_RATE_KBPS\n"
    return f"{header}{line}DATA; 2000000; 9; 9\nDATA; 3000000; 9; 9\n"


RRUL = json.loads(gzip.decompress((FILES / "rrul.flent.gz").read_bytes()))
DAMAGED = [
    ("", "is empty"),
    ("hello\n", '1: got "hello"; must be a result of Flent'),
    (b"\xff\xfe\x00", "not UTF-8"),
    ((FILES / "rrul.flent.gz").read_bytes()[:300], "gzip file"),
    (json.dumps(RRUL)[:500], "damaged result of Flent: not JSON"),
    (json.dumps({**RRUL, "x_values": [1]}), "as many values each"),
    (json.dumps({"version": 4, "results": {}}), "must have rising x_values"),
    (json.dumps({**RRUL, "results": {"Ping (ms) ICMP": [1.0] * 60}}), "no goodput of TCP"),
    ("DATA; 1; 2\n", "no DATA or LOAD lines with their header"),
    ("DATA_HEADER; PROC_TIME_US\nDATA; 1\n", "no CAKE_DL_RATE_KBPS"),
    (_log("DATA; x; 9; 9\n"), ":2: damaged DATA line"),
    (_log("DATA; 1000000; 0; 9\n"), ":2: damaged DATA line"),
    (_log("DATA; 9000000; 9; 9\n"), ":3: damaged DATA line"),
    ("Sponsor,Ping,Download,Upload\na,1,fast,2\n", ":2: damaged line"),
    ("Ping,Download,Upload\n9,50,5\n50,5\n", ":3: damaged line; must have 3 fields, as the first has"),
    ("Ping,Download,Upload\n9,50,5,1\n", ":2: damaged line; must have 3 fields, as the first has"),
    ("Ping,Download,Upload\n9,93000000,5\n", ":2: damaged line; must have download and upload in Mbit/s"),
    ("Sponsor,Ping,Download,Upload\na,1,0,0\n", "no test with a download"),
    ("0 20 0 1\n", "must be given as --delay"),
]


@pytest.mark.parametrize(("content", "message"), DAMAGED)
def test_a_damaged_file_gets_one_line(content, message, tmp_path):
    file = tmp_path / "recording"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ExperimentError) as error:
        formats.read(file)
    assert message in str(error.value)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_log_may_end_within_a_line(tmp_path):
    file = tmp_path / "log"
    file.write_text(_log("").removesuffix("; 9; 9\n"))
    assert formats.read(file).down == [(0.0, 9000.0)]


def test_the_command_writes_a_file_that_runs(sojourn, tmp_path):
    made = sojourn("link", "import", FILES / "speedtest.csv", "-o", "line.toml")
    assert (made.returncode, made.stdout) == (0, "line.toml\n")
    assert (tmp_path / "line.toml").read_text() == sojourn("link", "import", FILES / "speedtest.csv").stdout
    run = sojourn("run", "line.toml", "--set", 'experiment.duration="1 s"', "--json")
    assert json.loads(run.stdout)["experiment"] == "Ookla's speedtest, speedtest.csv: one test"


def test_the_command_writes_nothing_of_a_damaged_trace(sojourn, tmp_path):
    (tmp_path / "trace").write_text("1\n5\n3\n")
    wrong(sojourn("link", "import", "trace", "-o", "line.toml"), 'trace:3: got "3"; must be no earlier than')
    (tmp_path / "sub").mkdir()
    for out in ((), ("-o", "sub/line.toml")):
        refused = sojourn("link", "import", CELL, "--up", "trace", *out)
        assert refused.stderr == 'trace:3: got "3"; must be no earlier than the line above\n'
        assert refused.returncode == 2
    assert not (tmp_path / "line.toml").exists()
    wrong(
        sojourn("link", "import", FILES / "speedtest.csv", "--hold", "10"), '--hold: got "10"; must be a time above 0'
    )
    nowhere = sojourn("link", "import", CELL, "-o", "none/line.toml")
    assert (nowhere.returncode, nowhere.stderr) == (
        1,
        "sojourn: none/line.toml: cannot be written: none is no folder\n",
    )
    wrong(sojourn("link", "import", "none"), "none: cannot be read: No such file")
    wrong(sojourn("link", "import", FILES / "speedtest.csv", "--up", "trace"), "--up: goes with a trace of mahimahi")


def test_a_fault_is_that_of_the_recording(sojourn, tmp_path):
    refused = sojourn("link", "import", CELL, "--duration", "2000000 s")
    what = 'experiment.duration: got "2000000 s"; must be at most "1000000 s"'
    assert refused.stderr == f"{CELL}: its experiment would be refused: {what}\n"
    (tmp_path / "tests.csv").write_text("Sponsor,Ping,Download,Upload\na,9000,1e6,1e6\n")
    assert 'delay = "4500 ms"' in sojourn("link", "import", "tests.csv").stdout


def test_the_file_says_where_its_rtt_is_from(sojourn):
    assert 'rtt   = "40 ms"   # the recording has none: yours to change' in sojourn("link", "import", CELL).stdout
    known = sojourn("link", "import", FILES / "rrul.flent.gz").stdout
    assert 'rtt   = "25 ms"   # twice the recorded delay, at least 10 ms: yours to change' in known


def test_a_file_that_is_there_is_not_replaced(sojourn: Cli, tmp_path: Path):
    (tmp_path / "line.trace").write_text("1\n2\n3\n")
    done = sojourn("link", "import", "line.trace", "--out", "line.trace")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == '--out: got "line.trace"; must be a new file: line.trace exists\n'
    assert (tmp_path / "line.trace").read_text() == "1\n2\n3\n"


def test_a_failed_speed_test_is_told(tmp_path: Path):
    head, first = (FILES / "speedtest-cli.csv").read_text(encoding="utf-8").splitlines()[:2]
    failed = first.replace("94071279.72", "0")
    (tmp_path / "tests.csv").write_text(f"{head}\n{failed}\n{first}\n", encoding="utf-8")
    source = formats.read(tmp_path / "tests.csv").source
    assert source == "speedtest-cli, tests.csv: one test; without 1 of 2, which failed"
