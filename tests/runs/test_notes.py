"""What the user may overlook is said in a line before the run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from conftest import SOJOURN
from sojourn import _core

BASE = """\
experiment = {{ duration = "2 s", warmup = "0.5 s" }}
link = {{ rate = "10 Mbit/s" }}
queue = [{{ {queue} }}]
traffic = [{traffic}]
"""
PFIFO = 'aqm = "pfifo"'
CBR = 'kind = "cbr", rate = "8 Mbit/s", rtt = "20 ms"'


def notes(traffic: str, queue: str = PFIFO) -> list[str]:
    return _core.Plan.read_text(BASE.format(queue=queue, traffic=traffic), "test.toml", []).notes


def test_senders_in_phase_are_named() -> None:
    exact = f'{{ {CBR}, name = "a", jitter = "0 s" }}, {{ {CBR}, name = "b", jitter = "0 s" }}'
    (note,) = notes(exact)
    assert note.startswith("a, b: every sender has a period of exactly") and "link" in note
    assert notes(exact.replace(', jitter = "0 s"', "")) == []
    assert notes(exact.replace('name = "b"', 'packet = "1440 B", name = "b"')) == []


@pytest.mark.parametrize(
    ("traffic", "note"),
    [
        ('{ kind = "bulk", rtt = "2 s" }', "bulk: its first data arrives at 2 s or later, but the run ends at 2 s"),
        (
            '{ kind = "bulk", rtt = "20 ms", stop = "0.4 s" }, { kind = "ping", rtt = "20 ms" }',
            "bulk: stops at 400 ms, but statistics begin with the end of the warm-up at 500 ms",
        ),
        (
            '{ kind = "bulk", rtt = "20 ms", stop = "3 s" }',
            "bulk: its stop is at 3 s, but the run ends at 2 s, and its traffic with it",
        ),
    ],
)
def test_a_group_that_is_not_measured_is_named(traffic: str, note: str) -> None:
    assert notes(traffic) == [note]


def test_a_shaper_below_the_link_is_named() -> None:
    bulk = '{ kind = "bulk", rtt = "20 ms" }'
    (note,) = notes(bulk, 'aqm = "cake", bandwidth = "7 Mbit/s"')
    assert "7 Mbit/s" in note and "10 Mbit/s" in note
    assert notes(bulk, 'aqm = "cake"') == []
    (note,) = notes(bulk, 'aqm = "policer", rate = "7 Mbit/s"')
    assert "its own rate of 7 Mbit/s is 0.700 of that" in note
    assert notes(bulk, 'aqm = "policer"') == []


def test_a_rate_that_a_packet_outlasts_is_named() -> None:
    def of(rate: str) -> list[str]:
        rates = f'[["0 s", "10 Mbit/s"], ["1 s", "{rate}"], ["1.5 s", "10 Mbit/s"]]'
        text = BASE.format(queue=PFIFO, traffic='{ kind = "bulk", rtt = "20 ms" }')
        return _core.Plan.read_text(text, "test.toml", [("link.rate", rates)]).notes

    (note,) = of("1 kbit/s")
    assert note.startswith("link.rate: at 1 kbit/s a full packet takes 12112 ms, but this rate lasts for 500 ms")
    assert of("100 kbit/s") == []
    with pytest.raises(_core.ExperimentError, match="a link that pauses is a trace with a gap"):
        of("0 bit/s")


def test_a_file_that_registers_nothing_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("class Mine: ...\n", encoding="utf-8")
    ran = subprocess.run(
        [SOJOURN, "--load", "empty.py", "list", "aqm"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ran.stderr == "note: --load empty.py: registers nothing; see sj.aqm and sj.congestion_control\n"


@pytest.mark.parametrize("control", ["dctcp", "prague"])
def test_a_control_that_needs_ecn_cannot_do_without(control: str) -> None:
    bulk = f'{{ kind = "bulk", rtt = "20 ms", tcp = "{control}", ecn = false }}'
    with pytest.raises(_core.ExperimentError, match=f"got false; must be true with {control}"):
        notes(bulk)


@pytest.mark.parametrize("value", ["2012", '"2012"'])
def test_a_word_that_looks_like_a_number_needs_no_quotes(value: str) -> None:
    bulk = '{ kind = "bulk", rtt = "20 ms" }'
    assert notes(bulk, f'aqm = "codel", variant = {value}') == []
    plan = BASE.format(queue='aqm = "codel"', traffic=bulk)
    _core.Plan.read_text(plan, "test.toml", [("queue.0.variant", value), ("experiment.kernel", "7.3")])


def test_every_arm_with_a_bandwidth_of_its_own_is_named_in_both_directions() -> None:
    text = """
    experiment = { duration = "2 s" }
    link = { rate = "40 Mbit/s", up = { rate = "10 Mbit/s" } }
    queue = [
        { aqm = "cake", bandwidth = "38 Mbit/s", up = { bandwidth = "9.5 Mbit/s" } },
        { aqm = "cake", bandwidth = "38 Mbit/s", queues = 4, up = { bandwidth = "9.5 Mbit/s" } },
    ]
    traffic = [{ kind = "bulk", rtt = "20 ms" }]
    """
    found = _core.Plan.read_text(text, "test.toml", []).notes
    whose = [(note.partition(":")[0], "(link.up)" in note) for note in found if "its own bandwidth" in note]
    assert whose == [("cake", False), ("cake", True), ("cake queues=4", False), ("cake queues=4", True)]
