"""Environments of Gymnasium, one run and many at once: what a controller does and sees, the run of each episode."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from sojourn import _core
from sojourn.files.typed import all_must_be
from sojourn.frame.swept import time_s
from sojourn.runs.executors import default_workers
from sojourn.runs.plan import arm_of, plan

Observed = npt.NDArray[np.float32]
Rows = npt.NDArray[np.float32]
Floats = npt.NDArray[np.floating[Any]]


class AQM(gymnasium.Env[Observed, npt.NDArray[np.float32]]):
    """A controller of a queue, or of any keys that a run can change.

    Parameters
    ----------
    experiment
        A file. An episode runs one of its cells by chance: ``[sweep]`` says what is randomised.
    interval
        Simulated time of a step.
    act
        The keys that an action sets, in the units of ``Session.space``; default ``queue.probability``, of ``policy``.
    observe
        The numbers of ``Session.space`` that are observed; default: those of the first queue.
    reward
        A function of all numbers, ``Seen``; default ``power``.
    queue
        The label of the arm; default: the first.
    set
        Values that override those in the file, by dotted key.

    Raises
    ------
    ExperimentError
        The file has an error, or a key, a number or the queue does not exist.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(
        self,
        experiment: str | Path,
        interval: str | float = "15 ms",
        *,
        act: Sequence[str] | None = None,
        observe: Sequence[str] | None = None,
        reward: Reward | None = None,
        queue: str | None = None,
        set: Mapping[str, object] | None = None,
        render_mode: None = None,
    ) -> None:
        self.episodes = Episodes(experiment, interval, act, observe, reward, queue, set)
        self.render_mode = render_mode
        self.action_space = gymnasium.spaces.Box(self.episodes.low, self.episodes.high, dtype=np.float32)
        shape = self.episodes.indices.shape
        self.observation_space = gymnasium.spaces.Box(0.0, np.inf, shape, dtype=np.float32)
        self._run: _core.Vector | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observed, dict[str, Any]]:
        """Begins another episode; ``seed`` decides about its cell, and about all of its randomness."""
        super().reset(seed=seed)
        spec = self.episodes.spec(int(self.np_random.integers(2**31)), self.np_random)
        self._run = _core.Vector([spec], list(self.episodes.keys), self.episodes.interval_s, 1)
        return np.zeros(self.episodes.indices.shape, np.float32), {"set": json.loads(spec.set_json)}

    def step(self, action: npt.ArrayLike) -> tuple[Observed, float, bool, bool, dict[str, Any]]:
        """Sets the keys, and goes on for an interval. An episode is truncated at the end of its run."""
        if self._run is None:
            raise gymnasium.error.ResetNeeded("step: call reset first")
        numbers, ended = self._run.step(np.asarray(action, np.float64).reshape(1, -1))
        seen = numbers[0]
        info = {"seen": Seen(self.episodes.names, seen)}
        reward = float(self.episodes.rewarded(seen))
        return seen[self.episodes.indices].astype(np.float32), reward, False, bool(ended[0]), info


class AQMVector(VectorEnv[Rows, Rows, npt.NDArray[Any]]):
    """``num_envs`` runs in step, on ``threads`` threads (default: as many as there are processors).

    The ``options`` are those of ``AQM``. A run that has ended begins anew with the next step, whose action it ignores
    (``AutoresetMode.NEXT_STEP``).
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        experiment: str | Path,
        interval: str | float = "15 ms",
        *,
        num_envs: int = 1,
        threads: int | None = None,
        render_mode: None = None,
        **options: Any,
    ) -> None:
        for name, number in (("num_envs", num_envs), ("threads", 1 if threads is None else threads)):
            if number < 1:
                raise _core.ExperimentError(f"{name}: got {number}; must be at least 1")
        self.episodes = Episodes(experiment, interval, **options)
        self.render_mode = render_mode
        self.num_envs = num_envs
        shape = self.episodes.indices.shape
        self.single_action_space = gymnasium.spaces.Box(self.episodes.low, self.episodes.high, dtype=np.float32)
        self.single_observation_space = gymnasium.spaces.Box(0.0, np.inf, shape, dtype=np.float32)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._threads = threads or default_workers()
        self._runs: _core.Vector | None = None
        self._ended = np.zeros(num_envs, np.bool_)
        self._chances: list[np.random.Generator] = []

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Rows, dict[str, Any]]:
        """Begins an episode in every run: that of ``AQM.reset`` with its seed of a list, or ``seed`` and its number."""
        if isinstance(seed, list) and len(seed) != self.num_envs:
            raise _core.ExperimentError(f"seed: got {len(seed)}; must be one number, or {self.num_envs}")
        seeds = seed if isinstance(seed, list) else [None if seed is None else seed + k for k in range(self.num_envs)]
        for index, one in enumerate(seeds):
            if one is not None or index == len(self._chances):
                self._chances[index : index + 1] = [seeding.np_random(one)[0]]
        specs = [self._spec(index) for index in range(self.num_envs)]
        self._runs = _core.Vector(specs, list(self.episodes.keys), self.episodes.interval_s, self._threads)
        self._ended[:] = False
        return np.zeros((self.num_envs, *self.episodes.indices.shape), np.float32), {}

    def step(
        self, actions: npt.ArrayLike
    ) -> tuple[Rows, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        """Sets the keys of every run, and goes on for an interval."""
        if self._runs is None:
            raise gymnasium.error.ResetNeeded("step: call reset first")
        begun = self._ended.copy()
        for index in np.flatnonzero(begun):
            self._runs.reset(int(index), self._spec(int(index)))
        numbers, self._ended = self._runs.step(np.array(actions, np.float64, ndmin=2))
        rewards = np.asarray(self.episodes.rewarded(numbers), np.float64)
        seen = numbers[:, self.episodes.indices].astype(np.float32)
        # A run that begins has not been acted on yet.
        rewards[begun], seen[begun] = 0.0, 0.0
        info = {"seen": Seen(self.episodes.names, numbers)}
        return seen, rewards, np.zeros(self.num_envs, np.bool_), self._ended.copy(), info

    def _spec(self, index: int) -> _core.RunSpec:
        chance = self._chances[index]
        return self.episodes.spec(int(chance.integers(2**31)), chance)


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


class Episodes:
    """The runs of an experiment file, and what a controller does with them."""

    def __init__(
        self,
        experiment: str | Path,
        interval: str | float,
        act: Sequence[str] | None = None,
        observe: Sequence[str] | None = None,
        reward: Reward | None = None,
        queue: str | None = None,
        set: Mapping[str, object] | None = None,
    ) -> None:
        """Parameters are those of ``AQM``.

        Raises ExperimentError if a key, a number, the queue or the interval does not exist.
        """
        self._experiment, self._queue, self._set, self._reward = experiment, queue, set or {}, reward
        self.interval_s = time_s("interval", interval)
        for name, names in (("act", act), ("observe", observe)):
            if isinstance(names, str):
                raise _core.ExperimentError(f'{name}: got "{names}"; must be a list of names')
        if not (reward is None or callable(reward)):
            raise _core.ExperimentError(f"reward: got {reward!r}; must be a function of Seen")
        space = _core.Session(self.spec(0, np.random.default_rng(0))).space()
        actions = {action["key"]: action for action in space["actions"]}
        self.keys = ("queue.probability",) if act is None else tuple(act)
        # All numbers of an observation, and those that are observed, by their indices.
        self.names: dict[str, int] = {name: index for index, name in enumerate(space["observations"])}
        first = space["observations"][0].rpartition(".")[0]
        observed = observe or [name for name in self.names if name.rpartition(".")[0] == first]
        for what, given, known in (("act", self.keys, actions), ("observe", observed, self.names)):
            all_must_be(given, known, what)
        self.low = np.array([actions[key]["low"] for key in self.keys], np.float32)
        self.high = np.array([actions[key]["high"] for key in self.keys], np.float32)
        self.indices = np.array([self.names[name] for name in observed])

    def spec(self, seed: int, chance: np.random.Generator) -> _core.RunSpec:
        """The run of an episode: a cell by chance, with this seed. Raises ExperimentError if there is no such queue."""
        runs = plan(self._experiment, set={**self._set, "experiment.seed": seed, "experiment.repeat": 1})
        of_arm = arm_of(runs, self._queue)
        return runs[of_arm[int(chance.integers(len(of_arm)))]]

    def rewarded(self, numbers: Floats) -> Any:
        """The reward of a step after which these numbers were seen."""
        return (self._reward or power)(Seen(self.names, numbers))
