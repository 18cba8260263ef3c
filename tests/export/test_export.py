"""`sojourn export`: what other tools make of our results."""

from __future__ import annotations

import csv
import gzip
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import sojourn as sj
from conftest import EXPERIMENT, Cli, wrong
from sojourn.export.flent import data_file
from sojourn.page.pairs import paired_groups_sheet, paired_sheet
from sojourn.page.sheet import Sheet, in_latex, tabular
from sojourn.page.tables import results_sheet

SERIES = '\n[record]\nseries = "200 ms"\n'
PING = '\n[[traffic]]\nkind = "ping"\ninterval = "50 ms"\nrtt = "40 ms"\n'
FLENT = Path(sys.executable).with_name("flent")


@pytest.fixture
def recorded(sojourn: Cli, tmp_path: Path) -> Path:
    """Results of two queues and two seeds with a series."""
    (tmp_path / "recorded.toml").write_text(EXPERIMENT + PING + SERIES, encoding="utf-8")
    result = sojourn("run", "recorded.toml", "--out", "out", "--figures", "none")
    assert result.returncode == 0, result.stderr
    return tmp_path / "out"


def exported(sojourn: Cli, directory: Path, format: str) -> list[Path]:
    result = sojourn("export", directory, "--format", format)
    assert result.returncode == 0, result.stderr
    return [Path(line) for line in result.stdout.splitlines()]


def flent(*arguments: str | Path) -> str:
    """What Flent itself says."""
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    result = subprocess.run([FLENT, *map(str, arguments)], capture_output=True, text=True, timeout=120, env=environment)
    assert result.returncode == 0, result.stderr
    assert "ERROR" not in result.stderr + result.stdout
    greeting, _, said = result.stdout.partition("\n")
    assert greeting.startswith("Starting Flent")
    return said


def document(path: Path) -> dict:
    return json.loads(gzip.decompress(path.read_bytes()))


def test_flent_opens_and_plots_a_run(sojourn: Cli, recorded: Path, tmp_path: Path):
    paths = exported(sojourn, recorded, "flent")
    assert [path.name for path in paths] == [
        f"tcp_ndown-{queue}_seed_{seed}.flent.gz" for seed in (1, 2) for queue in ("pfifo", "codel")
    ]
    flent("-i", paths[0], "-p", "totals", "-o", tmp_path / "totals.png")
    flent("-i", paths[0], "-i", paths[1], "-p", "box_combine", "-o", tmp_path / "boxes.png")
    assert (tmp_path / "totals.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "boxes.png").read_bytes().startswith(b"\x89PNG")


def test_flent_reads_our_numbers(sojourn: Cli, recorded: Path):
    path = exported(sojourn, recorded, "flent")[0]
    rows = list(csv.DictReader(flent("-i", path, "-f", "csv").splitlines()))
    data = document(path)
    assert data["version"] == 4
    assert len(rows) == len(data["x_values"]) == 20
    assert [float(row["TCP download::1"]) for row in rows] == pytest.approx(data["results"]["TCP download::1"])
    series = pyarrow.parquet.read_table(recorded / "flow_series.parquet", filters=[("run", "=", 0)]).to_pandas()
    ours = series[series.flow == 0].goodput_bps / 1e6
    assert [float(row["TCP download::1"]) for row in rows] == pytest.approx(list(ours), abs=1e-6)
    for row in rows:
        streams = float(row["TCP download::1"]) + float(row["TCP download::2"])
        assert float(row["TCP download sum"]) == pytest.approx(streams, abs=2e-6)
        assert float(row["TCP download avg"]) == pytest.approx(streams / 2, abs=2e-6)


@pytest.mark.parametrize(("direction", "test"), [("up", "tcp_nup"), ("both", "rrul_be_nflows")])
def test_a_run_becomes_the_test_that_it_is_like(sojourn: Cli, tmp_path: Path, direction: str, test: str):
    text = EXPERIMENT.replace("flows = 2", f'flows = 2\ndirection = "{direction}"').replace("repeat = 2", "repeat = 1")
    text = text.replace('buffer = "100 packets"', 'buffer = "100 packets"\nup = { rate = "5 Mbit/s" }')
    (tmp_path / "e.toml").write_text(text + SERIES, encoding="utf-8")
    assert sojourn("run", "e.toml", "--out", "out", "--figures", "none").returncode == 0
    path = tmp_path / exported(sojourn, tmp_path / "out", "flent")[0]
    assert document(path)["metadata"]["NAME"] == test
    lines = [line for line in flent("-i", path, "-f", "summary").splitlines() if "Mbits/s" in line or "TCP" in line]
    assert len([line for line in lines if "::" in line]) == (4 if direction == "both" else 2)
    assert not any("No data" in line for line in lines)
    names = set(document(path)["results"])
    assert (
        {"TCP totals", "TCP upload BE::2", "TCP download BE::2"} if direction == "both" else {"TCP upload::2"}
    ) <= names


def test_rtts_of_a_ping_are_flents_ping():
    results = sj.run_text(EXPERIMENT + PING + SERIES, set={"experiment.repeat": 1})
    run = results.runs[0]
    # Two bulk flows and the ping, in two bins; the second has no reply.
    table = pa.table({
        "time_s": [0.0, 0.0, 0.0, 0.2, 0.2, 0.2],
        "flow": [0, 1, 2, 0, 1, 2],
        "goodput_bps": [1e6, 2e6, 0.0, 3e6, 4e6, 0.0],
        "cwnd_segments": [10.0, 10.0, math.nan, 20.0, 20.0, math.nan],
        "rtt_ms": [90.0, 91.0, 45.5, 92.0, 93.0, math.nan],
    })  # fmt: skip
    data = data_file(sj.Run(run.summary, lambda _: table), results.summary)
    assert data["results"]["Ping (ms) ICMP"] == [45.5, None]
    assert data["raw_values"]["Ping (ms) ICMP"] == [{"t": 0.2, "val": 45.5}]
    assert data["results"]["TCP download sum"] == [3.0, 7.0]
    assert data["x_values"] == [0.2, 0.4]
    assert data["metadata"]["STEP_SIZE"] == 0.2


def test_flents_ping_cdf_of_a_run_of_ten_seconds_has_points(tmp_path: Path):
    # The plot leaves out five seconds at either end.
    text = (EXPERIMENT + PING + SERIES).replace('"4 s"', '"10 s"').replace("repeat = 2", "repeat = 1")
    results = sj.run_text(text)
    path = tmp_path / "run.flent.gz"
    path.write_bytes(gzip.compress(json.dumps(data_file(results.runs[0], results.summary)).encode()))
    flent("-i", path, "-p", "ping_cdf", "-o", tmp_path / "ping.svg")
    svg = (tmp_path / "ping.svg").read_text(encoding="utf-8")
    points = max(part.split('"')[0].count("\nL ") for part in svg.split(' d="')[1:])
    assert points > 20


RRUL = """
experiment = { name = "rrul", duration = "12 s", warmup = "2 s" }
link = { rate = "20 Mbit/s", up = { rate = "20 Mbit/s" } }
queue = [{ aqm = "cake" }]
traffic = [{ kind = "rrul", rtt = "30 ms", idle = "2 s" }]
record = { series = "200 ms" }
"""


def test_rrul_is_flents_rrul(tmp_path: Path):
    (run,) = (results := sj.run_text(RRUL)).runs
    document = data_file(run, results.summary)
    assert document["metadata"]["NAME"] == "rrul"
    streams = {f"TCP {way} {point}" for way in ("download", "upload") for point in ("BE", "BK", "CS5", "EF")}
    pings = {"Ping (ms) ICMP", *(f"Ping (ms) UDP {point}" for point in ("BE", "BK", "EF"))}
    combined = {"Ping (ms) avg", "TCP totals"} | {
        f"TCP {way} {of}" for way in ("download", "upload") for of in ("avg", "sum")
    }
    assert set(document["results"]) == streams | pings | combined
    assert set(document["raw_values"]) == streams | pings
    background = next(flow for flow in run.summary["flows"] if (flow.get("dscp"), flow["direction"]) == (8, "down"))
    table = run.flow_series()
    assert table is not None
    own = table.filter(
        [(traffic, flow) == (background["traffic"], background["flow"]) for traffic, flow in places_of(run, table)]
    )
    assert document["results"]["TCP download BK"] == [round(value / 1e6, 6) for value in own["goodput_bps"].to_pylist()]
    path = tmp_path / "run.flent.gz"
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    flent("-i", path, "-p", "all_scaled", "-o", tmp_path / "all.png")
    rows = list(csv.DictReader(flent("-i", path, "-f", "csv").splitlines()))
    assert streams | pings <= set(rows[0])


def places_of(run: sj.Run, table: pa.Table) -> list[tuple[int, int]]:
    """The flow of each row: its group and its number there."""
    flows = [(flow["traffic"], flow["flow"]) for flow in run.summary["flows"]]
    return [flows[index] for index in table["flow"].to_pylist()]


def test_flents_test_of_other_flows_notes_their_code_points():
    text = RRUL.replace('kind = "rrul", rtt = "30 ms", idle = "2 s"', 'kind = "bulk", rtt = "30 ms", dscp = "EF"')
    results = sj.run_text(text)
    metadata = data_file(results.runs[0], results.summary)["metadata"]
    assert (metadata["NAME"], metadata["NOTE"].endswith("; code points of the TCP flows: down EF")) == (
        "tcp_ndown",
        True,
    )


def test_flent_needs_a_series(sojourn: Cli, experiment: Path, tmp_path: Path):
    sojourn("run", experiment, "--out", "out", "--figures", "none")
    wrong(sojourn("export", "out", "--format", "flent"), "flent", "[record] series")
    assert not (tmp_path / "out" / "flent").exists()


def test_flent_needs_a_series_with_rows(sojourn: Cli, recorded: Path):
    path = recorded / "flow_series.parquet"
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(path).slice(0, 0), path)
    wrong(sojourn("export", recorded, "--format", "flent"), "flent", "pfifo, seed 1", "[record] series")
    assert not (recorded / "flent").exists()


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_tables_hold_every_run_and_flow(sojourn: Cli, recorded: Path, format: str):
    paths = {path.stem: path for path in exported(sojourn, recorded, format)}
    assert set(paths) == {"runs", "flows", "series", "flow_series", "histograms"}
    summary = json.loads((recorded / "summary.json").read_text(encoding="utf-8"))
    if format == "csv":
        rows = list(csv.DictReader(paths["flows"].read_text(encoding="utf-8").splitlines()))
    else:
        rows = pyarrow.parquet.read_table(paths["flows"]).to_pylist()
    flows = [(run, flow) for run in summary["runs"] for flow in run["flows"]]
    assert len(rows) == len(flows) == 4 * 3
    for row, (run, flow) in zip(rows, flows, strict=True):
        assert (row["label"], int(row["seed"]), row["kind"]) == (run["label"], run["seed"], flow["kind"])
        assert float(row["goodput_bps"]) == pytest.approx(flow["goodput_bps"])
        assert float(row["rtt_p95_ms"]) == pytest.approx(flow["rtt_ms"]["p95"])


def test_the_same_results_give_the_same_files(sojourn: Cli, recorded: Path):
    first = [path.read_bytes() for path in exported(sojourn, recorded, "flent")]
    assert first == [path.read_bytes() for path in exported(sojourn, recorded, "flent")]


def test_a_wrong_export_is_refused(sojourn: Cli, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    wrong(sojourn("export", "empty", "--format", "csv"), "empty", "sojourn run --out")
    wrong(sojourn("export", "empty", "--format", "xls"), "xls", "csv, events, flent, latex, mahimahi, parquet")
    wrong(sojourn("export", "empty"), "--format")
    (tmp_path / "empty" / "summary.json").write_text("{", encoding="utf-8")
    wrong(sojourn("export", "empty", "--format", "csv"), "damaged")


def test_arms_that_recorded_nothing_are_named(sojourn: Cli, experiment: Path, tmp_path: Path):
    sojourn("run", experiment, "--set", "sweep.record.packets=[true, false]", "--out", "out", "--figures", "none")
    result = sojourn("export", "out", "--format", "csv")
    assert result.returncode == 0
    assert result.stderr == (
        "packets: without pfifo, record.packets False; codel, record.packets False, which did not record it\n"
    )
    results = sj.load(tmp_path / "out")
    assert [run.packets() is not None for run in results.runs] == [True] * 4 + [False] * 4
    curve = results.plot.cdf().axes[0].lines[3].get_xdata()
    assert len(curve) > 2


def test_an_export_of_earlier_results_does_not_stay_beside_new_ones(sojourn: Cli, recorded: Path, experiment: Path):
    for format in ("csv", "flent", "latex"):
        sojourn("export", recorded, "--format", format)
    own = recorded / "csv" / "notes.txt"
    own.write_text("mine", encoding="utf-8")
    sojourn("run", experiment, "--out", recorded, "--figures", "none")
    assert [path.name for path in (recorded / "csv").iterdir()] == ["notes.txt"]
    assert not (recorded / "flent").exists()
    assert not (recorded / "latex").exists()


def test_latex_sets_the_medians_of_the_table(sojourn: Cli, recorded: Path):
    assert sojourn("export", recorded, "--format", "latex").returncode == 0
    text = (recorded / "latex" / "queues.tex").read_text(encoding="utf-8")
    results = sj.load(recorded)
    rows = [line for line in text.splitlines() if line.endswith("\\\\")]
    assert len(rows) == 1 + len(results.arms)
    assert rows[0].count("&") == len(rows[1].split(" & ")) - 1
    for row, cells in zip(rows[1:], results_sheet(results).rows, strict=True):
        assert all(in_latex(cell.split("\n")[0]) in row for cell in cells)
    assert tabular(Sheet("", "", ("queue", "p50"), (("[a]", "1"), ("*b", "2")), 1)).count("\n{}") == 2
    assert in_latex("a_b & 5 % of {x}^2 ~ $") == r"a\_b \& 5 \% of \{x\}\textasciicircum{}2 \textasciitilde{} \$"


def test_a_frame_has_medians_with_their_intervals(recorded: Path):
    results = sj.load(recorded)
    frame = results.to_frame(["sojourn_p50_ms", "utilization"])
    rows = frame.to_pandas().to_dict("records")
    assert rows == pa.table(frame).to_pylist()
    assert [(row["label"], row["metric"]) for row in rows] == [
        (arm.label, metric) for arm in results.arms for metric in ("sojourn_p50_ms", "utilization")
    ]
    for row, arm in zip(rows[::2], results.arms, strict=True):
        values = [run.sojourn_ms()["p50"] for run in arm.runs]
        assert row["median"] == pytest.approx(sum(values) / 2)
        assert (row["low"], row["high"]) == pytest.approx((min(values), max(values)))
        assert row["n"] == 2
    assert len(results.to_frame()) > len(frame) == 2 * len(results.arms)
    one = results.to_frame("utilization").to_pandas().to_dict("records")
    assert one == rows[1::2]


def test_a_metric_of_a_group_has_one_row_in_a_frame():
    text = EXPERIMENT.replace("[[queue]]", '[link.up]\nrate = "5 Mbit/s"\n\n[[queue]]', 1)
    results = sj.run_text(text + '\n[[traffic]]\nkind = "voip"\nrtt = "20 ms"\n')
    rows = results.to_frame(["sojourn_p95_ms", "voip.mos"]).to_pandas().to_dict("records")
    found = [(row["metric"], row["direction"]) for row in rows]
    assert found == [("sojourn_p95_ms", "down"), ("voip.mos", ""), ("sojourn_p95_ms", "up")] * len(results.arms)


def test_latex_has_differences_if_the_results_have(sojourn: Cli, recorded: Path):
    names = {path.stem for path in exported(sojourn, recorded, "latex")}
    assert names == {"queues", "groups"}
    # The apostrophe that a spreadsheet needs before this label is not part of it.
    label = ("--set", "queue.1.label=-codel", "--baseline=-codel")
    done = sojourn("run", "recorded.toml", "--out", "out", "--figures", "none", *label)
    assert done.returncode == 0, done.stderr
    written = {path.stem: path.read_text(encoding="utf-8") for path in exported(sojourn, recorded, "latex")}
    assert set(written) == names | {"differences", "group_differences"}
    results = sj.load(recorded)
    groups = paired_groups_sheet(results, "-codel")
    assert groups is not None
    assert written["differences"] == tabular(paired_sheet(results, "-codel"))
    assert written["group_differences"] == tabular(groups)


def test_figures_are_exported_as_wide_as_a_column(sojourn: Cli, experiment: Path, tmp_path: Path):
    """3.5 inches are 252 points; what was drawn goes with the results that it was drawn of."""
    assert sojourn("run", experiment, "--out", "out", "--figures", "none").returncode == 0
    done = sojourn("export", "out", "--format", "pdf", "--width", "column")
    assert done.returncode == 0, done.stderr
    pictures = sorted((tmp_path / "out" / "pdf").glob("*.pdf"))
    assert "sojourn_cdf.pdf" in [one.name for one in pictures]
    assert all(b"/MediaBox [ 0 0 252 " in one.read_bytes() for one in pictures)
    assert sojourn("run", experiment, "--out", "out", "--figures", "none", "--set", "experiment.seed=2").returncode == 0
    assert not (tmp_path / "out" / "pdf").exists()


def test_latex_has_the_columns_that_are_asked_for(sojourn: Cli, experiment: Path, tmp_path: Path):
    assert sojourn("run", experiment, "--out", "out", "--figures", "none", "--baseline", "pfifo").returncode == 0
    done = sojourn("export", "out", "--format", "latex", "--metrics", "sojourn_p99_ms,bulk.rtt_p50_ms")
    assert done.returncode == 0, done.stderr
    assert [Path(line).name for line in done.stdout.splitlines()] == ["queues.tex", "differences.tex"]
    for name in ("queues.tex", "differences.tex"):
        assert "\nqueue & p99 ms & bulk RTT p50 ms \\\\\n" in (tmp_path / "out" / "latex" / name).read_text(
            encoding="utf-8"
        )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--format", "pdf", "--width", "colum"), '--width: got "colum"; must be one of column, page'),
        (("--format", "csv", "--width", "page"), '--width: got "page"; needs a --format of figures: png, svg, pdf'),
        (("--format", "csv", "--metrics", "mos"), '--metrics: got "mos"; needs --format latex'),
        (
            ("--format", "latex", "--metrics", "sojourn_p95"),
            '; did you mean "sojourn_p95_ms"?\n',
        ),
    ],
)
def test_options_of_other_formats_are_refused(sojourn: Cli, experiment: Path, options, says):
    assert sojourn("run", experiment, "--out", "out", "--figures", "none").returncode == 0
    wrong(sojourn("export", "out", *options), says)


def test_latex_of_a_network_has_a_row_per_queue_only_for_metrics_of_queues(sojourn: Cli, tmp_path: Path):
    text = """
        experiment = { name = "cell", duration = "2 s" }
        link = [
            { name = "core", from = "a", to = "b", rate = "50 Mbit/s", queue.aqm = "pfifo" },
            { name = "cell", from = "b", to = "c", rate = "5 Mbit/s" },
        ]
        queue = [{ aqm = "pfifo" }, { aqm = "codel" }]
        traffic = [{ kind = "bulk", name = "file", from = "a", to = "c", rtt = "20 ms" }]
    """
    (tmp_path / "cell.toml").write_text(text, encoding="utf-8")
    assert sojourn("run", "cell.toml", "--out", "out", "--figures", "none").returncode == 0

    def rows(metrics: str) -> list[str]:
        done = sojourn("export", "out", "--format", "latex", "--metrics", metrics)
        assert done.returncode == 0, done.stderr
        lines = (tmp_path / "out" / "latex" / "queues.tex").read_text(encoding="utf-8").splitlines()
        return [line.rpartition(" & ")[0] for line in lines if line.endswith(r" \\")][1:]

    assert rows("file.rtt_p95_ms") == ["pfifo", "codel"]
    assert rows("sojourn_p95_ms") == [f"{name} & {link}/down" for name, link in (
        ("pfifo", "core"), ("pfifo", "cell"), ("pfifo (with codel)", "core"), ("codel", "cell")
    )]  # fmt: skip
    must = 'got "goodput_bps" with several links; must be that of a group: file.goodput_bps'
    for metrics, told in (("sojourn_p95_ms,goodput_bps", must), ("mos", 'got "mos"; must be one of ')):
        wrong(sojourn("export", "out", "--format", "latex", "--metrics", metrics), f"--metrics: {told}")
