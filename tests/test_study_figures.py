"""Figures of studies: what the paper published is drawn where it belongs, and no two schemes look alike."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image, ImageColor

from sojourn.plots.style import COLORS, figure


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    file = Path(__file__).parents[1] / "docs/results/studies/write.py"
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
