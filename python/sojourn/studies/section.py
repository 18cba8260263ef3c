"""The section about a study, from claims.json, inputs.json and the figures beside them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from sojourn.files import typed
from sojourn.page.html import Picture, picture
from sojourn.store.section import ranges
from sojourn.studies.claims import Verdict
from sojourn.studies.recipe import MEANINGS
from sojourn.studies.report import INPUTS, OF_QUICK

NEEDS = "claims.json"

_MARKS = {Verdict.REPRODUCED: "✓", Verdict.NOT_REPRODUCED: "✗", Verdict.NOT_COMPARABLE: "≠", Verdict.NOT_RUN: "–"}


def context(folder: Path) -> dict[str, Any]:
    """The template's variables for a study's results."""
    document = typed.read_json(folder / NEEDS)
    inputs = typed.read_json(folder / INPUTS) if (folder / INPUTS).is_file() else {}
    tolerances = inputs.get("tolerances", {})
    claims = [
        {**claim, "tolerance": tolerances.get(claim["id"], ""), "kind": claim["verdict"].replace(" ", "-")}
        for claim in document["claims"]
    ]
    causes = {cause: [one["id"] for one in claims if one.get("cause") == cause] for cause in MEANINGS}
    counts = Counter(claim["verdict"] for claim in claims)
    comparable = counts[Verdict.REPRODUCED] + counts[Verdict.NOT_REPRODUCED]
    return {
        "template": "study.html",
        "title": inputs.get("title") or document["study"],
        "subtitle": "Published against measured",
        "source": inputs.get("source", ""),
        "quick": OF_QUICK if document["quick"] else "",
        "overrides": inputs.get("overrides", {}),
        "claims": claims,
        "verdicts": [
            {"name": verdict.value, "kind": verdict.value.replace(" ", "-"), "mark": mark, "count": counts[verdict]}
            for verdict, mark in _MARKS.items()
        ],
        "score": f"{counts[Verdict.REPRODUCED] / comparable:.0%}" if comparable else "",
        "comparable": comparable,
        "summary": document["summary"],
        "causes": [{"name": cause, "meaning": MEANINGS[cause], "claims": ids} for cause, ids in causes.items() if ids],
        "questions": [] if document["quick"] else document["questions"],
        "departures": document["departures"],
        "facts": {
            "study": document["study"],
            "backend": document["backend"],
            **({"sojourn": inputs["sojourn"]} if inputs else {}),
            "runs": str(document["runs"]),
            "claims": str(len(claims)),
        },
        "pictures": _pictures(folder, document["figures"], inputs.get("figures", {})),
        "experiments": [{**one, "seeds": ranges(one["seeds"])} for one in inputs.get("experiments", [])],
        "files": inputs.get("files", []),
    }


def _pictures(folder: Path, figures: list[str], titles: dict[str, str]) -> list[Picture]:
    """The figures in the folder, even if it was moved since they were written."""
    pictures = []
    for name in dict.fromkeys(Path(figure).stem for figure in figures):
        svg, png = folder / f"{name}.svg", folder / f"{name}.png"
        if svg.is_file() and png.is_file():
            read = {"svg": svg.read_bytes(), "png": png.read_bytes()}.__getitem__
            pictures.append(picture(name, titles.get(name, name), read))
    return pictures
