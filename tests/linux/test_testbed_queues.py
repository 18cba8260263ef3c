"""``--on lab.toml`` on a kernel that has netem and the disciplines: a virtual machine with the three hosts in it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from linux import userland
from linux.conftest import needs_emulation
from sojourn.linux import programs

TOOLS = (
    *("sh", "mount", "mkdir", "sysctl", "unshare", "tc", "ssh", "ssh-keygen", "sshd"),
    *("head", "wc", "chmod", "mktemp", "rm"),
)
pytestmark = [
    needs_emulation,
    pytest.mark.skipif(
        any(programs.find(tool) is None for tool in (*TOOLS, "modprobe", "depmod")),
        reason="needs OpenSSH's server, kmod and util-linux",
    ),
]

HERE = Path(__file__).parent
FILE = """
experiment = { duration = "4 s", warmup = "1 s" }
link = { rate = "2 Mbit/s", buffer = "100 packets", up = { rate = "1 Mbit/s" } }
queue = [{ aqm = "codel" }, { aqm = "pie" }]
traffic = [
    { kind = "bulk", flows = 2, rtt = "40 ms" },
    { kind = "ping", interval = "100 ms", rtt = "100 ms" },
]
"""
CASE = """
import json, testbed
from pathlib import Path
folder = Path("/tmp/bed")
folder.mkdir()
bed = testbed.build(folder)
try:
    before = bed.state()
    process = bed.sojourn("run", str(Path("file.toml").resolve()), "--backend", "linux", "--on", "lab.toml", "--json")
    out, errors = process.communicate()
    same = bed.state() == before
finally:
    testbed.remove(bed)
print(json.dumps({"status": process.returncode, "out": out, "errors": errors, "same": same}))
"""


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> dict:
    """How the run ended, and whether the hosts were as before."""
    case = {"name": "testbed", "command": [sys.executable, "-c", f"import sys; sys.path.insert(0, '/hosts'){CASE}"]}
    extra = {"/hosts/testbed.py": (HERE / "testbed.py").read_bytes()}
    folder = tmp_path_factory.mktemp("machine")
    ended = userland.cases(folder, {"file.toml": FILE}, [case], extra=extra, tools=TOOLS)["testbed"]
    assert ended["out"], ended
    return json.loads(ended["out"])


def test_queues_and_delays_of_a_testbed(answer: dict):
    if "says nothing for" in answer["errors"]:
        pytest.skip("the emulated machine is too slow beside what else this one does")
    results = json.loads(answer["out"])
    assert answer["same"], answer
    runs = {run["label"]: run for run in results["runs"]}
    assert list(runs) == ["codel", "pie"]
    # A machine that shares its processors is late; nothing else may be wrong.
    reasons = [reason for run in runs.values() for reason in run.get("invalid", [])]
    assert all("woke up" in reason or "saturated" in reason for reason in reasons), reasons
    assert answer["status"] == (1 if reasons else 0), answer["errors"]
    for run in runs.values():
        bulk, other, ping = run["flows"]
        # Each flow has its own delay.
        assert min(bulk["rtt_ms"]["min"], other["rtt_ms"]["min"]) >= 40.0
        assert ping["rtt_ms"]["min"] >= 100.0
        assert run["bottleneck"]["down"]["dropped_aqm"] > 0
        if "invalid" not in run:
            assert 1.0 < run["bottleneck"]["down"]["sojourn_ms"]["p50"] < 60.0
            # 1448 of 1514 bytes are payload: at most 1.91 Mbit/s.
            assert 1.3e6 < bulk["goodput_bps"] + other["goodput_bps"] < 1.92e6
