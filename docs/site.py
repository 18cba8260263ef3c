"""What the site adds to the pages of docs/: documents that live elsewhere, and links that lead out of docs/."""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from sojourn import _core

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs" / "labs"))

import sheets  # noqa: E402

BROWSE = "https://github.com/sojourn-lab/sojourn/blob/main/"
ELSEWHERE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "studies/README.md": "studies.md",
    "validation/README.md": "validation.md",
}
"""Documents outside of docs/, by their place in the checkout, and their pages."""

FENCE = re.compile(r"^```(\w+) (\S+\.\w+)$", re.M)
LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)\s]*)?\))")
log = get_plugin_logger("site")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Takes the documents from elsewhere in."""
    for source, page in ELSEWHERE.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    # For editors, by the catalogue of schemastore.org (packaging/schemastore.json).
    files.append(File.generated(config, "experiment.schema.json", content=_core.schema_json()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leads links, which are written for the checkout, to pages, else to the repository; titles code with its file.

    An experiment is followed by a link that opens it in the browser.
    """
    places = {page: source for source, page in ELSEWHERE.items()}
    here = page.file.src_uri
    source = places.get(here, f"docs/{here}")
    folder = posixpath.dirname(source)

    def led(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[2]))
        if not (ROOT / target).exists():
            log.warning("%s: no file %s", here, link[2])
        inside = ELSEWHERE.get(target, target.removeprefix("docs/"))
        if files.get_file_from_path(inside) is None:
            return f"{link[1]}{BROWSE}{target}{link[3]}"
        return f"{link[1]}{posixpath.relpath(inside, posixpath.dirname(here) or '.')}{link[3]}"

    if here.startswith("results/studies/"):
        markdown = markdown.replace("][", "]\\[")  # two brackets, no reference
    markdown = LINK.sub(led, markdown)
    if source in sheets.DOCUMENTS:
        markdown = sheets.EXPERIMENT.sub(lambda one: f"{one[0]}\n[In the browser]({sheets.link(one[1])})\n", markdown)
    return FENCE.sub(r'```\1 title="\2"', markdown)
