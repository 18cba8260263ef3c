"""Designs: cells sampled from ranges, the same each time; indices of sensitivity of what they give."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path

import numpy as np
import pytest
from matplotlib.container import BarContainer

import sojourn as sj
from conftest import SOJOURN, Cli
from sojourn import _core
from sojourn.runs.designs import POINTS, with_points
from sojourn.store import Store
from sojourn.store.cells import Grid, indices

DESIGN = """
experiment = { name = "design", duration = "2 s" }
link = { rate = "4 Mbit/s" }
queue = [{ aqm = "pfifo" }]
traffic = [{ kind = "cbr", rate = "1 Mbit/s", rtt = "20 ms" }]
[sweep]
design = "sobol"
samples = 16
seed = 3
"traffic.0.rate" = { from = "1 Mbit/s", to = "3 Mbit/s" }
"traffic.0.rtt" = { from = "1 ms", to = "100 ms", scale = "log" }
"link.buffer" = ["20 packets", "40 packets"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "design.toml"
    path.write_text(DESIGN)
    return path


def points(file: Path, *overrides: tuple[str, str]) -> dict[str, list[object]]:
    found: dict[str, list[object]] = tomllib.loads(f"p = {dict(with_points(file, overrides))[POINTS]}")["p"]
    return found


def test_a_sobol_design_has_saltellis_points(file: Path):
    found = points(file)
    assert list(found) == ["traffic.0.rate", "traffic.0.rtt", "link.buffer"]
    assert {len(values) for values in found.values()} == {16 * (3 + 2)}
    rates = [float(str(value).removesuffix(" Mbit/s")) for value in found["traffic.0.rate"]]
    delays = np.array([float(str(value).removesuffix(" ms")) for value in found["traffic.0.rtt"]])
    assert all(1.0 <= rate <= 3.0 for rate in rates)
    assert 1.0 <= delays.min() < 2.0
    assert 50.0 < delays.max() <= 100.0
    # Logarithmic: half of them are below the geometric mean.
    assert 0.35 < np.mean(delays < 10.0) < 0.65
    assert all(len(str(rate).replace(".", "").lstrip("0")) <= 4 for rate in rates), "four digits"
    assert 0.35 < np.mean([value == "20 packets" for value in found["link.buffer"]]) < 0.65
    # Row 1 of a block differs from row 0 in the first key alone.
    differs = [key for key, values in found.items() if values[0] != values[1]]
    assert differs == ["traffic.0.rate"]


def test_the_same_file_gives_the_same_cells_and_hash(file: Path):
    sweeps = [_core.Sweep.read_file(str(file), with_points(file, [])) for _ in range(2)]
    assert sweeps[0].hash == sweeps[1].hash
    assert len(sweeps[0]) == 80
    assert points(file, ("sweep.seed", "4")) != points(file)
    assert "traffic.0.rtt" not in points(file, ("traffic.0.rtt", "5 ms"))


def test_a_latin_hypercube_has_a_value_in_every_part(file: Path):
    file.write_text(DESIGN.replace('"sobol"', '"latin_hypercube"').replace("samples = 16", "samples = 10"))
    rates = sorted(float(str(value).removesuffix(" Mbit/s")) for value in points(file)["traffic.0.rate"])
    assert [int((rate - 1.0) / 0.2) for rate in rates] == list(range(10))


def test_whole_numbers_stay_whole(file: Path):
    text = DESIGN.replace('{ from = "1 ms", to = "100 ms", scale = "log" }', "{ from = 1, to = 4 }")
    file.write_text(text.replace("traffic.0.rtt", "traffic.1.flows") .replace(
        'rtt = "20 ms" }]', 'rtt = "20 ms" }, { kind = "bulk", flows = 1, rtt = "20 ms" }]'
    ))  # fmt: skip
    flows = points(file, ("sweep.samples", "64"))["traffic.1.flows"]
    assert set(flows) == {1, 2, 3, 4}
    assert all(50 < flows.count(number) < 110 for number in (1, 2, 3, 4)), "each alike often"


def test_run_and_plan_sample_it(file: Path, sojourn: Cli):
    assert len(sj.plan(file)) == 80
    summary = json.loads(sojourn("run", file, "--set", "sweep.samples=2", "--json").stdout)
    assert len(summary["runs"]) == 10
    assert summary["runs"][0]["set"]["link.buffer"] in ("20 packets", "40 packets")


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the runs of a design."""
    folder = tmp_path_factory.mktemp("design")
    # With 16 samples the indices would be off by a third.
    (folder / "design.toml").write_text(DESIGN.replace("samples = 16", "samples = 64"))
    made = subprocess.run(
        [SOJOURN, "sweep", "design.toml", "--store", "store"], cwd=folder, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    return folder / "store"


def test_a_store_holds_the_points_and_knows_the_sweep_again(swept: Path, sojourn: Cli, monkeypatch: pytest.MonkeyPatch):
    again = sojourn("sweep", swept.parent / "design.toml", "--store", swept, "--json")
    assert json.loads(again.stdout) == {"runs": 320, "done": 320, "running": 0, "failed": 0}
    (plan,) = Store(swept).plans()
    # Workers read the plan without sampling.
    monkeypatch.setattr("sojourn.runs.designs.salib", lambda _: pytest.fail("sampled again"))
    assert len(plan.sweep) == 320


def test_goodput_depends_on_the_rate_of_its_source_alone(swept: Path):
    (found,) = indices(Grid(swept), Grid(swept).plans(), "goodput_bps")
    assert found.keys == ("traffic.0.rate", "traffic.0.rtt", "link.buffer")
    # Half a second of 1 to 3 Mbit/s through 4 Mbit/s: delay and buffer do not matter.
    assert found.first[0] == pytest.approx(1.0, abs=0.05)
    assert found.total[0] == pytest.approx(1.0, abs=0.05)
    assert found.total[1:] == pytest.approx([0.0, 0.0], abs=0.02)
    assert 0.0 < found.total_reach[0] < 1.0


def test_indices_are_those_of_a_function_that_is_known(swept: Path, monkeypatch: pytest.MonkeyPatch):
    """Of x + 2y with equal variances: a fifth and four fifths."""
    grid = Grid(swept)
    rate, delay = grid.axes["traffic.0.rate"], grid.axes["traffic.0.rtt"]
    assert rate.numbers is not None
    assert delay.numbers is not None
    x = (rate.numbers[grid.indices("traffic.0.rate")] - 1.0) / 2.0
    y = np.log(delay.numbers[grid.indices("traffic.0.rtt")]) / np.log(100.0)
    known = grid.intervals(grid.column("goodput_bps"))
    object.__setattr__(known, "middle", x + 2.0 * y)
    monkeypatch.setattr(grid, "intervals", lambda _: known)
    (found,) = indices(grid, grid.plans(), "goodput_bps")
    assert found.total == pytest.approx([0.2, 0.8, 0.0], abs=0.05)


def test_the_figure_shows_the_indices(swept: Path, sojourn: Cli, tmp_path: Path):
    drawn = sojourn("plot", "--store", swept, "--kind", "sensitivity", "--metric", "goodput_bps", "--out", "s.png")
    assert (drawn.returncode, drawn.stderr) == (0, "")
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")
    figure = Grid(swept).plot.sensitivity("goodput_bps")
    (found,) = indices(Grid(swept), Grid(swept).plans(), "goodput_bps")
    heights = [bar.get_height() for bars in figure.axes[0].containers if isinstance(bars, BarContainer) for bar in bars]
    assert heights == pytest.approx([*found.first, *found.total])


def test_a_grid_has_no_indices(sojourn: Cli, tmp_path: Path):
    (tmp_path / "grid.toml").write_text(
        DESIGN.partition("[sweep]")[0] + '[sweep]\n"traffic.0.rtt" = ["1 ms", "9 ms"]\n'
    )
    assert sojourn("sweep", "grid.toml", "--store", "store").returncode == 0
    failed = sojourn("plot", "--store", "store", "--kind", "sensitivity", "--out", "s.png")
    assert failed.stderr == 'plot: needs the runs of a sweep with design = "sobol"; the store has none\n'


def test_a_surface_of_a_design_is_interpolated_between_its_points(swept: Path):
    figure = Grid(swept).plot.surface("traffic.0.rate", "traffic.0.rtt", "goodput_bps", pool=True)
    assert len(figure.axes) == 2


def test_without_salib_a_line_says_what_to_install(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "SALib.sample.sobol", None)
    with pytest.raises(sj.ExperimentError, match=r"design: needs the package SALib: pip install 'sojourn\[designs\]'"):
        with_points(file, [])
