"""An operator's tree from LibreQoS' files, which were made from its examples of both."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import sojourn as sj
from conftest import ROOT, wrong
from sojourn import _core
from sojourn._core import ExperimentError
from sojourn.frame.notes import Note
from sojourn.lines import tree

FILES = Path(__file__).parent / "files"
DEVICES = FILES / "ShapedDevices.csv"


def test_circuits_stand_below_their_sites_by_plan():
    found = tree.read(DEVICES)
    assert [site.name for site in found.sites] == ["Site_1"]
    assert [child.name for child in found.sites[0].children] == ["AP_A", "AP_B"]
    # Two devices of one circuit are one; the fourth of AP_A has another plan.
    plans = {site: {plan.name: n for plan, n in plans.items()} for site, plans in found.circuits.items()}
    assert plans == {
        "AP_A": {"50/10": 3, "100/20": 1},
        "AP_B": {"50/10": 1, "100/20": 1, "10.5/2.5": 2},
        "Site_1": {"100/20": 1, "50/10": 1},
    }
    text = tree.experiment(found, "ShapedDevices.csv")
    # What is promised below: 3 · 5 + 10 = 25; 5 + 10 + 2 · 2.5 = 20; both, and 15 of its own.
    for name, rate, ceil in (("AP_A", 25, 100), ("AP_B", 20, 80), ("Site_1", 60, 200)):
        own = text.split(f'name = "{name}"\n')[1].split("[[class]]")[0]
        assert f'rate = "{rate} Mbit/s"\nceil = "{ceil} Mbit/s"\n' in own


def test_every_circuit_gets_what_its_tree_allows(tmp_path):
    file = tmp_path / "tree.toml"
    file.write_text(tree.experiment(tree.read(DEVICES), "ShapedDevices.csv", 2.0))
    results = sj.run(file)
    assert [run.label for run in results.runs] == ["CAKE each", "a FIFO each", "one FIFO"]
    for run in results.runs[:2]:
        groups = {group["name"]: group for group in run.summary["groups"]}
        assert groups["50/10 web"]["flows"] == 5
        assert all(flow["goodput_bps"] <= 100e6 for flow in run.summary["flows"])


def test_the_command_writes_a_file_that_runs(sojourn, tmp_path):
    for name in ("ShapedDevices.csv", "network.json"):
        shutil.copy(FILES / name, tmp_path)
    done = sojourn("link", "import", tmp_path / "ShapedDevices.csv", "--duration", "1 s", "-o", tmp_path / "tree.toml")
    assert (done.returncode, done.stdout.strip()) == (0, str(tmp_path / "tree.toml"))
    assert sojourn("run", tmp_path / "tree.toml", "--dry-run").returncode == 0


def test_the_trees_of_the_page_run_on_linux(tmp_path):
    (tmp_path / "tree.toml").write_text(tree.experiment(tree.read(DEVICES), "ShapedDevices.csv", 2.0))
    for file in (tmp_path / "tree.toml", ROOT / "examples" / "operator" / "ten.toml"):
        assert "sch_htb" in _core.linux_modules(_core.Plan.read_file(str(file), []))


@pytest.mark.parametrize(
    ("devices", "network", "said"),
    [
        ("Circuit ID,Parent Node\n1,AP_A\n", None, "has no column 'download min mbps'"),
        (DEVICES.read_text().replace(",5,1,50,10,", ",5,1,many,10,", 1), None, ":3: damaged line; must have numbers"),
        (DEVICES.read_text().replace(",5,1,50,10,", ",60,1,50,10,", 1), None, ":3: must have rates above 0"),
        (DEVICES.read_text().replace("AP_A", "AP_C", 1), None, ":3: got parent node 'AP_C'; must be one of"),
        (DEVICES.read_text().split("\n1,")[0] + "\n", None, "has no circuits"),
        (None, "{", "not JSON from line 1"),
        (None, json.dumps({"Site_1": {"downloadBandwidthMbps": 1}}), "damaged; must have sites with"),
        (None, json.dumps([1]), "damaged; must have sites with"),
        (None, (FILES / "network.json").read_text().replace("AP_B", "Site_1"), "two nodes are called 'Site_1'"),
    ],
)
def test_a_damaged_file_is_one_line(devices, network, said, tmp_path):
    (tmp_path / "ShapedDevices.csv").write_text(devices or DEVICES.read_text())
    (tmp_path / "network.json").write_text(network or (FILES / "network.json").read_text())
    with pytest.raises(ExperimentError) as error:
        tree.read(tmp_path / "ShapedDevices.csv")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_left_out_is_told(tmp_path):
    """A second device with another plan, and parents without their sites."""
    text = DEVICES.read_text()
    (tmp_path / "ShapedDevices.csv").write_text(text)
    with pytest.warns(Note, match="no .*network.json: parent nodes are left out"):
        tree.read(tmp_path / "ShapedDevices.csv")
    shutil.copy(FILES / "network.json", tmp_path)
    further = '2,"2 Mill Lane, Ashford",12,Third router,AP_B,,100.64.0.12,,10,2,100,20,,'
    (tmp_path / "ShapedDevices.csv").write_text(f"{text.rstrip()}\n{further}\n")
    with pytest.warns(Note, match=":14: circuit 2 has another plan or parent above; that one counts"):
        found = tree.read(tmp_path / "ShapedDevices.csv")
    assert found == tree.read(DEVICES)


def test_network_needs_devices(sojourn):
    given = sojourn("link", "import", FILES / "speedtest.csv", "--network", FILES / "network.json")
    wrong(given, "--network: goes with ShapedDevices.csv")
