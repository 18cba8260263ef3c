"""Trains RL-AQM with NumPy alone, and writes its weights for ``aqm = "policy"``.

    python examples/rlaqm.py "10 Mbit/s" studies/rlaqm2021/trained-10.json

RL-AQM: Alwahab, Gombos, Laki, On a Deep Q-Network-based Approach for Active Queue Management, EuCNC 2021; the authors'
code is https://github.com/dhulfiqarelte/RLAQM. Every 20 ms it sees the queue's delay in ms, its utilisation and the
probability, and makes one of five changes of the probability. As published: the reward, the changes, layers of 32, 32
and 5 units, a discount of 0.95, 200 episodes, and that below 1 ms the probability goes down without asking. How it
learns is our own: many episodes side by side, a memory, double Q-learning.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

from sojourn.gym import AQMVector

FILE = Path(__file__).parent.parent / "studies" / "rlaqm2021" / "train.toml"
CHANGES = np.array([0.0, 0.01, -0.01, 0.1, -0.1])
MOST = 0.5
SCALE = np.array([1 / 20, 1.0, 4.0])
"""What the network's inputs are multiplied by."""
EPISODES, SIDE_BY_SIDE, DISCOUNT, BATCH, MEMORY = 200, 20, 0.95, 256, 200_000

Layers = list[tuple[np.ndarray, np.ndarray]]


def reward(seen):
    """Near 1 on a busy link with an empty queue."""
    return seen["down.utilisation"] - 0.5 + 2.0 / (1.0 + seen["down.backlog_ms"] / 5.0) - 1.5


def values(layers: Layers, states: np.ndarray) -> list[np.ndarray]:
    """The outputs of every layer, the states first."""
    outputs = [states]
    for place, (weights, bias) in enumerate(layers):
        out = outputs[-1] @ weights + bias
        outputs.append(out if place == len(layers) - 1 else np.maximum(out, 0.0))
    return outputs


class Adam:
    """Gradient descent with moments (Kingma, Ba 2015)."""

    def __init__(self, layers: Layers) -> None:
        self.moments = [[(np.zeros_like(part), np.zeros_like(part)) for part in layer] for layer in layers]
        self.steps = 0

    def descend(self, layers: Layers, slopes: Layers, rate: float) -> None:
        """Takes a step."""
        self.steps += 1
        rate *= np.sqrt(1 - 0.999**self.steps) / (1 - 0.9**self.steps)
        for layer, slope, moments in zip(layers, slopes, self.moments, strict=True):
            for part, change, (first, second) in zip(layer, slope, moments, strict=True):
                first += 0.1 * (change - first)
                second += 0.001 * (change**2 - second)
                part -= rate * first / (np.sqrt(second) + 1e-8)


def slopes_of(layers: Layers, states: np.ndarray, actions: np.ndarray, targets: np.ndarray) -> Layers:
    """The gradient of Huber's loss of the values of the actions taken."""
    outputs = values(layers, states)
    rows = np.arange(len(states))
    back = np.zeros_like(outputs[-1])
    back[rows, actions] = np.clip(outputs[-1][rows, actions] - targets, -1.0, 1.0) / len(states)
    slopes = []
    for place in reversed(range(len(layers))):
        slopes.append((outputs[place].T @ back, back.sum(axis=0)))
        back = (back @ layers[place][0].T) * (outputs[place] > 0)
    return slopes[::-1]


def chosen(layers: Layers, states: np.ndarray, random: np.random.Generator | None, share: float) -> np.ndarray:
    """The actions: the best, or any with this probability; below 1 ms always the largest step down."""
    actions = values(layers, states)[-1].argmax(axis=1)
    if random is not None:
        actions = np.where(random.random(len(states)) < share, random.integers(len(CHANGES), size=len(states)), actions)
    return np.where(states[:, 0] < 1.0 * SCALE[0], 4, actions)


def episodes(layers: Layers, rate: str, rtt: str, seed: int, learn=None, random=None, share=0.0) -> float:
    """Goes through ``SIDE_BY_SIDE`` episodes; the mean reward of their steps. ``learn`` gets every step."""
    groups = {f"traffic.{group}.rtt": rtt for group in range(5)}
    many = AQMVector(
        FILE,
        "20 ms",
        num_envs=SIDE_BY_SIDE,
        observe=["down.backlog_ms", "down.utilisation"],
        reward=reward,
        set={"link.rate": rate, **groups},
    )
    seen, _ = many.reset(seed=seed)
    probability = np.zeros(SIDE_BY_SIDE)
    states = np.column_stack([seen, probability]) * SCALE
    total, steps, ended = 0.0, 0, False
    while not ended:
        actions = chosen(layers, states, random, share)
        probability = np.clip(probability + CHANGES[actions], 0.0, MOST)
        seen, rewards, _, truncated, _ = many.step(probability[:, None])
        after = np.column_stack([seen, probability]) * SCALE
        if learn is not None:
            learn(states, actions, rewards, after)
        states, ended = after, bool(truncated.all())
        total, steps = total + rewards.mean(), steps + 1
    return total / steps


def train(rate: str, rtt: str = "20 ms") -> Layers:
    """The network that did best without chance, of those after every pass."""
    random = np.random.default_rng(1)
    sizes = [3, 32, 32, len(CHANGES)]
    layers = [
        (random.normal(0, np.sqrt(2 / size), (size, width)), np.zeros(width))
        for size, width in zip(sizes, sizes[1:], strict=False)
    ]
    slow = [tuple(part.copy() for part in layer) for layer in layers]
    adam = Adam(layers)
    memory = [np.zeros((MEMORY, 3)), np.zeros(MEMORY, int), np.zeros(MEMORY), np.zeros((MEMORY, 3))]
    known, pace = 0, 1e-3

    def learn(*step: np.ndarray) -> None:
        nonlocal known
        places = np.arange(known, known + SIDE_BY_SIDE) % MEMORY
        for kept, new in zip(memory, step, strict=True):
            kept[places] = new
        known += SIDE_BY_SIDE
        if known < 10 * BATCH:
            return
        drawn = random.integers(min(known, MEMORY), size=BATCH)
        states, actions, rewards, after = (kept[drawn] for kept in memory)
        best = chosen(layers, after, None, 0.0)
        targets = rewards + DISCOUNT * values(slow, after)[-1][np.arange(BATCH), best]
        adam.descend(layers, slopes_of(layers, states, actions, targets), pace)
        for slow_layer, layer in zip(slow, layers, strict=True):
            for slow_part, part in zip(slow_layer, layer, strict=True):
                slow_part += 0.005 * (part - slow_part)

    best, best_reward = layers, -np.inf
    for begun in range(0, EPISODES, SIDE_BY_SIDE):
        # The authors' share of random actions in their n-th episode is 0.9 to the n-th, at least 0.01.
        share = max(0.9 ** (begun / 5), 0.01)
        pace = 1e-3 * (1.0 - begun / EPISODES) + 1e-5
        learned = episodes(layers, rate, rtt, 1000 + begun, learn, random, share)
        alone = episodes(layers, rate, rtt, 100_000)
        print(
            f"{begun + SIDE_BY_SIDE:4} episodes: reward {learned:.3f} while learning, {alone:.3f} without chance",
            flush=True,
        )
        if alone > best_reward:
            best, best_reward = [tuple(part.copy() for part in layer) for layer in layers], alone
    return best


def written(layers: Layers) -> str:
    """The file of a policy. A unit beside the others, 1 ms - delay, makes the largest step down outweigh all others."""
    first, second, last = (weights.T.copy() for weights, _ in layers)
    biases = [bias.copy() for _, bias in layers]
    first = np.vstack([first * SCALE, [-1.0, 0.0, 0.0]])
    second = np.pad(second, ((0, 1), (0, 1)))
    second[-1, -1] = 1.0
    last = np.hstack([last, [[0.0], [0.0], [0.0], [0.0], [1e6]]])
    biases = [np.append(biases[0], 1.0), np.append(biases[1], 0.0), biases[2]]
    parts = zip((first, second, last), biases, strict=True)

    def row(numbers: np.ndarray) -> str:
        return "[" + ", ".join(f"{number:.7g}" for number in numbers) + "]"

    shown = ",\n".join(
        '    {"weights": [\n      ' + ",\n      ".join(map(row, weights)) + f'],\n     "bias": {row(bias)}}}'
        for weights, bias in parts
    )
    lines = [
        '  "interval": "20 ms"',
        '  "inputs": ["backlog_ms", "utilisation", "probability"]',
        f'  "output": {json.dumps(CHANGES.tolist())}',
        f'  "most": {MOST}',
        f'  "layers": [\n{shown}\n  ]',
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    began = time.monotonic()
    rate, out = sys.argv[1:]
    Path(out).write_text(written(train(rate)), encoding="utf-8")
    print(f"{out}: {time.monotonic() - began:.0f} s")
