"""Congestion controls of one's own: the tutorial's code, and what can be wrong with a class."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import sojourn as sj
from conftest import ROOT, SOJOURN, blocks
from sojourn import _core

TUTORIAL = (ROOT / "docs" / "tutorial-cc.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "my-cc"

EXPERIMENT = """\
experiment = { duration = "5 s" }
link       = { rate = "10 Mbit/s", buffer = "30 packets" }
queue      = [{ aqm = "AQM", ecn = ECN }]
traffic    = [{ kind = "bulk", flows = 2, rtt = "40 ms", start = "0..100 ms", tcp = "TCP", ecn = ECN }]
"""


class Reno:
    """Reno, as Sojourn has it."""

    def ack(self, ack, window):
        if window.is_used:
            acked = window.slow_start(ack.delivered) if window.in_slow_start else ack.delivered
            if acked:
                window.additive_increase(acked, window.cwnd)

    def congestion(self, signal, window):
        return max(window.cwnd // 2, 2)


@pytest.fixture(autouse=True)
def forget_registered_classes() -> Iterator[None]:
    """Leaves no class behind for other tests."""
    yield
    for name in ("mine", "scalable"):
        try:
            sj.unregister_congestion_control(name)
        except sj.ExperimentError:
            continue


def run(tcp: str, aqm: str = "pfifo", *, ecn: bool = False) -> sj.Run:
    text = EXPERIMENT.replace("TCP", tcp).replace("AQM", aqm).replace("ECN", str(ecn).lower())
    return sj.run_text(text, jobs=1).runs[0]


def figures(of: sj.Run) -> object:
    return of.summary["bottleneck"], [flow["goodput_bps"] for flow in of.summary["flows"]]


def test_the_tutorial_runs(tmp_path: Path) -> None:
    for name, text in blocks("python", TUTORIAL) + blocks("toml", TUTORIAL):
        (tmp_path / name).write_text(text, encoding="utf-8")
    environment = {**os.environ, "PATH": f"{SOJOURN.parent}{os.pathsep}{os.environ['PATH']}"}
    commands = [line for _, text in blocks("sh", TUTORIAL) for line in text.splitlines()]
    assert len(commands) == 3
    for command in [*commands, f"{sys.executable} try_it.py"]:
        ran = subprocess.run(command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, f"{command}: {ran.stderr}"
        assert "scalable" in ran.stdout
    assert (tmp_path / "results" / "summary.json").exists()


def test_the_tutorials_rust_is_that_of_the_example() -> None:
    for name, text in blocks("rust", TUTORIAL) + blocks("toml", TUTORIAL):
        assert text in (EXAMPLE / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(("aqm", "ecn"), [("pfifo", False), ("codel", True)])
def test_reno_in_python_does_what_it_does_in_rust(aqm: str, ecn: bool) -> None:
    sj.register_congestion_control("mine", Reno)
    ours, mine = run("reno", aqm, ecn=ecn), run("mine", aqm, ecn=ecn)
    assert figures(mine) == figures(ours)
    assert ours.summary["bottleneck"]["down"]["marked" if ecn else "dropped_overflow"] > 0


def test_a_class_may_govern_its_window_and_pace() -> None:
    seen: set[str] = set()

    class Paced:
        """Eight segments, spread over the round trip."""

        governs_window = True

        def __init__(self, mss, initial_window, window=8):
            assert (mss, initial_window) == (1448, 10)
            self.window, self.rate = window, None

        def sample(self, ack, sample, window):
            window.cwnd = self.window
            if sample.smoothed_rtt_s is not None:
                self.rate = 8 * sample.mss * self.window / sample.smoothed_rtt_s
            seen.update(name for name in ("delivery_rate_bps", "prior_delivered") if getattr(sample, name))
            assert sample.in_flight <= sample.prior_in_flight and not sample.in_recovery and ack.marks == 0

        def pacing_rate(self):
            return self.rate

        def congestion(self, signal, window):
            raise AssertionError("nothing is lost")

    sj.register_congestion_control("mine", Paced)
    summary = run("mine").summary
    # Eight segments of 1448 bytes per 40 ms are 2.3 Mbit/s; two flows leave the link half empty.
    assert [flow["goodput_bps"] / 1e6 for flow in summary["flows"]] == pytest.approx([2.3, 2.3], rel=0.05)
    assert summary["bottleneck"]["down"]["sojourn_ms"]["p95"] < 2
    assert seen == {"delivery_rate_bps", "prior_delivered"}


def test_signals_are_told_apart() -> None:
    signals = []

    class Noting(Reno):
        def congestion(self, signal, window):
            signals.append(signal)
            return super().congestion(signal, window)

    sj.register_congestion_control("mine", Noting)
    run("mine")
    assert set(signals) <= {"loss", "timeout"} and "loss" in signals
    signals.clear()
    run("mine", "codel", ecn=True)
    assert "ecn" in signals


@pytest.mark.parametrize(
    ("members", "message"),
    [({"ack": lambda *_: 1 // 0}, r"ZeroDivisionError.*test_own_cc\.py:\d+"),
     ({"congestion": lambda *_: 1}, "Broken.congestion returned 1; must be a whole number of segments, at least 2"),
     ({"ack": lambda _, ack, window: setattr(window, "cwnd", 0.5)}, "cwnd: got 0.5; must be a whole number"),
     ({"ack": lambda _, ack, window: window.additive_increase(1, 2.5)}, "additive_increase: per_segment: got 2.5"),
     ({"sample": lambda *_: None, "pacing_rate": lambda _: -1}, "Broken.pacing_rate returned -1; must be in bit/s"),
     ({"__init__": lambda _: 1 // 0}, "ZeroDivisionError"), ({"governs_window": True}, "needs the method sample")],
    ids=["raises", "no threshold", "no window", "no number", "no rate", "constructor raises", "governs without sample"],
)  # fmt: skip
def test_an_exception_ends_the_run(members: dict[str, object], message: str) -> None:
    sj.register_congestion_control("mine", type("Broken", (Reno,), members))
    with pytest.raises(sj.RunError, match=message):
        run("mine")


@pytest.mark.parametrize(
    ("name", "members", "message"),
    [("cubic", vars(Reno), "Sojourn has a congestion control of this name"), ("My CC", vars(Reno), "lower-case"),
     ("mine", {}, "no method congestion"), ("mine", {"congestion": Reno.congestion}, "neither ack nor sample"),
     ("mine", {**vars(Reno), "__init__": lambda self, rtt: None}, "parameter rtt: got no default"),
     ("mine", {**vars(Reno), "undo": lambda self, window: 1}, r"Bad.undo: got \(self, window\); must accept"),
     ("mine", {**vars(Reno), "recoverd": lambda self, window: 1}, 'recoverd: .* did you mean "recovered"')],
    ids=["taken", "no name", "no congestion", "no ack", "no default", "cannot be called", "misspelt"],
)  # fmt: skip
def test_a_class_that_cannot_be_registered_is_told_why(name: str, members: dict[str, object], message: str) -> None:
    with pytest.raises(sj.ExperimentError, match=f"register_congestion_control: .*{message}"):
        sj.register_congestion_control(name, type("Bad", (), dict(members)))


def test_a_name_is_of_one_class() -> None:
    sj.register_congestion_control("mine", Reno)
    with pytest.raises(sj.ExperimentError, match="a congestion control is registered under this name"):
        sj.register_aqm("mine", type("Aqm", (), {"dequeue": lambda *_: None}))
    with pytest.raises(sj.ExperimentError, match="no class is registered"):
        sj.unregister_aqm("mine")
    sj.unregister_congestion_control("mine")
    with pytest.raises(sj.ExperimentError, match="mine"):
        run("mine")


def test_a_runs_hash_has_the_source_of_the_class() -> None:
    def spec() -> sj.RunSpec:
        text = EXPERIMENT.replace("TCP", "mine").replace("AQM", "pfifo").replace("ECN", "false")
        return next(iter(_core.Plan.read_text(text, "test.toml", [])))

    sj.register_congestion_control("mine", Reno)
    first = spec()
    assert "mine" in first.document and '"own"' in first.document
    code = "class Other:\n def ack(self, ack, window): pass\n def congestion(self, signal, window): return 2\n"
    namespace: dict[str, type] = {}
    exec(compile(code, "other", "exec"), namespace)
    sj.register_congestion_control("mine", namespace["Other"])
    assert spec().hash != first.hash
    with pytest.raises(sj.ExperimentError, match="registered here from another source"):
        _core.RunSpec.read(first.document)
