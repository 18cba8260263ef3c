"""A store of runs: sweeps of any size, made by any number of workers on any machines that see its folder.

``files``: files that appear whole, and tell whether they are damaged. ``plans``: what is to be run; ``listing``: runs
that no single file describes. ``claims``: who makes which batch of runs. ``rows``: runs as rows of a table. ``work``:
makes runs until none is left. ``stored``: reads runs back. ``listed``: makes or reads a list of runs. ``query``: SQL.
"""

from sojourn.store.plans import Store, StoredPlan

__all__ = ["Store", "StoredPlan"]
