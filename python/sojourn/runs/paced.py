"""A run in the simulator at the pace of a clock, for whoever watches it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from sojourn import _core
from sojourn.live.feed import Feed
from sojourn.runs.backends import Simulator

EVERY_S = 0.1
"""Wall time between two samples."""


@dataclass
class Paced(Simulator):
    """The simulator, ``speed`` seconds of a run in a second of the clock."""

    feed: Feed
    speed: float = 1.0

    def run(self, spec: _core.RunSpec, monitor: _core.Monitor) -> _core.Run:
        """Makes one run, of which the feed hears."""
        session = _core.Session(spec)
        names = [queue["name"] for queue in json.loads(spec.parts_json)["queues"]]
        self.feed.setter = session.set
        began = time.monotonic()
        while not session.finished and not monitor.cancelled:
            session.step(EVERY_S * self.speed)
            seen = session.observe()
            queues = [seen["queues"][name] for name in names]
            self.feed.add({"sample": {"now_s": seen["now_s"], "queues": queues, "flows": seen["flows"]}})
            time.sleep(max(began + session.now_s / self.speed - time.monotonic(), 0.0))
        return session.finish()
