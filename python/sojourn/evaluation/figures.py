"""Goodput against queueing delay (RFC 7928, section 2.7), a figure per chapter with a panel per scenario."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.evaluation.runner import Evaluation
from sojourn.evaluation.suite import Suite
from sojourn.plots.style import COLORS, Look, figure, looks_of, save, style, title
from sojourn.plots.tradeoff import one_sigma_ellipse
from sojourn.statistics import FloatArray
from sojourn.storage import Staging

ACROSS = 3
_PANEL_IN = (3.0, 2.4)
DELAY, GOODPUT = "delay_mean_ms", "goodput_mbps"


def names(suite: Suite) -> dict[str, str]:
    """The figures of a suite: their names without a suffix, by chapter."""
    chapters = dict.fromkeys(one.section.partition(".")[0] for one in suite.content.scenario if not one.unmeasured)
    return {chapter: f"tradeoff-{chapter}" for chapter in chapters}


def stage(staging: Staging, evaluation: Evaluation) -> list[Path]:
    """Draws the figures of the chapters that have runs."""
    paths: list[Path] = []
    for chapter, name in names(evaluation.suite).items():
        places = [
            place
            for place, one in enumerate(evaluation.planned)
            if one.scenario.section.partition(".")[0] == chapter and evaluation.measured.get(place)
        ]
        if places:
            paths += save(staging, name, chapter_figure(evaluation, places), ("png",))
    return paths


def chapter_figure(evaluation: Evaluation, places: list[int]) -> Figure:
    """A panel per case of the scenarios of a chapter.

    The median of a discipline is a circle; if there are more disciplines than colours, they also have different marks.
    """
    across = min(ACROSS, len(places))
    rows = math.ceil(len(places) / across)
    arms = [arm.queue for arm in evaluation.arms]
    looks = dict(zip(arms, looks_of([arm.aqm for arm in evaluation.arms]), strict=True))
    if len(arms) <= len(COLORS):
        looks = {queue: look._replace(marker="o") for queue, look in looks.items()}
    with style():
        drawn = figure(_PANEL_IN[0] * across, _PANEL_IN[1] * rows + 0.4)
        panels = drawn.subplots(rows, across, squeeze=False).flatten()
        for axes, place in zip(panels, places, strict=False):
            one = evaluation.planned[place]
            for queue in arms:
                runs = [run.values for run in evaluation.measured[place] if run.queue == queue]
                sample = np.array([(run[DELAY], run[GOODPUT]) for run in runs], dtype=np.float64).reshape(-1, 2)
                _draw(axes, sample[~np.isnan(sample).any(axis=1)], looks[queue], queue)
            axes.invert_xaxis()
            title(axes, f"{one.scenario.section} {one.scenario.title(one.case)}", _PANEL_IN[0])
        for axes in panels[len(places) :]:
            axes.set_axis_off()
        handles, labels = panels[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside upper center", ncols=min(6, len(labels)))
        drawn.supxlabel("mean queueing delay [ms], less to the right", fontsize=9)
        drawn.supylabel("goodput [Mbit/s]", fontsize=9)
        return drawn


def _draw(axes: Axes, sample: FloatArray, look: Look, label: str) -> None:
    if not len(sample):
        return
    axes.plot(*sample.T, ".", color=look.color, markersize=3, alpha=0.6)
    axes.plot(*np.median(sample, axis=0), look.marker, color=look.color, markersize=6, label=label)
    if len(sample) > 2:
        axes.fill(*one_sigma_ellipse(sample).T, facecolor=look.color + "33", edgecolor=look.color, linewidth=1.2)
