"""The contents of a store: its sweeps and their progress."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from sojourn import _core, bounded, own, typed
from sojourn.bounded import LARGEST_TEXT
from sojourn.storage import why
from sojourn.store import files
from sojourn.store.claims import Claims
from sojourn.store.files import Part
from sojourn.store.listing import Listing, Runs
from sojourn.typed import Strict

FORMAT = 1
"""Version of the store's files; raised when the meaning of one changes."""
EXPERIMENT = "experiment.toml"
PLAN = "plan.json"
MOST_RUNS = 1_000_000_000
"""Most runs of a plan: more cannot be what somebody asked for."""


class Meta(Strict, frozen=True):
    """The contents of plan.json."""

    format: int
    sojourn: str
    experiment: str
    hash: str
    """``_core.Sweep.hash``."""
    runs: int
    batch_runs: int
    """Runs per batch; the last batch may have fewer."""
    overrides: list[tuple[str, str]]
    own: list[str]
    """Files of user-defined disciplines, copied into the plan's folder."""
    listed: bool = False
    """Whether the plan lists its runs instead of using an experiment file. Listed runs keep all their tables."""

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise ValueError(f"format: got {self.format}; this version reads {FORMAT}")
        if not (self.batch_runs > 0 and 0 <= self.runs <= MOST_RUNS):
            raise ValueError(f"runs: got {self.runs} in batches of {self.batch_runs}; must be at most {MOST_RUNS}")


@dataclass(frozen=True)
class StoredPlan:
    """A sweep in a store."""

    store: Path
    meta: Meta

    @property
    def id(self) -> str:
        """The name of its folders."""
        return self.meta.hash[:16]

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return self.store / "plans" / self.id

    @property
    def results(self) -> Path:
        """The folder of its rows."""
        return self.store / "runs" / self.id

    @property
    def recorded(self) -> Path:
        """The folder of its recorded tables of packets and flows; each table has a subfolder."""
        return self.store / "recorded" / self.id

    @property
    def claims(self) -> Claims:
        """The claims of workers on its batches."""
        return Claims(self.store / "claims" / self.id)

    @property
    def batches(self) -> int:
        """The number of batches."""
        return -(-self.meta.runs // self.meta.batch_runs)

    def places(self, batch: int) -> range:
        """The indices of a batch's runs."""
        first = batch * self.meta.batch_runs
        return range(first, min(first + self.meta.batch_runs, self.meta.runs))

    @cached_property
    def sweep(self) -> Runs:
        """Its runs.

        Raises
        ------
        ExperimentError
            With this version, or with the disciplines registered here, the plan means different runs.
        """
        for name in self.meta.own:
            own.load(self.folder / name)
        sweep = self.read_sweep()
        if sweep.hash != self.meta.hash:
            raise _core.ExperimentError(
                f"{self.folder}: planned by Sojourn {self.meta.sojourn}; for this version it means different runs"
            )
        return sweep

    def read_sweep(self) -> Runs:
        """Its runs, as this version reads the stored file. The experiment keeps its original name."""
        if self.meta.listed:
            listing = Listing.read(self.folder, self.meta.experiment)
            listing.check()
            return listing
        overrides = [("experiment.name", self.meta.experiment), *self.meta.overrides]
        return _core.Sweep.read_file(str(self.folder / EXPERIMENT), overrides)

    def parts(self) -> list[Part]:
        """The files of its rows."""
        return [part for part in files.parts(self.results) if part.last < self.meta.runs]

    def missing(self) -> list[int]:
        """The batches without rows."""
        done: set[int] = set()
        for part in self.parts():
            done.update(range(part.first // self.meta.batch_runs, part.last // self.meta.batch_runs + 1))
        return [batch for batch in range(self.batches) if batch not in done]

    def runs_done(self) -> int:
        """The number of runs with rows."""
        return sum(part.last + 1 - part.first for part in self.parts())


class Store:
    """A folder with the results of sweeps.

    Parameters
    ----------
    directory
        The folder. Several processes, on several machines, may use it at the same time.
    say
        Called with a line for the user.

    Raises
    ------
    ExperimentError
        The folder is not a store, or its version is different.
    """

    def __init__(self, directory: str | Path, *, say: Callable[[str], None] = lambda _: None) -> None:
        self.path = Path(directory).absolute()
        self.say = say
        self._damaged: set[Path] = set()
        """Plans that were found damaged."""
        mark = self.path / "store.json"
        if not mark.exists():
            what = "there is no store.json in it" if self.path.exists() else "there is no such folder"
            raise _core.ExperimentError(
                f'store: got "{directory}"; {what}: must be a store, made by sojourn sweep --store'
            )
        try:
            known = json.loads(bounded.read_text(mark, LARGEST_TEXT)).get("format")
        except (OSError, ValueError, AttributeError, RecursionError):
            known = None
        if known != FORMAT:
            raise _core.ExperimentError(f"{mark}: got format {json.dumps(known)}; this version reads {FORMAT}")

    @classmethod
    def make(cls, directory: str | Path, *, say: Callable[[str], None] = lambda _: None) -> Store:
        """The store in a folder; initialises an empty or missing folder.

        Raises
        ------
        ExperimentError
            The folder holds something else.
        """
        path = Path(directory)
        if not (path / "store.json").exists():
            if path.exists() and not _is_free(path):
                raise _core.ExperimentError(f'store: got "{directory}"; must be a store, or an empty or new folder')
            _check_writable(path)
            files.write(path / "store.json", json.dumps({"format": FORMAT}).encode())
        return cls(path, say=say)

    def check_writable(self) -> None:
        """Checks that runs can be kept.

        Raises
        ------
        ExperimentError
            The folder cannot be written to.
        """
        _check_writable(self.path)

    def plans(self) -> list[StoredPlan]:
        """All sweeps, in the order of their ids. A damaged one is left out, with a note."""
        plans: list[StoredPlan] = []
        for path in sorted((self.path / "plans").glob("*/plan.json")):
            try:
                plan = StoredPlan(self.path, read_meta(path))
            except (_core.ExperimentError, OSError, ValueError, TypeError) as error:
                if path not in self._damaged:
                    self._damaged.add(path)
                    why = " ".join(str(error).split())
                    self.say(f"note: {why}; this sweep is left out: restore the file, or move its folder away")
                continue
            # The copy of a plan is not another one.
            if path.parent.name == plan.id:
                plans.append(plan)
        return plans

    def get(self, id_: str) -> StoredPlan:
        """A sweep by its id.

        Raises
        ------
        ExperimentError
            The store has no such sweep.
        """
        path = self.path / "plans" / id_ / "plan.json"
        if not path.exists():
            raise _core.ExperimentError(f"{self.path}: has no sweep {id_}")
        return StoredPlan(self.path, read_meta(path))

    def find(self, sweep: Runs) -> StoredPlan | None:
        """The plan of these runs, if the store has it."""
        path = self.path / "plans" / sweep.hash[:16] / "plan.json"
        return StoredPlan(self.path, read_meta(path)) if path.exists() else None

    def add(self, file: Path, overrides: Sequence[tuple[str, str]], sweep: _core.Sweep, batch_runs: int) -> StoredPlan:
        """Adds a sweep and all files that it needs.

        Raises
        ------
        ExperimentError
            It needs files that cannot be stored with it.
        """
        plan = self._begin(sweep, batch_runs, overrides, listed=False)
        experiment = bounded.read_bytes(file, LARGEST_TEXT)
        may_trace = b"trace" in experiment or any("trace" in value for _, value in overrides)
        for name, text in (_traces(sweep) if may_trace else {}).items():
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise _core.ExperimentError(
                    f'{file}: trace: got "{name}"; must be in the file\'s folder or below, to be stored with the sweep'
                )
            if name in (EXPERIMENT, PLAN) or name.startswith("own-"):
                raise _core.ExperimentError(
                    f'{file}: trace: got "{name}"; must have another name, to be stored with the sweep'
                )
            files.write(plan.folder / name, text.encode())
        files.write(plan.folder / EXPERIMENT, experiment)
        if plan.read_sweep().hash != sweep.hash:
            raise _core.ExperimentError(f"{file}: cannot be stored: its copy in the store would mean different runs")
        return _complete(plan)

    def add_listing(self, listing: Listing, batch_runs: int) -> StoredPlan:
        """Adds listed runs and all files that they need.

        Raises
        ------
        ExperimentError
            A run uses a user-defined discipline that was not registered from a file.
        """
        of_no_file = [name for name, _ in own.registered().classes]
        used = {name for document in listing.documents for name in json.loads(document).get("own", {})}
        for name in of_no_file:
            if name in used:
                raise _core.ExperimentError(
                    f'store: the discipline "{name}" has no file; must be registered by --load or sojourn.own.load'
                )
        plan = self._begin(listing, batch_runs, [], listed=True)
        listing.write(plan.folder)
        return _complete(plan)

    def _begin(self, runs: Runs, batch_runs: int, overrides: Sequence[tuple[str, str]], *, listed: bool) -> StoredPlan:
        """Starts a plan of these runs and copies the files of user-defined disciplines into its folder."""
        self.check_writable()
        sources = own.registered().files
        names = [f"own-{number}-{Path(source).name}" for number, source in enumerate(sources)]
        replaced = [(key, value) for key, value in overrides]
        meta = Meta(FORMAT, _core.version, runs.name, runs.hash, len(runs), batch_runs, replaced, names, listed)
        plan = StoredPlan(self.path, meta)
        for source, name in zip(sources, names, strict=True):
            files.write(plan.folder / name, bounded.read_bytes(Path(source), LARGEST_TEXT))
        return plan


def _check_writable(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise _core.ExperimentError(f'store: got "{path}"; must be a writable folder ({why(error)})') from None


def _is_free(path: Path) -> bool:
    """Whether a folder may become a store: it is empty, or others are making it one now, or were killed as they did."""
    return path.is_dir() and all(entry.name.lstrip(".").startswith("store.json") for entry in path.iterdir())


def _complete(plan: StoredPlan) -> StoredPlan:
    """Writes plan.json. It must be the last file: without it, a plan does not count as existing."""
    files.write(plan.folder / PLAN, msgspec.json.format(msgspec.json.encode(plan.meta), indent=1) + b"\n")
    return plan


def read_meta(path: Path) -> Meta:
    """Reads a plan.json.

    Raises
    ------
    ExperimentError
        It is damaged.
    """
    return typed.convert(typed.read_json(path), Meta, str(path))


def _traces(sweep: _core.Sweep) -> dict[str, str]:
    """The traces of a sweep's links, by name."""
    traces: dict[str, str] = {}
    for place in sweep.edges():
        traces |= json.loads(sweep[place].document).get("traces", {})
    return traces
