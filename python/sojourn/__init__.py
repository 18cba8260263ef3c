"""Sojourn: a laboratory for active queue management.

>>> import sojourn as sj
>>> results = sj.compare("pfifo", "codel", rate="10 Mbit/s", rtt="40 ms", flows=2, duration="5 s")
>>> figure = results.plot.cdf()

- ``run``, ``run_text``, ``compare``: run an experiment, get its ``Results``
- ``Results``: runs, table, Arrow and pandas frames, figures; ``load`` reads saved ones back
- ``aqm``, ``register_aqm``, ``unregister_aqm``, ``Algorithm``: queue disciplines of one's own, in Python
- ``replay``, ``follow``: a recorded queue through a discipline
- ``ExperimentError``, ``RunError``: the input is wrong; a run failed
"""

from sojourn._core import Algorithm, ExperimentError, Packet, Queue, RunError
from sojourn._core import version as __version__
from sojourn.api import compare, run, run_text
from sojourn.own import aqm, register_aqm, unregister_aqm
from sojourn.recorded import follow, replay
from sojourn.results import Arm, Results, Run, load

__all__ = [
    "Algorithm",
    "Arm",
    "ExperimentError",
    "Packet",
    "Queue",
    "Results",
    "Run",
    "RunError",
    "__version__",
    "aqm",
    "compare",
    "follow",
    "load",
    "register_aqm",
    "replay",
    "run",
    "run_text",
    "unregister_aqm",
]
