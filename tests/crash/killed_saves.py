"""Forks a child that saves in a loop, kills it at a random moment, and checks the file, so many times.

Run as a program by the test: a process of one thread forks safely and quickly.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport.storage import remove_leftovers, write_atomically


def models():
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(200, 400)), np.arange(200) % 2
    y = (X[:, 0] > 0).astype(int)
    return [
        ft.QuantileRepairClassifier(LogisticRegression(C=strength)).fit(X, y, sensitive_features=group)
        for strength in (0.1, 10.0)
    ]


def save_once(path, contents, made, number, *, whole):
    """The whole of ft.save, or only its last step, where kills are most telling."""
    if whole:
        ft.save(made[number % 2], path, people_per_point=1)
    else:
        write_atomically(path, contents[number % 2])


def seconds(path, contents, made, *, whole):
    start = time.perf_counter()
    for number in range(10):
        save_once(path, contents, made, number, whole=whole)
    return (time.perf_counter() - start) / 10


def main():
    path, n_kills = Path(sys.argv[1]), int(sys.argv[2])
    made, chance = models(), random.Random(0)  # noqa: S311 - moments, not secrets
    contents = [ft.save(model, path, people_per_point=1).read_bytes() for model in made]
    seen, in_the_middle = [0, 0], 0
    takes = [seconds(path, contents, made, whole=whole) for whole in (False, True)]
    for kill in range(n_kills):
        whole = kill % 2 == 1
        pid = os.fork()
        while pid == 0:
            kill += 1  # noqa: PLW2901 - the child's own
            save_once(path, contents, made, kill // 2, whole=whole)
        time.sleep(chance.uniform(0, 3 * takes[whole]))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        seen[contents.index(path.read_bytes())] += 1  # ValueError when it is neither
        in_the_middle += remove_leftovers(path, older_than=0) > 0
    scores = ft.load(path).predict_proba(np.zeros((1, 400)), sensitive_features=[0])
    print(json.dumps({"seen": seen, "in_the_middle": in_the_middle, "works": bool(np.isfinite(scores).all())}))  # noqa: T201


if __name__ == "__main__":
    main()
