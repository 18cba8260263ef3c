"""The command line: ``sojourn run``, ``compare``, ``list``, ``doctor``, ``study``.

Data goes to standard output, everything else to standard error. Exit status: 0 done, 1 a run failed, 2 the input is
wrong (one line on standard error), 130 interrupted.
"""

from sojourn.cli.app import main

__all__ = ["main"]
