"""The application of a server: its paths, the scoring behind them, and its metrics."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import shlex
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np
from anyio import to_thread
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import generate_latest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from fairtransport import __version__
from fairtransport._arrays import Floats
from fairtransport._validation import describe_error
from fairtransport.report.style.web_pages import base_style
from fairtransport.serving._adjusting import AdjustedScoring
from fairtransport.serving._answers import Answer, answer_format, make_response, respond
from fairtransport.serving._counters import LATENCY_BOUNDS, REASONS, STATUSES, RequestCounts, ScoreCounts, SharedCounts
from fairtransport.serving._models import ServedModel
from fairtransport.serving.bodies import FORMATS, SMALL_BODY, RequestError, in_worker, is_small, read_rows
from fairtransport.serving.live_page import LiveView
from fairtransport.serving.settings import BearerToken, LocalHosts, SecurityHeaders, ServerSettings
from fairtransport.tabular import InputColumn
from fairtransport.tabular.rows import REPLACED, CallBudget, TooManyFailuresError

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


def openapi_document(model: ServedModel, *, keyed: bool = False) -> dict[str, Any]:
    """Return the description of the server: what all servers have in common, and the columns of this one."""
    document: dict[str, Any] = json.loads(_read("openapi.json"))
    schemas, operation = document["components"]["schemas"], document["paths"]["/score"]["post"]
    about = f"fairtransport {__version__}; a {type(model.scorer.estimator_).__name__}."
    document["info"] |= {"version": model.version, "description": about}
    columns = {column.name: _schema_of(column) for column in model.inputs}
    schemas["Row"] |= {"properties": columns, "required": list(model.wanted.needed)}
    if model.scorer.task == "classification":
        schemas["Scores"]["properties"]["scores"]["items"] |= {"minimum": 0, "maximum": 1}
    operation["requestBody"]["content"]["application/json"]["example"] = [model.example()]
    operation["parameters"] = operation["parameters"] if keyed else []
    return document


def _schema_of(column: InputColumn) -> dict[str, Any]:
    kind = {"number": "number", "date": "string"}.get(column.kind, "string")
    schema: dict[str, Any] = {"type": [kind, "null"] if column.allows_missing else kind}
    if column.kind == "date":
        schema["format"] = "date"
    if column.categories:
        schema["examples"] = [value for value in column.categories if isinstance(value, (str, int, bool))][:20]
    return schema


# Page that describes the server: columns, an example row, and commands to copy; nothing is loaded from elsewhere.

_PACKAGE = "fairtransport.serving"
_MAX_CATEGORIES = 12
_LIVE = '<li><a href="../live/">live</a>: how the model is adjusted</li>\n'


def documentation_routes(model: Callable[[], ServedModel], *, live: bool = False) -> list[Route]:
    """Return the routes of the page."""
    style = base_style() + _read("page.css")

    async def page(request: Request) -> Response:
        return HTMLResponse(render_page(model(), str(request.base_url).removesuffix("docs/"), live=live))

    async def stylesheet(_: Request) -> Response:
        return Response(style, media_type="text/css")

    return [Route("/", page), Route("/page.css", stylesheet)]


def render_page(model: ServedModel, address: str, *, live: bool = False) -> str:
    """Return the page as HTML, with requests to the server at an address."""
    texts = {
        "model": type(model.scorer.estimator_).__name__,
        "task": model.scorer.task,
        "version": model.version,
        "loaded": model.loaded,
        "software": __version__,
        "address": shlex.quote(f"{address}score"),
        "example": json.dumps([model.example()], indent=2, ensure_ascii=False),
    }
    rows = [_row(column, needed=column.name in model.wanted.needed) for column in model.inputs]
    shown = {name: escape(text) for name, text in texts.items()}
    return Template(_read("page.html")).substitute(shown, rows="\n".join(rows), live=_LIVE if live else "")


def _row(column: InputColumn, *, needed: bool) -> str:
    """Return the row of a column in the table."""
    values = [str(value) for value in column.categories or () if value is not None]
    more = len(values) - _MAX_CATEGORIES
    known = ", ".join(values[:_MAX_CATEGORIES]) + (f", and {more} more" if more > 0 else "")
    known = escape(known) or "\u2013"
    content = column.kind if needed else f"{column.kind}; optional, to compare the groups"
    missing = "is scored" if column.allows_missing else "has no score"
    return (
        f'<tr><th scope="row"><bdi>{escape(column.name)}</bdi></th><td>{escape(content)}</td>'
        f"<td><bdi>{known}</bdi></td><td>{missing}</td></tr>"
    )


def _read(name: str) -> str:
    return (resources.files(_PACKAGE) / "templates" / "documentation" / name).read_text(encoding="utf-8")


# Scores for requests, by the model as it is in its file.


class FileScoring:
    """Scoring by a model file, which is loaded again when it changes."""

    ready, report = True, None

    def __init__(self, settings: ServerSettings, requests: RequestCounts, shared: SharedCounts | None = None) -> None:
        self._settings, self._requests, self._shared = settings, requests, shared
        self._identity = _identity_of(settings.model)
        self._failure: str | None = None
        self._serve(ServedModel.load(settings))

    def _serve(self, model: ServedModel) -> None:
        names = model.group_names
        self.served = model, ScoreCounts(names, self._shared, model.version) if names else None

    @property
    def model(self) -> ServedModel:
        """The version of the model that is served."""
        return self.served[0]

    @property
    def loaded(self) -> bool:
        """True if the latest version of the file is served."""
        return self._failure is None

    @property
    def problems(self) -> list[str]:
        """Problems that an operator should know of; the server answers nevertheless."""
        text = f"The new model file could not be loaded; the old one is served. {self._failure}"
        return [] if self._failure is None else [text]

    def reload(self) -> bool:
        """Load the model file if it has changed; return whether another version is served.

        If the file cannot be loaded, the old version stays, and `problems` says why.
        """
        identity = _identity_of(self._settings.model)
        if identity == self._identity:
            return False
        self._identity = identity
        try:
            model = ServedModel.load(self._settings)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the file, the old version is served
            self._failure = (error.strerror if isinstance(error, OSError) else None) or describe_error(error)
            return False
        changed = model.version != self.model.version
        if changed:
            self._serve(model)
        self._failure = None
        return changed

    async def score(self, body: bytes, file_format: str, wanted: str, key: str | None) -> Response:  # noqa: ARG002
        """Return the response with the scores of the rows of a body; there is no answer to repeat."""
        if is_small(body, file_format):
            with contextlib.suppress(TooManyFailuresError):  # rows that the model cannot score are searched in a thread
                return await respond(self._score(body, file_format, search=False), wanted)
        return await in_worker(len(body), lambda: make_response(self._score(body, file_format), wanted))

    def _score(self, body: bytes, file_format: str, *, search: bool = True) -> Answer:
        model, counts = self.served
        budget = CallBudget() if search else CallBudget(0)
        rows = read_rows(body, file_format, model.wanted, self._settings.max_rows)
        scores, reasons, replaced = np.full(rows.n_rows, np.nan), rows.rejected, {}
        if rows.kept.size:
            result = model.scorer.score_within(rows.columns, budget)
            if budget.calls < 0 and not search:
                raise TooManyFailuresError
            scores[rows.kept] = result.scores
            reasons = {**reasons, **{int(rows.kept[row]): reason for row, reason in result.reasons.items()}}
            replaced = result.counts
            codes = None if counts is None else model.group_codes(rows.columns)
            if counts is not None and codes is not None:
                scored = ~np.isnan(result.scores)
                counts.add(result.scores[scored], codes[scored])
        answer = Answer(scores, reasons, model.version, replaced)
        self._requests.add_answer(answer)
        return answer

    def close(self) -> None:
        """Do nothing: there is nothing to store."""


def _identity_of(path: Path) -> tuple[int, ...] | None:
    """Return what changes when a file is replaced or written; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


# Figures for Prometheus.

_MARKS = 10  # bins of the histograms of scores in the metrics


class Metrics:
    """Figures of a server in the format of Prometheus."""

    def __init__(self, requests: RequestCounts, scoring: FileScoring | AdjustedScoring, min_rows: int) -> None:
        self._requests, self._scoring, self._min_rows = requests, scoring, min_rows
        self._registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        self._registry.register(self)

    def text(self) -> bytes:
        """Return the figures as text."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Any]:
        """Yield the metrics, as a registry of prometheus-client asks for them."""
        yield from self._request_metrics()
        model, scores = self._scoring.served
        yield _gauge("fairtransport_model", "Version of the model that is served.", {model.version: 1.0}, "version")
        text = "1 if the latest version of the model file is served, 0 if it could not be loaded."
        yield _gauge("fairtransport_model_file_loaded", text, self._scoring.loaded)
        if scores is not None:
            yield from self._score_metrics(scores, bounded=model.scorer.task == "classification")
        if self._scoring.report is not None:
            yield from _stream_metrics(self._scoring.report)

    def _request_metrics(self) -> Iterator[Any]:
        counts = self._requests.total()
        statuses = zip(STATUSES, counts["statuses"], strict=True)
        requests = {str(status) if status else "other": number for status, number in statuses if number}
        yield _counter(
            "fairtransport_requests", "Requests for scores, by the status of the response.", requests, "status"
        )
        latency = HistogramMetricFamily("fairtransport_request_seconds", "Time from a request to its response.")
        bounds = [*map(str, LATENCY_BOUNDS), "+Inf"]
        cumulated = [*zip(bounds, np.cumsum(counts["latencies"]), strict=True)]
        latency.add_metric([], cumulated, sum_value=counts["sums"][0])
        yield latency
        yield _counter("fairtransport_rows", "Rows that were received.", counts["sums"][1])
        rejected = dict(zip(REASONS, counts["reasons"], strict=True))
        replaced = dict(zip(REPLACED, counts["replaced"], strict=True))
        yield _counter(
            "fairtransport_rejected_rows", "Rows that have no score, by the kind of the reason.", rejected, "reason"
        )
        yield _counter(
            "fairtransport_replaced_cells", "Cells treated as missing or as a rare category.", replaced, "kind"
        )

    def _score_metrics(self, scores: ScoreCounts, *, bounded: bool) -> Iterator[Any]:
        """Yield the distribution of each group's scores; groups with few rows are left out."""
        names, (histograms, sums) = scores.names, scores.total()
        sizes = histograms.sum(axis=1)
        shown = np.flatnonzero(sizes >= self._min_rows)
        if bounded:
            wide = histograms.reshape(len(names), _MARKS, -1).sum(axis=2).cumsum(axis=1)
            bounds = [*map(str, ((np.arange(_MARKS - 1) + 1) / _MARKS).round(6)), "+Inf"]
            text = "Scores of each group that the requests name."
            sketch = HistogramMetricFamily("fairtransport_scores", text, labels=["group"])
            for group in shown.tolist():
                marks = [*zip(bounds, wide[group], strict=True)]
                sketch.add_metric([names[group]], marks, sum_value=sums[group])
            yield sketch
            if len(shown) > 1:
                found, floor = _disparity(histograms[shown])
                text = "Mean distance between two groups' scores, over all pairs, since the start of this version."
                yield _gauge("fairtransport_disparity", text, found)
                text = "Disparity that chance alone shows between groups of these sizes."
                yield _gauge("fairtransport_disparity_noise_floor", text, floor)
            return
        rows = {names[group]: sizes[group] for group in shown.tolist()}
        means = {names[group]: sums[group] / sizes[group] for group in shown.tolist()}
        yield _counter("fairtransport_group_rows", "Scored rows of each group.", rows, "group")
        yield _gauge("fairtransport_group_mean", "Mean score of each group.", means, "group")


def _metric(kind: Any, name: str, text: str, values: Any, label: str = "") -> Any:
    """Return a metric of one value, or with one for each value of a label."""
    family = kind(name, text, labels=[label] if label else [])
    for one, value in values.items() if label else [("", values)]:
        family.add_metric([one] if label else [], float(value))
    return family


_counter, _gauge = partial(_metric, CounterMetricFamily), partial(_metric, GaugeMetricFamily)


def _disparity(histograms: Floats) -> tuple[float, float]:
    r"""Return the disparity of histograms, with scores in the middle of their bins, and what chance alone shows.

    With F the distribution of all scores, two groups of n and m rows differ by
    :math:`\sqrt{2 / \pi} \sqrt{1/n + 1/m} \int \sqrt{F (1 - F)}` in the mean.
    """
    sizes = histograms.sum(axis=1)
    shares = np.cumsum(histograms, axis=1) / sizes[:, None]
    below = np.cumsum(histograms.sum(axis=0)) / sizes.sum()
    spread = np.sqrt(np.clip(below * (1.0 - below), 0.0, None)).mean()
    first, second = np.triu_indices(len(sizes), 1)
    errors = np.sqrt(1.0 / sizes[first] + 1.0 / sizes[second]).mean()
    found = np.abs(shares[first] - shares[second]).mean()  # over pairs and bins of the unit interval
    return float(found), float(np.sqrt(2.0 / np.pi) * spread * errors)


def _stream_metrics(report: Any) -> Iterator[Any]:
    """Yield the state of a server that adjusts its model, after the latest batch."""
    texts = {
        "disparity_before": "Mean distance between two groups, original model, recent rows.",
        "disparity_after": "Mean distance between two groups, returned scores, recent rows.",
        "noise_floor": "Expected disparity of groups of these sizes with equal distributions.",
        "alarm": "1 if the latest batch raised an alarm.",
        "alarm_evidence": "Evidence that scores have changed; an alarm is raised at 1.",
        "moved": "Distance of the model from the last accepted one.",
        "frozen": "1 if adjusting is suspended.",
        "batches": "Batches that the model was adjusted to.",
        "skipped_updates": "Updates for which no step brought the groups closer.",
        "rows_without_group": "Rows of no known group: scored, but neither monitored nor learned from.",
    }
    values = {**vars(report), "alarm_evidence": report.evidence, "batches": report.batch}
    for name, text in texts.items():
        make = _counter if name in {"batches", "skipped_updates", "rows_without_group"} else _gauge
        yield make(f"fairtransport_stream_{name}", text, values[name])


_OPEN_PATHS = ("/healthz", "/readyz")
_LOG = logging.getLogger("fairtransport.serving")
_MAX_HELD = 8  # bodies of the largest size whose memory bodies and unread answers may take
_MAX_KEY = 200  # characters of an Idempotency-Key
_CLOSE = {"Connection": "close"}
_ERROR_HEADERS = {405: {"Allow": "POST"}, 408: _CLOSE, 413: _CLOSE, 503: _CLOSE}


def create_app(settings: ServerSettings, shared: SharedCounts | None = None) -> Starlette:
    """Return an ASGI application that scores rows with one model; ``fairtransport serve`` runs it.

    Its paths are ``/score``, ``/openapi.json``, ``/docs/``, ``/healthz``, ``/readyz`` and ``/metrics``; with a store
    also ``/live/``. ``shared`` is for one of several processes.
    """
    requests = RequestCounts(shared)
    scoring: FileScoring | AdjustedScoring
    scoring = FileScoring(settings, requests, shared) if settings.store is None else AdjustedScoring(settings, requests)
    metrics = Metrics(requests, scoring, settings.min_group_rows)
    described = documentation_routes(lambda: scoring.model, live=settings.store is not None)
    pages: list[Any] = [
        Route("/docs", _redirect("docs/")),
        Mount("/docs", SecurityHeaders(Starlette(routes=described))),
    ]
    view: LiveView | None = None
    if isinstance(scoring, AdjustedScoring):
        view = LiveView(scoring.snapshot)
        pages += [Route("/live", _redirect("live/")), Mount("/live", SecurityHeaders(Starlette(routes=view.routes())))]
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
        content = {"ready": scoring.ready, "model": scoring.model.version, "problems": scoring.problems}
        return JSONResponse(content, 200 if scoring.ready else 503)

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

    scored = _ScoreEndpoint(scoring, requests, settings)
    routes = [
        Route("/score", scored),
        Route("/openapi.json", openapi),
        Route("/healthz", health),
        Route("/readyz", readiness),
        Route("/metrics", show_metrics),
        Route("/", _redirect("docs/")),
        *pages,
    ]
    return _Application(scored, routes=routes, middleware=middleware, lifespan=lifespan)


class _Application(Starlette):
    """Application whose requests for scores pass only the layers of its own: Starlette's take as long as few rows."""

    def __init__(self, scored: Any, **options: Any) -> None:
        super().__init__(**options)
        for layer in reversed(self.user_middleware):
            scored = layer.cls(scored, *layer.args, **layer.kwargs)
        self._scored = scored

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] == "http" and scope["path"] == "/score":
            await self._scored(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


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
        self._held = 0  # bytes of bodies and answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; whatever happens, without any value of a row in a log or an error."""
        start = time.perf_counter()
        try:
            response = await self._answer(scope, receive)
        except RequestError as error:
            response = JSONResponse({"error": str(error)}, error.status, _ERROR_HEADERS.get(error.status))
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001 - the message may contain values
            _LOG.error("a request failed: %s", type(error).__name__)
            response = JSONResponse({"error": f"The server failed ({type(error).__name__})."}, 500)
        self._requests.add(response.status_code, time.perf_counter() - start)
        self._held += 2 * len(response.body)  # the connection has a copy of what is not sent yet
        try:
            await response(scope, receive, send)
        finally:
            self._held -= 2 * len(response.body)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        if scope["method"] != "POST":
            raise RequestError(405, "Send rows with POST.")
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        file_format = _body_format(headers)
        wanted = answer_format(headers.get(b"accept", ""))
        key = _key_of(headers)
        parts: list[bytes] = []
        try:
            return await self._respond(await self._body(headers, receive, parts), file_format, key, wanted)
        finally:
            self._held -= sum(map(len, parts))

    async def _respond(self, body: bytes, file_format: str, key: str | None, wanted: str) -> Response:
        try:
            async with asyncio.timeout(self._settings.timeout):
                response = await self._scoring.score(body, file_format, wanted, key)
        except TimeoutError:
            raise RequestError(504, f"Scoring took longer than {self._settings.timeout:g} seconds.") from None
        if len(response.body) > SMALL_BODY:
            self._check_held()
        return response

    def _check_held(self) -> None:
        if self._held > _MAX_HELD * self._settings.max_bytes:
            raise RequestError(503, "The server has too many large requests and answers; try again.")

    async def _body(self, headers: dict[bytes, str], receive: Receive, parts: list[bytes]) -> bytes:
        most = self._settings.max_bytes
        too_large = RequestError(413, f"The body is larger than {most:,} bytes; send the rows in several requests.")
        length = headers.get(b"content-length", "0")
        if not length.isdecimal() or int(length) > most:
            raise too_large
        size = 0
        message: Any = {"more_body": True}
        try:
            async with asyncio.timeout(self._settings.timeout):
                while message.get("more_body", False):
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    parts.append(message["body"])
                    size += len(message["body"])
                    self._held += len(message["body"])
                    if size > most:
                        raise too_large
                    if size > SMALL_BODY:
                        self._check_held()
        except TimeoutError:
            text = f"The body did not arrive within {self._settings.timeout:g} seconds."
            raise RequestError(408, text) from None
        parts[:] = [b"".join(parts)]  # without a second copy
        return parts[0]


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
