"""Writes the pages of this folder: ``python docs/results/studies/write.py khademi2013`` runs that study in full.

A page holds the paper's claims beside what was measured; its figures are the study's, at a size for the page. If there
is a NAME-linux.json here, a further column has what became of each claim on the Linux kernel. That file is what
``sojourn study run NAME --backend linux --quick --out OUT`` leaves in OUT/measured.json.
"""

from __future__ import annotations

import io
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from PIL import Image, ImageColor

from sojourn.figure.style import COLORS
from sojourn.files import typed
from sojourn.studies import Judgement, Study, Verdict, available, find, fullrun, kept, run_study, variants
from sojourn.studies.figures import draw
from sojourn.studies.recipe import FigureSpec
from sojourn.studies.report import markdown
from sojourn.studies.runner import plan_variants, run_variants
from sojourn.studies.verdict import judge

HERE = Path(__file__).parent
STUDIES = HERE.parents[2] / "studies"
LARGEST_BYTES = 100_000


def write(name: str) -> None:
    """Runs a study and writes its page and figures."""
    study = find(name)
    plan_variants(study)  # A mistake in one shows before anything is run.
    results = run_study(study)
    if results.stopped_by is not None:
        raise results.stopped_by
    tried, stopped_by = run_variants(results)
    if stopped_by is not None:
        raise stopped_by
    drawn = {
        _picture(study, spec): _compressed(draw(spec, study, results.grids))
        for spec in study.figures
        if spec.experiment in results.grids
    }
    linux = _on_linux(study)
    beside = None if linux is None else (_release(linux), judge(study, linux.grids))
    judgements = results.judgements()
    page = markdown(
        results,
        judgements,
        tried=tried,
        beside=beside,
        picture=lambda spec: _picture(study, spec),
        after_summary=[] if linux is None or beside is None else _beside_linux(study, linux, judgements, *beside),
    )
    again = f"sojourn study run {name}{' --variants' if tried else ''}"
    command = f"python docs/results/studies/write.py {name}"
    made = results.planned + sum(one.runs for one in tried)
    page += f"\nMeasured with {made} runs on {_today()} by `{command}`; `{again}` runs the same.\n"
    for old in HERE.glob(f"{name}-*.png"):
        old.unlink()
    for file, picture in drawn.items():
        (HERE / file).write_bytes(picture)
    (HERE / f"{name}.md").write_text(page, encoding="utf-8")
    (STUDIES / name / fullrun.FILE).write_text(fullrun.as_json(judgements, _today(), command), encoding="utf-8")
    if tried:
        (HERE / f"{name}-variants.json").write_text(
            typed.json_text(variants.as_document(judgements, tried)), encoding="utf-8"
        )


def _today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"


def _picture(study: Study, spec: FigureSpec) -> str:
    return f"{study.name}-{spec.name}.png"


def _beside_linux(
    study: Study, linux: kept.Kept, here: list[Judgement], place: str, others: list[Judgement]
) -> list[str]:
    """What the Linux kernel made of the claims, and how it was asked."""
    command = f"sojourn study run {study.name} --backend linux --quick"
    return [
        _compared(here, place, others),
        "",
        f"{place}: {linux.runs} runs on the kernel {', '.join(linux.kernels)} by `{command}`; there "
        f"{'; '.join(linux.departures)}. These runs were made with the code of {_when(study)}, and "
        "not again since.",
        "",
    ]


def _when(study: Study) -> str:
    """With what code the runs on Linux were made: ``2026-11-22, commit 1a2b3c4``."""
    path = _linux_file(study)
    log = ["git", "log", "-1", "--format=%cs, commit %h", "--", path.name]
    return subprocess.run(log, cwd=path.parent, capture_output=True, text=True, check=True).stdout.strip()


def _linux_file(study: Study) -> Path:
    return HERE / f"{study.name}-linux.json"


def _on_linux(study: Study) -> kept.Kept | None:
    path = _linux_file(study)
    return kept.read(path, study) if path.is_file() else None


def _release(linux: kept.Kept) -> str:
    """``Linux 6.1``."""
    return "Linux " + ", ".join(sorted({".".join(kernel.split(".")[:2]) for kernel in linux.kernels}))


def _compared(here: list[Judgement], place: str, others: list[Judgement]) -> str:
    """Which verdicts are others there."""
    there = {other.id: other.verdict for other in others}

    def ids(mine: Verdict, its: Verdict) -> list[str]:
        return [one.id for one in here if one.verdict == mine and there[one.id] == its]

    yes, no = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED
    gained, lost, neither = ids(no, yes), ids(yes, no), ids(no, no)
    return (
        f"Of what is not reproduced here, {place} does not reproduce {len(neither)} claims either and reproduces "
        f"{len(gained)}: {', '.join(gained) or 'none'}. Of what is reproduced here, it does not reproduce {len(lost)}: "
        f"{', '.join(lost) or 'none'}."
    )


def _compressed(figure) -> bytes:  # type: ignore[no-untyped-def]
    """A PNG with 64 colours, coarser until it is small enough."""
    for dots_per_inch in (120, 90, 70, 50):
        drawn, reduced = io.BytesIO(), io.BytesIO()
        figure.savefig(drawn, format="png", dpi=dots_per_inch)
        _quantized(Image.open(drawn).convert("RGB")).save(reduced, format="png", optimize=True)
        if reduced.tell() <= LARGEST_BYTES:
            break
    return reduced.getvalue()


def _quantized(picture: Image.Image) -> Image.Image:
    """In 64 colours, among them those of the house style: what is drawn in few pixels keeps its own."""
    kept = [level for color in COLORS for level in ImageColor.getrgb(color)]
    common = (picture.quantize(64 - len(COLORS)).getpalette() or [])[: 3 * (64 - len(COLORS))]
    palette = Image.new("P", (1, 1))
    palette.putpalette(kept + common)
    return picture.quantize(palette=palette, dither=Image.Dither.NONE)


def write_counts() -> None:
    """Writes the table of the README from the verdicts of the full runs."""
    rows = [
        "| study | could be compared | reproduced | | not comparable or not run | measured on |",
        "| --- " * 6 + "|",
    ]
    for study in available():
        path = STUDIES / study.name / fullrun.FILE
        if not path.is_file():
            continue
        full = typed.read_json(path)
        counts = Counter(full["verdicts"].values())
        held, missed = counts[Verdict.REPRODUCED], counts[Verdict.NOT_REPRODUCED]
        compared = held + missed
        left = len(full["verdicts"]) - compared
        name, share = f"[{study.name}]({study.name}.md)", f"{held / compared:.0%}"
        rows.append(f"| {name} | {compared} | {held} | {share} | {left} | {full['made']} |")
    readme = HERE / "README.md"
    before, begin, rest = readme.read_text(encoding="utf-8").partition("<!-- counts: written by write.py -->\n")
    _, end, after = rest.partition("<!-- end of counts -->")
    readme.write_text(before + begin + "\n".join(rows) + "\n" + end + after, encoding="utf-8")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        write(argument)
    write_counts()
