"""``--on host``: on a running kernel, as root, in real time.

The kernel is that of a virtual machine without virtual time, which boots into this environment's own Python and package
as its file system: what is tried here is what a user's root would do, and nothing here needs root.
"""

from __future__ import annotations

import json
import re
import signal
import sys

import pytest

from linux import userland
from linux.conftest import needs_emulation
from sojourn.linux import kernel, programs

pytestmark = [
    needs_emulation,
    pytest.mark.skipif(
        programs.find("modprobe") is None or programs.find("depmod") is None, reason="needs modprobe and depmod (kmod)"
    ),
]

FILES = {
    "codel.toml": """
experiment = { duration = "5 s", warmup = "1 s" }
link = { rate = "2 Mbit/s", buffer = "100 packets" }
queue = [{ aqm = "codel" }]
traffic = [{ kind = "bulk", flows = 2, rtt = "40 ms" }, { kind = "ping", interval = "100 ms", rtt = "40 ms" }]
record = { series = "500 ms" }
""",
    "fq_codel.toml": """
experiment = { duration = "5 s", warmup = "1 s" }
link = { rate = "2 Mbit/s", up = { rate = "1 Mbit/s" } }
queue = [{ aqm = "fq_codel" }]
traffic = [
    { kind = "bulk", rtt = "40 ms", tcp = "reno" },
    { kind = "cbr", rate = "200 kbit/s", packet = "200 B", rtt = "40 ms" },
    { kind = "web", objects = 3, size = "5 kB", rtt = "40 ms", think = "500 ms", direction = "up" },
]
""",
    "steps.toml": """
experiment = { duration = "8 s", warmup = "1 s" }
link = { rate = [["0 s", "2 Mbit/s"], ["4 s", "500 kbit/s"]] }
queue = [{ aqm = "pie" }]
traffic = [{ kind = "bulk", rtt = "40 ms" }]
record = { series = "1 s" }
""",
    "repeats.toml": """
experiment = { duration = "3 s", warmup = "1 s", repeat = 2 }
link = { rate = "2 Mbit/s" }
queue = [{ aqm = "codel" }]
traffic = [{ kind = "bulk", rtt = "40 ms" }]
""",
    "missing.toml": """
experiment = { duration = "5 s", warmup = "1 s" }
link = { rate = "2 Mbit/s" }
queue = [{ aqm = "choke" }]
traffic = [{ kind = "bulk", rtt = "40 ms" }]
""",
    "long.toml": """
experiment = { duration = "60 s", warmup = "1 s", repeat = 3 }
link = { rate = "2 Mbit/s", up = { rate = "1 Mbit/s" } }
queue = [{ aqm = "codel" }]
traffic = [{ kind = "bulk", rtt = "40 ms", direction = "both" }]
""",
}
"""Experiments by name of file; the kernel has no sch_choke."""


def command(file: str, *more: str) -> list[str]:
    return [sys.executable, "-m", "sojourn", "run", file, "--backend", "linux", "--on", "host", *more]


CASES = [
    {"name": "codel", "command": command("codel.toml", "--json")},
    {"name": "fq_codel", "command": command("fq_codel.toml", "--json")},
    {"name": "steps", "command": command("steps.toml", "--json")},
    {"name": "repeats", "command": command("repeats.toml", "--json", "--jobs", "2")},
    {"name": "table", "command": command("repeats.toml")},
    {"name": "missing", "command": command("missing.toml")},
    {"name": "not root", "command": command("codel.toml"), "user": 65534},
    {"name": "ctrl-c", "command": command("long.toml"), "signal": "SIGINT", "after_s": 3.0},
    {"name": "terminated", "command": command("long.toml"), "signal": "SIGTERM", "after_s": 3.0},
    {"name": "agent killed", "command": command("codel.toml"), "signal": "SIGKILL", "after_s": 2.0, "at": "agent"},
    {"name": "killed", "command": command("long.toml"), "signal": "SIGKILL", "after_s": 3.0, "settle_s": 30.0},
]


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    """How each case ended in the machine."""
    return userland.cases(tmp_path_factory.mktemp("host"), FILES, CASES, without=["sch_choke"])


def summary(case: dict) -> dict:
    """A case's results. A machine that has to share its processor may find its runs late; nothing else may be wrong.

    What such a run measured is then not looked at: ``invalid`` says that it is not to be trusted.
    """
    results = json.loads(case["out"])
    reasons = [reason for run in results["runs"] for reason in run.get("invalid", [])]
    assert all("woke up" in reason or "saturated" in reason for reason in reasons), reasons
    assert case["status"] == (1 if reasons else 0)
    assert case["left"] == []
    return results


def test_codel_holds_the_queue_and_tcp_fills_the_link(cases: dict[str, dict]):
    (run,) = summary(cases["codel"])["runs"]
    down = run["bottleneck"]["down"]
    assert run["kernel"].startswith(kernel.locate("emulated").release)
    first, second, ping = run["flows"]
    assert min(flow["received_bytes"] for flow in (first, second)) > 0
    if "invalid" in run:
        return
    assert 1.0 < down["sojourn_ms"]["p50"] < 60.0
    assert down["dropped_aqm"] > 0
    # 1448 of 1514 bytes are payload: at most 1.91 Mbit/s. Over the whole run: in real time what has arrived
    # when the warm-up ends may be read a moment later.
    assert 1.3e6 < (first["received_bytes"] + second["received_bytes"]) * 8 / 5 < 2e6
    assert ping["rtt_ms"]["p5"] > 40.0


def test_udp_and_tcp_both_ways_through_fq_codel(cases: dict[str, dict]):
    (run,) = summary(cases["fq_codel"])["runs"]
    bulk, cbr, web = run["flows"]
    assert min(flow["received_bytes"] for flow in (bulk, cbr, web)) > 0
    if "invalid" in run:
        return
    assert 1.0e6 < bulk["goodput_bps"] < 1.75e6
    assert cbr["received_bytes"] == pytest.approx(cbr["sent_bytes"], rel=0.05)
    assert run["bottleneck"]["up"]["delivered_packets"] > 50


def test_a_schedule_of_rates(cases: dict[str, dict]):
    (run,) = summary(cases["steps"])["runs"]
    # 1.91 Mbit/s of payload for 3 of the 7 s measured, 0.48 for 4.
    assert run["flows"][0]["received_bytes"] > 0
    if "invalid" not in run:
        assert run["flows"][0]["goodput_bps"] == pytest.approx(1.09e6, rel=0.15)


def test_runs_wait_for_each_other(cases: dict[str, dict]):
    runs = summary(cases["repeats"])["runs"]
    # Two at once would see each other's packets.
    rates = [run["bottleneck"]["down"]["delivered_bytes"] * 8 / 3 for run in runs]
    assert len(rates) == 2
    assert max(rates) < 2.1e6


def test_the_table_of_a_run(cases: dict[str, dict]):
    case = cases["table"]
    assert case["left"] == []
    assert case["out"].startswith("repeats (linux)"), case


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("missing", r"sojourn: the running kernel \S+ has no sch_choke: the discipline choke needs another kernel "
                    r"\(omit --on host\) or another backend \(sim\)"),
        ("not root", "sojourn: --on host needs root: it creates network namespaces; without root omit it"),
    ],
)  # fmt: skip
def test_what_is_missing_is_told_in_one_line(cases: dict[str, dict], name: str, line: str):
    case = cases[name]
    assert (case["status"], case["out"], case["left"]) == (1, "", [])
    assert re.fullmatch(line, case["err"].strip())


@pytest.mark.parametrize(("name", "status"), [("ctrl-c", 130), ("terminated", 143)])
def test_an_interrupted_run_leaves_nothing(cases: dict[str, dict], name: str, status: int):
    case = cases[name]
    assert (case["status"], case["left"]) == (status, []), case
    told = re.fullmatch(r"sojourn: interrupted; ([012]) of 3 runs finished", case["err"].splitlines()[-1])
    assert told, case
    # The agent has real-time priority: on a machine that cannot keep up, the signal may be seen runs later.
    finished = int(told[1])
    if finished:
        assert case["out"].startswith(f"long (linux), stopped early: {finished} of 3 runs\n"), case
    else:
        assert case["out"] == "", case


def test_an_agent_that_was_killed_leaves_nothing(cases: dict[str, dict]):
    case = cases["agent killed"]
    assert (case["status"], case["left"]) == (1, [])
    assert "the agent was killed by SIGKILL after" in case["err"]


def test_an_agent_whose_caller_was_killed_cleans_up(cases: dict[str, dict]):
    case = cases["killed"]
    assert case["status"] == -signal.SIGKILL
    # Of what only the caller knows: its folder of temporary files.
    assert [left.split("-")[0] for left in case["left"]] == ["temporary sojourn"]
