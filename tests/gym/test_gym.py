"""Environments of Gymnasium: the same run as without them, many at once as one by one."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test

import sojourn as sj
from conftest import ROOT
from sojourn.gym import AQM, AQMVector, Seen, power
from sojourn.gym.flows import Flows

FILE = ROOT / "examples" / "learning.toml"
SHORT = {"experiment.duration": "1 s"}


@pytest.mark.filterwarnings("ignore:.*not supported.*rendering:UserWarning")
def test_gymnasium_finds_no_fault():
    check_env(gymnasium.make("sojourn/AQM-v0", experiment=FILE, set=SHORT).unwrapped, skip_render_check=True)


def test_an_episode_is_the_run_of_its_cell_and_seed():
    environment = AQM(FILE, "100 ms", set=SHORT)
    _, told = environment.reset(seed=5)
    spec = environment.episodes.spec(0, np.random.default_rng(0))
    assert set(told["set"]) == {"link.rate", "traffic.0.rtt"}
    steps, truncated, dropped = 0, False, 0.0
    while not truncated:
        seen, reward, ended, truncated, told = environment.step([0.05])
        assert environment.observation_space.contains(seen)
        assert np.isfinite(reward)
        assert not ended
        dropped += told["seen"]["down.dropped"]
        steps += 1
    assert steps == 10
    assert dropped > 0
    assert spec.label == "policy"


def test_the_same_seed_gives_the_same_episode_and_another_seed_another():
    def course(seed: int) -> list[float]:
        environment = AQM(FILE, "50 ms", set=SHORT)
        environment.reset(seed=seed)
        return [environment.step([0.02])[1] for _ in range(20)]

    assert course(1) == course(1) != course(2)


def test_many_runs_at_once_are_those_of_a_session_each():
    many = AQMVector(FILE, "100 ms", num_envs=3, threads=2, set=SHORT)
    many.reset(seed=7)
    specs = [many.episodes.spec(seed, np.random.default_rng(seed)) for seed in range(3)]
    runs = sj._core.Vector(specs, ["queue.probability"], 0.1, 2)
    alone = [sj.Session(spec) for spec in specs]
    space = alone[0].space()
    number = [action.key for action in space.actions].index("queue.probability")
    for step in range(10):
        values = np.array([[0.01 * step], [0.02], [0.0]])
        seen, ended = runs.step(values)
        for session, value, row in zip(alone, values, seen, strict=True):
            session.act(number, float(value[0]))
            session.step("100 ms")
            numbers = np.empty(len(space.observations))
            session.observe_into(numbers)
            assert row.tolist() == numbers.tolist()
    assert ended.all()


def test_a_run_that_has_ended_begins_anew():
    many = gymnasium.make_vec("sojourn/AQM-v0", num_envs=2, experiment=FILE, interval="500 ms", set=SHORT)
    many.reset(seed=1)
    actions = np.zeros((2, 1), np.float32)
    assert [bool(many.step(actions)[3].all()) for _ in range(4)] == [False, True, False, True]


def test_the_default_reward_is_goodput_over_delay():
    seen = Seen(
        {"down.sojourn_mean_ms": 0, "flow.0.goodput_bps": 1, "flow.1.goodput_bps": 2}, np.array([20.0, 5e6, 5e6])
    )
    assert power(seen) == pytest.approx(np.log(10.01) - np.log(2.0))


def test_a_wrong_name_is_told_the_right_ones():
    for given, part in (
        (
            {"act": ["queue.probabilty"]},
            'act: got "queue.probabilty"; must be one of link.rate, queue.limit, queue.probability',
        ),
        ({"observe": ["down.delay"]}, 'observe: got "down.delay"; must be one of down.packets'),
        ({"queue": "pi"}, 'queue: got "pi"; must be one of policy, pie, codel'),
        ({"interval": "0 ms"}, 'interval: got "0 ms"; must be a time above 0'),
    ):
        with pytest.raises(sj.ExperimentError) as refused:
            AQM(FILE, **given)
        assert part in str(refused.value)


def test_a_run_of_many_is_the_one_that_its_seed_gives_alone():
    many = AQMVector(FILE, "100 ms", num_envs=2, set=SHORT)
    for given, seeds in ((3, [3, 4]), ([8, 5], [8, 5])):
        many.reset(seed=given)
        together = [many.step(np.full((2, 1), 0.03))[1].tolist() for _ in range(10)]
        for index, seed in enumerate(seeds):
            alone = AQM(FILE, "100 ms", set=SHORT)
            alone.reset(seed=seed)
            assert [alone.step([0.03])[1] for _ in range(10)] == [rewards[index] for rewards in together]


def test_mistakes_are_one_line():
    def refused(words: str, make: Callable[[], object]) -> None:
        with pytest.raises(sj.ExperimentError, match=re.escape(words)) as told:
            make()
        assert "\n" not in str(told.value)

    refused('act: got "queue.probability"; must be a list', lambda: AQM(FILE, act="queue.probability"))
    refused("reward: got 3; must be a function", lambda: AQM(FILE, reward=3))  # type: ignore[arg-type]
    refused("num_envs: got 0", lambda: AQMVector(FILE, num_envs=0))
    refused("threads: got -1", lambda: AQMVector(FILE, num_envs=1, threads=-1))
    many = AQMVector(FILE, num_envs=2, set=SHORT)
    refused("seed: got 1; must be one number, or 2", lambda: many.reset(seed=[1]))
    with pytest.raises(gymnasium.error.ResetNeeded):
        many.step(np.zeros((2, 1)))
    many.reset(seed=1)
    refused("shape (3, 1); must be (2, 1)", lambda: many.step(np.zeros((3, 1))))
    session = sj.Session(FILE)
    refused("act: got -1; no key", lambda: session.act(-1, 0.0))
    refused("float64", lambda: session.observe_into(np.zeros(13, np.float32)))  # type: ignore[arg-type]
    refused("gaps", lambda: session.observe_into(np.zeros(26)[::2]))
    refused("got 2; must be", lambda: session.observe_into(np.zeros(2)))
    refused("restore: got 3; must be a snapshot", lambda: session.restore(3))  # type: ignore[arg-type]


TWO = """
experiment = { duration = "3 s", seed = 1 }
link = { rate = "10 Mbit/s", buffer = "300 packets" }
queue = [{ aqm = "pfifo" }]
traffic = [{ kind = "bulk", rtt = "40 ms" }, { kind = "bulk", rtt = "40 ms" }]
"""


@pytest.fixture
def two(tmp_path: Path) -> Path:
    (tmp_path / "two.toml").write_text(TWO, encoding="utf-8")
    return tmp_path / "two.toml"


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_pettingzoo_finds_no_fault(two: Path):
    parallel_api_test(Flows(two, "100 ms"), num_cycles=70)


def test_the_window_of_every_flow_is_its_agents(two: Path):
    """Without a queue, what a flow gets is its window in an RTT: 1448 bytes are 0.29 Mbit/s at 40 ms."""
    environment = Flows(two, "400 ms")
    environment.reset(seed=1)
    actions = {"flow_0": np.array([4.0]), "flow_1": np.array([12.0])}
    while environment.agents:
        seen, rewards, _, _, _ = environment.step(actions)
    for agent, segments in (("flow_0", 4), ("flow_1", 12)):
        goodput, window, rtt = seen[agent].tolist()
        assert window == segments
        assert goodput == pytest.approx(segments * 1448 * 8 / (rtt / 1e3), rel=0.15)
    assert rewards["flow_1"] > rewards["flow_0"]
    again = Flows(two, "400 ms")
    again.reset(seed=1)
    while again.agents:
        other, *_ = again.step(actions)
    assert {agent: row.tolist() for agent, row in seen.items()} == {agent: row.tolist() for agent, row in other.items()}


def test_a_wrong_action_of_an_agent_is_told(two: Path):
    environment = Flows(two, "400 ms")
    environment.reset(seed=1)
    with pytest.raises(sj.ExperimentError, match="step: flow_1: got nan; must be a window in segments"):
        environment.step({"flow_1": np.array([np.nan])})
    with pytest.raises(sj.ExperimentError, match='step: got an action of "flow_9"; must be of some of flow_0, flow_1'):
        environment.step({"flow_9": np.array([3.0])})


def test_an_agent_has_one_flow(tmp_path: Path):
    (tmp_path / "ping.toml").write_text(TWO.replace('kind = "bulk"', 'kind = "ping"', 1), encoding="utf-8")
    with pytest.raises(sj.ExperimentError, match=r"traffic\.0: must be one TCP flow"):
        Flows(tmp_path / "ping.toml")
