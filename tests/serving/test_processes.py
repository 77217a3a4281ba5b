"""Real processes: signals, kills, new versions under load."""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.processes import ONE_THREAD, run_script, until

pytestmark = pytest.mark.trust


@contextlib.contextmanager
def running(*arguments, command=("-m", "fairtransport.cli", "serve"), **environment):
    command = [sys.executable, *command, *map(str, arguments)]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, **ONE_THREAD, **environment}
    ) as process:
        try:
            process.told = []
            for line in process.stderr:
                process.told.append(line)
                found = re.search(r"serving .* at http://127.0.0.1:(\d+)", line)
                if found:
                    process.port = int(found[1])
                    break
            else:
                raise AssertionError("".join(process.told))
            yield process
        finally:
            process.kill()


def post(port, rows, connection=None, **headers):
    link = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        link.request("POST", "/score", json.dumps(rows), {"Content-Type": "application/json", **headers})
        response = link.getresponse()
        return response.status, json.loads(response.read())
    finally:
        if connection is None:
            link.close()


def get(port, path):
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    link.request("GET", path)
    content = link.getresponse().read().decode()
    link.close()
    return content


def workers_of(pid):
    """Return the worker processes, which are forks of one child of the server."""
    parents, commands = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            commands[int(folder.name)] = (folder / "cmdline").read_bytes()
    between = {one for one, parent in parents.items() if parent == pid and b"forkserver" in commands.get(one, b"")}
    return sorted(one for one, parent in parents.items() if parent in between)


def test_a_request_is_finished_after_sigterm(files, rows):
    token = {"TOKEN": "secret"}
    with running(files / "m.ft", "--port", 0, "--workers", 2, "--token-env", "TOKEN", **token) as server:
        assert post(server.port, rows[1])[0] == 401
        assert post(server.port, rows[1], Authorization="Bearer secret")[0] == 200
        body = json.dumps(rows[1]).encode()
        head = f"POST /score HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n"
        head += f"Authorization: Bearer secret\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as link:
            link.sendall(head.encode() + body[:100])
            time.sleep(0.3)
            server.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            with pytest.raises(OSError):  # noqa: PT011 - refused or reset
                post(server.port, rows[1])
            link.sendall(body[100:])
            answer = link.makefile("rb").read()
        assert answer.startswith(b"HTTP/1.1 200")
        assert server.wait(20) == 0
        assert "Traceback" not in server.stderr.read()


def test_a_kept_connection_is_closed_after_the_requests_that_are_on_their_way(files, rows):
    with running(files / "m.ft", "--port", 0) as server:
        link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        assert post(server.port, rows[1], link)[0] == 200
        server.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        link.auto_open = False
        link.request("POST", "/score", json.dumps(rows[1]), {"Content-Type": "application/json"})
        response = link.getresponse()
        assert (response.status, response.headers["Connection"]) == (200, "close")
        assert server.wait(20) == 0


def test_an_answer_that_nobody_reads_ends_its_connection(files):
    with running(files / "m.ft", "--port", 0, "--timeout", 2) as server:
        body = json.dumps([1] * 100_000).encode()
        with socket.socket() as link:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            link.connect(("127.0.0.1", server.port))
            head = f"POST /score HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n"
            link.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            link.recv(100)
            sockets = Path(f"/proc/{server.pid}/fd")
            is_open = lambda: sum(str(one.readlink()).startswith("socket") for one in [*sockets.iterdir()])  # noqa: E731
            before = is_open()
            until(lambda: is_open() < before)


SLOW = """
import sys, time
from fairtransport.serving import ServerSettings, serve
from fairtransport.tabular import RowScorer

def started(url):
    RowScorer.score_within = lambda *_: time.sleep(60)
    print(f"serving it at {url}", file=sys.stderr, flush=True)

serve(ServerSettings(sys.argv[1]), port=0, grace=2, on_start=started)
"""


def test_the_grace_period_ends_the_process_whatever_runs(files, rows):
    with running(files / "m.ft", command=["-c", SLOW]) as server, ThreadPoolExecutor() as pool:
        answer = pool.submit(post, server.port, rows[1] * 20)
        time.sleep(1.0)
        server.send_signal(signal.SIGTERM)
        start = time.monotonic()
        assert server.wait(20) == 1
        assert time.monotonic() - start < 4.0
        assert answer.exception() is not None


class Load:
    """Clients that ask all the time; what goes wrong is kept."""

    def __init__(self, port, rows, n_clients=4):
        self.port, self.rows, self.stop = port, rows, threading.Event()
        self.answers, self.wrong, self.broken = [], [], []
        self.threads = [threading.Thread(target=self.ask) for _ in range(n_clients)]
        for thread in self.threads:
            thread.start()

    def ask(self):
        link = None
        while not self.stop.is_set():
            link = link or http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
            try:
                status, content = post(self.port, self.rows, link)
            except (OSError, http.client.HTTPException) as error:
                self.broken.append(type(error).__name__)
                link.close()
                link = None
                continue
            (self.answers if status == 200 else self.wrong).append(content)
        if link is not None:
            link.close()

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()


def test_versions_change_and_workers_and_the_server_are_killed_under_load(files, rows, tmp_path):
    path = tmp_path / "model.ft"
    shutil.copy(files / "m.ft", path)
    with running(path, "--port", 0, "--workers", 2, "--reload-every", 60) as server:
        workers = workers_of(server.pid)
        assert len(workers) == 2
        load = Load(server.port, rows[1])
        until(lambda: len(load.answers) > 20)
        for name in ("n.ft", "m.ft", "n.ft"):  # new versions, without a failed request
            shutil.copy(files / name, tmp_path / "next.ft")
            (tmp_path / "next.ft").replace(path)
            server.send_signal(signal.SIGHUP)
            seen = len(load.answers)
            until(lambda seen=seen: len(load.answers) > seen + 20)
        until(lambda: len({one["model"] for one in load.answers[-20:]}) == 1)
        assert len({one["model"] for one in load.answers}) == 2
        assert (load.wrong, load.broken) == ([], [])
        os.kill(workers[0], signal.SIGKILL)
        until(lambda: len(set(workers_of(server.pid)) - {workers[0]}) == 2)
        seen = len(load.answers)
        until(lambda: len(load.answers) > seen + 20)
        load.end()
        assert load.wrong == []
        assert len(load.broken) <= 2 * 4  # the connections of the worker that was killed, and those in its queue
        counted = re.search(r'requests_total{status="200"} (\d+)', get(server.port, "/metrics"))
        assert int(counted[1]) >= len(load.answers)  # what the killed worker has counted is there
        answers = {json.dumps(one) for one in load.answers}
        assert len(answers) == 2  # each version always gives the same
        workers = workers_of(server.pid)
        server.kill()
        assert "it is replaced" in server.stderr.read()
        until(lambda: not any(Path(f"/proc/{worker}/status").exists() for worker in workers))


def test_kills_change_no_score_and_no_byte_of_the_state(tmp_path):
    result = run_script(Path(__file__).with_name("killed_servers.py"), tmp_path, 10, timeout=300)
    assert result["wrong"] == []
    assert result["kills"] >= 5  # ten, unless all requests are answered before
    assert result["rows"] == result["expected"]
    assert result["repeated"] > 0  # how many met a server that was being killed or started depends on the machine
