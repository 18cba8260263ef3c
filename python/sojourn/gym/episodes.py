"""What an environment does and sees, and the run of each episode."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sojourn import _core
from sojourn.frame.given import time_s
from sojourn.runs.plan import plan

Floats = npt.NDArray[np.floating[Any]]


class Seen(Mapping[str, Any]):
    """An observation, or a row per run of several: its numbers by name, ``seen["down.sojourn_mean_ms"]``."""

    def __init__(self, names: Mapping[str, int], numbers: Floats) -> None:
        self._names = names
        self._numbers = numbers

    def __getitem__(self, name: str) -> Any:
        return self._numbers[..., self._names[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def of_flows(self, number: str) -> Floats:
        """A number of all flows: ``of_flows("goodput_bps").sum(axis=-1)``."""
        indices = [at for name, at in self._names.items() if name.startswith("flow.") and name.endswith(f".{number}")]
        return self._numbers[..., indices]


Reward = Callable[[Seen], Any]
"""The reward of a step, a number, or a number per run of several."""


def power(seen: Seen) -> Any:
    """The logarithm of the flows' goodput in Mbit/s over 20 ms and the mean sojourn time of the first queue."""
    goodput = seen.of_flows("goodput_bps").sum(axis=-1) / 1e6
    delay = seen[next(name for name in seen if name.endswith("sojourn_mean_ms"))]
    return np.log(goodput + 0.01) - np.log1p(delay / 20.0)


@dataclass
class Episodes:
    """The runs of an experiment file, and what a controller does with them."""

    experiment: str | Path
    interval: str | float
    act: Sequence[str] | None
    """The keys that an action sets; None: ``queue.probability``."""
    observe: Sequence[str] | None
    """The numbers that are observed; None: those of the first queue."""
    reward: Reward | None
    queue: str | None
    """The label of the arm; None: the first."""
    set: Mapping[str, object] = field(default_factory=dict)
    interval_s: float = field(init=False)
    keys: tuple[str, ...] = field(init=False)
    low: npt.NDArray[np.float32] = field(init=False)
    """The least action."""
    high: npt.NDArray[np.float32] = field(init=False)
    names: dict[str, int] = field(init=False)
    """All numbers of an observation, with their indices."""
    indices: npt.NDArray[np.intp] = field(init=False)
    """The indices of those that are observed."""

    def __post_init__(self) -> None:
        """Raises ExperimentError if a key, a number, the queue or the interval does not exist."""
        self.interval_s = time_s("interval", self.interval)
        for name, names in (("act", self.act), ("observe", self.observe)):
            if isinstance(names, str):
                raise _core.ExperimentError(f'{name}: got "{names}"; must be a list of names')
        if not (self.reward is None or callable(self.reward)):
            raise _core.ExperimentError(f"reward: got {self.reward!r}; must be a function of Seen")
        space = _core.Session(self.spec(0, np.random.default_rng(0))).space()
        actions = {action["key"]: action for action in space["actions"]}
        self.keys = ("queue.probability",) if self.act is None else tuple(self.act)
        self.names = {name: index for index, name in enumerate(space["observations"])}
        first = space["observations"][0].rpartition(".")[0]
        observed = self.observe or [name for name in self.names if name.rpartition(".")[0] == first]
        for what, given, known in (("act", self.keys, actions), ("observe", observed, self.names)):
            for name in given:
                if name not in known:
                    raise _core.ExperimentError(f'{what}: got "{name}"; must be one of {", ".join(known)}')
        self.low = np.array([actions[key]["low"] for key in self.keys], np.float32)
        self.high = np.array([actions[key]["high"] for key in self.keys], np.float32)
        self.indices = np.array([self.names[name] for name in observed])

    def spec(self, seed: int, chance: np.random.Generator) -> _core.RunSpec:
        """The run of an episode: a cell of the sweep by chance, with this seed.

        Raises
        ------
        ExperimentError
            The file has an error, or no such queue.
        """
        runs = plan(self.experiment, set={**self.set, "experiment.seed": seed, "experiment.repeat": 1})
        labels = dict.fromkeys(label for _, _, _, label in runs.jobs)
        label = next(iter(labels)) if self.queue is None else self.queue
        if label not in labels:
            raise _core.ExperimentError(f'queue: got "{label}"; must be one of {", ".join(labels)}')
        of_arm = [index for index, (_, _, _, other) in enumerate(runs.jobs) if other == label]
        return runs[of_arm[int(chance.integers(len(of_arm)))]]

    def rewarded(self, numbers: Floats) -> Any:
        """The reward of a step after which these numbers were seen."""
        return (self.reward or power)(Seen(self.names, numbers))
