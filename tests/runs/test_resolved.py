"""experiment.json: every parameter of every discipline with the value that the simulator uses."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from sojourn import _core

KEYS: dict[str, dict[str, str]] = {
    entry["name"]: {key["name"]: key["accepts"] for key in entry["keys"]}
    for entry in json.loads(_core.disciplines_json())
}

VARIANTS = [
    (name, variant)
    for name, keys in KEYS.items()
    for variant in (re.findall(r"\"([^\"]+)\"", keys["variant"]) if "variant" in keys else [None])
]

WITHOUT_VALUE = {
    # Off, or without a bound, until they are given.
    ("codel", None): {"ce_threshold"},
    ("fq_codel", None): {"ce_threshold"},
    ("blue", None): {"level"},
    ("cake", None): {"bandwidth", "overhead", "sync_time"},
    ("fq", None): {"ce_threshold", "maxrate", "low_rate_threshold"},
    ("policy", None): {"weights"},
    # By weight until the burst is given, or by the link's rate.
    ("red", "floyd"): {"burst"},
    ("choke", "floyd"): {"burst"},
    ("ared", "floyd"): {"burst"},
    # tc knows no target; the kernel's red does not adapt.
    ("ared", "linux"): {"target", "adapt_interval", "alpha", "beta"},
    ("ared", "linux-3.10"): {"target"},
    # A turn is a packet, and the limit alone bounds a queue.
    ("sfq", "mckenney1990"): {"quantum", "depth"},
    ("sfq_red", "floyd"): {"quantum", "depth", "redflowlimit", "burst"},
    ("sfq_red", "linux"): {"redflowlimit"},
    ("sfq_ared", "floyd"): {"quantum", "depth", "burst"},
    ("sfq_ared", "linux"): {"target", "adapt_interval", "alpha", "beta"},
    ("sfq_ared", "linux-3.10"): {"quantum", "depth", "target"},
    ("sfq_pie", "rfc8033"): {"quantum", "depth"},
    ("sfq_pie", "2013"): {"quantum", "depth"},
    ("sfq_madpie", "rfc8033"): {"quantum", "depth"},
    ("sfq_madpie", "2013"): {"quantum", "depth"},
    # Of the other scheduler, and Linux's; of queue protection, which is off.
    ("dualpi2", "rfc9332"): {"t_shift", "min_qlen_step", "aging", "critical_delay", "critical_score"},
    ("dualpi2", "linux"): {"t_shift", "aging", "critical_delay", "critical_score"},
}
"""Keys that have no value where they are not given, by discipline and variant (None: all of them)."""


def resolved(queue: dict[str, Any], link: str = 'rate = "10 Mbit/s"') -> tuple[_core.Plan, dict[str, Any]]:
    """The plan of a short experiment, and its experiment.json."""
    settings = ", ".join(f"{key} = {json.dumps(value)}" for key, value in queue.items())
    text = f"""
        experiment = {{ duration = "2 s" }}
        link = {{ {link} }}
        queue = [{{ {settings} }}]
        traffic = [{{ kind = "bulk", flows = 4, rtt = "40 ms", ecn = true }}]
    """
    plan = _core.Plan.read_text(text, "experiment.toml", [])
    return plan, json.loads(plan.resolved_json())[0]


def asked(name: str, variant: str | None) -> dict[str, Any]:
    """A queue of a variant with nothing else given."""
    return {"aqm": name} | ({} if variant is None else {"variant": variant})


def outcome(plan: _core.Plan) -> dict[str, Any]:
    """What its only run gives, but for the time that it took."""
    summary: dict[str, Any] = json.loads(plan[0].run(_core.Monitor()).summary_json)
    summary.pop("wall_s")
    return summary


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_every_parameter_is_there_and_gives_the_same_run(name: str, variant: str | None) -> None:
    """What is spelled out is complete, and given instead of left out it changes nothing."""
    plan, experiment = resolved(asked(name, variant))
    queue = experiment["queue"][0]
    without = WITHOUT_VALUE.get((name, variant), WITHOUT_VALUE.get((name, None), set()))
    assert {key for key in KEYS[name] if key not in queue} == without
    assert name == "cake" or "limit" in queue
    explicit, again = resolved(queue)
    assert again["queue"][0] == queue
    assert outcome(explicit) == outcome(plan)


@pytest.mark.parametrize(
    ("queue", "values"),
    [
        # RFC 8033, section 4 and 5.1; sch_pie.c and tc-pie(8); draft-pan-aqm-pie-01 for 2013.
        (
            {"aqm": "pie"},
            {"target": "15 ms", "tupdate": "15 ms", "alpha": 0.125, "beta": 1.25, "max_burst": "150 ms"},
        ),
        ({"aqm": "pie", "variant": "linux"}, {"target": "15 ms", "alpha": 2.0, "beta": 20.0, "derandomize": True}),
        ({"aqm": "pie", "variant": "2013"}, {"target": "20 ms", "tupdate": "30 ms", "max_burst": "100 ms"}),
        # RFC 9332, appendix A.1; sch_dualpi2.c.
        ({"aqm": "dualpi2"}, {"target": "15 ms", "tupdate": "15 ms", "min_thresh": "800 us", "c_protection": 0.1}),
        ({"aqm": "dualpi2", "variant": "linux"}, {"min_thresh": "1 ms", "range": "0 ms"}),
        # Floyd's page on parameters; tc-red(8): max a quarter of the limit, min a third of max, 1000 B per packet.
        ({"aqm": "red"}, {"min": "5 packets", "max": "15 packets", "weight": 0.002, "probability": 0.1}),
        (
            {"aqm": "red", "variant": "linux", "limit": "120 kB"},
            {
                "min": "10 kB",
                "max": "30 kB",
                "avpkt": "1 kB",
                "burst": "16 packets",
                "probability": 0.02,
                "gentle": False,
            },
        ),
        # What was given stays.
        ({"aqm": "pie", "target": "7 ms", "limit": "2 bdp"}, {"target": "7 ms", "limit": "2 bdp"}),
    ],
)
def test_values_are_those_of_the_variant(queue: dict[str, Any], values: dict[str, Any]) -> None:
    """By the documents that define them."""
    shown = resolved(queue)[1]["queue"][0]
    assert {key: shown[key] for key in values} == values


def test_the_limit_is_left_to_a_buffer_of_the_link() -> None:
    """A limit of the queue would hide it."""
    assert "limit" not in resolved({"aqm": "pie"}, 'rate = "10 Mbit/s", buffer = "50 packets"')[1]["queue"][0]


def test_values_by_the_rate_of_the_link_upward() -> None:
    """One arm for both directions leaves out what differs between them; a queue of the link upward has its own."""
    link = 'rate = "10 Mbit/s", up = { rate = "1 Mbit/s" }'
    plan, experiment = resolved({"aqm": "docsis_pie"}, link)
    queue = experiment["queue"][0]
    assert "msr" not in queue
    assert queue["target"] == "10 ms"
    explicit, _ = resolved(queue, link)
    assert outcome(explicit) == outcome(plan)
    link = 'rate = "10 Mbit/s", up = { rate = "1 Mbit/s", queue = { aqm = "docsis_pie" } }'
    experiment = resolved({"aqm": "docsis_pie"}, link)[1]
    assert experiment["queue"][0]["msr"] == "10 Mbit/s"
    assert experiment["link"]["up"]["queue"]["msr"] == "1 Mbit/s"
