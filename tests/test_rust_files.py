"""The files of a crate form no circle: of two files, one at most uses the other, by itself or by way of others.

A file may use those that it is a part of, as a child does by ``super::``. Tests do not count.
"""

from __future__ import annotations

import re
from pathlib import Path

CRATES = Path(__file__).parents[1] / "crates"
Module = tuple[str, ...]

ARGUED: dict[tuple[str, tuple[str, ...]], str] = {}
"""Circles that a cut would make worse, each with the reason."""

TESTS = re.compile(r"^#\[cfg\(test\)\]\nmod tests \{", re.M)
NO_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|\br(#+)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\.|[^\\'])'""", re.S)
USE = re.compile(r"\b(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
PATH = re.compile(r"(?<![\w:])[a-z_]\w*(?:::\w+)+")


def modules_of(crate: Path) -> dict[Module, str]:
    """The modules of a crate with their code. The crate itself is the empty path."""
    found: dict[Module, str] = {}
    for file in (crate / "src").rglob("*.rs"):
        parts = file.relative_to(crate / "src").with_suffix("").parts
        if not {"tests", "bin"} & set(parts):
            module = parts[:-1] if parts[-1] in {"lib", "main", "mod"} else parts
            # A crate with a program has lib.rs and main.rs.
            found[module] = found.get(module, "") + NO_CODE.sub("", TESTS.split(file.read_text(encoding="utf-8"))[0])
    return found


def leaves(tree: str) -> list[str]:
    """The paths of a ``use``: ``a::{b, c as d}`` is ``a::b`` and ``a::c=d``."""
    tree = re.sub(r"\s", "", re.sub(r"\s+as\s+", "=", tree))
    while innermost := re.search(r"([^{},]*)\{([^{}]*)\}", tree):
        paths = [innermost[1] + path for path in innermost[2].split(",") if path]
        tree = tree[: innermost.start()] + ",".join(paths) + tree[innermost.end() :]
    return tree.split(",")


def absolute(path: str, within: Module, modules: dict[Module, str]) -> Module | None:
    """A path from the crate on; nothing for one of another crate."""
    first, *rest = path.partition("=")[0].removesuffix("::self").split("::")
    if first == "crate":
        return tuple(rest)
    if first == "super":
        while rest[:1] == ["super"]:
            within, rest = within[:-1], rest[1:]
        return (*within[:-1], *rest)
    if first == "self":
        return (*within, *rest)
    return (*within, first, *rest) if (*within, first) in modules else None


def graph_of(modules: dict[Module, str]) -> dict[Module, set[Module]]:
    """The modules that each module uses, those that it is a part of left out."""
    used: dict[Module, set[Module]] = {}
    exports: dict[Module, Module] = {}
    for module, code in modules.items():
        trees = [(public, leaf) for public, tree in USE.findall(code) for leaf in leaves(tree)]
        trees += [("", path) for path in PATH.findall(USE.sub("", code))]
        used[module] = set()
        for public, leaf in trees:
            if (path := absolute(leaf, module, modules)) is not None:
                used[module].add(path)
                if public:
                    exports[*module, re.split("=|::", leaf)[-1]] = path

    def home(path: Module) -> Module:
        """The module that has an item, wherever others export it."""
        known = next(path[:length] for length in range(len(path), -1, -1) if path[:length] in modules)
        exported = exports.get(path[: len(known) + 1])
        return known if exported is None or path == known else home(exported)

    return {
        module: {other for other in map(home, paths) if module[: len(other)] != other} for module, paths in used.items()
    }


def reached(graph: dict[Module, set[Module]], start: Module) -> set[Module]:
    found: set[Module] = set()
    ahead = [start]
    while ahead:
        new = graph[ahead.pop()] - found
        found |= new
        ahead += new
    return found


def circles(crate: Path) -> set[tuple[str, tuple[str, ...]]]:
    graph = graph_of(modules_of(crate))
    far = {module: reached(graph, module) for module in graph}
    found = [[other for other in others if module in far[other]] for module, others in far.items()]
    return {(crate.name, tuple(sorted(map("/".join, circle)))) for circle in found if circle}


def test_files_of_a_crate_form_no_circle():
    found = set().union(*(circles(sources.parent) for sources in CRATES.glob("*/src")))
    assert found == ARGUED.keys()


def test_a_circle_is_found(tmp_path):
    files = {
        "lib.rs": "mod a;\nmod b;\nmod c;\npub use b::{self, Two as Second};",
        "a.rs": "use crate::{Second, c::Three};",
        "b/mod.rs": "mod d;\npub struct Two(d::Four);",
        "b/d.rs": "use super::Two;\npub struct Four(crate::a::One); // crate::c::Three",
        "c.rs": "#[cfg(test)]\nmod tests {\n    use crate::a::One;\n}",
    }
    for name, code in files.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(code)
    assert circles(tmp_path) == {(tmp_path.name, ("a", "b", "b/d"))}
