"""One run as an environment of Gymnasium."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from sojourn import _core
from sojourn.gym.episodes import Episodes, Reward, Seen

Observed = npt.NDArray[np.float32]


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
        self.episodes = Episodes(experiment, interval, act, observe, reward, queue, set or {})
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
