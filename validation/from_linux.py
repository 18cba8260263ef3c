"""Turns measurements of Linux into scenarios: ``python validation/from_linux.py [--further] MEASUREMENT.json …``.

Each measurement becomes an experiment file ``linux/ID.toml`` and an entry of ``linux/figures.json``, which keeps what
``fidelity.py`` compares; with ``--further`` it is counted apart. README.md describes how measurements are made and what
they hold.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onset import begins_s, begins_with, jump, shift_s

LINUX = Path(__file__).parent / "linux"
SHOWN_BINS = 200
"""Bins of the series that are kept: the first 20 s."""
JITTER_S = 0.005
"""Spread of the starts over seeds: Linux's flows start together, at an instant that is chance."""
DATAGRAM_BYTES = 1448

# The arguments of tc that are not called, or not written, as in an experiment file.
_BYTES = {"avpkt", "redflowlimit"}
_SPANS = {"target", "interval", "tupdate", "ce_threshold"}
_COUNTS = {"burst", "flows", "probability"}


def main(paths: list[str]) -> int:
    """Adds the measurements to the scenarios; exit status 2 if one cannot be read."""
    further = paths[:1] == ["--further"]
    paths = paths[further:]
    if not paths:
        print("usage: from_linux.py [--further] MEASUREMENT.json …", file=sys.stderr)
        return 2
    kept = LINUX / "figures.json"
    figures = json.loads(kept.read_text()) if kept.exists() else {}
    for path in paths:
        try:
            measured = json.loads(Path(path).read_text(encoding="utf-8"))
            scenario = measured["scenario"]
            text, entry = experiment(measured, shift_s(measured, experiment)), figures_of(measured)
            if further:
                entry = {"further": True, **entry}
        except (OSError, ValueError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 2
        except KeyError as error:
            print(f"{path}: no {error} in it; must be a measurement as README.md describes", file=sys.stderr)
            return 2
        (LINUX / f"{scenario['id']}.toml").write_text(text, encoding="utf-8")
        figures[scenario["id"]] = entry
    write_figures(kept, figures)
    return 0


def write_figures(file: Path, figures: dict[str, dict[str, Any]]) -> None:
    """Writes what is compared of all scenarios, a line each."""
    lines = (f"{json.dumps(id)}:{json.dumps(figures[id], separators=(',', ':'))}" for id in sorted(figures))
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def experiment(measured: dict[str, Any], late_s: float) -> str:
    """The experiment file of a measurement.

    TCP, and what begins with it, begins so much later than its series says to a bin.
    """
    scenario = measured["scenario"]
    traffic = []
    for one in scenario["groups"]:
        late = late_s if one.get("kind", "tcp") == "tcp" or begins_with(scenario, one) else 0.0
        traffic.append(group(scenario, one, max(0.0, begins_s(measured, one) + late)))
    blocks = [
        f"# {scenario['id']}: {scenario['rate']}, tc qdisc {scenario['aqm']}\n"
        + table(
            "[experiment]",
            name=quoted(scenario["id"]),
            # Time for what is queued or lost at the end to arrive.
            duration=quoted(f"{math.ceil(max(ends_s for _, ends_s in traffic)) + 2} s"),
            warmup=quoted(f"{scenario['warmup']} s"),
            repeat="5",
            seed="1",
        ),
        table("[link]", rate=json.dumps(rate(measured))),
        table("[[queue]]", **dict(queue(scenario["aqm"]))),
        *(text for text, _ in traffic),
        table("[record]", series='"100 ms"'),
    ]
    return "\n".join(blocks)


def table(header: str, **keys: str) -> str:
    """A table of TOML."""
    return "\n".join([header, *(f"{key} = {value}" for key, value in keys.items())]) + "\n"


def quoted(value: object) -> str:
    """A string of TOML."""
    return f'"{value}"'


def rate(measured: dict[str, Any]) -> str | list[list[str]]:
    """The link's rate or its schedule; each step of a measurement counts from the one before."""
    scenario = measured["scenario"]
    first, steps = spelled_rate(scenario["rate"]), scenario.get("rate_steps", [])
    if not steps:
        return first
    schedule, at_s = [["0 s", first]], 0.0
    for wait_s, new in steps:
        # Later ones keep their distance from the first, which can be seen.
        at_s = at_s + wait_s if at_s else jump(measured, wait_s)[0]
        schedule.append([f"{at_s:.3f} s", spelled_rate(new)])
    return schedule


def spelled_rate(text: str) -> str:
    """``tc``'s ``10mbit`` as ``10 Mbit/s``."""
    return f"{text.lower().removesuffix('mbit')} Mbit/s"


def queue(arguments: str) -> Iterator[tuple[str, str]]:
    """The keys of ``[[queue]]`` for the arguments of ``tc qdisc``."""
    kind, *words = arguments.split()
    name = kind
    if kind == "red" and "adaptive" in words:
        name = "ared"
    if kind == "sfq" and "redflowlimit" in words:
        name = "sfq_red"
    yield "aqm", quoted(name)
    if kind not in ("pfifo", "bfifo"):
        yield "variant", '"linux"'
    rest = iter(words)
    for word in rest:
        if word == "ecn":
            yield "ecn", "true"
        elif kind == "cake" and word == "besteffort":
            yield "diffserv", quoted(word)
        elif kind == "cake" and word == "flows":
            yield "isolation", quoted(word)
        elif word not in ("adaptive", "unlimited"):
            yield word, amount(kind, word, next(rest))


def amount(kind: str, key: str, value: str) -> str:
    """The value of an argument of ``tc`` with its unit spelled."""
    if key in _COUNTS:
        return value
    if key in _SPANS:
        return quoted(f"{value.removesuffix('ms')} ms")
    if key == "bandwidth":
        return quoted(spelled_rate(value))
    if key in _BYTES or (key in ("min", "max") and kind != "choke") or (key == "limit" and kind == "red"):
        return quoted(f"{value} B")
    if key in ("limit", "min", "max"):
        return quoted(f"{value} packets")
    raise ValueError(f"tc qdisc {kind}: got {key}; not known here")


def group(scenario: dict[str, Any], one: dict[str, Any], start_s: float) -> tuple[str, float]:
    """The ``[[traffic]]`` of a group of hosts, and when it ends."""
    rtt = quoted(f"{one['rtt_ms']} ms")
    match one.get("kind", "tcp"):
        case "tcp":
            # iperf3's time begins when its connections stand, ours with their handshake; it counts all that it sent.
            stop_s = start_s + one["rtt_ms"] / 1000 + one.get("dur", scenario["duration"])
            keys = {
                "kind": '"bulk"',
                "flows": str(one["flows"]),
                "tcp": quoted(one["cc"]),
                "rtt": rtt,
                "start": quoted(f"{start_s:.3f}..{start_s + JITTER_S:.3f} s"),
                "stop": quoted(f"{stop_s:.3f} s"),
            }
            return table("[[traffic]]", **keys, **({"ecn": "true"} if one.get("ecn") else {})), stop_s
        case "udp":
            keys = {
                "kind": '"cbr"',
                "jitter": '"0 s"',
                "flows": "1",
                "rate": quoted(f"{one['rate'].removesuffix('M')} Mbit/s"),
                "packet": quoted(f"{one['bytes']} B"),
                "rtt": rtt,
                "start": quoted(f"{start_s:.3f}..{start_s + JITTER_S:.3f} s"),
                "stop": quoted(f"{start_s + one['dur']:.3f} s"),
            }
            return table("[[traffic]]", **keys), start_s + one["dur"]
        case "ping":
            keys = {
                "kind": '"ping"',
                "jitter": '"0 s"',
                "interval": quoted(f"{round(one['interval'] * 1000)} ms"),
                "stop": quoted(f"{scenario['duration']} s"),
                "rtt": rtt,
            }
            return table("[[traffic]]", **keys), scenario["duration"]
        case other:
            raise ValueError(f"scenario.groups: got kind {other}; must be tcp, udp or ping")


def figures_of(measured: dict[str, Any]) -> dict[str, Any]:
    """What ``fidelity.py`` compares of a measurement."""
    scenario, flows = measured["scenario"], measured["flows"]
    tcp_bytes = [flow["recv_bytes"] for flow in flows if "recv_bytes" in flow]
    udp_bytes = [flow["udp"]["bytes"] - flow["udp"]["lost_packets"] * DATAGRAM_BYTES for flow in flows if "udp" in flow]
    # The innermost discipline is listed last.
    counters = measured["counters"][-1]
    ping = next(iter(measured.get("ping", [])), None)
    return {
        "tc": scenario["aqm"],
        "window_s": [scenario["warmup"], scenario["duration"]],
        "sojourn_ms": {key: round(value, 3) for key, value in measured["sojourn_ms"].items()},
        "startup_peak_ms": measured["startup_peak_ms"],
        "received_bytes": sum(tcp_bytes) + sum(udp_bytes),
        "retransmits": sum(flow.get("retransmits") or 0 for flow in flows),
        "dropped": counters["dropped"],
        "marked": (measured.get("ecn_marked") or 0) + marked_apart(measured["qdisc_stats"]),
        "ping_ms": ping and {key: ping[key] for key in ("p5", "p50", "p95")},
        "series_100ms_ms": measured["series_100ms_mean_ms"][:SHOWN_BINS],
    }


def marked_apart(printed: str) -> int:
    """Marks that ``tc -s`` counts apart: those of ``ce_threshold``, and CAKE's, a number per tin."""
    found = re.search(r"\bce_mark (\d+)", printed) or re.search(r"^ +marks((?: +\d+)+)$", printed, re.MULTILINE)
    return sum(int(count) for count in found[1].split()) if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
