"""Parts of pages are replaced by what was measured; what is around them stays."""

from __future__ import annotations

import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "validation"))

from pages import replaced

PAGE = """# Two tables, 3 seeds

**1 of 2.**
They agree.

| name | value |
| --- | --: |
| a | 1 |

## Further

| name | value |
| --- | --: |
| b | 2 |
| c | 3 |

Measured once.
"""


def test_parts_are_replaced_in_the_order_of_the_page():
    parts = [("**", "**2 of 2.**"), ("| name", [["a", "4"], ["d", "5"]]), ("| name", [["b", "6"]])]
    new = replaced(PAGE, parts, {r"(\d+) seeds": 40})
    assert new == PAGE.replace("3 seeds", "40 seeds").replace("1 of 2.**\nThey agree.", "2 of 2.**").replace(
        "| a | 1 |", "| a | 4 |\n| d | 5 |"
    ).replace("| b | 2 |\n| c | 3 |", "| b | 6 |")


@pytest.mark.parametrize(("parts", "words"), [([("| other", [])], {}), ([], {r"(\d+) runs": 1})])
def test_what_a_page_does_not_have_is_an_error(parts: list[tuple[str, list[list[str]]]], words: dict[str, int]):
    with pytest.raises(SystemExit, match="the page has no"):
        replaced(PAGE, parts, words)
