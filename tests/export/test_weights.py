"""Weights of learned networks in other formats."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import sojourn as sj
from conftest import ROOT

TRAINED = ROOT / "studies" / "rlaqm2021" / "trained-10.json"


def test_an_archive_of_numpy_becomes_the_same_run(tmp_path: Path):
    network = json.loads(TRAINED.read_text(encoding="utf-8"))
    layers = {
        f"{part}.{number}": np.array(layer[part])
        for number, layer in enumerate(network["layers"])
        for part in ("weights", "bias")
    }
    words = {word: network[word] for word in ("interval", "inputs", "output", "most")}
    np.savez(tmp_path / "trained.npz", **words, **layers)
    sj.convert_weights(tmp_path / "trained.npz", tmp_path / "trained.json")

    def summary(weights: Path) -> object:
        text = f"""
        experiment = {{ duration = "3 s" }}
        link = {{ rate = "10 Mbit/s" }}
        queue = [{{ aqm = "policy", weights = {json.dumps(str(weights))} }}]
        traffic = [{{ kind = "bulk", flows = 2, rtt = "20 ms" }}]
        """
        return sj.run_text(text).runs[0].summary["bottleneck"]["down"]

    assert summary(tmp_path / "trained.json") == summary(TRAINED)
    assert summary(tmp_path / "trained.npz") == summary(TRAINED)
    (tmp_path / "half.npz").write_bytes((tmp_path / "trained.npz").read_bytes()[:-9])
    with pytest.raises(sj.ExperimentError, match=r'got ".*half\.npz"; .*its directory is damaged'):
        summary(tmp_path / "half.npz")
    sj.convert_weights(TRAINED, tmp_path / "again.npz")
    sj.convert_weights(tmp_path / "again.npz", tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text()) == network


def test_onnx_has_the_same_outputs(tmp_path: Path):
    sj.convert_weights(TRAINED, tmp_path / "trained.onnx")
    model = onnx.load(tmp_path / "trained.onnx")
    onnx.checker.check_model(model, full_check=True)
    network = json.loads(TRAINED.read_text(encoding="utf-8"))
    told = {entry.key: entry.value for entry in model.metadata_props}
    assert told["interval"] == network["interval"]
    assert json.loads(told["inputs"]) == network["inputs"]
    seen = np.random.default_rng(1).uniform(0.0, 1.0, (50, len(network["inputs"])))
    expected = seen
    for number, layer in enumerate(network["layers"]):
        expected = np.maximum(expected, 0.0) if number else expected
        expected = expected @ np.array(layer["weights"]).T + layer["bias"]
    (values,) = ReferenceEvaluator(model).run(None, {"seen": seen.astype(np.float32)})
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5)


def test_a_file_that_is_not_whole_is_told_in_one_line(tmp_path: Path):
    (tmp_path / "no.json").write_text('{"interval": "20 ms", "inputs": ["backlog_ms"], "output": "probability"}')
    np.savez(tmp_path / "half.npz", interval="20 ms", inputs=["backlog_ms"], output="probability")
    np.savez(
        tmp_path / "wide.npz",
        **{
            "interval": "20 ms",
            "inputs": ["backlog_ms"],
            "output": "probability",
            "weights.0": [[1, 2]],
            "bias.0": [0],
        },
    )
    (tmp_path / "text.npz").write_text("text")
    for source, target, told in (
        ("no.json", "out.npz", 'no.json: has no "layers"'),
        ("half.npz", "out.json", 'half.npz: has no "weights.0'),
        ("wide.npz", "out.json", "layer 0: got weights of shape (1, 2); must be (1, 1)"),
        ("text.npz", "out.json", "text.npz: "),
        ("no.onnx", "out.json", "must end in one of .json, .npz"),
        ("no.json", "out.pt", "must end in one of .json, .npz, .onnx"),
    ):
        with pytest.raises(sj.ExperimentError, match=re.escape(told)) as refused:
            sj.convert_weights(tmp_path / source, tmp_path / target)
        assert "\n" not in str(refused.value)
        assert not (tmp_path / target).exists()


@pytest.mark.parametrize("suffix", [".json", ".npz", ".onnx"])
def test_an_interrupted_write_leaves_the_earlier_file(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch):
    target = tmp_path / f"kept{suffix}"
    sj.convert_weights(TRAINED, target)
    before = target.read_bytes()

    def interrupted(_number: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sj.convert_weights(TRAINED, target)
    assert target.read_bytes() == before
    assert list(tmp_path.iterdir()) == [target]
