"""What ``--dry-run`` says: time, memory and disk space, in words and beside what a run takes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import sojourn as sj
from conftest import EXPERIMENT, Cli
from sojourn import _core
from sojourn.cli.estimate import Estimate, estimate, estimate_study, in_bytes, in_runs, in_time, sentence
from sojourn.runs import costs
from sojourn.runs.backends import backend_of
from sojourn.runs.costs import trial, whole_s

RECORDED = EXPERIMENT.replace("repeat = 2", "repeat = 1") + "[record]\npackets = true\nrtt = true\npcap = true\n"


def test_times_and_sizes_have_the_units_that_people_use():
    assert [in_time(seconds) for seconds in (0.2, 90.0, 600.0, 9000.0, 14_664_712.0)] == [
        "1 s", "90 s", "10 min", "2.5 h", "170 days",
    ]  # fmt: skip
    assert [in_bytes(megabytes) for megabytes in (0.01, 3.21, 240.0, 3450.0, 2_000_000.0)] == [
        "0.1 MB", "3.2 MB", "240 MB", "3.45 GB", "2 TB",
    ]  # fmt: skip
    assert (in_runs(1), in_runs(2)) == ("1 run", "2 runs")
    found: Estimate = {
        "runs": 1, "stored": 0, "estimate_s": 4.0, "figures_s": 3.0, "estimate_mb": 240.0, "disk_mb": 1.5,
    }  # fmt: skip
    assert sentence(found) == (
        "1 run: about 4 s, 3 s more for figures on this machine if it is idle, 240 MB of memory and with --out 1.5 MB "
        "on disk"
    )


# Acknowledgements wait in the queue of the other direction and are recorded, too; mixed rows are longer on disk.
BOTH_WAYS = """
experiment = { duration = "10 s" }
link = { rate = "40 Mbit/s", up = { rate = "10 Mbit/s" } }
queue = [{ aqm = "dualpi2" }, { aqm = "fq" }]
traffic = [
    { kind = "bulk", flows = 3, rtt = "30 ms" },
    { kind = "bulk", flows = 2, rtt = "30 ms", direction = "up" },
    { kind = "game", rtt = "30 ms" },
    { kind = "voip", rtt = "30 ms" },
]
record = { packets = true, rtt = true }
"""


@pytest.mark.parametrize("text", [RECORDED, BOTH_WAYS], ids=["down", "both ways"])
def test_the_disk_space_of_recordings_is_within_a_factor(sojourn: Cli, tmp_path: Path, text: str):
    (tmp_path / "experiment.toml").write_text(text)
    run = ("run", "experiment.toml", "--out", "out", "--figures", "none")
    said = json.loads(sojourn(*run, "--dry-run", "--json").stdout)
    assert said["figures_s"] == 0.0
    assert sojourn(*run).returncode == 0
    there = sum(path.stat().st_size for path in (tmp_path / "out").iterdir()) / 1e6
    assert there / 1.5 < said["disk_mb"] < there * 1.5


@pytest.mark.parametrize("interval", ["1 ms", "10 ms", "100 ms"])
def test_the_disk_space_of_a_series_is_within_a_factor(interval: str, tmp_path: Path):
    text = EXPERIMENT.replace("repeat = 2", "repeat = 1").replace("flows = 2", "flows = 6")
    text += f'[record]\nseries = "{interval}"\n'
    sj.run_text(text, set={"experiment.duration": "30 s"}).save(tmp_path / "out", plots=False)
    there = sum((tmp_path / "out" / f"{name}.parquet").stat().st_size for name in ("series", "flow_series"))
    plan = _core.Plan.read_text(text.replace('"4 s"', '"30 s"'), "series", [])
    said = sum(costs.recording(spec).disk for spec in (plan[0], plan[1]))
    assert there / 1.5 < said < there * 1.5


def test_a_study_keeps_what_its_runs_record_in_memory():
    def megabytes(record: str, variants: int = 0) -> float:
        plan = _core.Plan.read_text(EXPERIMENT.replace('"4 s"', '"60 s"') + record, "kept", [])
        return estimate_study([plan], [[plan]] * variants, backend_of("sim"), jobs=1, figures=0)["estimate_mb"]

    # Four runs of a minute at 10 Mbit/s, 32 bytes per packet; a series of 2 ms of a link and two flows, 50 per row.
    packets = 4 * 60 * 10e6 / 8 / 1514 * 32 / 1e6
    assert megabytes("[record]\npackets = true\n") - megabytes("") > packets
    assert megabytes('[record]\nseries = "2 ms"\n') - megabytes("") == pytest.approx(
        4 * 30_000 * 3 * (50 + 64 / 4) / 1e6, rel=0.1
    )
    one, several = (megabytes('[record]\nseries = "2 ms"\n', variants) for variants in (1, 3))
    assert several == pytest.approx(one, rel=0.1), "one variant at a time"


def test_figures_cost_memory_only_where_they_are_drawn():
    plan = _core.Plan.read_text(EXPERIMENT, "two", [])
    without, with_ = (estimate(plan, backend_of("sim"), jobs=1, formats=formats) for formats in ((), ("png",)))
    assert without["figures_s"] == 0.0 and with_["figures_s"] > 0.0
    assert without["estimate_mb"] < 120.0 < with_["estimate_mb"]


def test_what_a_run_needs_before_its_first_event_counts_once():
    # Five seconds until it began, at a twentieth; then 0.5 for the next twentieth.
    assert whole_s(2.0, (7.0, 0.05), (7.5, 0.1)) == pytest.approx(5.0 + 0.5 * 19.0)


def test_flows_that_begin_later_are_in_the_estimate():
    """Of twenty seconds and flows that begin over the first ten, a second has 0.05 of 15 s of sending."""
    spec = _core.Plan.read_text(EXPERIMENT.replace("0..100 ms", "0..10 s").replace('"4 s"', '"20 s"'), "later", [])[0]
    assert spec.progress(1.0) == pytest.approx(0.05 / 15.0)
    assert spec.progress(20.0) == 1.0


def test_a_trial_that_ends_before_the_last_flow_begins_is_made_with_all_flows(monkeypatch: pytest.MonkeyPatch):
    """What a packet takes while few flows and queues are in use is too little for a large tree of subscribers."""
    text = EXPERIMENT.replace("0..100 ms", "1 s..10 s").replace('"4 s"', '"20 s"')
    spec = _core.Plan.read_text(text, "later", [])[0]
    tried: list[tuple[str, float]] = []

    def reached(at_s: float):
        def trial(one: _core.RunSpec, each_s: float) -> tuple[float, None, float]:
            tried.append((json.loads(one.document)["experiment"]["traffic"][0]["start"], each_s))
            return 6.0, None, at_s

        return trial

    monkeypatch.setattr(costs, "_tried", reached(9.9))
    (of_run_s, _) = costs._cpu_s(spec, 0.4)
    assert tried == [("1 s..10 s", 0.4), ("1 s", pytest.approx(1.2))]
    together = _core.Plan.read_text(text.replace("1 s..10 s", "1 s"), "together", [])[0]
    assert of_run_s == pytest.approx(6.0 * spec.effort / together.effort)
    monkeypatch.setattr(costs, "_tried", reached(10.0))
    assert costs._cpu_s(spec, 0.4) == (6.0, None) and len(tried) == 3


def test_the_disk_space_of_a_long_capture_is_told():
    text = EXPERIMENT.replace('"4 s"', '"100000 s"').replace('"10 Mbit/s"', '"1 Gbit/s"') + "[record]\npcap = true\n"
    spec = _core.Plan.read_text(text, "long", [])[0]
    # A frame of 1514 bytes, and its share of acknowledgements.
    assert spec.packets == pytest.approx(1e5 * 125e6 / 1514, rel=0.01)
    assert 1.0e12 < costs.recording(spec).disk < 2.0e12
    assert costs.recording(spec).memory > 1.0e12, "a capture is in memory until its run ends"


def test_memory_grows_with_flows(sojourn: Cli, tmp_path: Path):
    (tmp_path / "experiment.toml").write_text(EXPERIMENT.replace("flows = 2", "flows = 20_000"))
    few = json.loads(sojourn("run", "experiment.toml", "--dry-run", "--json", "--set", "traffic.0.flows=2").stdout)
    many = json.loads(sojourn("run", "experiment.toml", "--dry-run", "--json", "--jobs", "2").stdout)
    # Two runs at a time with 4.9 kB per flow, and four summaries of 350 bytes per flow.
    grown = (2 * 20_000 * 4.9e3 + 4 * 20_000 * 350 * 15) / 1e6
    assert many["estimate_mb"] - few["estimate_mb"] == pytest.approx(grown, rel=0.1)


TREE = """
experiment = { duration = "2 s" }
link = { rate = "1 Gbit/s" }
queue = [{ aqm = "cake" }, { aqm = "pfifo" }]
class = [{ name = "home-{i}", count = 400, rate = "1 Mbit/s", ceil = "10 Mbit/s" }]
traffic = [{ kind = "bulk", count = 400, class = "home-{i}", rtt = "30 ms" }]
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells it so")
def test_a_trial_tells_the_memory_of_the_queues():
    """Of 400 queues of CAKE, in a process that has made no other runs."""
    program = (
        "import json, sys; from sojourn import _core; from sojourn.runs.costs import trial; "
        "plan = _core.Plan.read_text(sys.stdin.read(), 'tree', []); "
        "print(json.dumps(trial([plan[0], plan[1]], 60.0).memory))"
    )
    found = json.loads(
        subprocess.run([sys.executable, "-c", program], input=TREE, capture_output=True, text=True).stdout
    )
    assert 400 * 0.1e6 < found["cake"] < 400 * 0.5e6
    assert "pfifo" not in found, "it fits into what the first run has left"


def test_runs_at_a_time_are_the_largest(monkeypatch: pytest.MonkeyPatch):
    plan = _core.Plan.read_text(EXPERIMENT.replace("repeat = 2", "repeat = 1"), "two", [])
    tried = costs.Trial({}, 1e-6, 1.0, {"codel": 500e6, "pfifo": 100e6})
    monkeypatch.setattr("sojourn.cli.estimate.trial", lambda *_: tried)
    of = [estimate(plan, backend_of("sim"), jobs=jobs, formats=())["estimate_mb"] for jobs in (1, 2, 3)]
    assert [round(of[1] - of[0]), round(of[2] - of[1])] == [100, 0]


def test_a_sweep_of_more_runs_than_run_accepts_is_refused(sojourn: Cli, tmp_path: Path):
    sweep = f'[sweep]\n"traffic.0.flows" = {list(range(1, 101))}\n'
    (tmp_path / "experiment.toml").write_text(EXPERIMENT.replace("repeat = 2", "repeat = 10_000") + sweep)
    for more in (["--dry-run"], ["--store", "store"]):
        refused = sojourn("sweep", "experiment.toml", *more)
        assert (refused.returncode, refused.stderr) == (
            2,
            "experiment.toml: asks for 2000000 runs (sweep × queues × repeat); must be at most 1000000\n",
        )
    assert not (tmp_path / "store").exists()


def test_a_trial_of_a_discipline_counts_for_its_runs():
    plan = _core.Plan.read_text(EXPERIMENT, "two", [])
    specs = [plan[0], plan[1]]
    found = trial(specs, 5.0)
    assert set(found.costs) == {"pfifo", "codel"}
    assert found.summary_kb is not None
    assert found.cpu_s(specs[0]) == pytest.approx(specs[0].effort * found.costs["pfifo"])
