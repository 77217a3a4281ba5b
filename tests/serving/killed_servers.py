"""Forks servers that adjust their model and are killed at random moments, while clients ask for scores.

Run as a program by the test: a process of one thread forks safely, and a child starts in no time. Clients send each
request with a key until it is answered, and now and then again. In the end every request counts once: an uninterrupted
server that is given the same requests in the order of the log gives the same scores and the same checkpoint.
"""

import asyncio
import http.client
import itertools
import json
import os
import random
import shutil
import signal
import socket
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1] / "crash"))
from killed_streams import forked

import fairtransport as ft
from fairtransport.serving import ServerSettings, serve
from fairtransport.serving._adjusting import AdjustedScoring, _Waiting, read_answers
from fairtransport.serving._counters import RequestCounts
from fairtransport.serving.bodies import read_rows
from fairtransport.stream import ContinualAdjuster

NAMES = ["a", "b"]
CLIENTS, REQUESTS = 4, 150


def make_model(path):
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=1000)
    X = pd.DataFrame(rng.normal(size=(1000, 2)) + group[:, None] * [1.0, 0.0], columns=NAMES)
    y = (X.sum(axis=1) + rng.logistic(size=1000) > 0.5).astype(int)
    model = ft.TransportClassifier(parity_weight=1.0)
    ft.save(model.fit(X, y, sensitive_features={"sex": np.array(["F", "M"])[group]}), path)


def bodies():
    rng = np.random.default_rng(1)
    for number in range(CLIENTS * REQUESTS):
        rows = []
        for _ in range(int(rng.integers(1, 30))):
            sex = "FM"[int(rng.integers(2))]
            gap = 3.0 if sex == "M" and number > CLIENTS * REQUESTS // 2 else 1.0
            rows.append({"a": float(rng.normal(gap)), "b": float(rng.normal()), "sex": sex})
        yield json.dumps(rows).encode()


def send(port, key, body):
    """Send a request until it is answered; return the answer and the number of attempts."""
    attempt = 0
    while True:
        attempt += 1
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            headers = {"Content-Type": "application/json", "Idempotency-Key": key}
            connection.request("POST", "/score", body, headers)
            response = connection.getresponse()
            content = response.read()
            if response.status == 200:
                return content.decode(), attempt
            if response.status != 503:
                raise RuntimeError(content.decode())
        except (OSError, http.client.HTTPException):
            time.sleep(0.01)
        finally:
            connection.close()


def client(port, chosen, answers, attempts, wrong):
    chance = random.Random(chosen[0][0])  # noqa: S311 - moments, not secrets
    for key, body in chosen:
        answers[key], n_attempts = send(port, key, body)
        attempts.append(n_attempts)
        time.sleep(chance.uniform(0.0, 0.005 * int(sys.argv[2])))  # so that there are requests until the last kill
        if chance.random() < 0.3 and send(port, key, body)[0] != answers[key]:
            wrong.append(f"another answer to request {key}")


def run_clients(port, home):
    requests = [(str(number), body) for number, body in enumerate(bodies())]
    answers, attempts, wrong = {}, [], []
    threads = [
        threading.Thread(target=client, args=(port, requests[n::CLIENTS], answers, attempts, wrong))
        for n in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (home / "answers.json").write_text(json.dumps({"answers": answers, "attempts": sum(attempts), "wrong": wrong}))


def replayed(model, store, home):
    """Return the answers of an uninterrupted server to the logged requests, in batches as they were."""
    contents = {str(number): body for number, body in enumerate(bodies())}
    logged = read_answers(store / "answers.jsonl")
    scoring = AdjustedScoring(ServerSettings(model, store=home / "again", batch=40), RequestCounts())
    answers = {}
    for _, group in itertools.groupby(logged, key=lambda one: one.batch):
        chosen = []
        for one in group:
            rows = read_rows(contents[one.key], "json", scoring.model.wanted, 1000)
            chosen.append(_Waiting(one.key, one.check, rows, Future()))
        for waiting, answer in zip(chosen, scoring._commit(chosen), strict=True):
            answers[waiting.key] = [answer.version, answer.scores_or_none()]
    scoring.close()
    return answers


def newest(store):
    return max(store.glob("checkpoint-*.ft"))


def main():
    home, n_kills = Path(sys.argv[1]), int(sys.argv[2])
    model, store, chance = home / "m.ft", home / "store", random.Random(0)  # noqa: S311
    make_model(model)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    settings = ServerSettings(model, store=store, batch=40)
    warm = AdjustedScoring(ServerSettings(model, store=home / "warm"), RequestCounts())  # compiles before any fork
    asyncio.run(warm.score(next(bodies()), "json", "json", None))
    warm.close()
    asking = forked(run_clients, port, home)
    kills, unasked = 0, []
    while os.waitpid(asking, os.WNOHANG) == (0, 0):
        server = forked(lambda: serve(settings, port=port))
        if kills < n_kills:
            time.sleep(chance.uniform(0.05, 0.6))
            os.kill(server, signal.SIGKILL)
            unasked += [] if os.WIFSIGNALED(os.waitpid(server, 0)[1]) else ["a server ended by itself"]
            kills += 1
        else:
            os.waitpid(asking, 0)
            os.kill(server, signal.SIGTERM)
            status = os.waitpid(server, 0)[1]
            unasked += [f"status {status} after SIGTERM"] * (status != 0)
            break
    told = json.loads((home / "answers.json").read_text())
    again = replayed(model, store, home)
    given = {key: json.loads(text) for key, text in told["answers"].items()}
    wrong = [*told["wrong"], *unasked]
    wrong += [
        f"request {key}" for key, content in given.items() if again.get(key) != [content["model"], content["scores"]]
    ]
    wrong += ["requests are missing or twice"] * (len(again) != CLIENTS * REQUESTS)
    wrong += ["another checkpoint"] * (newest(store).read_bytes() != newest(home / "again").read_bytes())
    rows = sum(len(json.loads(body)) for body in bodies())
    resumed = ContinualAdjuster.resume(store)
    repeated = told["attempts"] - len(given)
    result = {"kills": kills, "repeated": repeated, "rows": resumed.rows, "expected": rows, "wrong": wrong}
    resumed.close()
    shutil.rmtree(store)
    print(json.dumps(result))  # noqa: T201


if __name__ == "__main__":
    main()
