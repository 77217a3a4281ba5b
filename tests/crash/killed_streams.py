"""Forks children that run ``fairtransport stream --resume`` and are killed at random moments, until the input is done.

Run as a program by the test: a process of one thread forks safely, and a child starts in no time. A child that comes to
the end leaves everything to be compared with a run that was not killed; then it all begins again. Kills often come
while a child resumes from the kill before. What is in the output at a kill must stay there.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np

import fairtransport as ft
from fairtransport.cli.app import app

BATCH, EVERY, LINES = 10, 2, 400
COMPARED = ("out.jsonl", "store/journal.jsonl", "store/rejected.jsonl")


def make_model(kind, path):
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=1000)
    X = rng.normal(size=(1000, 2)) + group[:, None] * [1.0, 0.0]
    y = (X.sum(axis=1) + rng.logistic(size=1000) > 0.5).astype(int)
    if kind == "COT":
        model = ft.TransportClassifier()
        model.fit(X, y, sensitive_features={"sex": np.array(["F", "M"])[group]})
    else:
        scores = 1 / (1 + np.exp(-X.sum(axis=1)))
        model = ft.QuantileRepair().fit(scores, sensitive_features={"sex": np.array(["F", "M"])[group]})
    ft.save(model, path)


def make_rows(kind, path):
    rng = np.random.default_rng(1)
    lines = []
    for index in range(LINES):
        sex, shift = ("F", 0.0) if rng.random() < 0.5 else ("M", 1.0 if index < LINES // 2 else 3.0)
        a, b = float(rng.normal(shift)), float(rng.normal())
        row = {"a": a, "b": b, "sex": sex}
        row = row if kind == "COT" else {"s": float(1 / (1 + np.exp(-a - b))), "sex": sex}
        lines.append("not JSON" if index % 97 == 13 else json.dumps(row))
    path.write_text("\n".join(lines) + "\n")


def run(kind, folder, model, rows, *more):
    """Run the command to its end."""
    how = [*(["--features", "a,b"] if kind == "COT" else ["--score", "s"]), *more]
    files = [str(rows), "--model", str(model), "--store", str(folder / "store"), "--out", str(folder / "out.jsonl")]
    often = ["--batch", str(BATCH), "--checkpoint-every", str(EVERY)]
    app(["stream", *files, "--sensitive", "sex", "--resume", *how, *often], standalone_mode=False)


def forked(function, *arguments, **options):
    """Call a function in a child."""
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            function(*arguments, **options)
        except BaseException as error:  # noqa: BLE001 - the parent sees the status
            os.write(1, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
        os._exit(0)
    return pid


def seconds(kind, folder, model, rows):
    folder.mkdir()
    began = time.perf_counter()
    os.waitpid(forked(run, kind, folder, model, rows), 0)
    return time.perf_counter() - began


def contents(folder):
    newest = sorted((folder / "store").glob("checkpoint-*.ft"))
    contents = {name: (folder / name).read_bytes() for name in COMPARED}
    return {**contents, **{path.name: path.read_bytes() for path in newest}}


def killed(pid, seconds):
    """Kill a child after so many seconds; return whether it still ran."""
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    return os.WIFSIGNALED(status), os.WEXITSTATUS(status)


class Output:
    """The output as readers see it, who rely on every byte."""

    def __init__(self, folder):
        self.path, self.given = folder / "out.jsonl", b""

    def changed(self):
        content = self.path.read_bytes() if self.path.exists() else b""
        changed, self.given = not content.startswith(self.given), content
        return ["given out, then changed"] * changed


def prepared(folder):
    folder.mkdir()
    return folder


def main():
    home, kind, n_kills = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    model, rows, chance = home / "m.ft", home / "rows.jsonl", random.Random(0)  # noqa: S311 - moments, not secrets
    make_model(kind, model)
    make_rows(kind, rows)
    whole = prepared(home / "whole")
    run(kind, whole, model, rows)  # in this process, so that everything is loaded when it forks
    expected = contents(whole)
    takes = seconds(kind, home / "timed", model, rows)
    kills, finished, inside, wrong, unfinished = 0, 0, 0, [], 0
    while kills < n_kills or not finished:
        folder = home / "killed"
        if not folder.exists():
            output = Output(prepared(folder))
        most = takes / 2 * (1 + unfinished / 20)  # a machine that has become slow needs more time to resume
        ended, status = killed(forked(run, kind, folder, model, rows), chance.uniform(0.0, most))
        wrong += output.changed()
        if ended:
            kills, unfinished = kills + 1, unfinished + 1
            inside += any((folder / "store").glob(".checkpoint-*.part")) if (folder / "store").exists() else 0
            continue
        found = contents(folder)
        wrong += [f"exit status {status}"] * (status != 0)
        wrong += [name for name in {**expected, **found} if expected.get(name) != found.get(name)]
        finished, unfinished = finished + 1, 0
        shutil.rmtree(folder)
    result = {"kills": kills, "finished": finished, "inside": inside, "wrong": wrong}
    print(json.dumps({**result, "lines": expected["out.jsonl"].count(b"\n")}))  # noqa: T201


if __name__ == "__main__":
    main()
