"""The rows of results, whose figures are read in Rust, have what each metric reads from a summary."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import sojourn as sj
from sojourn.frame.metrics import columns, has_queue

EXAMPLES = Path(__file__).parents[2] / "examples"
SHORT = {"experiment.duration": "2 s", "experiment.warmup": "500 ms", "experiment.repeat": 1}
BOTH_WAYS = """
experiment = {}
link = { rate = "4 Mbit/s", up = { rate = "2 Mbit/s" } }
queue = [{ aqm = "dualpi2" }, { aqm = "cake" }]
traffic = [
    { kind = "bulk", flows = 3, direction = "both", rtt = "20 ms" },
    { kind = "bulk", name = "other", flows = 3, direction = "up", rtt = "20 ms" },
    { kind = "web", rtt = "30 ms" }, { kind = "ping", rtt = "30 ms" },
]
"""


@pytest.mark.parametrize("name", ["both-ways", "parking-lot", "wifi"])
def test_rows_have_the_figures_of_metrics(name: str, tmp_path: Path):
    file = EXAMPLES / f"{name}.toml"
    if not file.exists():
        file = tmp_path / file.name
        file.write_text(BOTH_WAYS)
    results = sj.run(file, set=SHORT)
    queues = [(run, queue) for run in results.runs for queue in results.queues if has_queue(run.summary, queue)]
    assert len(queues) > 1
    for (run, queue), row in zip(queues, results.rows(), strict=True):
        assert (row["label"], row["seed"], row["direction"]) == (run.label, run.seed, queue.rpartition("/")[2])
        figures = {metric.name: metric.value(run.summary, queue) for metric in columns(results)}
        assert list(row)[-len(figures) :] == list(figures)
        for name, figure in figures.items():
            assert row[name] == figure or (math.isnan(row[name]) and math.isnan(figure)), name
