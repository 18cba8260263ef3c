"""What the page does with the text of an experiment file: it changes single values, and completes what is typed."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from sojourn import _core

ROOT = Path(__file__).parents[2]
TEXT = """# A line.
[experiment]
duration = "20 s"   # enough

[link]
rate = "20 Mbit/s"
up   = { rate = "2 Mbit/s", buffer = "50 packets" }

# The arms.
[[queue]]
aqm = "pfifo"

[[queue]]
aqm    = "codel"
target = "5 ms"

# The load.
[[traffic]]
kind = "bulk"
rtt = "40 ms"
"""


@pytest.fixture
def evaluate(tmp_path: Path):
    """The value of an expression over the page's modules."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node to run scripts with")
    for script in (ROOT / "web").glob("*.js"):
        shutil.copy(script, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}', encoding="utf-8")

    def value(expression: str, **given: Any) -> Any:
        lines = [
            'import * as toml from "./toml.js";',
            'import * as complete from "./complete.js";',
            'import * as share from "./share.js";',
            'import * as cells from "./cells.js";',
            'import * as results from "./results.js";',
            'import * as charts from "./charts.js";',
            'import { readFileSync } from "node:fs";',
            "const given = JSON.parse(readFileSync(0, 'utf8'));",
            f"console.log(JSON.stringify(await ({expression})));",
        ]
        (tmp_path / "script.js").write_text("\n".join(lines), encoding="utf-8")
        ran = subprocess.run(
            [node, "script.js"], cwd=tmp_path, input=json.dumps(given), capture_output=True, text=True, timeout=60
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    return value


def about() -> dict[str, Any]:
    """What the compiled simulator tells the page."""
    return {
        "schema": json.loads(_core.schema_json()),
        "disciplines": json.loads(_core.disciplines_json()),
        "congestion_controls": json.loads(_core.congestion_controls_json()),
        "traffic": json.loads(_core.traffic_json()),
    }


def test_a_value_is_changed_and_nothing_beside_it(evaluate):
    changes = [
        ("experiment", "duration", "5 s"),
        ("link", "buffer", "100 packets"),
        ("queue", "aqm", "pie"),
        ("traffic", "flows", "4"),
        ("experiment", "duration", None),
    ]
    code = "given.changes.map(([path, key, value]) => toml.withValue(given.text, toml.tables(given.text).find("
    code += "table => table.path === path), key, value))"
    found = evaluate(code, text=TEXT, changes=changes)
    assert '\nduration = "5 s"   # enough\n' in found[0]
    expected = []
    for path, key, value in changes:
        document = tomllib.loads(TEXT)
        table = document[path][0] if isinstance(document[path], list) else document[path]
        table[key] = int(value) if value and value.isdigit() else value
        if value is None:
            del table[key]
        expected.append(document)
    assert [tomllib.loads(text) for text in found] == expected


def test_tables_are_replaced_and_comments_stay(evaluate):
    code = "toml.withTables(given.text, 'queue', [toml.blockOf(given.text, toml.tables(given.text)"
    code += ".filter(table => table.path === 'queue')[1]), '[[queue]]\\naqm = \"cake\"'])"
    found = evaluate(code, text=TEXT)
    assert [arm["aqm"] for arm in tomllib.loads(found)["queue"]] == ["codel", "cake"]
    assert tomllib.loads(found)["queue"][0]["target"] == "5 ms"
    for comment in ("# A line.", "# The arms.", "# The load."):
        assert comment in found
    none = evaluate("toml.withTables(given.text, 'queue', [])", text=TEXT)
    assert "queue" not in tomllib.loads(none)


@pytest.mark.parametrize(
    ("typed", "offered", "not_offered"),
    [
        ("[experiment]\nrep", ["repeat"], ["rate"]),
        ("[li", ["[link]"], ["[[queue]]"]),
        ("[[", ["[[queue]]"], []),
        ('[[queue]]\naqm = "fq_', ["fq_codel", "fq_pie"], ["codel"]),
        ('[[queue]]\naqm = "codel"\n', ["target", "interval", "label"], ["tupdate", "aqm"]),
        ('[[queue]]\naqm = "pie"\ne', ["ecn", "ecn_threshold"], ["target"]),
        ('[[traffic]]\nkind = "v', ["video", "voip"], ["bulk"]),
        ('[[traffic]]\nkind = "bulk"\ntcp = "cu', ["cubic"], ["reno"]),
        ('[[traffic]]\nkind = "voip"\n', ["codec"], ["tcp"]),
        ('[[traffic]]\nkind = "bulk"\necn = ', ["true", "false"], []),
        ('[link]\nrate = "1 Mbit/s"\nup = { r', [], ["rate"]),
        ("# [que", [], ["[[queue]]"]),
    ],
)
def test_completions_are_what_the_schema_accepts(evaluate, typed, offered, not_offered):
    found = evaluate("complete.completions(given.about, given.text, given.text.length)", about=about(), text=typed)
    labels = [offer["label"] for offer in found["offers"]]
    assert [label for label in offered if label not in labels] == []
    assert [label for label in not_offered if label in labels] == []


def test_a_link_brings_the_same_text_back(evaluate):
    texts = [TEXT, "", "# ≤ 7 é 😀\n", TEXT * 50]
    code = "Promise.all(given.texts.map(async text => share.carriedBy(await share.fragment(text))))"
    assert evaluate(code, texts=texts) == texts


def test_points_of_a_fast_link_reach_over_all_of_the_time_and_drops_are_kept(evaluate):
    code = """(() => {
        const delays = new charts.Delays(null);
        for (let time = 0; time < 400000; time++) delays.add({ time, what: time === 399 ? 2 : 0 });
        return delays.points.map((point) => point.time);
    })()"""
    times = evaluate(code)
    assert 3000 <= len(times) <= 12_000
    assert max(later - earlier for earlier, later in itertools.pairwise([0, *times, 400_000])) <= 128
    delays = "(() => { const delays = new charts.Delays(null); delays.every = 64;"
    delays += "for (let time = 0; time < 640; time++) delays.add({ time, what: time === 399 ? 2 : 0 });"
    assert 399 in evaluate(delays + "return delays.points.map((point) => point.time); })()")


def test_cells_have_the_numbers_of_the_registry(evaluate):
    spec = next(iter(_core.Plan.read_text(TEXT, "a.toml", [("experiment.repeat", "2")])))
    run = json.loads(spec.run(_core.Monitor()).summary_json)
    metrics = json.loads(_core.metrics_json())
    code = "cells.columns(given.metrics, [given.run]).map("
    code += "({ metric, whose, read }) => [whose, metric.name, read(given.run)])"
    found = {(whose, name): value for whose, name, value in evaluate(code, metrics=metrics, run=run)}
    queue = run["bottleneck"]["up"]
    assert found["up", "sojourn_p95_ms"] == queue["sojourn_ms"]["p95"]
    assert found["up", "dropped_packets"] == queue["dropped_aqm"] + queue["dropped_overflow"]
    assert found["down", "goodput_bps"] == run["flows"][0]["goodput_bps"]
    assert found["", "jain_goodput"] == run["jain_goodput"]
    assert found["bulk", "rtt_p50_ms"] == run["groups"][0]["rtt_ms"]["p50"]
    assert ("up", "goodput_bps") not in found


def test_no_text_of_a_csv_file_is_a_formula_and_no_number_is_nan(evaluate):
    code = """results.csv(
        [{ metric: { name: "one" }, whose: "=group", read: (run) => run.one }],
        [{ set: { key: 0 }, runs: given.map((run) => ({ ...run, one: run.one === "NaN" ? NaN : run.one })) }])"""
    runs = [
        {"label": "=1+1", "seed": 1, "set": {"key": -5}, "one": -0.5},
        {"label": "+a,b", "seed": 2, "set": {"key": "-5 ms"}, "one": None},
        {"label": "@a", "seed": 3, "set": {"key": True}, "one": "NaN"},
    ]
    text = evaluate(code.replace("given", "given.runs"), runs=runs)
    assert text.splitlines() == [
        "label,seed,key,'=group.one",
        "'=1+1,1,-5,-0.5",
        "\"'+a,b\",2,'-5 ms,",
        "'@a,3,true,",
    ]
