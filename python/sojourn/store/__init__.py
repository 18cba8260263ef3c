"""A store of runs: sweeps of any size, executed by any number of workers on machines that share its folder.

``files``: files with checksums. ``plans``: the runs to make, of an experiment file or a list. ``claims``: which worker
makes which batch. ``work``: the batches that are missing. ``runner``: makes lists of runs. ``stored``: runs as rows.
``query``: SQL. ``folder``, ``saving``, ``journal``, ``tablefiles``: results in a folder.
"""

from sojourn.store.plans import Store, StoredPlan

__all__ = ["Store", "StoredPlan"]
