"""Many runs at once as a vector environment of Gymnasium."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
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
        self.episodes = Episodes(experiment, interval, act, observe, reward, queue, set or {})
        self.render_mode = render_mode
        self.num_envs = num_envs
        shape = self.episodes.places.shape
        self.single_action_space = gymnasium.spaces.Box(self.episodes.low, self.episodes.high, dtype=np.float32)
        self.single_observation_space = gymnasium.spaces.Box(0.0, np.inf, shape, dtype=np.float32)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._threads = threads or default_workers()
        self._runs: _core.Vector | None = None
        self._ended = np.zeros(num_envs, np.bool_)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Rows, dict[str, Any]]:
        """Begins an episode in every run; ``seed`` decides about all their cells and randomness."""
        super().reset(seed=seed[0] if isinstance(seed, list) else seed)
        specs = [self._spec() for _ in range(self.num_envs)]
        self._runs = _core.Vector(specs, list(self.episodes.keys), self.episodes.interval_s, self._threads)
        self._ended[:] = False
        return np.zeros((self.num_envs, *self.episodes.places.shape), np.float32), {}

    def step(
        self, actions: npt.ArrayLike
    ) -> tuple[Rows, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        """Sets the keys of every run, and goes on for an interval."""
        assert self._runs is not None, "reset comes first"
        begun = self._ended.copy()
        for index in np.flatnonzero(begun):
            self._runs.reset(int(index), self._spec())
        numbers, self._ended = self._runs.step(np.asarray(actions, np.float64).reshape(self.num_envs, -1))
        rewards = np.asarray(self.episodes.rewarded(numbers), np.float64)
        seen = numbers[:, self.episodes.places].astype(np.float32)
        # A run that begins has not been acted on yet.
        rewards[begun], seen[begun] = 0.0, 0.0
        told = {"seen": Seen(self.episodes.names, numbers)}
        return seen, rewards, np.zeros(self.num_envs, np.bool_), self._ended.copy(), told

    def _spec(self) -> _core.RunSpec:
        return self.episodes.spec(int(self.np_random.integers(2**31)), self.np_random)
