"""The experiments of the documents: the files and runs of a lab's sheet, complete files of other documents.

Only the standard library is needed, as the page in the browser is built from them too.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SITE = "https://sojourn-lab.github.io/sojourn/"
PAGE = f"{SITE}lab/"
DOCUMENTS = ("README.md", "docs/getting-started.md", "docs/operator.md")
"""Those whose experiments open in the browser; those of the tutorials need code of the reader's."""
EXPERIMENT = re.compile(r"^```toml(?: \S+)?\n(\[experiment\]\n.*?)^```\n", re.MULTILINE | re.DOTALL)
FENCE = re.compile(
    r"^```(python|toml (\S+\.toml))\n(.*?)^```\n(?:\[?In the browser\b[^\n]*\n)?", re.MULTILINE | re.DOTALL
)


def labs() -> list[str]:
    """The names of all labs, in the order of their numbers."""
    return sorted((path.name.removesuffix(".answers.md") for path in HERE.glob("*.answers.md")), key=title)


def title(lab: str) -> str:
    """The heading of a lab: its number and what it is about."""
    return (HERE / f"{lab}.md").read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def link(text: str) -> str:
    """The address of the page with this experiment, as its *Share* makes it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = base64.urlsafe_b64encode(packer.compress(text.encode()) + packer.flush()).decode()
    return f"{PAGE}#file={packed.rstrip('=')}"


def cells(sheet: str) -> Iterator[tuple[str, str]]:
    """The cells of a sheet: ``markdown`` or ``code`` with the text. A file is a cell that writes it."""
    end = 0
    for found in FENCE.finditer(sheet):
        yield "markdown", sheet[end : found.start()]
        yield "code", found[3] if found[2] is None else f"%%writefile {found[2]}\n{found[3]}"
        end = found.end()
    yield "markdown", sheet[end:]


def files(sheet: str) -> dict[str, str]:
    """The experiment files of a sheet."""
    return {found[2]: found[3] for found in FENCE.finditer(sheet) if found[2] is not None}
