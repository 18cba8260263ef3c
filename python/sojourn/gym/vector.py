"""Many runs at once as a vector environment of Gymnasium."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from sojourn import _core
from sojourn.gym.episodes import Episodes, Reward, Seen
from sojourn.runs.executors import default_workers

Rows = npt.NDArray[np.float32]


class AQMVector(VectorEnv[Rows, Rows, npt.NDArray[Any]]):
    """``num_envs`` runs in step, on ``threads`` threads (default: as many as there are processors).

    The other parameters are those of ``AQM``. A run that has ended begins anew with the next step, whose action it
    ignores (``AutoresetMode.NEXT_STEP``).
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        experiment: str | Path,
        interval: str | float = "15 ms",
        *,
        num_envs: int = 1,
        act: Sequence[str] | None = None,
        observe: Sequence[str] | None = None,
        reward: Reward | None = None,
        queue: str | None = None,
        set: Mapping[str, object] | None = None,
        threads: int | None = None,
        render_mode: None = None,
    ) -> None:
        for name, number in (("num_envs", num_envs), ("threads", 1 if threads is None else threads)):
            if number < 1:
                raise _core.ExperimentError(f"{name}: got {number}; must be at least 1")
        self.episodes = Episodes(experiment, interval, act, observe, reward, queue, set or {})
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
