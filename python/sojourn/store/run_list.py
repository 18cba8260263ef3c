"""Runs that no single experiment file describes: those of a study, a comparison or an evaluation."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import msgspec

from sojourn import _core
from sojourn.files import whole
from sojourn.frame.arrow import values_as_arrow
from sojourn.frame.later import pa, pq
from sojourn.store import files

FILE = "runs.parquet"
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

    @classmethod
    def read(cls, folder: Path, name: str, backend: str = "sim") -> RunList:
        """Reads a list that ``write`` wrote."""
        table = pq.read_table(folder / FILE, columns=["document"], partitioning=None)
        return cls(name, tuple(table["document"].to_pylist()), backend)

    def write(self, folder: Path) -> None:
        """Writes the list into a folder."""
        whole.write(folder / FILE, files.encoded(pa.table({"document": values_as_arrow(self.documents)})))

    @cached_property
    def hash(self) -> str:
        """SHA-256, in hexadecimal, of everything that determines the runs' results and their names."""
        digest = hashlib.sha256(b"" if self.backend == "sim" else f"{self.backend}\n".encode())
        for document in self.documents:
            digest.update(f"{len(document)} {document}".encode())
        return digest.hexdigest()

    def check(self) -> None:
        """Reads one run of each version and set of disciplines, to check that this process can execute them.

        Raises ExperimentError if a run has another results version, or a user-defined discipline differs here.
        """
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
