"""The application of a server: its paths, and what they answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from fairtransport.serving._access import BearerToken, LocalHosts, SecurityHeaders
from fairtransport.serving._adjusting import AdjustedScoring
from fairtransport.serving._answers import answer_format, make_response
from fairtransport.serving._counters import RequestCounts
from fairtransport.serving._errors import RequestError
from fairtransport.serving._metrics import Metrics
from fairtransport.serving._scoring import FileScoring
from fairtransport.serving.bodies import FORMATS
from fairtransport.serving.documentation import documentation_routes, openapi_document
from fairtransport.serving.live_page import LiveView

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import Receive, Scope, Send

    from fairtransport.serving._counters import SharedCounts
    from fairtransport.serving.settings import ServerSettings

__all__ = ["create_app"]

_OPEN_PATHS = ("/healthz", "/readyz")
_LOG = logging.getLogger("fairtransport.serving")
_MAX_KEY = 200  # characters of an Idempotency-Key


def create_app(settings: ServerSettings, shared: SharedCounts | None = None) -> Starlette:
    """Return an ASGI application that scores rows with one model.

    Parameters
    ----------
    settings : ServerSettings
    shared : SharedCounts, optional
        For one of several processes.

    Returns
    -------
    starlette.applications.Starlette
        With the paths ``/score``, ``/openapi.json``, ``/docs/``, ``/healthz``, ``/readyz`` and ``/metrics``; with a
        store also ``/live/``. ``fairtransport serve`` runs it.

    Raises
    ------
    ModelFileError
        If the model file cannot be loaded.
    StoreError
        If the store cannot be used.
    """
    requests = RequestCounts(shared)
    scoring: FileScoring | AdjustedScoring
    scoring = FileScoring(settings, requests, shared) if settings.store is None else AdjustedScoring(settings, requests)
    metrics = Metrics(requests, scoring.state, settings.min_group_rows)
    described = documentation_routes(lambda: scoring.model, live=settings.store is not None)
    pages: list[Any] = [
        Route("/docs", _redirect("docs/")),
        Mount("/docs", SecurityHeaders(Starlette(routes=described))),
    ]
    view: LiveView | None = None
    if isinstance(scoring, AdjustedScoring):
        view = LiveView(scoring.snapshot)
        pages += [
            Route("/live", _redirect("live/")),
            Mount("/live", SecurityHeaders(Starlette(routes=view.routes()))),
        ]
    middleware = []
    if settings.hosts:
        middleware.append(Middleware(LocalHosts, hosts=settings.hosts))
    if settings.token is not None:
        middleware.append(Middleware(BearerToken, token=settings.token, open_paths=_OPEN_PATHS))

    async def openapi(_: Request) -> Response:
        return JSONResponse(openapi_document(scoring.model, keyed=view is not None))

    async def health(_: Request) -> Response:
        status = "degraded" if scoring.problems else "ok"
        return JSONResponse({"status": status, "model": scoring.model.version, "problems": scoring.problems})

    async def readiness(_: Request) -> Response:
        ready = scoring.ready
        content = {"ready": ready, "model": scoring.model.version, "problems": scoring.problems}
        return JSONResponse(content, 200 if ready else 503)

    async def show_metrics(_: Request) -> Response:
        text = await to_thread.run_sync(metrics.text)
        return Response(text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with _reloading(scoring, settings.reload_every):
            yield
        if view is not None:
            view.end("The server is stopping.")
        await to_thread.run_sync(scoring.close)

    routes = [
        Route("/score", _ScoreEndpoint(scoring, requests, settings)),
        Route("/openapi.json", openapi),
        Route("/healthz", health),
        Route("/readyz", readiness),
        Route("/metrics", show_metrics),
        Route("/", _redirect("docs/")),
        *pages,
    ]
    return Starlette(routes=routes, middleware=middleware, lifespan=lifespan)


def _redirect(goal: str) -> Any:
    async def endpoint(_: Request) -> Response:
        return RedirectResponse(goal)

    return endpoint


@contextlib.asynccontextmanager
async def _reloading(scoring: FileScoring | AdjustedScoring, every: float) -> AsyncIterator[None]:
    """Look for a new version of the model now and then, and at once after SIGHUP."""
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = [signal.SIGHUP] if hasattr(signal, "SIGHUP") else []
    if threading.current_thread() is not threading.main_thread():
        signals = []

    async def watch() -> None:
        failure: list[str] = []
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asked.wait(), every)
            asked.clear()
            if await to_thread.run_sync(scoring.reload):
                _LOG.info("model: version %s is served now", scoring.model.version)
            if scoring.problems != failure:
                failure = scoring.problems
                for problem in failure:
                    _LOG.warning("%s", problem)

    for number in signals:
        loop.add_signal_handler(number, asked.set)
    task = asyncio.create_task(watch())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        for number in signals:
            loop.remove_signal_handler(number)


class _ScoreEndpoint:
    """The path ``/score``.

    An ASGI application of its own: nearly all requests come here, and scoring a few rows takes less time than the
    layers of a framework.
    """

    def __init__(
        self, scoring: FileScoring | AdjustedScoring, requests: RequestCounts, settings: ServerSettings
    ) -> None:
        self._scoring, self._requests, self._settings = scoring, requests, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; whatever happens, without any value of a row in a log or an error."""
        start = time.perf_counter()
        try:
            response = await self._answer(scope, receive)
        except RequestError as error:
            response = JSONResponse({"error": str(error)}, error.status, self._error_headers(error.status))
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001 - the message may contain values
            _LOG.error("a request failed: %s", type(error).__name__)
            response = JSONResponse({"error": f"The server failed ({type(error).__name__})."}, 500)
        self._requests.add(response.status_code, time.perf_counter() - start)
        await response(scope, receive, send)

    def _error_headers(self, status: int) -> dict[str, str]:
        if status == 405:
            return {"Allow": "POST"}
        return {"Connection": "close"} if status in (408, 413) else {}

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        if scope["method"] != "POST":
            raise RequestError(405, "Send rows with POST.")
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        file_format = _body_format(headers)
        wanted = answer_format(headers.get(b"accept", ""))
        key = _key_of(headers)
        body = await self._body(headers, receive)
        try:
            async with asyncio.timeout(self._settings.timeout):
                answer = await self._scoring.score(body, file_format, key)
        except TimeoutError:
            raise RequestError(504, f"Scoring took longer than {self._settings.timeout:g} seconds.") from None
        return make_response(answer, wanted)

    async def _body(self, headers: dict[bytes, str], receive: Receive) -> bytes:
        most = self._settings.max_bytes
        too_large = RequestError(413, f"The body is larger than {most:,} bytes; send the rows in several requests.")
        length = headers.get(b"content-length", "0")
        if not length.isdecimal() or int(length) > most:
            raise too_large
        message = await self._receive(receive, self._settings.timeout)
        if not message.get("more_body", False):
            if len(message["body"]) > most:
                raise too_large
            return bytes(message["body"])
        deadline = time.monotonic() + self._settings.timeout
        parts, size = [message["body"]], len(message["body"])
        while message.get("more_body", False):
            message = await self._receive(receive, deadline - time.monotonic())
            parts.append(message["body"])
            size += len(message["body"])
            if size > most:
                raise too_large
        return b"".join(parts)

    async def _receive(self, receive: Receive, seconds: float) -> Any:
        try:
            async with asyncio.timeout(seconds):
                message = await receive()
        except TimeoutError:
            text = f"The body did not arrive within {self._settings.timeout:g} seconds."
            raise RequestError(408, text) from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        return message


def _body_format(headers: dict[bytes, str]) -> str:
    kind = headers.get(b"content-type", "").partition(";")[0].strip().lower()
    if kind not in FORMATS:
        raise RequestError(415, f"Content-Type must be one of {', '.join(FORMATS)}.")
    if headers.get(b"content-encoding", "identity").strip().lower() != "identity":
        raise RequestError(415, "The body is compressed; send it without Content-Encoding.")
    return FORMATS[kind]


def _key_of(headers: dict[bytes, str]) -> str | None:
    key = headers.get(b"idempotency-key")
    if key is not None and (not key or len(key) > _MAX_KEY or not key.isascii() or not key.isprintable()):
        raise RequestError(400, f"An Idempotency-Key has 1 to {_MAX_KEY} printable ASCII characters.")
    return key
