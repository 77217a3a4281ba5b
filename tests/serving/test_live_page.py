"""The server of the live page: only reads, only on this machine, and tells of every change."""

import contextlib
import http.client
import json
import re
import socket
import threading
import time

import numpy as np
import pytest
from tests.processes import until

from fairtransport.serving.live_page import LiveView, serve_page

NOW = {
    "title": "Scores",
    "updated": "2026-01-02T03:04:05+00:00",
    "rows": 10,
    "batches": 1,
    "groups": ["a", "b"],
    "sizes": np.array([4.0, 6.0]),
    "edges": np.linspace(0, 1, 3),
    "histograms": {"a": np.array([0.5, 0.5]), "b": [np.nan, 1.0]},
    "target": None,
    "history": [
        {"batch": 1, "rows": 10, "time": "2001-09-09T01:46:40+00:00", "disparity": np.float64(0.25), "alarm": np.True_}
    ],
    "duals": None,
    "spent": {"updates": 3},
}


@pytest.fixture(scope="module")
def page():
    with serve_page(lambda: NOW) as found:
        yield found


def ask(page, path="/", method="GET", host=None, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=10)
    connection.putrequest(method, path, skip_host=True)
    for one in [f"127.0.0.1:{page.port}"] if host is None else host:
        connection.putheader("Host", one)
    connection.endheaders(body)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


def events(page, count, timeout=10):
    """Read so many events."""
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=timeout)
    connection.request("GET", "/events")
    text = connection.getresponse()
    received = []
    while len(received) < count:
        name, data, _ = (text.readline().decode() for _ in range(3))
        received.append((name.removeprefix("event: ").strip(), json.loads(data.removeprefix("data: "))))
    connection.close()
    return received


def test_listens_on_the_loopback_address_only(page):
    assert page.url == f"http://127.0.0.1:{page.port}/"
    assert page._listener.getsockname()[0] == "127.0.0.1"
    assert page._thread.daemon


@pytest.mark.parametrize("path", ["/", "/page.css", "/page.js", "/snapshot.json"])
def test_get_and_head_agree(page, path):
    got, content = ask(page, path)
    head, nothing = ask(page, path, "HEAD")
    assert (got.status, head.status, nothing) == (200, 200, b"")
    assert int(head.headers["Content-Length"]) == len(content) > 20
    assert got.headers["Content-Type"] == head.headers["Content-Type"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_anything_else_is_refused(page, method):
    answer, _ = ask(page, "/snapshot.json", method)
    assert answer.status == 405
    assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD"}


@pytest.mark.parametrize(
    "host",
    [
        ["evil.example"],
        ["evil.example:{port}"],
        ["127.0.0.1"],
        ["127.0.0.1:1"],
        [],
        ["127.0.0.1:{port}", "evil.example"],
    ],
)
@pytest.mark.parametrize("path", ["/", "/snapshot.json", "/events"])
def test_another_host_name_is_refused(page, host, path):
    answer, content = ask(page, path, host=[one.format(port=page.port) for one in host])
    assert answer.status in (400, 403)  # h11 itself refuses none and several
    assert b"Scores" not in content


@pytest.mark.parametrize("path", ["/../page.py", "/page.html", "/%2e%2e/page.py", "/templates/page.css", "*"])
def test_other_paths_are_not_found(page, path):
    assert ask(page, path)[0].status == 404


def test_a_strict_policy_and_no_inline_code(page):
    answer, content = ask(page)
    policy = dict(rule.split(" ", 1) for rule in answer.headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    for name, value in {
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
        "Server": "fairtransport",
    }.items():
        assert answer.headers[name] == value
    assert "Access-Control-Allow-Origin" not in answer.headers
    text = content.decode()
    assert not re.search(r"<script(?! src=)|\son\w+=|\sstyle=|https?://", text)
    assert "innerHTML" not in ask(page, "/page.js")[1].decode()


def test_snapshot_is_plain_json(page):
    data = json.loads(ask(page, "/snapshot.json")[1])
    assert data["updated"] == 1e9  # of the latest batch
    assert data["histograms"] == [[0.5, 0.5], [None, 1.0]]
    assert data["history"]["disparity"] == [0.25]
    assert data["history"]["alarm"] == [1]
    assert data["history"]["agreement"] == [None]
    assert [style["colour"] for style in data["styles"]] == ["#0072b2", "#e08a00"]


def test_events_report_changes_and_the_end():
    box = {"now": NOW}
    page = serve_page(lambda: box["now"])
    received = []
    reader = threading.Thread(target=lambda: received.extend(events(page, 3)))
    reader.start()
    until(lambda: page.view.viewers > 0)
    time.sleep(0.6)  # a snapshot is cached for half a second
    box["now"] = {**NOW, "rows": 20}
    page.close("enough")
    reader.join(10)
    assert [name for name, _ in received] == ["snapshot", "snapshot", "end"]
    assert [received[0][1]["rows"], received[1][1]["rows"]] == [10, 20]
    assert received[2][1] == {"message": "enough"}


def test_a_snapshot_that_fails_does_not_show_the_error():
    def broken():
        raise RuntimeError("row 7")

    assert json.loads(LiveView(broken).current()) == {"failed": True}


@pytest.mark.parametrize(
    ("port", "error"), [(-1, ValueError), (65536, ValueError), ("80", TypeError), (True, TypeError)]
)
def test_ports_that_do_not_exist(port, error):
    with pytest.raises(error, match="port must be"):
        serve_page(dict, port)


def test_close_frees_the_port_and_may_be_called_twice():
    page = serve_page(lambda: NOW)
    page.close()
    page.close()
    with serve_page(lambda: NOW, page.port) as again:
        assert ask(again)[0].status == 200


def test_nonsense_and_silence_do_no_harm(page, capfd):
    for request in (b"\x00\xff\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /events HTTP/1.1\r\n"):
        with socket.create_connection(("127.0.0.1", page.port), timeout=10) as link:
            link.sendall(request)
    assert ask(page)[0].status == 200
    assert capfd.readouterr() == ("", "")


def connect(page, content=b""):
    link = socket.create_connection(("127.0.0.1", page.port), timeout=10)
    link.sendall(content)
    return link


def ended(link):
    """Return whether the server has closed the connection."""
    link.settimeout(10)
    try:
        return link.recv(1) == b""
    except ConnectionError:
        return True


def test_slow_connections_are_limited_and_leave_room_for_others():
    with serve_page(lambda: NOW) as page:
        links = [connect(page, b"GET / HT") for _ in range(60)]
        until(lambda: page.connections == 32)
        assert ask(page)[0].status == 200  # in place of the one that waits for longest
        for link in links:
            link.close()
        until(lambda: page.connections == 0)
        assert ask(page)[0].status == 200


def test_a_request_that_takes_too_long_is_ended(monkeypatch):
    """A byte now and then does not prolong it; a page that is served is not ended."""
    monkeypatch.setattr("fairtransport.serving.live_page._REQUEST_SECONDS", 0.5)
    with serve_page(lambda: NOW) as page:
        viewer = connect(page, f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n\r\n".encode())
        slow, silent, stop = connect(page), connect(page), threading.Event()

        def dribble():
            with contextlib.suppress(OSError):
                while not stop.wait(0.05):
                    slow.sendall(b"G")

        thread = threading.Thread(target=dribble)
        thread.start()
        assert ended(slow)
        assert ended(silent)
        stop.set()
        thread.join()
        until(lambda: page.connections == 1)  # the viewer, who is long past half a second
        assert viewer.recv(12) == b"HTTP/1.1 200"
        for link in (viewer, slow, silent):
            link.close()
