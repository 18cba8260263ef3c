"""Draws the pictures of the page of figures by the page's own commands."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from PIL import Image

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "gallery.md"
ENTRY = re.compile(r"^!\[[^]]+\]\((?P<picture>[^)]+)\)\n\n```sh\nsojourn (?P<command>.+?) +# (?P<file>\S+)\n```$", re.M)


class Entry(NamedTuple):
    """A picture of the page, the command below it, and the file of the command that is the picture."""

    picture: str
    command: list[str]
    file: str


def entries() -> list[Entry]:
    """The pictures of the page."""
    found = ENTRY.finditer(PAGE.read_text(encoding="utf-8"))
    return [Entry(one["picture"], shlex.split(one["command"]), one["file"]) for one in found]


def draw(command: list[str], folder: Path) -> None:
    """Runs a command of the page, with its files in a folder."""
    words = [str(ROOT / word) if word.startswith("examples/") else word for word in command]
    subprocess.run([sys.executable, "-m", "sojourn", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Draws all pictures, in 64 colours to keep them small."""
    with tempfile.TemporaryDirectory() as folder:
        drawn: list[list[str]] = []
        for entry in entries():
            if entry.command not in drawn:
                draw(entry.command, Path(folder))
                drawn.append(entry.command)
            picture = Image.open(Path(folder) / entry.file).convert("RGB")
            picture.quantize(64).save(PAGE.parent / entry.picture, optimize=True)


if __name__ == "__main__":
    main()
