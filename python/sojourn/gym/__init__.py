"""Gymnasium environments around a queue: a controller sets keys of a run and sees its queues and flows.

>>> import gymnasium
>>> import sojourn.gym
>>> environment = gymnasium.make("sojourn/AQM-v0", experiment="examples/learning.toml", interval="15 ms")
>>> seen, _ = environment.reset(seed=1)
>>> seen, reward, ended, truncated, info = environment.step(environment.action_space.sample())

``gymnasium.make_vec("sojourn/AQM-v0", num_envs=64, experiment=…)`` steps many runs at once, on several threads.

| file | content |
| --- | --- |
| ``environment`` | what a controller does and sees: keys, numbers, reward; one run, and many |
| ``flows`` | an agent of PettingZoo per flow; ``from sojourn.gym.flows import Flows`` |
"""

from sojourn.files.extras import missing

try:
    import gymnasium
except ModuleNotFoundError as error:
    raise missing(error) from None

from sojourn.gym.environment import AQM, AQMVector, Seen, power

__all__ = ["AQM", "AQMVector", "Seen", "power"]

gymnasium.register(
    "sojourn/AQM-v0", entry_point="sojourn.gym.environment:AQM", vector_entry_point="sojourn.gym.environment:AQMVector"
)
