"""Figures of studies: what the paper published is drawn where it belongs, and no two schemes look alike."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image, ImageColor

from conftest import ROOT
from sojourn.figure.style import COLORS, figure
from sojourn.frame.series import histogram
from sojourn.studies import find, run_study
from sojourn.studies.figures import draw


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    file = ROOT / "docs/results/studies/write.py"
    spec = importlib.util.spec_from_file_location("write_studies", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_two_disciplines_have_one_colour_in_a_picture_of_few_colours(pages: ModuleType):
    drawn = figure()
    axes = drawn.add_subplot()
    axes.imshow(np.random.default_rng(1).random((50, 50, 3)), extent=(0, 7, 2, 4), aspect="auto")
    for place, color in enumerate(COLORS):
        axes.plot(place, 1, "o", color=color)
    picture = Image.open(io.BytesIO(pages._compressed(drawn)))
    assert len(picture.getcolors() or []) in range(1, 65)
    seen = {color for _, color in picture.convert("RGB").getcolors() or []}
    assert {ImageColor.getrgb(color) for color in COLORS} <= seen


def test_a_distribution_of_delays_is_drawn_through_its_histogram(study: Path):
    path = study / "study.toml"
    path.write_text(path.read_text(encoding="utf-8").replace('kind = "box"', 'kind = "cdf"'))
    recipe = find(str(study))
    (spec,) = recipe.figures
    results = run_study(recipe, quick=True)
    axes = draw(spec, recipe, results.grids).axes[0]
    cell = next(results.grids["e"].at("pfifo", {"flows": 1.0}))
    found = histogram(cell.runs[0], "down")
    assert found is not None
    edges, upto = found
    line = axes.lines[0].get_xydata()
    inner = [(x, y) for x, y in line if 0.0 < y < 1.0]
    assert len(inner) > 100
    for delay, share in inner:
        last = int(np.searchsorted(edges, delay * (1 - 1e-9)))
        before = upto[last - 1] if last else 0.0
        assert edges[last] == pytest.approx(delay)
        assert before / upto[-1] <= share + 1e-9 <= upto[last] / upto[-1] + 2e-9
