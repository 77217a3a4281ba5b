"""Routes of the live page: its files, the snapshot, and server-sent events for every change."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from fairtransport.serving.live_page._page_data import PageData, to_json
from fairtransport.serving.live_page._page_files import page_files

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from starlette.requests import Request

__all__ = ["LiveView"]

_MAX_VIEWERS = 16  # open pages
_INTERVAL = 1.0  # seconds between two snapshots
_KEEP_ALIVE = 5.0  # seconds without a change after which an event is sent nevertheless


class LiveView:
    """Content of the live page, for the routes of an application.

    Parameters
    ----------
    snapshot : callable
        Returns the content of the page, as `ContinualAdjuster.snapshot` does. It is called from another thread, about
        once a second while a page is open.

    Attributes
    ----------
    viewers : int
        Number of open pages.
    """

    def __init__(self, snapshot: Callable[[], Mapping[str, Any]]) -> None:
        self.data = PageData(snapshot)
        self.viewers = 0
        self._ended = asyncio.Event()
        self._message = ""

    def routes(self) -> list[Route]:
        """Return the routes, relative to where the page is mounted."""
        files = [Route(path, _file_endpoint(kind, content)) for path, (kind, content) in page_files().items()]
        return [*files, Route("/snapshot.json", self._snapshot), Route("/events", self._events)]

    def end(self, message: str = "") -> None:
        """Inform open pages that the stream has ended; called in the thread of the event loop."""
        self._message = message
        self._ended.set()

    async def _snapshot(self, _: Request) -> Response:
        text = await to_thread.run_sync(self.data.current)
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
                now = await to_thread.run_sync(lambda fresh: self.data.current(fresh=fresh), ended)
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


def _event(name: str, data: str) -> str:
    return f"event: {name}\ndata: {data}\n\n"


def _file_endpoint(kind: str, content: bytes) -> Any:
    async def endpoint(_: Request) -> Response:
        return Response(content, media_type=kind)

    return endpoint
