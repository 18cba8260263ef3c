"""Disciplines of one's own, from outside of the package: the tutorial's code, and what can be wrong with a class."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sojourn as sj
from conftest import ROOT, SOJOURN, Cli, blocks
from sojourn import _core
from sojourn.runs import user_aqm

TUTORIAL = (ROOT / "docs" / "tutorial-aqm.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

EXPERIMENT = """\
[experiment]
name = "own"
duration = "3 s"
[link]
rate = "10 Mbit/s"
buffer = "100 packets"
[[queue]]
aqm = "{aqm}"
{keys}
[[traffic]]
kind = "bulk"
flows = 2
rtt = "40 ms"
start = "0..100 ms"
ecn = true
"""


def down(aqm: str, keys: str = "", **options) -> dict:
    """The bottleneck's figures with a discipline."""
    run = sj.run_text(EXPERIMENT.format(aqm=aqm, keys=keys), jobs=1, **options).runs[0]
    return run.summary["bottleneck"]["down"]


def test_the_tutorial_runs(tmp_path: Path):
    for name, text in blocks("python", TUTORIAL) + blocks("toml", TUTORIAL):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "events.txt").write_text("E 0 0\nE 1 10\nD 0 1000\nD 1 2000000\n")
    environment = {**os.environ, "PATH": f"{SOJOURN.parent}{os.pathsep}{os.environ['PATH']}", "MPLBACKEND": "agg"}
    commands = [line for _, text in blocks("sh", TUTORIAL) for line in text.splitlines()]
    assert len(commands) == 4
    for command in [*commands, f"{sys.executable} try_it.py"]:
        result = subprocess.run(command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert result.returncode == 0, f"{command}: {result.stderr}"
        assert "my_madpie" in result.stdout or "replay" in command
    assert (tmp_path / "results" / "summary.json").exists()
    assert (tmp_path / "cdf.png").exists()


def test_the_tutorials_class_is_short():
    (source,) = [text for name, text in blocks("python", TUTORIAL) if name == "my_madpie.py"]
    assert len(source.splitlines()) < 40


def test_the_tutorials_rust_is_that_of_the_example():
    for name, text in blocks("rust", TUTORIAL):
        assert text in (ROOT / "examples" / "my-aqm" / name).read_text(encoding="utf-8")
    (experiment,) = [text for name, text in blocks("toml", TUTORIAL) if name == "experiment.toml"]
    assert experiment in (ROOT / "examples" / "my-aqm" / "experiment.toml").read_text(encoding="utf-8")


def test_the_first_discipline_of_a_contributor_runs_and_passes_its_test(tmp_path: Path):
    for name, text in blocks("python", CONTRIBUTING):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (command,) = [line for _, text in blocks("sh", CONTRIBUTING) for line in text.splitlines() if "--load" in line]
    environment = {**os.environ, "PATH": f"{SOJOURN.parent}{os.pathsep}{os.environ['PATH']}"}
    for line in (command, f"{sys.executable} -m pytest -q test_step_drop.py"):
        result = subprocess.run(line, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert result.returncode == 0, f"{line}: {result.stdout}{result.stderr}"


def test_the_first_discipline_in_rust_is_that_of_the_example():
    ((name, text),) = blocks("rust", CONTRIBUTING)
    assert text in (ROOT / "examples" / "my-aqm" / name).read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def forget_registered_classes(monkeypatch):
    """Leaves no class behind for other tests."""
    registered = set()
    register = sj.register_aqm

    def noting(name, cls):
        register(name, cls)
        registered.add(name)

    monkeypatch.setattr(sj, "register_aqm", noting)
    yield
    for name in registered:
        sj.unregister_aqm(name)


def test_a_class_can_be_forgotten():
    sj.register_aqm("forgotten", type("Forgotten", (), {"enqueue": lambda *_: None}))
    down("forgotten")
    sj.unregister_aqm("forgotten")
    with pytest.raises(sj.ExperimentError, match="forgotten"):
        down("forgotten")
    with pytest.raises(sj.ExperimentError, match="no class is registered"):
        sj.unregister_aqm("forgotten")
    sj.register_aqm("forgotten", type("Forgotten", (), {"enqueue": lambda *_: None}))


class Wrapped:
    """An algorithm of Sojourn, called from Python."""

    def __init__(self, name, ecn):
        self.inner = sj.Algorithm(name, ecn=ecn)
        self.update_interval = 0.015
        self.enqueue, self.dequeue = self.inner.enqueue, self.inner.dequeue
        self.update, self.overflow = self.inner.update, self.inner.overflow
        self.empty, self.state = self.inner.empty, self.inner.state


@pytest.mark.parametrize("name", ["pie", "codel", "red", "cobalt"])
@pytest.mark.parametrize("ecn", [False, True])
def test_an_algorithm_called_from_python_decides_as_it_does_in_rust(name, ecn):
    sj.register_aqm(
        "wrapped", type("Named", (Wrapped,), {"__init__": lambda self, ecn=False: Wrapped.__init__(self, name, ecn)})
    )
    keys = f"ecn = {str(ecn).lower()}"
    ours, wrapped = down(name, keys), down("wrapped", keys)
    assert wrapped == ours
    assert ours["marked" if ecn else "dropped_aqm"] > 0


def test_keys_reach_the_constructor_without_their_units():
    seen = {}

    class Seen:
        def __init__(
            self,
            span="5 ms",
            pace="1 Mbit/s",
            size="10 packets",
            data="1 kB",
            count=3,
            part=0.5,
            yes=True,
            *,
            mtu,
            rate,
        ):
            seen.update(locals())

        def enqueue(self, packet, queue, now):
            seen["packet"] = (packet.bytes, packet.ecn, packet.enqueued_s == now, len(packet.flow))

    sj.register_aqm("seen", Seen)
    down("seen", 'span = "7 ms"\ncount = 4')
    assert [seen[key] for key in ("span", "pace", "size", "data", "count", "part", "yes", "mtu", "rate")] == [
        0.007, 1_000_000, 15140, 1000, 4, 0.5, True, 1514, 10_000_000,
    ]  # fmt: skip
    assert seen["packet"] in ((1514, "ect0", True, 5), (1514, "not-ect", True, 5))


def test_marks_are_drops_where_the_queue_has_no_ecn():
    class EveryTenth:
        def __init__(self):
            self.count = 0

        def enqueue(self, packet, queue, now):
            self.count += 1
            return "mark" if self.count % 10 == 0 else "pass"

    sj.register_aqm("every_tenth", EveryTenth)
    without, with_ecn = down("every_tenth"), down("every_tenth", "ecn = true")
    assert without["dropped_aqm"] > 0 == without["marked"]
    assert with_ecn["marked"] > with_ecn["dropped_aqm"]


def test_random_numbers_follow_the_seed_and_nothing_else():
    class Coin:
        def dequeue(self, packet, queue, now):
            return "drop" if queue.random() < 0.02 else "pass"

    sj.register_aqm("coin", Coin)
    one, again, other = down("coin"), down("coin"), down("coin", set={"experiment.seed": 2})
    assert one == again != other
    assert one["dropped_aqm"] > 0


def test_the_state_is_in_the_recorded_series():
    class Stateful:
        update_interval = 0.1

        def __init__(self):
            self.updates = 0

        def dequeue(self, packet, queue, now):
            return None

        def update(self, queue, now):
            self.updates += 1

        def state(self):
            return {"updates": self.updates}

    sj.register_aqm("stateful", Stateful)
    text = EXPERIMENT.format(aqm="stateful", keys="") + '[record]\nseries = "1 s"\n'
    series = sj.run_text(text).runs[0].queue_series()
    assert series["updates"].to_pylist()[-1] == pytest.approx(30, abs=1)


@pytest.mark.parametrize(
    ("state", "shown"),
    [([1, 2], "[1, 2]"), (None, "None"), ({1: 2.0}, "{1: 2.0}"), ({"a": "x"}, "{'a': 'x'}"),
     ({"a": None}, "{'a': None}"),
     ("x" * 1000, "'" + "x" * 79 + "…")],
)  # fmt: skip
def test_a_state_that_is_no_dict_of_numbers_is_told_where_and_what_is_accepted(state, shown):
    class Broken:
        def enqueue(self, packet, queue, now):
            return None

        def state(self):
            return state

    sj.register_aqm("broken", Broken)
    text = EXPERIMENT.format(aqm="broken", keys="") + '[record]\nseries = "1 s"\n'
    with pytest.raises(sj.RunError) as caught:
        sj.run_text(text)
    must = 'must be a dict of numbers by name, as {"probability": 0.1}'
    line = Broken.state.__code__.co_firstlineno
    assert f"Broken.state returned {shown}; {must} ({__file__}:{line})" in str(caught.value)


def test_an_exception_ends_the_run_and_names_the_place():
    class Broken:
        def enqueue(self, packet, queue, now):
            return 1 / (1 if now < 1 else 0)

    sj.register_aqm("broken", Broken)
    with pytest.raises(sj.RunError, match=r"Broken.enqueue returned 1.0; must be \"pass\", \"mark\", \"drop\" or None"):
        down("broken")
    Broken.enqueue = lambda self, packet, queue, now: "pass" if now < 1 else str(1 // 0)
    with pytest.raises(sj.RunError, match=r"ZeroDivisionError.*test_own_aqm\.py:\d+") as caught:
        down("broken")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    ("name", "members", "part"),
    [("codel", {"enqueue": lambda *_: None}, "choose another"), ("My AQM", {"enqueue": lambda *_: None}, "lower-case"),
     ("bad", {"__init__": lambda self, target: None}, "no default"),
     ("bad", {"__init__": lambda self, x="soon": None}, "soon"),
     ("bad", {"__init__": lambda self, limit=3: None}, "limit")],
    ids=["taken", "no name", "no default", "no quantity", "reserved"],
)  # fmt: skip
def test_a_class_that_cannot_be_registered_is_told_why(name, members, part):
    with pytest.raises(sj.ExperimentError, match=part):
        sj.register_aqm(name, type("Bad", (), members))


@pytest.mark.parametrize(
    ("members", "part"),
    [({}, "neither enqueue nor dequeue"), ({"dequeue": lambda *_: None, "update": lambda *_: None}, "update_interval"),
     ({"__init__": lambda self: 1 // 0}, "ZeroDivisionError")],
    ids=["decides nothing", "no interval", "constructor fails"],
)  # fmt: skip
def test_a_class_that_cannot_be_used_is_the_files_mistake(members, part):
    sj.register_aqm("unusable", type("Unusable", (), members))
    with pytest.raises(sj.ExperimentError, match=rf"queue\.0\.aqm: got \"unusable\"; cannot be built: .*{part}"):
        down("unusable")


@pytest.mark.parametrize(
    ("members", "says"),
    [
        (
            {"dequeue": lambda self, packet: None},
            "Bad.dequeue: got (self, packet); must accept (self, packet, q",
        ),
        (
            {"update": lambda self, queue, now, more: None},
            "Bad.update: got (self, queue, now, more); must accept (sel",
        ),
        ({"enque": lambda *_: None}, 'Bad.enque: got a name that is not called; did you mean "enqueue"? called are'),
        ({"on_empty": lambda *_: None}, 'Bad.on_empty: got a name that is not called; did you mean "empty"?'),
    ],
    ids=["too few", "too many", "misspelt", "as in Rust"],
)
def test_a_method_that_a_run_cannot_call_is_refused(members, says):
    with pytest.raises(sj.ExperimentError, match=rf"^register_aqm: {re.escape(says)}"):
        sj.register_aqm("bad", type("Bad", (), {"dequeue": lambda *_: None} | members))


def test_methods_of_ones_own_are_no_misspelt_ones():
    """One that another uses, one that begins with an underscore, one that resembles what the class has."""

    class Own:
        def enqueue(self, packet, queue, now, *, more=None):
            return next(self.updated(now) for _ in range(1))

        def dequeue(self, *given): ...

        def updated(self, now): ...

        def _empty(self): ...

        def enqueued(self): ...

        @staticmethod
        def state():
            return {}

    sj.register_aqm("own_methods", Own)


def test_what_load_runs_may_be_wrong(sojourn: Cli, tmp_path: Path):
    (tmp_path / "syntax.py").write_text("import sojourn\nclass :\n")
    (tmp_path / "fails.py").write_text("import sojourn\n\nraise KeyError('x')\n")
    (tmp_path / "taken.py").write_text("import sojourn\nsojourn.register_aqm('pie', int)\n")
    (tmp_path / "exits.py").write_text("import sys\n\nsys.exit('bye')\n")
    for file, place in [
        ("none.py", "none.py: "),
        ("syntax.py", ":2: "),
        ("fails.py", ":3: KeyError"),
        ("taken.py", ":2: "),
        ("exits.py", ":3: ends the program with 'bye'"),
    ]:
        result = sojourn("--load", file, "list", "aqm")
        assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1), result.stderr
        assert result.stderr.startswith(file)
        assert place in result.stderr


def test_load_stands_before_the_command(sojourn: Cli):
    done = sojourn("run", "file.toml", "--load", "own.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "sojourn: --load stands before the command: sojourn --load FILE COMMAND\n"


def test_a_failed_run_is_one_line_on_the_command_line(sojourn: Cli, tmp_path: Path):
    (tmp_path / "own.py").write_text(
        "import sojourn as sj\n@sj.aqm('own')\nclass Own:\n    def enqueue(self, packet, queue, now):\n        oops\n"
    )
    (tmp_path / "own.toml").write_text(EXPERIMENT.format(aqm="own", keys=""))
    result = sojourn("--load", "own.py", "run", "own.toml", "--json")
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert "NameError" in result.stderr and "own.py:5" in result.stderr
    # Whoever mends the class has another experiment then, so --resume is not promised; of a sweep the cell is named.
    swept = EXPERIMENT.format(aqm="own", keys="") + '[[queue]]\naqm = "pfifo"\n[sweep]\n"link.rate" = ["9 Mbit/s"]\n'
    (tmp_path / "own.toml").write_text(swept)
    told = sojourn("--load", "own.py", "run", "own.toml", "--out", "out", "--figures", "none").stderr
    assert ": own, link.rate 9 Mbit/s, seed 1: an algorithm in Python raised NameError: " in told
    assert told.endswith("kept in out/summary.json\n")


def test_an_own_discipline_replays_a_recording(sojourn: Cli, tmp_path: Path):
    (tmp_path / "own.py").write_text(
        "import sojourn as sj\n@sj.aqm('second')\nclass Second:\n"
        "    def dequeue(self, packet, queue, now):\n        return 'drop' if packet.bytes == 60 else 'pass'\n"
    )
    (tmp_path / "events.txt").write_text("E 0 0\nE 1 100 60\nE 2 200\nD 0 1000\nD 2 2000\n")
    result = sojourn("--load", "own.py", "replay", "events.txt", "--aqm", "second", "--json")
    assert json.loads(result.stdout)["agree"] is True


def test_an_own_class_is_named_after_its_file(tmp_path: Path):
    (tmp_path / "pctl.py").write_text(
        "import sojourn as sj\n@sj.aqm('named_after_file')\nclass PCtl:\n    def enqueue(self, *given): ...\n",
        encoding="utf-8",
    )
    user_aqm.load(tmp_path / "pctl.py")
    try:
        entry = next(e for e in json.loads(_core.disciplines_json()) if e["name"] == "named_after_file")
        assert entry["source"] == "pctl.PCtl"
    finally:
        user_aqm.unregister_aqm("named_after_file")
