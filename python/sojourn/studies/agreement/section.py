"""The section about an agreement of backends, from agreement.json and the results in the folders beside it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from sojourn.figure.style import content
from sojourn.files import typed
from sojourn.page.html import picture
from sojourn.store.folder import load
from sojourn.store.section import ranges
from sojourn.studies.agreement import backends as agreement

NEEDS = "agreement.json"


def context(folder: Path) -> dict[str, Any]:
    """The template's variables for what ``sojourn agree --out`` wrote."""
    document = typed.read_json(folder / NEEDS)
    named = {name: load(folder / name) for name in document["backends"]}
    seeds = {name: ranges(sorted({run.seed for run in results.runs})) for name, results in named.items()}
    reference = next(iter(named))
    return {
        "template": "agreement.html",
        "title": document["experiment"],
        "subtitle": "Agreement",
        "facts": {
            "compared with": reference,
            **{f"kernel of {name}": kernel for name, kernel in document["kernels"].items()},
            **{f"seeds of {name}": text for name, text in seeds.items()},
        },
        "sentences": agreement.sentences(named, document["look"]),
        "sheet": agreement.sheet(named, document["look"]),
        "pictures": [
            picture(
                f"agreement_cdf_{direction}",
                f"The sojourn time, {direction}: share of packets that waited at most so long.",
                partial(content, agreement.figure(named, direction)),
            )
            for direction in named[reference].directions
        ],
    }
