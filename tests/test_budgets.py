"""Lines per room, without tests. A room that grows raises its number in budgets.toml, with the reason beside it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
KINDS = {".rs", ".py", ".js", ".c", ".html"}
GENERATED = {"_studies", "_suites", "_web", "target", "tests", "benches", "fuzz"}
GROWTH = 1.02
"""A room may grow by this without a word."""
SHRINKAGE = 0.95
"""Below this the number is lowered, so that the room does not grow back unseen."""


def lines_of(path: Path) -> int:
    """The lines of a file, without the tests inside of a Rust file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".rs":
        if path.stem in ("tests", "test_packet") or "/tests/" in path.as_posix():
            return 0
        text = re.split(r"^#\[cfg\(test\)\]\nmod tests \{", text, maxsplit=1, flags=re.M)[0]
    return text.count("\n")


def rooms() -> dict[str, int]:
    """The lines of every room: a crate's sources, a folder of the package, its files at the top, folders of tools."""
    folders = {
        f"crates/{crate.name}": crate / "src"
        for crate in sorted((ROOT / "crates").iterdir())
        if (crate / "src").is_dir()
    }
    package = ROOT / "python" / "sojourn"
    folders |= {
        f"python/sojourn/{room.name}": room
        for room in sorted(package.iterdir())
        if room.is_dir() and room.name not in {*GENERATED, "__pycache__"}
    }
    folders |= {name: ROOT / name for name in ("validation", "benches", "web")}
    found = {
        name: sum(lines_of(path) for path in folder.rglob("*") if path.suffix in KINDS and path.is_file())
        for name, folder in folders.items()
    }
    return found | {"python/sojourn": sum(lines_of(path) for path in package.glob("*.py"))}


def test_no_room_outgrows_its_budget():
    budgets: dict[str, int] = tomllib.loads((ROOT / "budgets.toml").read_text(encoding="utf-8"))["lines"]
    found = rooms()
    assert budgets.keys() == found.keys()
    over = {room: (lines, budgets[room]) for room, lines in found.items() if lines > GROWTH * budgets[room]}
    assert over == {}, "more lines than the budget: say why in budgets.toml, beside the new number"
    under = {room: (lines, budgets[room]) for room, lines in found.items() if lines < SHRINKAGE * budgets[room]}
    assert under == {}, "fewer lines than the budget: lower it in budgets.toml"
