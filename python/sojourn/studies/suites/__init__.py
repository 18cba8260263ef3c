"""Evaluates a discipline by a suite of scenarios: what RFC 7928 asks for, against drop-tail."""

from sojourn.studies.suites.runner import Evaluation, evaluate
from sojourn.studies.suites.suite import Suite, available, find

__all__ = ["Evaluation", "Suite", "available", "evaluate", "find"]
