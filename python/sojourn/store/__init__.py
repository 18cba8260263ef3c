"""A store of runs: sweeps of any size, executed by any number of workers on machines that share its folder.

``files``: files with checksums. ``plans``: the runs to execute; ``run_list``: runs that no single experiment file
describes. ``claims``: which worker executes which batch. ``rows``: runs as table rows. ``work``: executes runs until
none is left. ``stored``: reads runs back. ``runner``: makes lists of runs for commands. ``query``: SQL. ``folder``,
``saving``, ``journal``: a folder of results.
"""

from sojourn.store.plans import Store, StoredPlan

__all__ = ["Store", "StoredPlan"]
