"""The simulator gives the same bytes in a browser as natively."""

from __future__ import annotations

import json
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import sojourn as sj
from sojourn import _core

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))
RANDOM = 200
NODE = """
import { readFileSync } from "node:fs";
import { Engine } from "./engine.mjs";
const { module, files } = JSON.parse(readFileSync(0, "utf8"));
const engine = await Engine.from(readFileSync(module));
for (const file of files) {
  const { count } = engine.call({ do: "read", ...file });
  for (let run = 0; run < count; run++) {
    engine.call({ do: "begin", run, watch: run % 2 === 1 });
    // In pieces, as a page does, with observations between them.
    for (let at = 0; !engine.call({ do: "advance", until_s: null, events: 50_000 + 7 * at }).finished; at++) {
      if (run % 2) engine.call({ do: "observe" }), engine.events();
    }
    const reply = engine.callText({ do: "finish" });
    console.log(reply.slice('{"summary":'.length, reply.lastIndexOf(',"tables":')));
  }
}
"""


def without_wall_time(text: str) -> str:
    """A run's summary without the time that it took, which the machine determines."""
    return re.sub(r'"wall_s":[^,]*,', "", text)


def natively(file: dict[str, Any]) -> list[str]:
    """The summaries of a file's runs, as text."""
    plan = _core.Plan.read_text(file["text"], file["name"], file["set"])
    return [without_wall_time(spec.run(_core.Monitor()).summary_json) for spec in plan]


def in_wasm(node: str, module: Path, folder: Path, files: list[dict[str, Any]]) -> list[str]:
    """The same from the compiled module."""
    (folder / "engine.mjs").write_text((ROOT / "web" / "engine.js").read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "run.mjs").write_text(NODE, encoding="utf-8")
    given = json.dumps({"module": str(module), "files": files})
    ran = subprocess.run([node, "run.mjs"], cwd=folder, input=given, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr
    return [without_wall_time(line) for line in ran.stdout.splitlines()]


def drawn(number: int) -> dict[str, Any]:
    """A random experiment: line, queue, traffic, seed."""
    draw = random.Random(number)
    aqms = [known["name"] for known in json.loads(_core.disciplines_json())]
    controls = [known["name"] for known in json.loads(_core.congestion_controls_json())]
    rtt = f'rtt = "{draw.choice([1, 10, 40, 100, 300])} ms"'
    ecn = draw.choice(["true", "false"])
    kinds = [
        f'kind = "bulk"\nflows = {draw.randint(1, 6)}\ntcp = "{draw.choice(controls)}"\necn = {ecn}',
        'kind = "web"',
        'kind = "voip"',
        'kind = "game"',
        'kind = "video"',
        'kind = "onoff"\nrate = "2 Mbit/s"',
        f'kind = "cbr"\nrate = "{draw.randint(100, 4000)} kbit/s"',
        'kind = "web"\nconnections = 4',
        'kind = "ping"',
    ]
    traffic = "".join(f"[[traffic]]\n{kind}\n{rtt}\n" for kind in draw.sample(kinds, draw.randint(1, 3)))
    up = draw.choice(["", f'up = {{ rate = "{draw.randint(1, 10)} Mbit/s" }}\n', ""])
    loss = draw.choice(["", "", 'loss = "0.5 %"\n'])
    text = f"""
[experiment]
duration = "{draw.choice([1, 2, 4])} s"
seed = {draw.randint(0, 10**9)}
[link]
rate = "{draw.choice([1, 2, 5, 10, 30])} Mbit/s"
{up}{loss}[[queue]]
aqm = "{draw.choice(aqms)}"
[record]
rtt = true
{traffic}"""
    return {"name": f"{number}.toml", "text": text, "set": []}


def test_every_example_gives_the_same_bytes(node: str, module: Path, tmp_path: Path):
    files = [
        {"name": path.name, "text": path.read_text("utf-8"), "set": [("experiment.repeat", "1")]} for path in EXAMPLES
    ]
    assert len(files) >= 4
    expected = [text for file in files for text in natively(file)]
    assert in_wasm(node, module, tmp_path, files) == expected


def test_random_experiments_give_the_same_bytes(node: str, module: Path, tmp_path: Path):
    files, expected = [], []
    for number in range(RANDOM):
        file = drawn(number)
        try:
            expected += natively(file)
        except sj.ExperimentError as error:
            # A draw that is no experiment, such as a control that needs ECN without it, is none in the browser either.
            assert "must" in str(error) or "needs" in str(error), (number, error)
            continue
        files.append(file)
    assert len(files) > RANDOM // 2
    assert in_wasm(node, module, tmp_path, files) == expected
