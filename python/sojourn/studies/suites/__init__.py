"""Evaluates a discipline by scenarios, what RFC 7928 asks for, against drop-tail; congestion controls by test cases."""

from sojourn._core import ExperimentError
from sojourn.files import typed
from sojourn.studies import folder_of
from sojourn.studies.suites import controls
from sojourn.studies.suites.suite import Evaluation, Suite, SuiteFile, evaluate

__all__ = ["Evaluation", "Suite", "evaluate", "find"]


def find(name: str) -> Suite | controls.ControlSuite:
    """The suite of this name, or of the folder at this path. Raises ExperimentError if there is none."""
    folder = folder_of(name, "suite", "--suite")
    path = folder / "suite.toml"
    try:
        content = typed.read_toml(path)
        if content.get("controls"):
            return controls.ControlSuite(
                folder.name, folder, typed.convert(content, controls.ControlSuiteFile, "suite")
            )
        return Suite(folder.name, folder, typed.convert(content, SuiteFile, "suite"))
    except ValueError as error:
        raise ExperimentError(f"{path}: {error}") from None
