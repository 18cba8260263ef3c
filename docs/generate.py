"""Generates documentation: the page of the file's keys, the JSON schema of a study's recipe, an example's output."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from sojourn import _core
from sojourn.studies.recipe import Recipe

Schema = dict[str, Any]
HERE = Path(__file__).parent
SCHEMA = HERE.parent / "studies" / "study.schema.json"

CASES = """\
```toml
[[case]]
label = "as it is"

[[case]]
label = "shaped to 95 %"
set = { "link.router.rate" = "285 Mbit/s", "link.router.up.rate" = "19 Mbit/s" }
```

`label` names the set-up in tables and on axes; `set` has dotted keys and their values, none for the file as it is. An
override `--set` of such a key holds in every case. A key is in cases or in `[sweep]`, not in both."""
DESIGN = """\
With `design`, cells are sampled from ranges instead:

```toml
[sweep]
design = "sobol"
samples = 256
"link.rate" = { from = "1 Mbit/s", to = "100 Mbit/s", scale = "log" }
"traffic.0.flows" = { from = 1, to = 64, scale = "log" }
"traffic.0.tcp" = ["reno", "cubic"]
```

- `design`: `"sobol"`, for indices of sensitivity, makes `samples` × (keys + 2) cells; `samples` is a power of two.
  `"latin_hypercube"` makes `samples` cells; each key has a value in each of as many parts of its range.
- A range is `from`, `to`, with the same unit, and `scale`: `"linear"` or `"log"`, default `"linear"`. Values have four
  significant digits; flows, packets and bytes are whole numbers. Listed values are taken alike often.
- `seed` of the sampling: a whole number, default 1. The same file gives the same cells, by the same version of SALib.

[Many runs](many-runs.md#designs) shows what to do with them."""
HEAD = """\
# The experiment file

A TOML file. Quantities are text with a unit: `"10 Mbit/s"`, `"100 ms"`, `"150 kB"`, `"83 packets"`. A key that is not
listed here is an error, and so is a value out of its range; the message names the line. `--set` overrides a value by
its dotted key: `--set queue.0.target="10 ms"`.

A link with a varying rate has a schedule of rates, or a trace. A rate of the schedule applies to the packets that leave
from then on; one that left at a low rate holds the link for all of its time, also beyond the end of that rate, as with
Linux's HTB, which forgets what exceeds a minute. A link that pauses is a trace with a gap. A trace is in the format of
[mahimahi](https://github.com/ravinet/mahimahi): a text file with one line per opportunity to deliver a packet of 1500
bytes (without its headers on the link). Each line is a time in whole milliseconds, not before that of the line above.
Equal lines are several packets at once; an opportunity without a packet is lost; small packets share one. The trace
repeats after its last time. [varying-rate.toml](../examples/varying-rate/varying-rate.toml) has one. Its path is
relative to the experiment file, in `--set link.rate.trace=PATH` to the working directory. A trace of delays is another
format: a line per change from 0 s on, with the time in seconds and the delay in milliseconds: `1.5,20`.

Editors complete and check the file by its JSON Schema: `sojourn list schema > experiment.schema.json`, and in the file,
for [Taplo](https://taplo.tamasfe.dev) and the editors that use it, the line `#:schema ./experiment.schema.json`.

This page is generated from that schema (`make docs`).
"""

LINKS = """\
## [[link]]

The links of a network, instead of `[link]`, each between two nodes. Packets queue at every link that they pass.
The keys `from` and `to` of traffic name its source and destination nodes. Links without a `queue` are under test: the
arms of `[[queue]]` are compared there, each at all of these links. `--set link.home.rate="5 Mbit/s"` selects a link by
name. [parking-lot.toml](../examples/parking-lot.toml) has three links in a row, [modem.toml](../examples/modem.toml) an
unmanaged queue behind the managed one. Each accepts the keys of `[link]` and:
"""

WIFI = """\
### [[link]] with kind = "wifi"

An access point and its stations, whose frames contend for one medium: the simulator only. Down is from the access
point, up are the stations. `to` names the stations, which are nodes like others: traffic goes to them and comes from
them. The queues are Linux's, per station with airtime fairness and airtime queue limits. The arm `fq_codel` is then
mac80211's own FQ-CoDel, whose defaults differ from the qdisc's (target 20 ms, quantum 300 B, 4096 flows and 8192
packets for all stations together, in at most 16 MiB, or 4 MiB before 802.11ac: 1820 packets of 1500 B; it takes
`target`, `interval`, `flows`, `quantum`, `limit` and `ecn`); every other arm stands in its place, once per station and
user priority. With `queueing = "qdisc"` the arm stands above a device ring, as all disciplines did before Linux 4.10.
Packets have a user priority by their code point, as Linux maps them, and by that an access category. Each category has
two user priorities: DF and AF21 are both best effort, and have queues, aggregates and Block Acks of their own.
`--set link.wifi.standard="802.11g"` addresses a link by its name, `--set link.wifi.station.phone.rate="6.5 Mbit/s"` a
station. [wifi.toml](../examples/wifi.toml) shows what a slow station does to the others.
"""

# The notation of a value, by the end of its pattern in the schema.
WRITTEN = (
    ("bdp$", '`"1 bdp"`'),
    ("(ns|us|µs|ms|s|min)$", 'a time, `"5 ms"`'),
    ("gbit)$", 'a rate, `"10 Mbit/s"`'),
    ("(packets?|p)$", '`"10 packets"`'),
    ("dB$", '`"35 dB"`'),
    ("%$", '`"0.1 %"`'),
    ("{1,3}$", '`"6.12"`'),
    ("{0,39}$", 'a name, `"gateway"`'),
)


def accepts(schema: Schema) -> str:
    """The accepted values of a key, in words."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(accepts, schema["anyOf"])))
    if "oneOf" in schema:
        return "a table"
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(word)}`" for word in schema["enum"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "pattern" in schema:
        return _written(schema["pattern"])
    if "prefixItems" in schema:
        return "[" + ", ".join(map(accepts, schema["prefixItems"])) + "]"
    match schema.get("type"):
        case "array":
            return _list(schema) if "items" in schema else "a list"
        case "integer" | "number" as kind:
            low, high = schema.get("minimum"), schema.get("maximum")
            number = "whole number" if kind == "integer" else "number"
            if low is None:
                return f"a {number}"
            return f"a {number} from {low}" + (f" to {high}" if high is not None and high < 2**53 else "")
        case "boolean":
            return "`true`, `false`"
        case "object":
            return "a table"
        case _:
            return "text"


def _list(schema: Schema) -> str:
    least, most, each = schema.get("minItems"), schema.get("maxItems"), accepts(schema["items"])
    count = f" of {least}" if least == most and most else ""
    return f"a list{count}, each {each}"


def _written(pattern: str) -> str:
    if "\\.\\." in pattern:
        return 'a range, `"0.1..2 %"`' if "%" in pattern else 'a range, `"0..1 s"`'
    if "packets?|p|B" in pattern:
        return '`"83 packets"`, `"150 kB"`'
    return next((text for end, text in WRITTEN if pattern.endswith(end)), 'data, `"1514 B"`')


def rows(keys: dict[str, Schema], required: list[str]) -> list[str]:
    """A table of keys."""
    lines = ["| key | accepts | default | meaning |", "| --- | --- | --- | --- |"]
    for name, schema in keys.items():
        meaning, _, words = schema.get("description", "").partition(" Default: ")
        if name in required:
            default = "required"
        elif "default" in schema:
            default = f"`{json.dumps(schema['default'], ensure_ascii=False)}`"
        else:
            default = words.removesuffix(".")
        lines.append(f"| `{name}` | {_cell(accepts(schema))} | {_cell(default)} | {_cell(meaning)} |")
    return [*lines, ""]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def common(kinds: list[Schema], but: str) -> list[str]:
    """The keys that all kinds share, in order."""
    shared = set.intersection(*(set(kind["properties"]) for kind in kinds)) - {but}
    return [name for name in kinds[0]["properties"] if name in shared]


def section(title: str, schema: Schema) -> list[str]:
    """A section of the file that has one form."""
    return [f"## {title}", "", schema["description"], "", *rows(schema["properties"], schema["required"])]


def page() -> str:
    """The whole page."""
    top = json.loads(_core.schema_json())["properties"]
    lines = [HEAD, *section("[experiment]", top["experiment"]), *_links(top["link"])]
    lines += [*_classes(top["class"]), *_queues(top["queue"]), *_traffic(top["traffic"])]
    lines += section("[record]", top["record"])
    lines += ["## [sweep]", "", top["sweep"]["description"], ""]
    lines += ["```toml", "[sweep]", '"link.rate" = ["1 Mbit/s", "10 Mbit/s"]', '"traffic.0.flows" = [4, 16, 64]', "```"]
    lines += ["", DESIGN, "## [[case]]", "", top["case"]["description"], "", CASES]
    return "\n".join(lines) + "\n"


def _links(schema: Schema) -> list[str]:
    only, several = schema["anyOf"]
    up = only["properties"]["up"]
    lines = ["## [link]", "", 'The bottleneck, in the forward ("down") direction.', ""]
    lines += rows(only["properties"], only["required"])
    lines += ["### [link.up]", "", up["description"].partition(" Default: ")[0], ""]
    lines += rows(up["properties"], up["required"])
    wired, wifi = several["items"]["anyOf"]
    own = {key: value for key, value in wired["properties"].items() if key not in only["properties"]}
    lines += [LINKS, *rows(own, wired["required"]), WIFI, *rows(wifi["properties"], wifi["required"])]
    for title, table in (
        ("link.station.NAME", wifi["properties"]["station"]["additionalProperties"]),
        ("link.up of Wi-Fi", wifi["properties"]["up"]),
    ):
        lines += [f"#### [{title}]", "", *rows(table["properties"], table["required"])]
    return lines


def _classes(schema: Schema) -> list[str]:
    of_class = schema["items"]
    up = of_class["properties"]["up"]
    lines = ["## [[class]]", "", schema["description"].partition(" Default: ")[0], ""]
    lines += ["An example: [an operator's tree](operator.md).", "", *rows(of_class["properties"], of_class["required"])]
    lines += ["### [class.up]", "", up["description"].partition(" Default: ")[0], ""]
    return lines + rows(up["properties"], up["required"])


def _queues(schema: Schema) -> list[str]:
    kinds = schema["items"]["oneOf"]
    shared = common(kinds, but="aqm")
    lines = ["## [[queue]]", "", schema["description"] + " `aqm` names its discipline; every one accepts:", ""]
    lines += rows({name: kinds[0]["properties"][name] for name in shared}, [])
    lines += ["| `aqm` | what it is | its keys |", "| --- | --- | --- |"]
    for discipline in json.loads(_core.disciplines_json()):
        name = discipline["name"]
        # A discipline's own page says what each of its keys does.
        linked = f"[`{name}`](disciplines/{name}.md)" if (HERE / "disciplines" / f"{name}.md").exists() else f"`{name}`"
        keys = ", ".join(f"`{key['name']}`" for key in discipline["keys"] if key["name"] not in shared)
        lines.append(f"| {linked} | {_cell(discipline['summary'])} | {keys} |")
    return [*lines, ""]


def _traffic(schema: Schema) -> list[str]:
    kinds = schema["items"]["oneOf"]
    shared = common(kinds, but="kind")
    lines = ["## [[traffic]]", "", schema["description"] + " `kind` says what its flows do; every kind accepts:", ""]
    lines += rows({name: kinds[0]["properties"][name] for name in shared}, kinds[0]["required"])
    for kind in kinds:
        name = kind["properties"]["kind"]
        # A key that all kinds have may mean something else in one.
        as_usual = {key for key in shared if accepts(kind["properties"][key]) == accepts(kinds[0]["properties"][key])}
        own = {key: value for key, value in kind["properties"].items() if key not in (*as_usual, "kind")}
        lines += [f"### `{name['const']}`", "", name["description"], "", *rows(own, kind["required"])]
    return lines


def recipe_schema() -> str:
    """The JSON schema of a study's recipe, for editors."""

    def of_ours(kind: type) -> Schema:
        a_text = {"type": "string"}
        return a_text if kind is Path else {"anyOf": [a_text, {"type": "array", "items": a_text}]}

    return json.dumps(msgspec.json.schema(Recipe, schema_hook=of_ours), indent=1) + "\n"


ADVICE = HERE / "advise.md"
_EXAMPLE = re.compile(r"(```sh\nsojourn (advise .*?)\n```\n\n```text\n)(.*?)(```)", re.S)


def advice() -> str:
    """The page of advice, with the output of its first command as it is now."""
    written = ADVICE.read_text(encoding="utf-8")
    found = _EXAMPLE.search(written)
    if found is None:
        raise ValueError(f"{ADVICE}: has no example with its output")
    command = [sys.executable, "-m", "sojourn", *shlex.split(found.group(2).replace("\\\n", " "))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "120"})
    output = "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
    return written[: found.start(3)] + output + written[found.end(3) :]


if __name__ == "__main__":
    ADVICE.write_text(advice(), encoding="utf-8")
    (HERE / "experiment.md").write_text(page(), encoding="utf-8")
    SCHEMA.write_text(recipe_schema(), encoding="utf-8")
