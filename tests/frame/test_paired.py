"""Queues compared on the same seeds."""

from __future__ import annotations

import copy
import csv
from pathlib import Path

import numpy as np
import pytest

import sojourn as sj
from conftest import EXPERIMENT, Cli, wrong
from sojourn.cli import run as run_command
from sojourn.frame.metrics import metric_called
from sojourn.frame.pairs import difference_rows, differences
from sojourn.frame.statistics import mean_interval, student_t
from sojourn.page.pairs import paired_sheet


@pytest.fixture(scope="module")
def results() -> sj.Results:
    return sj.run_text(EXPERIMENT, set={"experiment.repeat": 6}, jobs=2)


def with_median(results: sj.Results, values: dict[str, list[float]]) -> sj.Results:
    """The same results, with these medians of the sojourn time by arm and seed."""
    summary = copy.deepcopy(results.summary)
    for run in summary["runs"]:
        run["bottleneck"]["down"]["sojourn_ms"]["p50"] = values[run["label"]][run["seed"] - 1]
    return sj.Results(summary, [sj.Run(run, lambda _: None) for run in summary["runs"]])


def test_a_difference_is_taken_seed_by_seed(results: sj.Results):
    # Differences 1, 1, 1, 2, 2, 2, though the arms themselves vary a hundred times as much.
    made = with_median(results, {"pfifo": [0, 100, 200, 300, 400, 500], "codel": [1, 101, 201, 302, 402, 502]})
    (one,) = differences(made, "pfifo", [metric_called("sojourn_p50_ms")])
    assert (one.arm.label, one.interval.middle, one.interval.n) == ("codel", 1.5, 6)
    assert (one.interval.low, one.interval.high) == (1.0, 2.0)
    assert one.interval.is_clear


def test_seeds_that_only_one_of_them_has_are_left_out(results: sj.Results):
    """The order of the runs does not matter either."""
    made = with_median(results, {"pfifo": [0, 100, 200, 300, 400, 500], "codel": [1, 101, 201, 302, 402, 502]})
    without = {"pfifo": 2, "codel": 5}
    some = made.of_runs([run for run in reversed(made.runs) if run.seed != without[run.label]])
    (one,) = differences(some, "pfifo", [metric_called("sojourn_p50_ms")])
    # Of seeds 1, 3, 4 and 6.
    assert (one.interval.low, one.interval.middle, one.interval.high, one.interval.n) == (1.0, 1.5, 2.0, 4)


def test_a_difference_that_may_be_none_is_not_clear(results: sj.Results):
    made = with_median(results, {"pfifo": [5.0] * 6, "codel": [4, 4, 4, 6, 6, 6]})
    (one,) = differences(made, "pfifo", [metric_called("sojourn_p50_ms")])
    assert not one.interval.is_clear


def test_an_interval_that_ends_at_zero_is_not_clear(results: sj.Results):
    for of_codel in ([5, 5, 5, 6, 6, 6], [4, 4, 4, 5, 5, 5]):
        made = with_median(results, {"pfifo": [5.0] * 6, "codel": of_codel})
        (one,) = differences(made, "pfifo", [metric_called("sojourn_p50_ms")])
        assert 0.0 in (one.interval.low, one.interval.high)
        assert not one.interval.is_clear


def test_a_difference_is_taken_within_a_cell(results: sj.Results):
    """The baseline of another cell differs by far, and a cell without one has no difference."""
    runs = []
    for rate, of_pfifo, of_codel in (("1 Mbit/s", 100.0, 101.0), ("2 Mbit/s", 1.0, 3.0), ("3 Mbit/s", 7.0, 9.0)):
        made = with_median(results, {"pfifo": [of_pfifo] * 6, "codel": [of_codel] * 6})
        runs += [sj.Run({**run.summary, "set": {"link.rate": rate}}, lambda _: None) for run in made.runs]
    swept = results.of_runs([run for run in runs if run.label == "codel" or run.summary["set"]["link.rate"][0] != "3"])
    found = differences(swept, "pfifo", [metric_called("sojourn_p50_ms")])
    assert [(one.arm.set["link.rate"], one.interval.middle) for one in found] == [("1 Mbit/s", 1.0), ("2 Mbit/s", 2.0)]


def test_five_seeds_are_too_few_to_be_clear(results: sj.Results):
    made = with_median(results, {"pfifo": [5.0] * 6, "codel": [1.0] * 6})
    few = sj.Results(made.summary, [run for run in made.runs if run.seed < 6])
    (one,) = differences(few, "pfifo", [metric_called("sojourn_p50_ms")])
    assert (one.interval.n, one.interval.is_clear) == (5, False)
    assert caption(few).endswith("bootstrap confidence interval; no asterisk with fewer than 6 seeds")
    assert caption(made).endswith("interval; * the interval excludes zero")
    assert caption(few.of_runs([run for run in few.runs if run.seed == 1])) == "median difference over 1 seed"


def test_no_end_of_an_interval_that_excludes_zero_is_shown_as_zero(results: sj.Results):
    def shown(of_codel: list[float]) -> str:
        made = with_median(results, {"pfifo": [0.0] * 6, "codel": of_codel})
        return paired_sheet(made, "pfifo", [metric_called("sojourn_p50_ms")]).rows[0][-1]

    assert shown([0.0625, 0.0625, 0.5, 0.5, 1.0, 1.0]) == "+0.50*\n+0.06 to +1.00"
    assert shown([0.00390625, 0.00390625, 0.5, 0.5, 1.0, 1.0]) == "+0.500*\n+0.004 to +1.000"
    assert shown([-0.0001] * 6) == "−0.0001*\n−0.0001 to −0.0001"
    assert shown([0.015625, 0.015625, 20, 20, 30, 30]) == "+20.00*\n+0.02 to +30.00"
    # One that includes zero has the digits of the metric.
    assert shown([-0.001, -0.001, 0.001, 0.001, 0.001, 0.001]) == "0.00\n0.00 to 0.00"


def caption(results: sj.Results) -> str:
    return paired_sheet(results, "pfifo", [metric_called("sojourn_p50_ms")]).caption


def test_a_seed_that_only_one_of_them_has_does_not_count(results: sj.Results):
    # Seeds 1 to 4 of the baseline, 1 to 6 of the other: four differences of 1.
    made = with_median(results, {"pfifo": [0, 10, 20, 30, 40, 50], "codel": [1, 11, 21, 31, 100, 100]})
    fewer = [run for run in made.runs if run.label == "codel" or run.seed < 5]
    (one,) = differences(sj.Results(made.summary, fewer), "pfifo", [metric_called("sojourn_p50_ms")])
    assert (one.interval.middle, one.interval.low, one.interval.high, one.interval.n) == (1.0, 1.0, 1.0, 4)


def test_the_table_follows_the_results(sojourn: Cli, experiment: Path):
    result = sojourn("run", experiment, "--baseline", "pfifo")
    assert result.returncode == 0, result.stderr
    head, _, below = result.stdout.partition("difference from pfifo")
    assert "pfifo" in head
    assert "codel" in below
    assert "−" in below
    assert "median difference over 2 seeds" in below


CALLS = '\n[[traffic]]\nkind = "voip"\nname = "talk"\nrtt = "40 ms"\n'


def test_what_applications_saw_is_compared_too(sojourn: Cli, experiment: Path):
    experiment.write_text(EXPERIMENT + CALLS)
    result = sojourn("run", experiment, "--baseline", "pfifo")
    assert result.returncode == 0, result.stderr
    _, _, below = result.stdout.partition("Application-level figures: difference from pfifo")
    assert "MOS" in below
    assert [line.split()[1] for line in below.splitlines() if line.strip().startswith("codel")] == ["bulk", "talk"]


def test_metrics_of_groups_are_compared_by_name():
    results = sj.run_text(EXPERIMENT + CALLS)
    made = copy.deepcopy(results.summary)
    for run in made["runs"]:
        talk = next(group for group in run["groups"] if group["name"] == "talk")
        talk["mos"] = {"pfifo": 2.0, "codel": 3.5}[run["label"]] + run["seed"] / 10
    changed = sj.Results(made, [sj.Run(run, lambda _: None) for run in made["runs"]])
    (one,) = differences(changed, "pfifo", [metric_called("mos", changed)])
    assert one.interval.middle == pytest.approx(1.5)
    table = changed.paired("pfifo", ["goodput_bps", "talk.mos"])
    shown = str(table)
    assert "difference from pfifo" in shown
    assert "+1.50" in shown
    assert all(
        f"<th>{heading}</th>" in table._repr_html_() for heading in ("queue", "goodput Mbit/s", "talk MOS 1–4.5")
    )
    frame = table.to_pandas()
    assert list(frame["metric"]) == ["goodput_bps", "talk.mos"]
    assert frame["difference"].iloc[1] == pytest.approx(1.5)
    assert repr(table).startswith("<2 differences with intervals; columns label, baseline, ")
    assert changed.paired("pfifo", "talk.mos").to_arrow().num_rows == 1
    with pytest.raises(ValueError, match=r"talk\.mos"):
        changed.paired("pfifo", ["talk.moss"])


def test_an_unknown_baseline_is_refused_before_anything_is_run(sojourn: Cli, experiment: Path, tmp_path: Path):
    wrong(sojourn("run", experiment, "--baseline", "pfif", "--out", "out"), "pfif", "pfifo, codel")
    assert not (tmp_path / "out").exists()
    wrong(sojourn("run", experiment, "--baseline", "pfif", "--dry-run"), "pfif", "pfifo, codel")


def test_differences_of_one_seed_have_no_interval():
    one = sj.run_text(EXPERIMENT, set={"experiment.repeat": 1}).paired("pfifo", ["sojourn_p95_ms"]).to_pandas()
    assert one["difference"].iloc[0] < 0.0
    assert one[["low", "high"]].isna().all(axis=None)
    assert list(one["seeds"]) == [1]


def test_a_baseline_alone_is_refused_before_anything_is_run(sojourn: Cli, experiment: Path, tmp_path: Path):
    """Beside another queue in the file, too, if that is in another case."""
    says = 'baseline: got "codel"; must have another queue beside it to compare with'
    wrong(sojourn("compare", "codel", "--rate", "10mbit", "--rtt", "40ms", "--baseline", "codel", "--out", "out"), says)
    alone = EXPERIMENT.replace('[[queue]]\naqm = "pfifo"\n', "")
    experiment.write_text(alone)
    wrong(sojourn("run", experiment, "--baseline", "codel", "--out", "out"), says)
    wrong(sojourn("run", experiment, "--baseline", "codel", "--dry-run"), says)
    case = '[[case]]\nlabel = "{0}"\nset = {{ "queue.0.aqm" = "{0}", "queue.0.label" = "{0}" }}\n'
    experiment.write_text(alone.replace('target = "5 ms"\n', "") + "".join(map(case.format, ("codel", "pie"))))
    wrong(sojourn("run", experiment, "--baseline", "codel", "--out", "out"), says)
    assert not (tmp_path / "out").exists()


def test_a_baseline_alone_is_refused_of_results_too(results: sj.Results):
    alone = results.of_runs([run for run in results.runs if run.label == "pfifo"])
    with pytest.raises(sj.ExperimentError, match="must have another queue beside it"):
        alone.paired("pfifo")
    with pytest.raises(sj.ExperimentError, match="must be the label of a queue: pfifo"):
        alone.paired("codel")


SWEPT = (
    EXPERIMENT.replace('target = "5 ms"\n', "")
    + """
[sweep]
"traffic.0.tcp" = ["cubic", "reno"]
"traffic.0.flows" = [1, 2]
"queue.0.ecn" = [false, true]
"queue.1.ecn" = [false, true]
"""
)


def test_a_swept_value_is_a_baseline():
    """Each arm is compared with the one that differs from it only in that value; the results tell which it was."""
    text = SWEPT.partition('"queue.0.ecn"')[0]
    results = sj.run_text(text, set={"experiment.repeat": 1})
    frame = results.paired("cubic", ["sojourn_p50_ms"]).to_pandas()
    assert list(frame["traffic.0.tcp"]) == ["reno"] * 4
    assert set(frame["baseline"]) == {"cubic"}
    keys = ("traffic.0.tcp", "traffic.0.flows")
    of = {(arm.label, *(arm.set[key] for key in keys)): arm.runs[0].sojourn_ms()["p50"] for arm in results.arms}
    for label, flows, found in zip(frame["label"], frame["traffic.0.flows"], frame["difference"], strict=True):
        assert found == of[label, "reno", int(flows)] - of[label, "cubic", int(flows)]
    assert list(results.paired("2", ["sojourn_p50_ms"]).to_pandas()["traffic.0.flows"]) == ["1"] * 4


def test_a_swept_value_is_a_baseline_on_the_command_line(sojourn: Cli, experiment: Path, tmp_path: Path):
    experiment.write_text(SWEPT.partition('"traffic.0.flows"')[0])
    done = sojourn("run", experiment, "--baseline", "traffic.0.tcp=cubic", "--out", "out", "--figures", "none")
    assert "difference from traffic.0.tcp=cubic" in done.stdout
    rows = list(csv.DictReader((tmp_path / "out" / "differences.csv").open(encoding="utf-8")))
    assert {(row["label"], row["traffic.0.tcp"]) for row in rows} == {("pfifo", "reno"), ("codel", "reno")}
    assert sojourn("export", "out", "--format", "latex").returncode == 0
    assert "traffic.0.tcp=cubic" in (tmp_path / "out" / "latex" / "differences.tex").read_text(encoding="utf-8")


def test_a_value_of_several_keys_needs_its_key(sojourn: Cli, experiment: Path):
    experiment.write_text(SWEPT)
    says = ('baseline: got "true"; must be one of ', "queue.0.ecn=true", "queue.1.ecn=true")
    wrong(sojourn("run", experiment, "--baseline", "true", "--dry-run"), *says)
    says = (
        "must be the label of a queue: pfifo, codel; or a swept value: ",
        "traffic.0.tcp=cubic",
        "traffic.0.flows=1",
    )
    wrong(sojourn("run", experiment, "--baseline", "cubi", "--dry-run"), *says)
    assert sojourn("run", experiment, "--baseline", "queue.1.ecn=true", "--dry-run").returncode == 0


def test_an_interrupted_run_without_pairs_has_no_table_of_differences(capsys: pytest.CaptureFixture[str]):
    whole = sj.run_text(EXPERIMENT)
    kept = whole.of_runs([run for run in whole.runs if run.label == "pfifo"])
    run_command._print(kept, baseline="pfifo", json=False, out=None, short=True)
    shown = capsys.readouterr().out
    assert "pfifo" in shown
    assert "difference" not in shown


def test_each_direction_has_its_own_fairness():
    """Of 2 flows down with 20 and 200 ms, and one up, which is fair to itself; without it there is none up."""
    bulk = '[[traffic]]\nkind = "bulk"\nrtt = "20 ms"\n'
    text = EXPERIMENT.partition("[[traffic]]")[0] + bulk + bulk.replace("20 ms", "200 ms")
    text = text.replace("[link]\n", '[link]\nup = { rate = "2 Mbit/s" }\n')
    jain = metric_called("jain_goodput")

    run = sj.run_text(f'{text}{bulk}direction = "up"\n').runs[0].summary
    near, far, _ = (flow["goodput_bps"] for flow in run["flows"])
    expected = (near + far) ** 2 / (2 * (near**2 + far**2))
    assert expected < 0.99
    assert [jain.value(run, "down"), jain.value(run, "up")] == pytest.approx([expected, 1.0])
    assert run["jain_goodput"] != pytest.approx(expected)
    assert np.isnan(jain.value(sj.run_text(text).runs[0].summary, "up"))


def test_students_t_is_that_of_the_tables():
    # Abramowitz and Stegun, table 26.10, two-sided 0.95.
    for freedom, t in [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (9, 2.262), (10, 2.228), (30, 2.042)]:
        assert student_t(freedom) == pytest.approx(t, abs=5e-4), freedom


def test_the_interval_of_a_mean():
    # Mean 2, standard deviation 1, n 3: 2 ± 4.3027 / sqrt(3).
    interval = mean_interval([1.0, 2.0, 3.0, float("nan")])
    assert (interval.middle, interval.n) == (2.0, 3)
    assert (interval.low, interval.high) == pytest.approx((2 - 2.48414, 2 + 2.48414), abs=1e-4)
    assert mean_interval([7.0]).high == 7.0
    assert np.isnan(mean_interval([]).middle)


def test_differences_of_many_queues_are_in_a_file(sojourn: Cli, tmp_path: Path):
    rates = ", ".join(f'"{rate} Mbit/s"' for rate in range(2, 13))
    text = EXPERIMENT.replace('"4 s"', '"1100 ms"') + f'\n[sweep]\n"link.rate" = [{rates}]\n'
    (tmp_path / "many.toml").write_text(text)
    done = sojourn("run", "many.toml", "--baseline", "pfifo", "--out", "out", "--figures", "none")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader((tmp_path / "out" / "differences.csv").open(encoding="utf-8")))
    assert {row["link.rate"] for row in rows} == {f"{rate} Mbit/s" for rate in range(2, 13)}
    assert {row["label"] for row in rows} == {"codel"}
    results = sj.load(tmp_path / "out")
    median = next(
        one.interval.middle
        for one in differences(results, "pfifo", [metric_called("sojourn_p50_ms")])
        if one.arm.set["link.rate"] == "12 Mbit/s"
    )
    row = next(row for row in rows if (row["link.rate"], row["metric"]) == ("12 Mbit/s", "sojourn_p50_ms"))
    assert float(row["difference"]) == median
    assert "difference from pfifo" in done.stdout
    assert "and 2 more" in done.stdout


def test_inner_queues_are_compared_with_those_of_the_same_discipline():
    """CAKE's tin ``bulk`` and FQ-CoDel's list ``bulk`` have a name in common and nothing else."""
    head, _, traffic = EXPERIMENT.partition("[[queue]]")
    tail = "[[traffic]]" + traffic.partition("[[traffic]]")[2]
    keys = ['aqm = "fq_codel"', 'aqm = "fq_codel"\nlabel = "slow"\ntarget = "20 ms"', 'aqm = "cake"']
    arms = "".join(f"[[queue]]\n{one}\n" for one in keys)
    results = sj.run_text(head + arms + tail, jobs=2)
    rows = difference_rows(results, "fq_codel")
    inner = {row["label"] for row in rows if str(row["metric"]).startswith("queue.bulk.")}
    assert inner == {"slow"}
    assert {row["label"] for row in rows} == {"slow", "cake"}


def test_a_metric_of_the_whole_run_has_one_difference_without_a_direction():
    text = EXPERIMENT.replace("[link]\n", '[link]\nup = { rate = "2 Mbit/s" }\n')
    rows = difference_rows(sj.run_text(text, jobs=2), "pfifo")
    directions = [row["direction"] for row in rows if row["metric"] == "timeouts"]
    assert directions == [""]
    assert [row["direction"] for row in rows if row["metric"] == "sojourn_p50_ms"] == ["down", "up"]


BOTH_WAYS = EXPERIMENT.replace("[link]\n", '[link]\nup = { rate = "2 Mbit/s" }\n')


def test_the_fairness_of_each_direction_has_a_row():
    """As the tables have it; a row without a direction would be taken for that of the run."""
    text = BOTH_WAYS.replace("[[traffic]]\n", '[[traffic]]\ndirection = "both"\nflows = 3\n').replace("flows = 2\n", "")
    results = sj.run_text(text, jobs=2)
    jain = metric_called("jain_goodput")
    for rows in (
        [row for row in results.to_frame().to_arrow().to_pylist() if row["label"] == "codel"],
        difference_rows(results, "pfifo"),
    ):
        assert [row["direction"] for row in rows if row["metric"] == "jain_goodput"] == ["down", "up"]
    codel = next(arm for arm in results.arms if arm.label == "codel")
    up = [
        row for row in results.to_frame().to_arrow().to_pylist() if (row["label"], row["direction"]) == ("codel", "up")
    ]
    (found,) = (row["median"] for row in up if row["metric"] == "jain_goodput")
    assert found == np.median([jain.value(run.summary, "up") for run in codel.runs])


def test_the_fairness_in_a_network_belongs_to_no_link():
    links = "".join(
        f'[[link]]\nname = "{name}"\nfrom = "{of}"\nto = "{to}"\nrate = "10 Mbit/s"\n'
        for name, of, to in (("near", "a", "b"), ("far", "b", "c"))
    )
    flows = "".join(
        f'[[traffic]]\nkind = "bulk"\nname = "{name}"\nflows = 2\nfrom = "{of}"\nto = "c"\nrtt = "20 ms"\n'
        for name, of in (("long", "a"), ("short", "b"))
    )
    head = '[experiment]\nduration = "2 s"\n'
    results = sj.run_text(f'{head}{links}[[queue]]\naqm = "pfifo"\n[[queue]]\naqm = "codel"\n{flows}', jobs=2)
    for rows in (results.to_frame().to_arrow().to_pylist(), difference_rows(results, "pfifo")):
        places = {(row["label"], row["link"], row["direction"]) for row in rows if row["metric"] == "jain_goodput"}
        assert places <= {("pfifo", "", "down"), ("codel", "", "down")}
        assert ("codel", "", "down") in places
    assert "Jain" not in paired_sheet(results, "pfifo").headings
    assert "Jain" in paired_sheet(results, "pfifo", [metric_called("jain_goodput")]).headings


def test_a_group_s_metric_stands_in_every_row_of_the_table():
    """Beside metrics of two directions, it has no direction."""
    results = sj.run_text(BOTH_WAYS + CALLS, jobs=2)
    table = results.paired("pfifo", ["sojourn_p95_ms", "talk.mos", "timeouts"])
    sheet = paired_sheet(
        results, "pfifo", [metric_called(name, results) for name in ("sojourn_p95_ms", "talk.mos", "timeouts")]
    )
    down, up = sheet.rows
    assert down[-2:] == up[-2:]
    assert down[-3] != up[-3]
    metrics = [(row["direction"], row["metric"]) for row in table.to_arrow().to_pylist()]
    assert metrics == [("down", "sojourn_p95_ms"), ("", "talk.mos"), ("", "timeouts"), ("up", "sojourn_p95_ms")]


def test_what_only_rounding_distinguishes_is_equal(results: sj.Results):
    """The sums of the same goodput, divided otherwise among flows."""
    made = with_median(results, {"pfifo": [9.8e6, 9.7e6, 9.6e6] * 2, "codel": [9.8e6 - 2e-9, 9.7e6 - 2e-9, 9.5e6] * 2})
    (one,) = differences(made, "pfifo", [metric_called("sojourn_p50_ms")])
    assert (one.interval.high, one.interval.is_clear) == (0.0, False)
