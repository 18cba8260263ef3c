"""Sojourn: a laboratory for active queue management.

>>> import sojourn as sj
>>> results = sj.compare("pfifo", "codel", rate="10 Mbit/s", rtt="40 ms", flows=2, duration="5 s")
>>> figure = results.plot.cdf()

- ``run``, ``run_text``, ``compare``: run an experiment, get its ``Results``
- ``Results``: runs, table, Arrow and pandas frames, figures; ``load`` reads saved ones back
- ``ExperimentError``, ``RunError``: the input is wrong; a run failed
"""

from sojourn._core import ExperimentError, RunError
from sojourn._core import version as __version__
from sojourn.api import compare, run, run_text
from sojourn.results import Arm, Results, Run, load

__all__ = ["Arm", "ExperimentError", "Results", "Run", "RunError", "__version__", "compare", "load", "run", "run_text"]
