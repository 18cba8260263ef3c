"""The rooms of the Python package: a room imports only what is on a floor below, and files form no circle."""

from __future__ import annotations

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "python" / "sojourn"

FLOORS = (
    {"_core", "schema"},
    {"files", "live"},
    {"frame", "linux"},
    {"figure"},
    {"page", "runs"},
    {"store"},
    {"export", "gym", "studies"},
    {"api", "cli", "lines", "__init__", "__main__"},
)
"""The rooms, each above those that it may import."""
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

VIEWS = {"sojourn.figure.plots", "sojourn.page.results", "sojourn.store.folder"}
"""Imported by the methods of ``frame.results.Results`` that a notebook calls: ``plot``, ``table``, ``save``.

Nothing else runs back up."""
DEFERRED = 7
"""Imports within functions, which save the command line a start-up; there is no other reason for one."""


def modules() -> dict[str, Path]:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = ["sojourn", *path.relative_to(PACKAGE).with_suffix("").parts]
        if not {"_studies", "_suites", "_web"} & set(parts):
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def room_of(module: str) -> str:
    return ([*module.split("."), "__init__"])[1]


def imports(path: Path) -> list[tuple[str, bool, bool]]:
    """The modules of ours that a file imports: whether within a function, and whether for its types only."""
    found: list[tuple[str, bool, bool]] = []

    def walk(node: ast.AST, deferred: bool, typing: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ImportFrom) and (child.module or "").split(".")[0] == "sojourn":
                assert child.module is not None
                for name in {f"{child.module}.{alias.name}" for alias in child.names}:
                    own = name if name in MODULES or name == "sojourn._core" else child.module
                    found.append((own, deferred, typing))
            else:
                only_types = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
                walk(child, deferred or isinstance(child, ast.FunctionDef), typing or only_types)

    walk(ast.parse(path.read_text(encoding="utf-8")), False, False)
    return found


def test_no_room_imports_what_is_above_it_or_beside_it():
    wrong = [
        f"{module} imports {other}"
        for module, path in MODULES.items()
        for other, _, _ in imports(path)
        if (room := room_of(module)) != room_of(other)
        and FLOOR_OF[room] <= FLOOR_OF[room_of(other)]
        and FLOOR_OF[room] < len(FLOORS) - 1
        and not (module == "sojourn.frame.results" and other in VIEWS)
    ]
    assert wrong == []


def test_the_table_of_rooms_is_that_of_the_page_on_architecture():
    page = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d) \| (`[^|]+`) \|", page, re.M)
    shown = {room: int(floor) for floor, rooms in rows for room in re.findall(r"`(\w+)`", rooms)}
    assert shown == {room: floor for room, floor in FLOOR_OF.items() if not room.startswith("__")}


def test_files_form_no_circle():
    graph = {
        module: {other for other, deferred, typing in imports(path) if not (deferred or typing) and other != module}
        for module, path in MODULES.items()
    }
    list(TopologicalSorter(graph).static_order())  # raises CycleError


def test_imports_are_at_the_top_of_a_file():
    assert sum(deferred for path in MODULES.values() for _, deferred, _ in imports(path)) == DEFERRED
