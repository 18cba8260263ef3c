"""`sojourn run` and `compare` as a user calls them: table, JSON, files, sweeps, determinism."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pyarrow.parquet
import pytest

from conftest import EXPERIMENT, Cli, visible, wrong
from sojourn import load
from sojourn.linux import datapath

COMPARE = ("compare", "--rate", "10mbit", "--rtt", "40ms", "--flows", "2", "--duration", "4s")


def runs_of(result) -> list[dict]:
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)["runs"]


def without_wall_time(runs: list[dict]) -> list[dict]:
    return [{key: value for key, value in run.items() if key != "wall_s"} for run in runs]


def test_the_table_has_a_row_per_queue_with_intervals(sojourn: Cli, experiment: Path):
    result = sojourn("run", experiment)
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines if line.split()[:1] in (["pfifo"], ["codel"])] == ["pfifo", "codel"]
    assert re.search(r"\d–\d", result.stdout)
    assert "2 repeats" in result.stdout
    assert "95% bootstrap" in result.stdout


def test_nothing_is_written_unless_asked(sojourn: Cli, experiment: Path, tmp_path: Path):
    before = sorted(tmp_path.iterdir())
    sojourn("run", experiment)
    sojourn(*COMPARE, "pfifo")
    assert sorted(tmp_path.iterdir()) == before


def test_json_is_the_summary_and_nothing_else(sojourn: Cli, experiment: Path):
    result = sojourn("run", experiment, "--json")
    summary = json.loads(result.stdout)
    assert result.stderr == ""
    assert {key: summary[key] for key in ("format", "experiment", "backend")} == {
        "format": 1, "experiment": "two flows", "backend": "sim",
    }  # fmt: skip
    assert "partial" not in summary
    assert [(run["queue"], run["seed"]) for run in summary["runs"]] == [
        ("pfifo", 1), ("codel", 1), ("pfifo", 2), ("codel", 2),
    ]  # fmt: skip


def test_the_figures_of_a_run_agree_with_each_other(sojourn: Cli, experiment: Path):
    for run in runs_of(sojourn("run", experiment, "--json")):
        down = run["bottleneck"]["down"]
        sojourn_ms = [down["sojourn_ms"][key] for key in ("min", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95",
                                                          "p99", "p99_9", "max")]  # fmt: skip
        assert sojourn_ms == sorted(sojourn_ms)
        # The shaper may send a burst ahead, and the last packet counts whole: a thousandth of three seconds.
        assert 0.5 < down["utilization"] <= 1.001
        # Goodput is payload, 1448 bytes of a frame of 1514, and cannot exceed what the link carried.
        goodput = sum(flow["goodput_bps"] for flow in run["flows"])
        assert goodput <= 10e6 * 1448 / 1514 * 1.01
        assert all(flow["received_bytes"] <= flow["sent_bytes"] for flow in run["flows"])
        assert 0.5 <= run["jain_goodput"] <= 1.0
        assert run["simulated_s"] == 4.0


def test_codel_keeps_a_shorter_queue_than_a_fifo(sojourn: Cli, experiment: Path):
    p50 = {run["queue"]: run["bottleneck"]["down"]["sojourn_ms"]["p50"] for run in runs_of(
        sojourn("run", experiment, "--json"))}  # fmt: skip
    assert p50["codel"] < p50["pfifo"] / 2


def test_results_do_not_depend_on_the_number_of_threads(sojourn: Cli, experiment: Path):
    one = runs_of(sojourn("run", experiment, "--json", "--jobs", "1"))
    two = runs_of(sojourn("run", experiment, "--json", "--jobs", "2"))
    assert without_wall_time(one) == without_wall_time(two)


def test_another_seed_is_another_run(sojourn: Cli, experiment: Path):
    first, _, second, _ = without_wall_time(runs_of(sojourn("run", experiment, "--json")))
    assert first["bottleneck"] != second["bottleneck"]


def test_an_override_replaces_the_files_value(sojourn: Cli, experiment: Path):
    runs = runs_of(sojourn("run", experiment, "--json", "--set", "experiment.repeat=1", "--set", "link.rate=1 Mbit/s"))
    assert len(runs) == 2
    assert all(run["bottleneck"]["down"]["delivered_bytes"] * 8 <= 1.05e6 * 4 for run in runs)


def test_a_sweep_runs_every_combination_and_says_which(sojourn: Cli, tmp_path: Path):
    sweep = '\n[sweep]\n"link.rate" = ["5 Mbit/s", "10 Mbit/s"]\n"traffic.0.flows" = [1, 2]\n'
    (tmp_path / "sweep.toml").write_text(EXPERIMENT.replace("repeat = 2", "repeat = 1") + sweep, encoding="utf-8")
    runs = runs_of(sojourn("run", "sweep.toml", "--json"))
    assert [(run["set"]["link.rate"], run["set"]["traffic.0.flows"], run["queue"]) for run in runs] == [
        (rate, flows, queue) for rate in ("5 Mbit/s", "10 Mbit/s") for flows in (1, 2) for queue in ("pfifo", "codel")
    ]
    assert [len(run["flows"]) for run in runs] == [1, 1, 2, 2] * 2
    table = sojourn("run", "sweep.toml").stdout
    assert "link.rate" in table
    assert "traffic.0.flows" in table


def test_out_holds_nothing_of_the_experiment_before(sojourn: Cli, experiment: Path, tmp_path: Path):
    up = EXPERIMENT.replace("[link]", '[link]\nup = { rate = "5 Mbit/s" }')
    record = '\n[record]\npackets = true\nseries = "500 ms"\nrtt = true\npcap = true\n'
    (tmp_path / "recorded.toml").write_text(up + record, encoding="utf-8")
    assert sojourn("run", "recorded.toml", "--out", "out", "--figures", "png").returncode == 0
    assert sojourn("report", "out").returncode == 0
    assert (tmp_path / "out" / "sojourn_cdf_up.png").exists()
    (tmp_path / "out" / "notes.txt").touch()
    assert sojourn("run", experiment, "--out", "out", "--figures", "png").returncode == 0
    assert sojourn("run", experiment, "--out", "fresh", "--figures", "png").returncode == 0
    files, fresh = ({path.name for path in (tmp_path / name).iterdir()} for name in ("out", "fresh"))
    assert files == fresh | {"notes.txt"}


def test_out_holds_everything_and_no_temporary_file(sojourn: Cli, tmp_path: Path):
    record = '\n[record]\npackets = true\nseries = "500 ms"\n'
    (tmp_path / "recorded.toml").write_text(EXPERIMENT + record, encoding="utf-8")
    result = sojourn("run", "recorded.toml", "--out", "out", "--json")
    assert result.returncode == 0, result.stderr
    figures = {f"{name}.{kind}" for name in ("overview", "sojourn_cdf", "sojourn_box", "sojourn_over_time",
                                                "goodput_over_time", "goodput_delay_ellipse", "goodput_delay_scatter",
                                                "goodput_bars", "windows_over_time")
               for kind in ("png",)}  # fmt: skip
    data = {"summary.json", "summary.csv", "experiment.json", "packets.parquet", "series.parquet",
            "flow_series.parquet", "histograms.parquet"}  # fmt: skip
    assert visible(tmp_path / "out") == figures | data
    assert [path.name for path in (tmp_path / "out").glob(".*")] == [".sojourn-manifest.json"]
    assert (tmp_path / "out" / "summary.json").read_text(encoding="utf-8") == result.stdout
    assert (tmp_path / "out" / "sojourn_cdf.png").read_bytes().startswith(b"\x89PNG")


def test_recorded_packets_are_those_that_the_summary_counts(sojourn: Cli, tmp_path: Path):
    (tmp_path / "recorded.toml").write_text(EXPERIMENT + "\n[record]\npackets = true\n", encoding="utf-8")
    runs = runs_of(sojourn("run", "recorded.toml", "--out", "out", "--figures", "none", "--json"))
    packets = pyarrow.parquet.read_table(tmp_path / "out" / "packets.parquet").to_pandas()
    for index, run in enumerate(runs):
        down = run["bottleneck"]["down"]
        own = packets[packets["run"] == index]
        assert (own["fate"] <= 1).sum() == down["delivered_packets"]
        assert (own["fate"] == 2).sum() == down["dropped_aqm"]
        assert (own["fate"] == 3).sum() == down["dropped_overflow"]
        assert own.loc[own["fate"] <= 1, "bytes"].sum() == down["delivered_bytes"]
        steady = own.loc[(own["fate"] <= 1) & (own["time_ns"] >= 1_000_000_000), "sojourn_ns"] / 1e6
        assert len(steady) == down["sojourn_ms"]["n"]
        assert steady.mean() == pytest.approx(down["sojourn_ms"]["mean"])


def test_every_run_leaves_the_histogram_of_its_sojourn_times(sojourn: Cli, experiment: Path, tmp_path: Path):
    runs = runs_of(sojourn("run", experiment, "--out", "out", "--figures", "none", "--json"))
    for run, loaded in zip(runs, load(tmp_path / "out").runs, strict=True):
        table = loaded.histogram()
        assert table is not None
        assert table.column_names == ["link", "direction", "sojourn_ms", "packets"]
        sojourn_ms = run["bottleneck"]["down"]["sojourn_ms"]
        assert sum(table["packets"].to_pylist()) == sojourn_ms["n"]
        assert table["sojourn_ms"].to_pylist()[-1] == sojourn_ms["max"]


def test_the_experiment_as_resolved_spells_out_defaults(sojourn: Cli, experiment: Path, tmp_path: Path):
    sojourn("run", experiment, "--out", "out", "--figures", "none")
    (cell,) = json.loads((tmp_path / "out" / "experiment.json").read_text(encoding="utf-8"))
    assert cell["queue"][1]["interval"] == "100 ms"
    assert cell["traffic"][0]["tcp"] == "cubic"


def test_writing_twice_replaces_the_first(sojourn: Cli, experiment: Path, tmp_path: Path):
    sojourn("run", experiment, "--out", "out", "--figures", "none")
    assert (
        sojourn("run", experiment, "--out", "out", "--figures", "none", "--set", "experiment.name=again").returncode
        == 0
    )
    assert json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))["experiment"] == "again"


def test_figures_are_saved_in_the_formats_that_are_asked_for(sojourn: Cli, experiment: Path, tmp_path: Path):
    run = ("run", experiment, "--set", "experiment.repeat=1", "--out", "out", "--figures")
    assert sojourn(*run, "svg,png").returncode == 0
    saved = {path.suffix for path in (tmp_path / "out").glob("overview.*")}
    assert saved == {".svg", ".png"}
    assert sojourn(*run, "pdf", "--resume").returncode == 0
    assert {path.suffix for path in (tmp_path / "out").glob("overview.*")} == {".svg", ".png", ".pdf"}
    assert (tmp_path / "out" / "overview.pdf").read_bytes().startswith(b"%PDF")
    assert sojourn(*run, "none").returncode == 0
    assert not list((tmp_path / "out").glob("*.svg"))
    wrong(sojourn(*run, "jpg"), '--figures: got "jpg"; must be none or some of png, svg, pdf')


def test_of_many_groups_a_row_per_queue_is_printed(sojourn: Cli, tmp_path: Path):
    kinds = ("voip", "ping", "web", "game", "video")
    groups = "".join(f'\n[[traffic]]\nkind = "{kind}"\nrtt = "20 ms"\n' for kind in kinds)
    more = f'\n[[queue]]\naqm = "fq_codel"\n{groups}'
    (tmp_path / "e.toml").write_text(EXPERIMENT.replace("repeat = 2", "repeat = 1") + more, encoding="utf-8")
    said = sojourn("run", "e.toml").stdout
    assert "At a glance" in said
    assert "Application-level figures" not in said
    assert "--out DIR writes all" in said


def test_queues_inside_a_discipline_are_shown(sojourn: Cli, tmp_path: Path):
    text = EXPERIMENT.replace('aqm = "pfifo"', 'aqm = "fq_codel"').replace("repeat = 2", "repeat = 1")
    (tmp_path / "e.toml").write_text(text, encoding="utf-8")
    said = sojourn("run", "e.toml", "--out", "out", "--figures", "none").stdout
    assert "Inner queues" in said
    assert re.search(r"fq_codel\s+sparse\s+\d", said)
    heading = said[said.index("Inner queues") :].partition("───")[0]
    assert {"p50", "p95", "packets"} <= set(heading.split())
    assert "target" not in heading  # Only CAKE's tins tell it.
    frame = load(tmp_path / "out").to_pandas()
    first, second = frame["queue.bulk.delivered_packets"]
    assert first > 0
    assert second != second  # NaN: CoDel has none


def test_compare_runs_every_queue_that_is_named(sojourn: Cli):
    runs = runs_of(sojourn(*COMPARE, "--json", "--repeat", "2", "--seed", "7", "pfifo", "codel:target=10ms", "codel"))
    assert [(run["label"], run["seed"]) for run in runs][:3] == [
        ("pfifo", 7), ("codel target=10 ms", 7), ("codel", 7),
    ]  # fmt: skip
    assert {run["seed"] for run in runs} == {7, 8}


def test_compare_with_ecn_marks_instead_of_dropping(sojourn: Cli):
    (run,) = runs_of(sojourn(*COMPARE, "--json", "--ecn", "codel"))
    down = run["bottleneck"]["down"]
    assert down["marked"] > 0
    assert down["dropped_aqm"] == 0


def test_progress_shows_on_standard_error_when_it_takes_long(sojourn: Cli, tmp_path: Path):
    text = EXPERIMENT.replace('"4 s"', '"120 s"').replace("10 Mbit", "100 Mbit").replace("repeat = 2", "repeat = 10")
    (tmp_path / "long.toml").write_text(text, encoding="utf-8")
    result = sojourn("run", "long.toml", "--jobs", "1")
    assert result.returncode == 0
    assert "of 20 runs" in result.stderr
    assert " left" in result.stderr


@pytest.mark.parametrize("what", ["aqm", "tcp", "traffic", "metrics", "studies"])
def test_lists_are_there_as_table_and_json(sojourn: Cli, what):
    entries = json.loads(sojourn("list", what, "--json").stdout)
    assert entries
    table = sojourn("list", what).stdout
    for entry in entries:
        assert entry["summary"]
        assert entry["name"] in table


def test_the_schema_for_editors_is_that_of_files(sojourn: Cli):
    schema = json.loads(sojourn("list", "schema").stdout)
    assert {"experiment", "link", "queue", "traffic"} <= set(schema["properties"])


def test_doctor_tells_what_is_there(sojourn: Cli):
    report = json.loads(sojourn("doctor", "--json").stdout)
    assert report["backends"]["sim"]["available"] is True
    real = report["backends"]["datapath"]
    assert real["available"] is (datapath.missing() is None)
    assert real["needs"]
    assert {check["name"] for check in report["linux"]} >= {"qemu-system-x86_64", "agent", "kernel"}
    assert all(check["found"] or check["remedy"] for check in report["linux"])
    assert report["packages"]["numpy"]["version"]
    assert "sim" in sojourn("doctor").stdout


def test_nothing_runs_on_linux_without_the_agent(sojourn: Cli, experiment: Path):
    without = {"env": {**os.environ, "SOJOURN_AGENT": "nowhere"}}
    for command in (("run", experiment, "--backend", "linux"), ("agree", experiment)):
        wrong(sojourn(*command, **without), 'backend: got "linux"; the agent is not built; ')


def test_doctor_says_what_is_missing(sojourn: Cli):
    told = sojourn("doctor", env={**os.environ, "SOJOURN_AGENT": "nowhere"}).stdout
    assert re.search(r"^datapath    not available: the agent is not built; ", told, re.M)


@pytest.mark.parametrize("command", ["link", "study", "kernel"])
def test_the_help_of_a_group_of_commands_has_no_options_that_install(sojourn: Cli, command: str):
    assert "--install-completion" not in sojourn(command, "--help").stdout


def test_help_and_version_are_no_errors(sojourn: Cli):
    for arguments in ((), ("--help",), ("--version",), ("run", "--help"), ("study", "run", "--help")):
        result = sojourn(*arguments)
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout


def test_a_reader_that_goes_away_is_no_traceback(experiment: Path):
    import subprocess

    from conftest import SOJOURN

    result = subprocess.run(
        f"{SOJOURN} list aqm --json | head -1", shell=True, capture_output=True, text=True, timeout=60
    )
    assert result.stderr == ""


def test_a_full_standard_output_is_one_line(sojourn: Cli):
    import subprocess

    from conftest import SOJOURN

    with Path("/dev/full").open("w") as full:
        result = subprocess.run([SOJOURN, "list", "aqm"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert result.returncode == 1
    assert result.stderr == "sojourn: standard output: No space left on device\n"


def test_a_terminal_without_unicode_gets_no_traceback(experiment: Path):
    import os
    import subprocess

    from conftest import SOJOURN

    result = subprocess.run([SOJOURN, "run", experiment], capture_output=True, timeout=60,
                            env={**os.environ, "PYTHONIOENCODING": "ascii"})  # fmt: skip
    assert (result.returncode, result.stderr) == (0, b"")


def test_resume_draws_the_figures_that_are_missing(sojourn, tmp_path):
    (tmp_path / "one.toml").write_text(
        'experiment = { duration = "1 s" }\nlink = { rate = "1 Mbit/s" }\nqueue = [{ aqm = "pfifo" }]\n'
        'traffic = [{ kind = "cbr", rtt = "10 ms", rate = "2 Mbit/s" }]\n'
    )
    for arguments in (("--figures", "none"), ("--resume", "--figures", "png")):
        assert sojourn("run", "one.toml", "--out", "out", *arguments).returncode == 0
    assert (tmp_path / "out" / "overview.png").stat().st_size > 1000


def test_a_fixed_rate_is_overridden_by_a_trace(sojourn: Cli, tmp_path: Path):
    """A line is an opportunity to send 1504 bytes: four a millisecond are 48 Mbit/s."""
    (tmp_path / "one.toml").write_text(
        'experiment = { duration = "2 s" }\nlink = { rate = "10 Mbit/s" }\nqueue = [{ aqm = "pfifo" }]\n'
        'traffic = [{ kind = "cbr", rate = "40 Mbit/s", rtt = "20 ms" }]\n'
    )
    (tmp_path / "cell").write_text("1\n1\n1\n1\n")
    ran = sojourn("run", "one.toml", "--set", "link.rate.trace=cell", "--json")
    assert runs_of(ran)[0]["flows"][0]["goodput_bps"] > 30e6
    wrong(sojourn("run", "one.toml", "--set", "link.rate.tracé=cell"), "unknown key")


def test_goodput_of_a_speed_test_is_not_above_the_rate(sojourn: Cli, tmp_path: Path):
    """What is queued when the downloads end arrives later, and is none of theirs."""
    (tmp_path / "test.toml").write_text(
        'experiment = { duration = "26 s" }\nlink = { rate = "10 Mbit/s", buffer = "700 ms", up.rate = "10 Mbit/s" }\n'
        'queue = [{ aqm = "pfifo" }]\ntraffic = [{ kind = "speed_test", rtt = "20 ms" }]\n'
    )
    ran = sojourn("run", "test.toml", "--json")
    groups = {group["name"]: group["goodput_bps"] for group in runs_of(ran)[0]["groups"]}
    assert 8.5e6 < groups["download"] < 9.7e6
    assert 8.5e6 < groups["upload"] < 9.7e6


def test_the_delay_of_a_calls_frames_is_a_metric(sojourn: Cli, tmp_path: Path):
    (tmp_path / "call.toml").write_text(
        'experiment = { duration = "5 s", repeat = 6 }\nlink = { rate = "2 Mbit/s" }\nqueue = [{ aqm = "pfifo" }]\n'
        'traffic = [{ kind = "call", rtt = "20 ms", direction = "down" }]\n'
    )
    ran = sojourn("run", "call.toml", "--until", "frame_p95_ms=50%", "--json")
    assert runs_of(ran)[0]["groups"][0]["frame_ms"]["p95"] > 1.0


def test_what_is_recorded_and_not_kept_is_told(sojourn: Cli, experiment: Path, tmp_path: Path):
    experiment.write_text(EXPERIMENT + '\n[record]\nrtt = true\nseries = "100 ms"\n')
    says = "note: [record]: queue_series, flow_series, rtts will not be kept; --out DIR keeps them\n"
    once = ("run", experiment, "--set", "experiment.repeat=1", "--set", "experiment.duration=1100ms")
    assert sojourn(*once).stderr == says
    assert says not in sojourn(*once, "--out", "out", "--figures", "none").stderr
    assert says not in sojourn(*once, "--store", "store").stderr
    assert (tmp_path / "out" / "rtts.parquet").exists()
