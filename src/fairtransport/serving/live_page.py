"""The live page of a stream: read-only, on this machine only, in a thread of its own.

The stream must not suffer from its page: the number of connections is limited, and with it that of file descriptors; a
request must arrive within ten seconds, and bodies of requests are not read.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import uvicorn
from anyio import to_thread
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from fairtransport._text import one_line
from fairtransport.groups import make_groups
from fairtransport.report.style.figures import group_styles
from fairtransport.report.style.web_pages import base_style, join_scripts
from fairtransport.serving._sockets import listen, make_config
from fairtransport.serving.settings import LocalHosts, SecurityHeaders, local_names

if TYPE_CHECKING:
    from starlette.requests import Request

# Data of the live page: snapshots as JSON, with a color for each group.

#: Points of the history that are sent to the page, the latest ones.
MAX_POINTS = 2000

_CACHE_SECONDS = 0.5  # for which all viewers get the same snapshot


_SHOWN = ("rows", "rows_without_group", "batches", "rejected", "version", "frozen", "alarm_rate", "target")
_NUMBERS = ("batch", "rows", "disparity", "noise_floor", "updates", "moved", "agreement")  # of a point of the history


def _columns(history: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the latest points of the history by column."""
    latest = list(history)[-MAX_POINTS:]
    columns: dict[str, list[Any]] = {key: _rounded([point.get(key) for point in latest]) for key in _NUMBERS}
    columns["time"] = [_seconds(point.get("time")) for point in latest]
    columns["alarm"] = [int(bool(point.get("alarm"))) for point in latest]
    return columns


def _rounded(values: list[Any]) -> list[Any]:
    """Return the numbers rounded to six decimals, and None for those that are missing or not finite."""
    column = np.array(values, dtype=np.float64).round(6)
    return [value if math.isfinite(value) else None for value in column.tolist()]


@lru_cache(maxsize=2 * MAX_POINTS)
def _seconds(text: str | None) -> float | None:
    """Return a time in ISO format in seconds since 1970; None for none, and for that of a damaged file."""
    try:
        return None if text is None else datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def _plain(value: Any) -> Any:
    """Return the value as JSON can represent it, with numbers of six digits; None replaces what is not finite."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return None if not math.isfinite(value) else value if abs(value) >= 1e6 else float(f"{value:.6g}")
    return value


def to_json(value: Any) -> str:
    """Return JSON in one line of ASCII, as server-sent events require."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


_SCRIPTS = ("tools", "lines", "status", "tables", "main")


def _read(name: str) -> str:
    return (resources.files("fairtransport.serving") / "templates" / "live_page" / name).read_text(encoding="utf-8")


# Routes of the live page: its files, the snapshot, and server-sent events for every change.

_MAX_VIEWERS = 16  # open pages
_INTERVAL = 1.0  # seconds between two snapshots
_KEEP_ALIVE = 5.0  # seconds without a change after which an event is sent nevertheless


class LiveView:
    """Content of the live page, for the routes of an application."""

    def __init__(self, snapshot: Callable[[], Mapping[str, Any]]) -> None:
        self._take_snapshot, self._lock = snapshot, threading.Lock()
        self._text, self._until = "", -math.inf  # the current snapshot, and until when it is shown
        self._styles: tuple[Any, list[dict[str, Any]]] = (None, [])
        self.viewers = 0
        self._ended = asyncio.Event()
        self._message = ""

    def routes(self) -> list[Route]:
        """Return the routes, relative to where the page is mounted."""
        files = {
            "/": ("text/html", _read("page.html")),
            "/page.css": ("text/css", base_style() + _read("page.css")),
            "/page.js": ("text/javascript", join_scripts([_read(f"{name}.js") for name in _SCRIPTS])),
        }
        routes = [Route(path, _file_endpoint(kind, content)) for path, (kind, content) in files.items()]
        return [*routes, Route("/snapshot.json", self._snapshot), Route("/events", self._events)]

    def end(self, message: str = "") -> None:
        """Inform open pages that the stream has ended; called in the thread of the event loop."""
        self._message = message
        self._ended.set()

    async def _snapshot(self, _: Request) -> Response:
        text = await to_thread.run_sync(self.current)
        return Response(text, media_type="application/json")

    async def _events(self, request: Request) -> Response:
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        if self.viewers >= _MAX_VIEWERS or self._ended.is_set():
            return PlainTextResponse(
                "Too many pages are open, or the stream is ending; close one and reload.\n", status_code=503
            )
        return StreamingResponse(self._stream(), media_type="text/event-stream")

    async def _stream(self) -> AsyncIterator[str]:
        """Yield every change until the stream ends or the browser disconnects."""
        self.viewers += 1
        last, unchanged = "", 0.0
        try:
            while True:
                ended = self._ended.is_set()
                now = await to_thread.run_sync(self.current, ended)
                if now != last:
                    yield _event("snapshot", now)
                    last, unchanged = now, 0.0
                elif unchanged >= _KEEP_ALIVE:
                    yield _event("alive", "{}")
                    unchanged = 0.0
                if ended:
                    yield _event("end", to_json({"message": self._message}))
                    return
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._ended.wait(), _INTERVAL)
                unchanged += _INTERVAL
        finally:
            self.viewers -= 1

    def current(self, fresh: bool = False) -> str:
        """Return the current snapshot as JSON in one line."""
        with self._lock:
            if fresh or time.monotonic() >= self._until:
                try:
                    self._text = to_json(self._shown(self._take_snapshot()))
                except Exception:  # noqa: BLE001 - the stream must not fail because of the page
                    self._text = to_json({"failed": True})
                self._until = time.monotonic() + _CACHE_SECONDS
            return self._text

    def _shown(self, snapshot: Mapping[str, Any]) -> dict[str, Any]:
        """Return the data of the page: names without line breaks, times in seconds, lists in the order of groups."""
        groups = snapshot.get("groups", ())
        names, sizes = [*map(one_line, groups)], snapshot.get("sizes", [0] * len(groups))
        history, histograms = _columns(snapshot.get("history", ())), snapshot.get("histograms") or {}
        duals = snapshot.get("duals")
        shown: dict[str, Any] = _plain(
            {
                **{key: snapshot.get(key) for key in _SHOWN},
                "title": one_line(snapshot.get("title") or "Stream"),
                # The time of the latest batch: the time of the snapshot does not show that rows stopped arriving.
                "updated": history["time"][-1] if history["time"] else _seconds(snapshot.get("updated")),
                "groups": names,
                "sizes": sizes,
                "styles": self._styles_of(names, sizes, int(snapshot.get("rows", 0))),
                "edges": snapshot.get("edges", ()),
                "histograms": [histograms.get(name) for name in groups],
                "duals": {**duals, "names": [*map(one_line, duals["names"])]} if duals else None,
                "spent": snapshot.get("spent") or {},
            }
        )
        return {**shown, "history": history}

    def _styles_of(self, names: list[str], sizes: Sequence[float], rows: int) -> list[dict[str, Any]]:
        """Return the style of each group; the largest groups are determined again when the rows have doubled."""
        key = (tuple(names), rows.bit_length())
        if self._styles[0] != key and names:
            styles = group_styles(make_groups(list(range(len(names)))), np.asarray(sizes, dtype=np.float64))
            shown = [{"colour": one.colour, "dashes": one.dash_array, "named": one.named} for one in styles]
            self._styles = (key, shown)
        return self._styles[1] if names else []


def _event(name: str, data: str) -> str:
    return f"event: {name}\ndata: {data}\n\n"


def _file_endpoint(kind: str, content: str) -> Any:
    async def endpoint(_: Request) -> Response:
        return Response(content, media_type=kind)

    return endpoint


_ADDRESS = "127.0.0.1"
_MAX_CONNECTIONS = 32
_REQUEST_SECONDS = 10.0  # for the headers of a request
_CLOSE_TIMEOUT = 2.0  # seconds to send the last event to open pages


def serve_page(snapshot: Callable[[], Mapping[str, Any]], port: int = 0) -> LivePage:
    """Serve the live page of a stream on the loopback address."""
    return LivePage(LiveView(snapshot), listen(_ADDRESS, port))


class LivePage:
    """A running server of the live page; `serve_page` starts one."""

    def __init__(self, view: LiveView, listener: socket.socket) -> None:
        self.view = view
        self.port: int = listener.getsockname()[1]
        self.url = f"http://{_ADDRESS}:{self.port}/"
        self.limit = _connection_limit()
        hosts = Middleware(LocalHosts, hosts=local_names(self.port))
        app = Starlette(routes=view.routes(), middleware=[Middleware(SecurityHeaders), hosts])
        options = {"lifespan": "off", "headers": [("Server", "fairtransport")]}
        config = make_config(app, self.limit, options, seconds=_REQUEST_SECONDS, grace=_CLOSE_TIMEOUT)
        self._server = uvicorn.Server(config)
        self._listener = listener
        self._closed = False
        self._thread = threading.Thread(
            target=self._server.run, args=([listener],), name="fairtransport-page", daemon=True
        )
        self._thread.start()

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return len(self._server.server_state.connections)

    def close(self, message: str = "") -> None:
        """Inform open pages that the stream has ended, and stop the server; further calls do nothing."""
        if self._closed:
            return
        self._closed = True
        deadline = time.monotonic() + _CLOSE_TIMEOUT
        while not self._server.started and time.monotonic() < deadline:
            time.sleep(0.01)
        if self._server.started:
            loop = self._server.servers[0].get_loop()
            loop.call_soon_threadsafe(self.view.end, one_line(message))
            while self.view.viewers and time.monotonic() < deadline:
                time.sleep(0.01)
        self._server.should_exit = True
        self._thread.join(2 * _CLOSE_TIMEOUT)
        self._listener.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _connection_limit() -> int:
    """Return the number of connections that leaves the stream most of the file descriptors of this process."""
    try:
        import resource  # noqa: PLC0415 - not available on Windows
    except ImportError:  # pragma: no cover
        return _MAX_CONNECTIONS
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MAX_CONNECTIONS if most == resource.RLIM_INFINITY else max(2, min(_MAX_CONNECTIONS, most // 4))
