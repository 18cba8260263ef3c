"""The flows of a run as agents of PettingZoo, each with a congestion window of its own."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from sojourn import _core
from sojourn.files.extras import missing
from sojourn.gym.environment import Episodes, Seen
from sojourn.runs.plan import plan
from sojourn.runs.user_aqm import congestion_control

try:
    from pettingzoo import ParallelEnv
except ModuleNotFoundError as error:
    raise missing(error) from None

Observed = npt.NDArray[np.float32]
NUMBERS = ("goodput_bps", "cwnd_segments", "rtt_ms")
LARGEST = 10_000.0
"""The largest window, in segments."""

_stepping = threading.local()
"""``windows``: those of the run that this thread steps, by group."""


class _Agent:
    """Holds the window that the agent of its group has set."""

    group: int
    governs_window = True

    def __init__(self, initial_window: int) -> None:
        self.windows: dict[int, int] = getattr(_stepping, "windows", {})

    def sample(self, ack: Any, sample: Any, window: Any) -> None:
        window.cwnd = self.windows.get(self.group, window.cwnd)

    def congestion(self, signal: str, window: Any) -> int:
        return max(self.windows.get(self.group, 2), 2)


@cache
def _name(group: int) -> str:
    """The congestion control of a group, which is registered when it is first asked for."""
    name = f"agent_{group}"
    congestion_control(name)(type(f"Agent{group}", (_Agent,), {"group": group}))
    return name


class Flows(ParallelEnv[str, Observed, npt.NDArray[np.float32]]):  # type: ignore[misc] # PettingZoo has no types
    """An agent per flow, which sets its flow's congestion window in segments at every step.

    Parameters
    ----------
    experiment
        A file whose groups of traffic are TCP flows, one each: ``flow_0`` is the flow of ``traffic.0``.
    interval
        Simulated time of a step.
    reward
        A function of all numbers, ``Seen``, and the number of the flow; default: its power, ln(g + 0.01) − ln(r), with
        its goodput g in Mbit/s and its RTT r in ms.
    queue, set
        As of ``AQM``.

    Raises
    ------
    ExperimentError
        The file has an error, or a group that is not one TCP flow.
    """

    metadata: dict[str, Any] = {"render_modes": [], "name": "sojourn_flows_v0"}  # noqa: RUF012 - as PettingZoo has it

    def __init__(
        self,
        experiment: str | Path,
        interval: str | float = "15 ms",
        *,
        reward: Callable[[Seen, int], float] | None = None,
        queue: str | None = None,
        set: Mapping[str, object] | None = None,
    ) -> None:
        resolved = json.loads(plan(experiment, set=dict(set or {})).resolved_json())
        for group, traffic in enumerate(resolved[0]["traffic"]):
            if "tcp" not in traffic or traffic.get("flows", 1) != 1:
                raise _core.ExperimentError(f"traffic.{group}: must be one TCP flow, as an agent sets its window")
        groups = range(len(resolved[0]["traffic"]))
        controls = {f"traffic.{group}.tcp": _name(group) for group in groups}
        self.episodes = Episodes(experiment, interval, [], None, None, queue, {**(set or {}), **controls})
        self.reward = reward or _power
        self.possible_agents = [f"flow_{group}" for group in groups]
        self.agents: list[str] = []
        self.render_mode = None
        self._seen = np.zeros(len(self.episodes.names))
        self._run: _core.Session | None = None
        self._windows: dict[int, int] = {}
        self._chance = np.random.default_rng()
        self._observed = gymnasium.spaces.Box(0.0, np.inf, (len(NUMBERS),), np.float32)
        self._acted = gymnasium.spaces.Box(1.0, LARGEST, (1,), np.float32)

    def observation_space(self, agent: str) -> gymnasium.spaces.Box:
        """Of every agent: goodput since the last step in bit/s, window in segments, RTT in ms; 0 if not known."""
        return self._observed

    def action_space(self, agent: str) -> gymnasium.spaces.Box:
        """Of every agent: the window in segments."""
        return self._acted

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observed], dict[str, dict[str, Any]]]:
        """Begins another episode; ``seed`` decides about its cell, and about all of its randomness."""
        if seed is not None:
            self._chance = np.random.default_rng(seed)
        spec = self.episodes.spec(int(self._chance.integers(2**31)), self._chance)
        self._run, self._windows = _core.Session(spec), {}
        self.agents = list(self.possible_agents)
        self._seen[:] = 0.0
        info = {"set": json.loads(spec.set_json)}
        return self._all(), {agent: dict(info) for agent in self.agents}

    def step(
        self, actions: Mapping[str, npt.NDArray[np.float32]]
    ) -> tuple[dict[str, Observed], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Sets the windows, and goes on for an interval. An episode is truncated at the end of its run."""
        if self._run is None or not self.agents:
            raise gymnasium.error.ResetNeeded("step: call reset first")
        if unknown := [agent for agent in actions if agent not in self.possible_agents]:
            accepted = ", ".join(self.possible_agents)
            raise _core.ExperimentError(f'step: got an action of "{unknown[0]}"; must be of some of {accepted}')
        for flow, agent in enumerate(self.possible_agents):
            if agent in actions:
                wanted = float(np.asarray(actions[agent]).reshape(-1)[0])
                if np.isnan(wanted):
                    raise _core.ExperimentError(f"step: {agent}: got nan; must be a window in segments")
                self._windows[flow] = round(min(max(wanted, 1.0), LARGEST))
        _stepping.windows = self._windows
        try:
            self._run.step(self.episodes.interval_s)
        finally:
            del _stepping.windows
        self._run.observe_into(self._seen)
        seen = Seen(self.episodes.names, self._seen.copy())
        rewards = {agent: float(self.reward(seen, flow)) for flow, agent in enumerate(self.agents)}
        never, truncated = (dict.fromkeys(self.agents, state) for state in (False, self._run.finished))
        found = self._all(), rewards, never, truncated, {agent: {"seen": seen} for agent in self.agents}
        if self._run.finished:
            self.agents = []
        return found

    def _all(self) -> dict[str, Observed]:
        numbers = [[self.episodes.names[f"flow.{k}.{number}"] for number in NUMBERS] for k in range(len(self.agents))]
        return {agent: self._seen[own].astype(np.float32) for agent, own in zip(self.agents, numbers, strict=True)}


def _power(seen: Seen, flow: int) -> float:
    goodput, rtt = seen[f"flow.{flow}.goodput_bps"] / 1e6, seen[f"flow.{flow}.rtt_ms"]
    return float(np.log(goodput + 0.01) - np.log(max(rtt, 1.0)))
