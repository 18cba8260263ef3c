"""What a step of ``gymnasium.make_vec`` costs: 64 runs at 10 Mbit/s and 40 ms, steps of 15 ms, one thread.

``python benches/gym.py``, with Sojourn and its extra ``gym`` installed, and valgrind for instructions. An action and
an observation are part of each step. The speed depends on what else the machine does, the count does not.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np

import sojourn.gym

FILE = Path(__file__).parent.parent / "examples" / "learning.toml"
RUNS = 64
CASES = {"a full link": {}, "no packets": {"traffic.0.start": "59 s"}}
"""What is set beside the link; both for fewer steps than there are to that start."""
FULL = {"link.rate": "10 Mbit/s", "traffic.0.rtt": "40 ms", "experiment.duration": "60 s"}
PROBABILITY = 0.003
"""Of an action: two flows of CUBIC then use 98 % of the link."""
WARM_UP, STEPS = 100, 2000
COUNTED = (20, 220)
"""Steps of two runs that are counted. The difference leaves the start-up out."""


def step(case: str, steps: int) -> tuple[float, float]:
    """Steps per second of processor time, and the packets that leave the queue in a step."""
    many = gymnasium.make_vec(
        "sojourn/AQM-v0", num_envs=RUNS, threads=1, experiment=FILE, interval="15 ms", set={**FULL, **CASES[case]}
    )
    many.reset(seed=1)
    actions = np.full((RUNS, 1), PROBABILITY, np.float32)
    for _ in range(WARM_UP):
        many.step(actions)
    packets, began = 0.0, time.process_time()
    for _ in range(steps):
        packets += many.step(actions)[4]["seen"]["down.packets"].sum()
    return RUNS * steps / (time.process_time() - began), packets / (RUNS * steps)


def instructions(case: str) -> float:
    """Of a step, by valgrind."""
    counts = []
    for steps in COUNTED:
        valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
        command = [*valgrind, sys.executable, __file__, case, str(steps)]
        steady = {**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
        told = subprocess.run(command, capture_output=True, text=True, check=True, env=steady).stderr
        found = re.search(r"Collected : (\d+)", told)
        assert found, told
        counts.append(int(found[1]))
    return (counts[1] - counts[0]) / (RUNS * (COUNTED[1] - COUNTED[0]))


def main() -> None:
    """Prints a row per case."""
    if len(sys.argv) > 1:
        step(sys.argv[1], int(sys.argv[2]))
        return
    print("| | steps/s of a core | packets a step | instructions a step |\n| --- | ---: | ---: | ---: |")
    for case in CASES:
        speed, packets = step(case, STEPS)
        counted = f"{instructions(case):,.0f}" if shutil.which("valgrind") else "not counted"
        print(f"| {case} | {speed:,.0f} | {packets:.2f} | {counted} |", flush=True)


if __name__ == "__main__":
    assert sojourn.gym
    main()
