"""The contents of a store: its sweeps and their progress."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TypedDict

import msgspec

from sojourn import _core
from sojourn.files import bounded, typed, whole
from sojourn.files.storage import unwritable
from sojourn.frame.arrow import values_as_arrow
from sojourn.frame.later import pa, pq
from sojourn.runs import user_aqm
from sojourn.store import files
from sojourn.store.claims import Claims

FORMAT = 3
"""Version of the store's files; raised when the meaning of one changes."""
EXPERIMENT = "experiment.toml"
PLAN = "plan.json"
MEND = "restore the file, or move its folder away"
"""What to do about a damaged plan."""
MOST_RUNS = 1_000_000_000
"""Most runs of a plan: more cannot be what somebody asked for."""
LIST = "runs.parquet"
"""The file of a run list in its plan's folder; each row is a run document."""


class _Head(msgspec.Struct, frozen=True):
    """The parts of a run document that depend on the process that wrote it."""

    results: int
    own: dict[str, str] = {}


@dataclass(frozen=True)
class RunList:
    """A list of runs, as their documents."""

    name: str
    documents: tuple[str, ...]
    backend: str = "sim"
    """``journal.backend_key`` of the backend that makes them."""
    specs: tuple[_core.RunSpec, ...] = field(default=(), compare=False, repr=False)
    """The runs, if this process planned them. A document has every default, which Linux may refuse as a given value."""

    @classmethod
    def of(cls, name: str, specs: Sequence[_core.RunSpec], backend: str = "sim") -> RunList:
        """The list of these runs."""
        return cls(name, tuple(spec.document for spec in specs), backend, tuple(specs))

    @cached_property
    def hash(self) -> str:
        """SHA-256, in hexadecimal, of everything that determines the runs' results and their names."""
        digest = hashlib.sha256(b"" if self.backend == "sim" else f"{self.backend}\n".encode())
        for document in self.documents:
            digest.update(f"{len(document)} {document}".encode())
        return digest.hexdigest()

    def check(self) -> None:
        """Raises ExperimentError if one run of each version and set of disciplines cannot be executed here."""
        kinds: dict[str, str] = {}
        for document in self.documents:
            head = msgspec.json.decode(document, type=_Head)
            kinds.setdefault(f"{head.results} {head.own}", document)
        for document in kinds.values():
            _core.RunSpec.read(document)

    def __len__(self) -> int:
        return len(self.documents)

    def __getitem__(self, index: int, /) -> _core.RunSpec:
        return self.specs[index] if self.specs else _core.RunSpec.read(self.documents[index])


Runs = _core.Sweep | RunList
"""The runs of a plan."""


class Meta(typed.Strict, frozen=True):
    """The contents of plan.json."""

    format: int
    sojourn: str
    experiment: str
    hash: str
    """``_core.Sweep.hash``."""
    runs: int
    batch_runs: int
    """Runs per batch."""
    overrides: list[tuple[str, str]]
    own: dict[str, str]
    """Files of user-defined disciplines, copied into the plan's folder, with their SHA-256 in hexadecimal."""
    listed: bool = False
    """Whether the plan lists its runs instead of using an experiment file. Listed runs keep all their tables."""
    backend: str = "sim"
    """``journal.backend_key`` of the backend that makes the runs."""

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
    trusted: bool = False
    """Whether its Python files may be run even if other users may write to them."""
    planned: Runs | None = field(default=None, compare=False, repr=False)
    """Its runs, if this process has planned them: then the store's Python files are not needed."""

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

    def run_hash(self, spec: _core.RunSpec) -> str:
        """SHA-256, in hexadecimal, of everything that determines a run's results: of the run and of the backend."""
        if self.meta.backend == "sim":
            return spec.hash
        return hashlib.sha256(f"{self.meta.backend}\n{spec.hash}".encode()).hexdigest()

    def indices(self, batch: int) -> range:
        """The indices of a batch's runs."""
        first = batch * self.meta.batch_runs
        return range(first, min(first + self.meta.batch_runs, self.meta.runs))

    def batch_of(self, index: int) -> int:
        """The batch of a run."""
        return index // self.meta.batch_runs

    def batches_of(self, first: int, last: int) -> range:
        """The batches of the runs ``first`` to ``last``."""
        return range(self.batch_of(first), self.batch_of(last) + 1)

    @cached_property
    def sweep(self) -> Runs:
        """Its runs. Raises ExperimentError if they are others here, or its Python files must not be run."""
        if self.planned is not None:
            return self.planned
        for file, _ in self.checked_files():
            user_aqm.load(file)
        sweep = self.read_sweep()
        if sweep.hash != self.meta.hash:
            raise _core.ExperimentError(
                f"{self.folder}: planned by Sojourn {self.meta.sojourn}; for this version it means different runs"
            )
        return sweep

    def read_sweep(self) -> Runs:
        """Its runs, as this version reads the stored file. The experiment keeps its original name."""
        if self.meta.listed:
            table = pq.read_table(self.folder / LIST, columns=["document"], partitioning=None)
            run_list = RunList(self.meta.experiment, tuple(table["document"].to_pylist()), self.meta.backend)
            run_list.check()
            return run_list
        overrides = [("experiment.name", self.meta.experiment), *self.meta.overrides]
        return _core.Sweep.read_file(str(self.folder / EXPERIMENT), overrides)

    def checked_files(self) -> list[tuple[Path, str]]:
        """Its Python files with their SHA-256 in hexadecimal.

        Raises ExperimentError if one differs from the plan, or others may write to it and the plan is not trusted.
        """
        own = [(self.folder / name, planned) for name, planned in self.meta.own.items()]
        for file, planned in own:
            found = hashlib.sha256(bounded.read_given(file, bounded.LARGEST_TEXT)).hexdigest()
            if found != planned:
                raise _core.ExperimentError(
                    f"{file}: got SHA-256 {found[:12]}…; must be {planned[:12]}…, that of the file that was planned"
                )
        if own and not self.trusted:
            # Who may write to a folder may replace what is in it.
            for path in (self.store, self.store / "plans", self.folder, *(file for file, _ in own)):
                _refuse_others(path)
        return own

    def parts(self) -> list[files.Part]:
        """The files of its rows."""
        return [part for part in files.parts(self.results) if part.last < self.meta.runs]

    def missing(self) -> list[int]:
        """The batches without rows."""
        done: set[int] = set()
        for part in self.parts():
            done.update(self.batches_of(part.first, part.last))
        return [batch for batch in range(self.batches) if batch not in done]

    def runs_done(self) -> int:
        """The number of runs with rows."""
        return sum(part.last + 1 - part.first for part in self.parts())


class Status(TypedDict):
    """The output of ``sojourn status --json``."""

    runs: int
    done: int
    """Runs with rows, failed ones included."""
    running: int
    """Runs of batches that a worker has claimed."""
    failed: int


def status(plans: Iterable[StoredPlan]) -> Status:
    """Counts the runs of these sweeps. Raises ExperimentError if a file of theirs is damaged."""
    found: Status = {"runs": 0, "done": 0, "running": 0, "failed": 0}
    for plan in plans:
        missing = set(plan.missing())
        held = {int(name) for name in plan.claims.held() if name.isdecimal()}
        found["runs"] += plan.meta.runs
        found["done"] += plan.runs_done()
        found["running"] += sum(len(plan.indices(batch)) for batch in held & missing)
        found["failed"] += files.again(partial(_failed, plan))
    return found


def _failed(plan: StoredPlan) -> int:
    failed = 0
    for part in plan.parts():
        try:
            errors = part.read(["error"])["error"]
        except (OSError, ValueError, KeyError):
            raise _core.ExperimentError(f"status: {part.damage}") from None
        failed += len(errors) - errors.null_count
    return failed


class Store:
    """A folder with the results of sweeps. Several processes, on several machines, may use it at the same time.

    ``say`` is called with a line for the user. ``trusted``: whether to run the Python files of its plans even if other
    users may write to them. Raises ExperimentError if the folder is not a store, or its version is different.
    """

    def __init__(
        self, directory: str | Path, *, say: Callable[[str], None] = lambda _: None, trusted: bool = False
    ) -> None:
        self.trusted = trusted
        self.path = Path(directory).absolute()
        self.say = say
        self._said: set[str] = set()
        mark = self.path / "store.json"
        if not mark.exists():
            what = "there is no store.json in it" if self.path.exists() else "there is no such folder"
            raise _core.ExperimentError(
                f'store: got "{directory}"; {what}: must be a store, made by sojourn sweep --store'
            )
        try:
            known = json.loads(bounded.read_text(mark, bounded.LARGEST_TEXT)).get("format")
        except (OSError, ValueError, AttributeError, RecursionError):
            known = None
        if known != FORMAT:
            raise _core.ExperimentError(f"{mark}: got format {json.dumps(known)}; this version reads {FORMAT}")

    @classmethod
    def make(
        cls, directory: str | Path, *, say: Callable[[str], None] = lambda _: None, trusted: bool = False
    ) -> Store:
        """The store in a folder, new if that is empty or missing. Raises ExperimentError if it holds other files."""
        path = Path(directory)
        if not (path / "store.json").exists():
            # Another process may be making it a store now.
            is_free = path.is_dir() and all(one.name.lstrip(".").startswith("store.json") for one in path.iterdir())
            if path.exists() and not is_free and not (path / "store.json").exists():
                raise _core.ExperimentError(f'store: got "{directory}"; must be a store, or an empty or new folder')
            check_writable(path)
            whole.write(path / "store.json", json.dumps({"format": FORMAT}).encode())
        return cls(path, say=say, trusted=trusted)

    def say_once(self, line: str) -> None:
        """Says a line, unless it was said before."""
        if line not in self._said:
            self._said.add(line)
            self.say(line)

    def plans(self) -> list[StoredPlan]:
        """All sweeps, in the order of their ids. A damaged one is left out, with a note."""
        plans: list[StoredPlan] = []
        for path in sorted((self.path / "plans").glob("*/plan.json")):
            try:
                plan = StoredPlan(self.path, read_meta(path), self.trusted)
            except (_core.ExperimentError, OSError, ValueError, TypeError) as error:
                self.say_once(f"note: {' '.join(str(error).split())}; this sweep is left out: {MEND}")
                continue
            # The copy of a plan is not another one.
            if path.parent.name == plan.id:
                plans.append(plan)
        return plans

    def find(self, sweep: Runs) -> StoredPlan | None:
        """The plan of these runs, if the store has it. Raises ExperimentError if it is damaged."""
        path = self.path / "plans" / sweep.hash[:16] / PLAN
        if not path.exists():
            return None
        try:
            return StoredPlan(self.path, read_meta(path), self.trusted, sweep)
        except _core.ExperimentError as error:
            raise _core.ExperimentError(f"{error}: {MEND}") from None

    def add(self, file: Path, overrides: Sequence[tuple[str, str]], sweep: _core.Sweep, batch_runs: int) -> StoredPlan:
        """Adds a sweep with the files that it needs."""
        plan = self._begin(sweep, batch_runs, overrides)
        experiment = bounded.read_bytes(file, bounded.LARGEST_TEXT)
        may_trace = b"trace" in experiment or any("trace" in value for _, value in overrides)
        for name, text in (_traces(sweep) if may_trace else {}).items():
            needed = ""
            if Path(name).is_absolute() or ".." in Path(name).parts:
                needed = "be in the file's folder or below"
            elif name in (EXPERIMENT, PLAN) or name.startswith("own-"):
                needed = "have another name"
            if needed:
                raise _core.ExperimentError(f'{file}: trace: got "{name}"; must {needed}, to be stored with the sweep')
            whole.write(plan.folder / name, text.encode())
        whole.write(plan.folder / EXPERIMENT, experiment)
        if plan.read_sweep().hash != sweep.hash:
            raise _core.ExperimentError(f"{file}: cannot be stored: its copy in the store would mean different runs")
        return _complete(plan)

    def add_list(self, run_list: RunList, batch_runs: int) -> StoredPlan:
        """Adds listed runs. Raises ExperimentError if one uses a discipline that was not registered from a file."""
        for name, _ in user_aqm.registered().classes:
            if any(name in json.loads(document).get("own", {}) for document in run_list.documents):
                raise _core.ExperimentError(f'store: "{name}" has no file; must be registered by --load')
        plan = self._begin(run_list, batch_runs, [])
        rows = files.encoded(pa.table({"document": values_as_arrow(run_list.documents)}))
        whole.write(plan.folder / LIST, rows)
        return _complete(plan)

    def _begin(self, runs: Runs, batch_runs: int, overrides: Sequence[tuple[str, str]]) -> StoredPlan:
        """Starts a plan of these runs and copies the files of user-defined disciplines into its folder."""
        check_writable(self.path)
        texts = {
            f"own-{number}-{Path(source).name}": bounded.read_bytes(Path(source), bounded.LARGEST_TEXT)
            for number, source in enumerate(user_aqm.registered().files)
        }
        own = {name: hashlib.sha256(text).hexdigest() for name, text in texts.items()}
        listed, backend = (True, runs.backend) if isinstance(runs, RunList) else (False, "sim")
        meta = Meta(
            FORMAT, _core.version, runs.name, runs.hash, len(runs), batch_runs, list(overrides), own, listed, backend
        )
        plan = StoredPlan(self.path, meta, self.trusted, runs)
        for name, text in texts.items():
            whole.write(plan.folder / name, text)
        return plan


def check_writable(path: Path) -> None:
    """Raises ExperimentError if runs cannot be kept in a folder."""
    if reason := unwritable(path):
        raise _core.ExperimentError(f'store: got "{path}"; must be a writable folder ({reason})')


def _complete(plan: StoredPlan) -> StoredPlan:
    """Writes plan.json, the last file, without which a plan does not exist; of several writers the fastest counts."""
    text = msgspec.json.format(msgspec.json.encode(plan.meta), indent=1) + b"\n"
    if whole.write_new(plan.folder / PLAN, text):
        return plan
    return replace(plan, meta=read_meta(plan.folder / PLAN))


def read_meta(path: Path) -> Meta:
    """Reads a plan.json. Raises ExperimentError if it is damaged."""
    return typed.convert(typed.read_json(path), Meta, str(path))


def _traces(sweep: _core.Sweep) -> dict[str, str]:
    """The traces of a sweep's links, by name."""
    traces: dict[str, str] = {}
    for index in sweep.edges():
        traces |= json.loads(sweep[index].document).get("traces", {})
    return traces


def _refuse_others(path: Path) -> None:
    status = path.stat()
    if sys.platform == "win32":
        others = "may be written to by others (this system's rights are not read)"
    elif status.st_uid not in (0, os.geteuid()):
        others = f"belongs to user {status.st_uid}"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        others = f"may be written to by others (mode {stat.S_IMODE(status.st_mode):o})"
    else:
        return
    raise _core.ExperimentError(
        f"{path}: {others}, and the sweep has Python code, which a worker would run: chmod go-w, or --trust"
    )
