"""A store of runs: sweeps of any size, made by any number of workers on any machines that see its folder.

``files``: files that appear whole, and tell whether they are damaged. ``plans``: what is to be run. ``claims``: who
makes which batch of runs. ``rows``: runs as rows of a table. ``work``: makes runs until none is left. ``query``: SQL.
"""

from sojourn.store.plans import Store, StoredPlan

__all__ = ["Store", "StoredPlan"]
