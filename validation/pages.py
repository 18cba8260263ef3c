"""Pages of docs/results: their text stands in the page alone, and the scripts replace what they have measured."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "docs" / "results"

Part = tuple[str, str | Iterable[Sequence[str]]]
"""How the first line of a part begins in the page, and what replaces it: a paragraph, or the rows of a table."""


def row(cells: Iterable[str]) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, whose cells may have marks of it."""
    return "\n".join(map(row, [headings, ["---"] * len(headings), *rows]))


def replaced(text: str, parts: Iterable[Part], words: Mapping[str, object] | None = None) -> str:
    """A page with other parts, which are given in its order; of a table its head stays.

    ``words``: patterns, and what stands in the page for the group of each.
    """
    for pattern, value in (words or {}).items():
        found = re.search(pattern, text, re.MULTILINE)
        if found is None:
            raise SystemExit(f"the page has nothing like {pattern}")
        text = f"{text[: found.start(1)]}{value}{text[found.end(1) :]}"
    lines, places, parts = text.split("\n"), [-1], list(parts)
    # All are found before the first is measured, if it is that late.
    for begin, _ in parts:
        at = next((at for at in range(places[-1] + 1, len(lines)) if lines[at].startswith(begin)), None)
        if at is None:
            raise SystemExit(f"the page has no part that begins with {begin}")
        places.append(at)
    for at, (_, new) in reversed(list(zip(places[1:], parts, strict=True))):
        end = lines.index("", at)
        if isinstance(new, str):
            lines[at:end] = new.split("\n")
        else:
            lines[at + 2 : end] = map(row, new)
    return "\n".join(lines)


def put(page: Path, parts: Iterable[Part], words: Mapping[str, object] | None = None) -> None:
    """Replaces parts of a page."""
    page.write_text(replaced(page.read_text(encoding="utf-8"), parts, words), encoding="utf-8")
