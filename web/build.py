"""Writes the page: one HTML file with its style, scripts and examples, and the compiled simulator inside.

``python web/build.py MODULE.wasm PAGE.html``, with the packages of the group ``web``. Scripts are modules while they
are edited; in the page those of the window and those of the workers are one script each, as a page from disk loads
nothing.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import sys
from pathlib import Path

import zopfli.gzip

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT / "docs" / "labs"))

import sheets  # noqa: E402

EXAMPLES = [
    *sorted((ROOT / "examples").glob("*.toml")),
    ROOT / "examples/operator/ten.toml",
    ROOT / "examples/satellite/starlink.toml",
]
"""Not among them: those that need another file or code of their own, and a thousand subscribers."""
IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([\w-]+)\.js";\n', re.M)
EXPORT = re.compile(r"^export ((?:async )?(?:class|const|let|function\*?) (\w+))", re.M)


def bundle(entry: str) -> str:
    """A module and those that it imports as one script: each is a function that returns what it exports."""
    parts: dict[str, str] = {}

    def add(name: str) -> None:
        text = (HERE / f"{name}.js").read_text(encoding="utf-8")
        for _, imported in IMPORT.findall(text):
            if imported not in parts:
                add(imported)
        exported = ", ".join(found for _, found in EXPORT.findall(text))
        body = EXPORT.sub(r"\1", IMPORT.sub(r"const \1 = of_\2;\n", text))
        parts[name] = f"const of_{name} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();\n"

    add(entry)
    return "".join(parts.values())


def examples() -> list[dict[str, str]]:
    """The experiments to open: the first, examples, those of documents, those of labs, each with the page about it."""
    found = [_example("Examples", file.stem, file.read_text("utf-8")) for file in (HERE / "first.toml", *EXAMPLES)]
    for lab in sheets.labs():
        about = {"about": sheets.title(lab), "page": f"{sheets.SITE}labs/{lab}/"}
        text = (sheets.HERE / f"{lab}.md").read_text("utf-8")
        number = sheets.title(lab).partition(":")[0]
        for name, file in sheets.files(text).items():
            found.append(_example("Labs", f"{number}: {name.removesuffix('.toml')}", file, **about))
    for document in sheets.DOCUMENTS:
        text = (ROOT / document).read_text("utf-8")
        page = "" if document == "README.md" else f"{Path(document).stem}/"
        about = {"about": text.partition("\n")[0].removeprefix("# "), "page": sheets.SITE + page}
        files = sheets.EXPERIMENT.findall(text)
        for index, file in enumerate(files, 1):
            name = Path(document).stem.lower() + (f" {index}" if len(files) > 1 else "")
            found.append(_example("Documentation", name, file, **about))
    return found


def _example(group: str, name: str, text: str, **about: str) -> dict[str, str]:
    return {"group": group, "name": name, "title": name.replace("-", " "), "text": text, **about}


def inline(text: str) -> str:
    """Script that cannot end the element that it is in."""
    return text.replace("</", "<\\/")


def page(module: bytes) -> str:
    """The page around a compiled simulator."""
    contents = {
        "STYLE": (HERE / "style.css").read_text(encoding="utf-8"),
        "EXAMPLES": inline(json.dumps(examples())),
        "WORKER": inline(bundle("worker")),
        "ENGINE": base64.b64encode(zopfli.gzip.compress(module, numiterations=5)).decode("ascii"),
        "MAIN": inline(bundle("main")),
    }
    html = (HERE / "index.html").read_text(encoding="utf-8")
    return re.sub(r"/\*([A-Z]+)\*/", lambda found: contents[found[1]], html)


def main() -> int:
    """Writes the page, and says how large it is."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    module, to = map(Path, sys.argv[1:])
    html = page(module.read_bytes()).encode("utf-8")
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_bytes(html)
    print(f"{to}: {len(html) / 1e3:.0f} kB, {len(gzip.compress(html, 9)) / 1e3:.0f} kB compressed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
