"""How often packets wait long: the share that waits longer, down to one packet in a million."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from sojourn.figure.distributions import sojourn_curve, steps
from sojourn.figure.of_results import OfResults
from sojourn.figure.style import Width, figure, legend, log_axis, note, style, wants_log, way
from sojourn.frame.metrics import has_queue
from sojourn.frame.results import Arm
from sojourn.frame.series import histogram
from sojourn.frame.statistics import FloatArray

_LEAST = 1e-6
"""The least share that is drawn."""


def tail_curve(arm: Arm, queue: str) -> tuple[FloatArray, FloatArray]:
    """(sojourn in ms, share of packets above it) of all repeats of an arm combined, from the runs' histograms."""
    runs = [run for run in arm.runs if has_queue(run.summary, queue)]
    counted = [one for run in runs if (one := histogram(run, queue)) is not None]
    values, levels = steps(counted) if len(counted) == len(runs) else sojourn_curve(arm, queue)
    return values, 1.0 - levels


class Tail(OfResults):
    """The tail of the sojourn time."""

    def tail(self, queue: str = "down", *, width: Width | None = None) -> Figure:
        """Share of packets that wait longer than a time, one line per arm, repeats combined.

        The vertical axis is logarithmic: p99 is at 0.01, p99.9 at 0.001. A line falls at the longest sojourn time.
        """
        results, queue = self._results, self._checked_queue(queue)
        curves = [tail_curve(arm, queue) for arm in results.arms]
        with style():
            drawn = figure(width=width)
            axes = drawn.add_subplot()
            for arm, look, (values, shares) in zip(results.arms, self._looks, curves, strict=True):
                above = np.maximum(shares, _LEAST)
                axes.plot(values, above, label=arm.title, color=look.color, linestyle=look.dashes)
            axes.set(xlabel="sojourn time [ms]", ylabel="share of packets that wait longer")
            least = min((float(shares[shares > _LEAST].min(initial=1.0)) for _, shares in curves), default=1.0)
            axes.set_ylim(10.0 ** np.floor(np.log10(least)), 1.0)
            log_axis(axes, "y")
            tops = [float(values[-1]) for values, _ in curves if values.size]
            if wants_log(tops):
                axes.set_xlim(min(top for top in tops if top > 0.0) / 20, max(tops) * 1.05)
                log_axis(axes, "x")
            else:
                axes.set_xlim(left=0)
            note(axes, way(results, queue))
            legend(drawn, axes)
            return drawn
