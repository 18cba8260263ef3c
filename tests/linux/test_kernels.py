"""``sojourn agree`` with several kernels, and which kernel runs by default."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from linux.test_user_mode import needs_built_kernel, no_kernels, put
from sojourn import _core
from sojourn.cli import agree as command
from sojourn.cli.app import status
from sojourn.linux import Linux, LinuxError, backend, doctor, kernel
from sojourn.linux.kernel import SIMULATED, simulated
from sojourn.store.runner import Runner

Cli = Callable[..., subprocess.CompletedProcess[str]]
__all__ = ["no_kernels"]

EXPERIMENT = """\
experiment = { duration = "3 s", warmup = "1 s", repeat = 6 }
link = { rate = "10 Mbit/s" }
queue = [{ aqm = "AQM" }]
traffic = [{ kind = "bulk", flows = 2, rtt = "20 ms" }]
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    path = tmp_path / "experiment.toml"
    path.write_text(EXPERIMENT.replace("AQM", "codel"), encoding="utf-8")
    return path


@pytest.fixture
def agree(monkeypatch: pytest.MonkeyPatch, experiment: Path) -> Callable[..., int]:
    """Runs the command on kernels whose runs are the simulator's, with the discipline after the name: ``new-pfifo``."""

    class Fake(Linux):
        release = "6.1.9"

        def check(self, plan: _core.Plan) -> None:
            """Accepts everything."""

        def run(self, spec: _core.RunSpec, monitor: _core.Monitor) -> _core.Run:
            aqm = str(self.kernel).rpartition("-")[2]
            if aqm == "broken":
                raise LinuxError("the guest hangs")
            text = EXPERIMENT.replace("AQM", aqm)
            seed = [("experiment.seed", str(spec.seed))]
            return _core.Plan.read_text(text, "experiment", seed)[0].run(monitor)

    monkeypatch.setattr(command, "on_linux", lambda on, named: Fake(kernel=named))
    monkeypatch.setattr(backend, "is_user_mode", lambda given: given == "new-user-mode-codel")

    def run(*kernels: str, more: tuple[str, ...] = ()) -> int:
        options = [word for one in kernels for word in ("--kernel", one)]
        monkeypatch.setattr("sys.argv", ["sojourn", "agree", str(experiment), *options, *more])
        return status()

    return run


@pytest.mark.parametrize(
    ("kernels", "ends"),
    [
        (("old-codel", "new-codel"), 0),
        (("old-codel", "new-pfifo"), 1),
        (("old-codel", "new-codel", "newer-pfifo"), 1),
        (("old-codel", "new-broken"), 125),
        # With one kernel there is no verdict on kernels, as before.
        (("old-pfifo",), 0),
        (("old-broken",), 1),
        (("old-codel", "new-pfifo", "--set", "experiment.repeat=1"), 125),
        (("old-codel", "new-pfifo", "--set", "experiment.repeat=1", "--until", "decided"), 1),
    ],
)
def test_the_status_tells_whether_kernels_agree(agree, kernels: tuple[str, ...], ends: int):
    named = [one for one in kernels if one.rpartition("-")[2] in ("codel", "pfifo", "broken")]
    assert agree(*named, more=kernels[len(named) :]) == ends


def test_until_decided_makes_only_what_is_missing(agree, capsys: pytest.CaptureFixture[str], monkeypatch):
    made = []
    run_plan = Runner.run_plan

    def noted(runner, plan, finished):
        made.append(len(plan) - len(finished.known))
        return run_plan(runner, plan, finished)

    monkeypatch.setattr(Runner, "run_plan", noted)
    first = ("--set", "experiment.repeat=2", "--until", "decided", "--json")
    assert agree("old-codel", "new-pfifo", more=first) == 1
    said = capsys.readouterr()
    repeats = json.loads(said.out)["repeats"]
    assert repeats["old-codel"] == repeats["sim"] == sum(made[::3]) > 2
    assert "no verdict yet" in said.err
    assert agree("old-codel", more=("--until", "5%")) == 2
    assert capsys.readouterr().err == '--until: got "5%"; must be decided\n'


def test_the_simulator_is_shown_and_not_judged(agree, capsys: pytest.CaptureFixture[str]):
    assert agree("old-pfifo", "new-pfifo") == 0
    told = capsys.readouterr().out
    assert "new-pfifo agrees with old-pfifo" in told
    assert "sim differs from old-pfifo" in told


def test_each_kernel_has_its_figures(agree, capsys: pytest.CaptureFixture[str]):
    assert agree("old-codel", "new-pfifo", more=("--json",)) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["backends"] == ["old-codel", "new-pfifo", "sim"]
    assert document["verdict"] == {"new-pfifo": "differs", "sim": "agrees"}
    (median,) = (row for row in document["agreement"] if row["metric"] == "sojourn_p50_ms")
    assert median["new-pfifo"] > median["old-codel"] == median["sim"]
    assert median["verdict"] == {"new-pfifo": "differs", "sim": "agrees"}
    assert median["interval"]["new-pfifo"][0] > 1.0
    assert median["relative"]["sim"] == 0.0


@pytest.mark.parametrize("folder", ["old-codel", "new-codel", "sim"])
def test_each_kernel_has_its_folder(agree, capsys: pytest.CaptureFixture[str], tmp_path: Path, folder: str):
    mine = tmp_path / "out" / folder / "summary.json"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine", encoding="utf-8")
    assert agree("old-codel", "new-codel", more=("--out", str(tmp_path / "out"))) == 2
    assert f"{folder}: summary.json was there before" in capsys.readouterr().err


def test_kernels_have_different_names(agree, capsys: pytest.CaptureFixture[str]):
    assert agree("a/new-codel", "b/new-codel") == 2
    said = capsys.readouterr().err
    assert said == '--kernel: got "b/new-codel"; must have another name than "new-codel", which is taken\n'


@pytest.mark.parametrize("kernels", [("6.1", "6.12"), ("6.1",)])
def test_what_linux_refuses_is_refused_before_anything_is_run(
    sojourn: Cli, no_kernels: dict[str, str], experiment: Path, tmp_path: Path, kernels: tuple[str, ...]
):
    put(tmp_path / "cache", "6.1.192", "6.12.9")
    options = [word for one in kernels for word in ("--kernel", one)]
    refused = sojourn("agree", experiment, *options, "--set", "queue.0.aqm=blue", env=no_kernels)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert len(refused.stderr.splitlines()) == 1
    assert "blue" in refused.stderr


def test_kernels_that_do_not_boot_decide_nothing(
    sojourn: Cli, no_kernels: dict[str, str], experiment: Path, tmp_path: Path
):
    put(tmp_path / "cache", "6.1.192", "6.12.9")
    agent = {"SOJOURN_AGENT": "/bin/true"}
    failed = sojourn("agree", experiment, "--kernel", "6.1", "--kernel", "6.12", env=no_kernels | agent)
    assert failed.returncode == 125
    assert "User-Mode Linux ended early" in failed.stderr.splitlines()[-1]


@needs_built_kernel
def test_a_kernel_agrees_with_its_copy(sojourn: Cli, experiment: Path, tmp_path: Path):
    built = kernel.built()[0]
    shutil.copytree(built.modules, tmp_path / "copy")
    options = ("--kernel", built.release, "--kernel", tmp_path / "copy", "--json")
    ended = sojourn("agree", experiment, *options)
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert document["kernels"].keys() == {built.release, "copy"}
    for row in document["agreement"]:
        assert row["copy"] == (row[built.release] if row["metric"] != "sojourn_distance" else 0.0)


def test_the_newest_built_kernel_is_the_default(fake_kernel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(kernel, "own", lambda: kernel._given(str(fake_kernel)))
    for given in (None, "emulated"):
        assert (kernel.locate(given).release, kernel.is_user_mode(given)) == ("6.1.0-test", False)
    emulated_s = Linux().wall_s(60.0, 1)
    put(tmp_path / "cache", "6.1.192", "6.12.9")
    assert (kernel.locate(None).release, kernel.is_user_mode(None)) == ("6.12.9", True)
    assert kernel.locate("emulated").release == "6.1.0-test"
    assert kernel.locate(str(tmp_path / "cache/sojourn/user-mode/6.1.192")).user_mode
    assert Linux().wall_s(60.0, 1) < emulated_s / 5
    assert Linux(kernel="emulated").wall_s(60.0, 1) == emulated_s


def test_a_built_kernel_needs_no_emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SOJOURN_AGENT", "/bin/true")
    monkeypatch.setattr(kernel, "own", lambda: None)
    real = doctor.programs.find
    monkeypatch.setattr(
        doctor.programs,
        "find",
        lambda program: None if program.startswith("qemu") else real(program) or Path("/sbin/x"),
    )
    assert (doctor.is_available(), doctor.is_available(doctor.EMULATED)) == (False, False)
    put(tmp_path / "cache", "6.12.9")
    assert (doctor.is_available(), doctor.is_available(doctor.EMULATED)) == (True, False)


@pytest.mark.parametrize(
    ("release", "like"),
    [
        ("4.19.0", "6.1"),
        ("6.1.192", "6.1"),
        ("6.11.2", "6.1"),
        ("6.12.9", "6.12"),
        ("7.0.3", "6.18"),
        ("7.2.13", "7.3"),
        ("7.3.0-rc7", "7.3"),
        ("7.10.1", "7.3"),
        ("7.3", "7.3"),
    ],
)
def test_the_simulator_is_like_the_newest_kernel_whose_tcp_is_not_newer(release: str, like: str):
    assert simulated(release) == like


def test_the_file_accepts_every_kernel_that_the_simulator_can_be_like():
    schema = json.loads(_core.schema_json())
    assert schema["properties"]["experiment"]["properties"]["kernel"]["enum"] == list(SIMULATED)


def test_beside_a_kernel_the_simulator_has_its_tcp(agree, capsys: pytest.CaptureFixture[str], monkeypatch):
    asked = []
    read_plan = command.read_plan

    def noted(file, replaced, **backend):
        asked.append(dict(replaced).get("experiment.kernel"))
        return read_plan(file, replaced, **backend)

    monkeypatch.setattr(command, "read_plan", noted)
    monkeypatch.setattr(command.on_linux(None, "old-codel").__class__, "release", "7.3.1")
    assert agree("old-codel") == 0
    assert agree("old-codel", more=("--set", 'experiment.kernel="6.1"')) == 0
    assert asked[-1] == '"6.1"' and '"7.3"' in asked


def test_beside_a_built_kernel_departures_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    put(tmp_path / "cache", "6.12.9")
    assert Linux(kernel="6.12").followed == {"experiment.kernel": "6.12", "experiment.ties": "departures"}
    assert Linux(on="host").followed.keys() == {"experiment.kernel"}
