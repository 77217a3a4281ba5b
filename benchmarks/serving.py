"""``fairtransport serve`` under load: against a bare uvicorn application, at a steady rate, and over a million rows."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

import fairtransport as ft
from benchmarks import _ours, _report

CLAIM = (
    "Requests of 1 to 100 rows from 32 clients: throughput against a bare uvicorn application that calls the same "
    "predict_proba (at least .7 of it), latency at a steady rate (99 % below 50 ms), no errors, flat memory."
)
CLIENTS = 32
COLUMNS = [f"x{index}" for index in range(12)]
BARE = """
import json, sys
import numpy as np, pandas as pd, uvicorn
import fairtransport as ft

model = ft.load(sys.argv[1])
NAMES = [str(name) for name in model.feature_names_in_]

async def app(scope, receive, send):
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message["body"], message.get("more_body", False)
    rows = json.loads(body)
    X = pd.DataFrame([[row[name] for name in NAMES] for row in rows], columns=NAMES)
    answer = json.dumps({"scores": model.predict_proba(X)[:, 1].tolist()}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})

print("serving at http://127.0.0.1:" + sys.argv[2], file=sys.stderr, flush=True)
uvicorn.run(app, port=int(sys.argv[2]), log_level="critical", lifespan="off")
"""


def world(rng, n, gap=0.0):
    group = (rng.random(n) < 0.4).astype(int)
    X = rng.normal(size=(n, len(COLUMNS)))
    X[:, 0] += 0.5 * group
    X[:, 1] += gap * group
    return pd.DataFrame(X.round(4), columns=COLUMNS), np.array(["F", "M"])[group]


def make_model(path):
    rng = np.random.default_rng(0)
    X, sex = world(rng, 10_000)
    y = (X.iloc[:, :4].sum(axis=1) + rng.logistic(size=len(X)) > 0.5).astype(int)
    ft.save(_ours.classifier(parity_weight=1.0).fit(X, y, sensitive_features={"sex": sex}), path)


def make_bodies(n, rng, n_rows=None):
    """Return bodies of requests and their numbers of rows."""
    X, sex = world(rng, 20_000)
    people = [{**row, "sex": str(own)} for row, own in zip(X.to_dict("records"), sex, strict=True)]
    bodies, sizes = [], []
    for _ in range(n):
        size = n_rows or int(rng.integers(1, 101))
        start = int(rng.integers(len(people) - size))
        bodies.append(json.dumps(people[start : start + size]).encode())
        sizes.append(size)
    return bodies, sizes


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


@contextmanager
def running(command):
    alone = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **alone}) as process:
        try:
            process.port = int(re.search(r"at http://127.0.0.1:(\d+)", _line_with(process, "serving"))[1])
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _line_with(process, word):
    told = []
    for line in process.stderr:
        told.append(line)
        if word in line:
            return line
    raise RuntimeError("The server did not start: " + "".join(told))


def serve(model):
    return running([sys.executable, "-m", "fairtransport.cli", "serve", str(model), "--port", "0"])


def bare(model, folder):
    (folder / "bare.py").write_text(BARE)
    return running([sys.executable, str(folder / "bare.py"), str(model), str(free_port())])


# ---------------------------------------------------------------------------------------------------- clients


class Client:
    """One keep-alive connection, with as little work as possible."""

    def __init__(self, port):
        self.port, self.link = port, None

    async def ask(self, body):
        """Return the status; 0 if the connection was lost."""
        if self.link is None:
            self.link = await asyncio.open_connection("127.0.0.1", self.port)
            await asyncio.sleep(0)
        reader, writer = self.link
        head = f"POST /score HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        try:
            headers = await reader.readuntil(b"\r\n\r\n")
            length = int(re.search(rb"content-length: (\d+)", headers, re.IGNORECASE)[1])
            await reader.readexactly(length)
        except (OSError, asyncio.IncompleteReadError):
            self.close()
            return 0
        return int(headers[9:12])

    def close(self):
        if self.link is not None:
            self.link[1].close()
            self.link = None


async def _ask_all(port, bodies, rate):
    clients, left, latencies, statuses = [Client(port) for _ in range(CLIENTS)], iter(enumerate(bodies)), [], []
    began = time.perf_counter()

    async def work(client):
        for number, body in left:
            due = began + number / rate if rate else time.perf_counter()
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            statuses.append(await client.ask(body))
            latencies.append(time.perf_counter() - due)

    await asyncio.gather(*map(work, clients))
    seconds = time.perf_counter() - began
    for client in clients:
        client.close()
    return seconds, np.array(latencies), sum(status != 200 for status in statuses)


def ask_all(port, bodies, rate=None):
    """Ask at a rate, or as fast as the server answers; return seconds, latencies from when due, number of errors."""
    return asyncio.run(_ask_all(port, bodies, rate))


# ---------------------------------------------------------------------------------------------------- measurements


def processor(pid):
    """Seconds of processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid):
    """Resident memory of a process, in MiB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def race(report, model, folder, n_requests, rounds):
    """Throughput of both, in turn; return the rate of ours."""
    bodies, sizes = make_bodies(n_requests, np.random.default_rng(1))
    parts = [bodies[start::rounds] for start in range(rounds)]
    times, used, wrong = {"ours": [], "bare": []}, {"ours": 0.0, "bare": 0.0}, {"ours": 0, "bare": 0}
    with serve(model) as ours, bare(model, folder) as other:
        time.sleep(1.0)
        servers = {"ours": ours, "bare": other}
        for server in servers.values():
            ask_all(server.port, bodies[:100])
        for number, part in enumerate(parts):
            for name in ("ours", "bare") if number % 2 else ("bare", "ours"):
                before = processor(servers[name].pid)
                seconds, _, errors = ask_all(servers[name].port, part)
                times[name].append(seconds / len(part))
                used[name] += processor(servers[name].pid) - before
                wrong[name] += errors
    report.add(
        _report.compare("time of a request, 32 clients", times["ours"], "bare uvicorn", times["bare"], at_most=10 / 7)
    )
    rate = 1.0 / float(np.median(times["ours"]))
    report.note(
        f"{n_requests:,} requests of {min(sizes)} to {max(sizes)} rows from {CLIENTS} clients, as fast as they are "
        f"answered: {rate:,.0f} requests and {rate * np.mean(sizes):,.0f} rows a second, {wrong['ours']} errors (bare: "
        f"{1.0 / np.median(times['bare']):,.0f} requests a second). Processor time of the server for a request: "
        f"{1e3 * used['ours'] / n_requests:.2f} ms, bare {1e3 * used['bare'] / n_requests:.2f} ms: throughput at equal "
        f"processor time {used['bare'] / used['ours']:.2f} of bare."
    )
    return rate


def steady(report, model, n_requests, rate):
    bodies, _ = make_bodies(n_requests, np.random.default_rng(2))
    with serve(model) as server:
        ask_all(server.port, bodies[:200])
        for share in (0.5, 0.25):
            _, latencies, errors = ask_all(server.port, bodies, share * rate)
            middle, high = 1e3 * np.quantile(latencies, [0.5, 0.99])
            report.note(
                f"At a steady {share * rate:,.0f} requests a second ({share:.0%} of the highest rate), "
                f"{len(latencies):,} requests: median {middle:.1f} ms, 99 % below {high:.1f} ms "
                f"({_report.met(high < 50)}: 50 ms), {errors} errors; load of the machine "
                f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores."
            )
            if high < 50:
                break


def keep_alive(report, model, n_requests):
    """One client, one row: requests on one connection, and each on a connection of its own."""
    bodies, _ = make_bodies(n_requests, np.random.default_rng(4), n_rows=1)

    async def ask(port, *, kept):
        client, times = Client(port), []
        for body in bodies:
            began = time.perf_counter()
            await client.ask(body)
            times.append(time.perf_counter() - began)
            if not kept:
                client.close()
        client.close()
        return times

    with serve(model) as server:
        asyncio.run(ask(server.port, kept=True))
        times = {kept: 1e3 * np.median(asyncio.run(ask(server.port, kept=kept))) for kept in (True, False)}
    report.note(
        f"One client, {n_requests:,} requests of one row: median {times[True]:.1f} ms on one connection, "
        f"{times[False]:.1f} ms with a connection for each ({_report.met(times[True] < times[False])}: no slower)."
    )


def memory(report, model, n_rows):
    bodies, _ = make_bodies(200, np.random.default_rng(3), n_rows=100)
    held = []
    with serve(model) as server:
        for _ in range(20):
            ask_all(server.port, bodies * max(1, n_rows // (20 * 100 * len(bodies))))
            held.append(resident(server.pid))
    shown = ", ".join(f"{max(part):.0f}" for part in np.array_split(held, 4))
    report.note(f"Resident memory over {n_rows:,} rows, by quarters, MiB: {shown}.")


def run(report):
    n_requests = 1000 if report.quick else 10_000
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        model = folder / "m.ft"
        make_model(model)
        rate = race(report, model, folder, n_requests, 10 if report.quick else 100)
        steady(report, model, n_requests // 5, rate)
        keep_alive(report, model, n_requests // 10)
        memory(report, model, 40_000 if report.quick else 1_000_000)
