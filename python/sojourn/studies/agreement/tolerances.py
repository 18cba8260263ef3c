"""The tolerances within which two results agree."""

from __future__ import annotations

from typing import NamedTuple


class Tolerance(NamedTuple):
    """Two values agree if they differ by at most the larger of a relative and an absolute bound."""

    relative: float
    """As a share of the reference."""
    absolute: float
    """In the metric's unit."""

    def bound(self, reference: float) -> float:
        """The largest difference that agrees with this reference, in the metric's unit."""
        return max(self.relative * abs(reference), self.absolute)

    def within(self, reference: float, value: float) -> bool:
        """Whether a value agrees with its reference."""
        return abs(value - reference) <= self.bound(reference)


TOLERANCES = {
    "sojourn_p50_ms": Tolerance(0.08, 1.0),
    "sojourn_p95_ms": Tolerance(0.12, 3.0),
    "goodput_bps": Tolerance(0.01, 0.0),
    "dropped_packets": Tolerance(0.15, 5.0),
    "marked_packets": Tolerance(0.15, 5.0),
    # With two flows: shares of 71 and 29 % against halves.
    "jain_goodput": Tolerance(0.0, 0.15),
}
"""By metric of a bottleneck's queue. Other metrics are shown, not judged."""
