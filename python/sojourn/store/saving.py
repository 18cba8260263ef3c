"""Runs a plan into a folder. Runs are kept as they finish, so that finished runs survive any failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path

from sojourn import _core
from sojourn.figure.filenames import FIGURES, FORMATS, OF_QUEUE, OVER
from sojourn.files.manifest import Manifest, OutputError
from sojourn.files.storage import Staging, reserved, why
from sojourn.frame.results import IF_ASKED_FOR, Results
from sojourn.runs.backends import Backend
from sojourn.schema import DIRECTIONS
from sojourn.store.folder import BY, MADE_OF_RESULTS, SMALL_FILES, load, stage_small
from sojourn.store.journal import Header, Journal, LeftBehind, plan_key
from sojourn.store.runner import Finished
from sojourn.store.tablefiles import FILES, TABLE_FILES, TableFiles

MakeResults = Callable[[Finished], tuple[Results, BaseException | None]]
"""Runs the plan, as ``Runner.run_plan``."""


@dataclass
class Saved:
    """The outcome."""

    results: Results
    stopped_by: BaseException | None = None
    """Why runs are missing."""
    left_out: dict[str, OSError] = field(default_factory=dict)
    """The files left out because the disk was full, with the errors."""


class Unsaved(Exception):
    """The results could not be saved; finished runs may be kept for ``--resume``."""

    def __init__(self, cause: BaseException, resumable: int) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.resumable = resumable


def files_of(plan: _core.Plan, directory: Path) -> list[str]:
    """The files that running a plan into a directory may write.

    Captures, qlogs, figures over a swept key and those of one of several links have generated names: existing files
    with such names count.
    """
    recorded = plan.recorded
    tables = [file for name, file in TABLE_FILES.items() if name in recorded or name not in IF_ASKED_FOR]
    sweeps = len(plan.jobs) > 0 and plan.jobs[-1][0] > 0
    patterns = [FILES[kind] for kind in FILES if kind in recorded]
    generated = [f"{figure}_*_{way}" for figure in OF_QUEUE for way in DIRECTIONS] + ([f"{OVER}*"] if sweeps else [])
    patterns += [f"{name}.{kind}" for name in generated for kind in FORMATS]
    there = [path.name for pattern in patterns for path in directory.glob(pattern)]
    return [*SMALL_FILES, *tables, *there, *(f"{figure}.{kind}" for figure in FIGURES for kind in FORMATS)]


def run_into(
    directory: Path,
    plan: _core.Plan,
    backend: Backend,
    run: MakeResults,
    *,
    resume: bool,
    figures: Sequence[str],
    say: Callable[[str], None],
    baseline: str | None = None,
) -> Saved:
    """Runs a plan and saves its results in a directory.

    With ``resume`` it continues with the runs of an earlier process. ``figures`` are file formats, ``say`` gets each
    line for the user, ``baseline`` is the label of the queue from which differences.csv has the differences of the
    others.

    Raises OutputError if nothing was run: the directory cannot be used, another process makes runs for it, or, with
    ``resume``, it contains runs of another experiment. Raises Unsaved if the results could not be written, or the user
    interrupted the saving.
    """
    with reserved(directory, files_of(plan, directory)) as workspace:
        assert workspace is not None
        header = Header(_core.version, plan.name, plan_key(plan, backend), len(plan.jobs))
        if resume and (there := _complete(directory, header)) is not None:
            say(f"all {len(there.runs)} runs are already in {directory}")
            names = [f"{one.name}.{kind}" for one in there.plot.drawings() for kind in figures]
            if not all((directory / name).exists() for name in names):
                try:
                    with Staging(directory.absolute(), by=BY) as staging:
                        there.plot.save_all(staging, figures)
                except (OSError, OutputError, KeyboardInterrupt) as error:
                    raise Unsaved(error, 0) from None
            return Saved(there)
        others = LeftBehind(directory)
        journal: Journal | None = None
        saved: Saved | None = None
        try:
            if resume and (journal := others.take(header)) is not None:
                lost = f"; damaged, and run again: {journal.lost}" if journal.lost else ""
                say(f"{journal.kept} of {header.runs} runs are already finished{lost}")
            elif count := others.runs_of(header.key):
                say(
                    f"note: {count} of {header.runs} runs were finished before and are run again; "
                    f"stop this and use --resume to continue from them"
                )
            journal = journal or Journal(workspace, header)
            saved = _run_and_save(directory, header, run, journal, figures, baseline)
        finally:
            if journal is not None:
                journal.close(keep=saved is None or saved.stopped_by is not None)
            others.close(remove=saved is not None and bool(saved.results.runs))
        if journal.failed is not None:
            say(f"note: finished runs could not be kept for --resume: {why(journal.failed)}")
        return saved


def _complete(directory: Path, header: Header) -> Results | None:
    """The complete results, if the directory has them. Raises OutputError if they are of another experiment."""
    manifest = Manifest.read(directory)
    if "summary.json" not in manifest.made_of or not manifest.owns("summary.json"):
        return None
    results = load(directory)
    if manifest.made_of["summary.json"] != header.key:
        raise OutputError(
            f'--resume: {directory} has results of another experiment, "{results.summary["experiment"]}" '
            f"(the file, options or version differ); omit --resume to replace them"
        )
    return None if results.partial else results


def _run_and_save(
    directory: Path, header: Header, run: MakeResults, journal: Journal, figures: Sequence[str], baseline: str | None
) -> Saved:
    try:
        with Staging(
            directory.absolute(),
            by=BY,
            replaces=MADE_OF_RESULTS,
            workspace=journal.workspace,
            rescue=True,
        ) as staging:
            # Paths are relative to the working directory, which a user's discipline may have changed.
            with TableFiles(staging) as tables, chdir("."):
                results, stopped_by = run(Finished(tables.add, journal.stored, journal.add))
            saved = Saved(results, stopped_by)
            if results.runs:
                _stage(saved, staging, tables, figures, baseline)
            if not saved.left_out:  # else, with --resume, the results are made again
                staging.made_of["summary.json"] = header.key
        return saved
    except (OSError, OutputError, KeyboardInterrupt) as error:
        raise Unsaved(error, journal.kept) from None


def _stage(saved: Saved, staging: Staging, tables: TableFiles, figures: Sequence[str], baseline: str | None) -> None:
    """Stages small files first, because they take precedence when the disk is full."""
    try:
        stage_small(saved.results, staging, baseline)
    except OSError as error:
        tables.drop_all(error)
        stage_small(saved.results, staging, baseline)
    if saved.stopped_by is None and figures:
        # After an interrupt, save only what cannot be made again.
        try:
            saved.results.plot.save_all(staging, figures)
        except KeyboardInterrupt as interrupt:
            saved.stopped_by = interrupt
        except Exception as error:
            # The results are saved even if a figure fails.
            line = f"{type(error).__name__}: {' '.join(str(error).split())}"
            tables.dropped["figures"] = error if isinstance(error, OSError) else OSError(0, line)
    saved.left_out = tables.dropped


def left_out_text(left_out: dict[str, OSError]) -> str:
    """The files left out, and why: ``packets.parquet, figures: No space left on device``."""
    reasons = dict.fromkeys(why(error) for error in left_out.values())
    return f"{', '.join(left_out)}: {', '.join(reasons)}"
