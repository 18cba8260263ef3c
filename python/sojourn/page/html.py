"""The page: templates and style sheet combined, without external resources."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from sojourn import _core

LARGEST_SVG = 400_000  # bytes above which a figure is shown as PNG


@dataclass(frozen=True)
class Picture:
    """A figure in the page."""

    name: str
    caption: str
    source: str
    """A ``data:`` address, so that the identifiers of figures do not conflict."""
    narrow: str = ""
    """The same for a narrow screen, if it has a drawing of its own."""


def picture(
    name: str, caption: str, read: Callable[[str], bytes], narrow: Callable[[str], bytes] | None = None
) -> Picture:
    """A figure, and its drawing for narrow screens, as vector graphics or, if large, as pixels; both read a format."""
    return Picture(name, caption, _address(read), _address(narrow) if narrow is not None else "")


def _address(read: Callable[[str], bytes]) -> str:
    kind, content = "svg+xml", read("svg")
    if len(content) > LARGEST_SVG:
        kind, content = "png", read("png")
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"


def render(sections: Sequence[Mapping[str, Any]]) -> str:
    """The page with one or two sections; each names its ``template``, ``title`` and ``subtitle``."""
    style = (Path(__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")
    return template("sojourn.page", "page.html").render(sections=sections, style=Markup(style), version=_core.version)


def template(package: str, name: str) -> jinja2.Template:
    """A template of a package; what it does not know is an error."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package, "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)
