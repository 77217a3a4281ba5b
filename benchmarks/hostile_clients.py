"""``fairtransport serve`` under 200 slow, huge and hostile clients: a normal client's latency, memory, and SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import _report
from benchmarks.serving import COLUMNS, Client, make_bodies, make_model, serve

CLAIM = (
    "Under 200 parallel slow, huge and hostile clients the 99th percentile of a normal client's latency stays below "
    "100 ms and memory below 1 GiB over 50,000 requests; SIGTERM ends the process within its grace period."
)
CLIENTS, GRACE = 200, 30.0
ARROW = "application/vnd.apache.arrow.stream"
PROGRAM = "import sys; from benchmarks.hostile_clients import attack; attack(int(sys.argv[1]))"


def arrow_bomb(n_rows=50_000):
    """A dictionary whose one text stands in every row: 2.5 GB when it is decoded."""
    import pyarrow as pa  # noqa: PLC0415 - of the attackers only

    text = pa.DictionaryArray.from_arrays(np.zeros(n_rows, dtype=np.int8), pa.array(["x" * 50_000]))
    table = pa.table(dict.fromkeys(COLUMNS, text))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def bodies():
    """Bodies that cost the server much, with their media types."""
    row = json.dumps(dict.fromkeys(COLUMNS, 0.5))
    far = json.dumps(dict.fromkeys(COLUMNS, 1e200))
    return [
        ("text/csv", b"n," * 1_000_000 + b"n\n"),
        (ARROW, arrow_bomb()),
        ("application/json", f"[{','.join([far] * 300)}]".encode()),
        ("application/json", f"[{','.join([row] * 20_000)}]".encode()),
        ("application/json", b"[" * 1_000_000),
        ("application/json", json.dumps([1] * 100_000).encode()),
        ("application/x-ndjson", b"{}\n" * 100_000),
        ("text/csv", ",".join(COLUMNS).encode() + b"\n" + b"x,\n" * 100_000),
    ]


async def _send(port, kind, body, *, slowly=False, read=True):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    try:
        head = f"POST /score HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: {kind}\r\n"
        content = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        if slowly:
            for start in range(60):
                writer.write(content[start : start + 1])
                await writer.drain()
                await asyncio.sleep(0.5)
            return
        writer.write(content)
        await writer.drain()
        if not read:
            await asyncio.sleep(20)
            return
        await asyncio.wait_for(reader.read(2**20), 60)
    finally:
        writer.transport.abort()


async def _attack(port):
    costly = bodies()
    garbage = np.random.default_rng(0).bytes(10_000)

    async def client(number):
        for turn in itertools.count(number):
            kind, body = costly[turn % len(costly)]
            with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                if number % 4 == 0:
                    await _send(port, kind, body, slowly=True)
                elif number % 4 == 1:
                    await _send(port, "application/json", costly[5][1], read=False)
                elif number % 4 == 2:
                    await _send(port, kind, body)
                else:
                    await _send(port, garbage.hex(), garbage)
                    await asyncio.sleep(0.5)

    await asyncio.gather(*map(client, range(CLIENTS)))


def attack(port):
    """Be all hostile clients, until this process is ended."""
    asyncio.run(_attack(port))


async def _ask(port, bodies, pause):
    client, latencies, statuses = Client(port), [], []
    for body in bodies:
        await asyncio.sleep(pause)
        began = time.perf_counter()
        statuses.append(await asyncio.wait_for(client.ask(body), 60))
        latencies.append(time.perf_counter() - began)
    client.close()
    return np.array(latencies), sum(status != 200 for status in statuses)


async def _ask_all(port, bodies, n_clients=8):
    await asyncio.gather(*(_ask(port, bodies, 0.0) for _ in range(n_clients)))


def largest(pid):
    """Largest resident memory of a process so far, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s*(\d+)", status)[1]) / 1024


def answered(port):
    """Requests for scores that the server has counted."""
    import urllib.request  # noqa: PLC0415

    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as page:
        counts = re.findall(r"^fairtransport_requests_total\{.*\} (\S+)", page.read().decode(), re.MULTILINE)
    return int(sum(map(float, counts)))


def run(report):
    n_requests = 2_000 if report.quick else 50_000
    asked, _ = make_bodies(200, np.random.default_rng(1), n_rows=10)
    measured = asked * (1 if report.quick else 10)
    with tempfile.TemporaryDirectory() as home:
        model = Path(home) / "m.ft"
        make_model(model)
        with serve(model) as server:
            asyncio.run(_ask(server.port, asked, 0.0))
            alone, _ = asyncio.run(_ask(server.port, measured, 0.01))
            command = [sys.executable, "-c", PROGRAM, str(server.port)]
            with subprocess.Popen(command, stderr=subprocess.DEVNULL) as hostile:
                try:
                    time.sleep(10.0)
                    beside, errors = asyncio.run(_ask(server.port, measured, 0.01))
                    while answered(server.port) < n_requests:
                        asyncio.run(_ask_all(server.port, asked))
                    total, most = answered(server.port), largest(server.pid)
                    began = time.perf_counter()
                    server.send_signal(signal.SIGTERM)
                    server.wait(2 * GRACE)
                    ended = time.perf_counter() - began
                finally:
                    hostile.kill()
    (middle, high), (busy, slow) = (1e3 * np.quantile(one, [0.5, 0.99]) for one in (alone, beside))
    report.note(
        f"A normal client, {len(alone):,} requests of 10 rows: median {middle:.1f} ms, 99 % below {high:.1f} ms; "
        f"beside {CLIENTS} hostile clients median {busy:.1f} ms, 99 % below {slow:.1f} ms ({_report.met(slow < 100)}: "
        f"100 ms), {errors} errors. Memory over {total:,} requests: {most:.0f} MiB ({_report.met(most < 1024)}: "
        f"1 GiB). SIGTERM ended the process after {ended:.1f} s ({_report.met(ended < GRACE)}: {GRACE:g} s)."
    )
