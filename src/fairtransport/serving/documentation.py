"""Documentation of a server from the columns of its model: the OpenAPI document and a page."""

from __future__ import annotations

import json
from html import escape
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from fairtransport import __version__
from fairtransport.report.style.web_pages import base_style
from fairtransport.serving.bodies import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from fairtransport.serving._models import ServedModel
    from fairtransport.tabular import InputColumn

_ERRORS = {
    "400": "The body is not what Content-Type says.",
    "401": "The token is missing or wrong.",
    "408": "The body did not arrive in time.",
    "413": "The body is too large, or has too many rows.",
    "415": "The format of the body is not known, or it is compressed.",
    "422": "The rows lack columns, or are no list of rows.",
    "503": "The server is stopping, or its store cannot be written.",
    "504": "Scoring took too long.",
}


def openapi_document(model: ServedModel, *, keyed: bool = False) -> dict[str, Any]:
    """Return the description of the server."""
    example = model.example()
    row = {
        "type": "object",
        "properties": {column.name: _schema_of(column) for column in model.inputs},
        "required": list(model.wanted.needed),
        "additionalProperties": True,
    }
    bodies = {
        kind: {"schema": {"type": "array", "items": {"$ref": "#/components/schemas/Row"}}, "example": [example]}
        if name == "json"
        else {"schema": {"type": "string"}}
        for kind, name in FORMATS.items()
    }
    scores = {kind: {"schema": {"type": "string"}} for kind, name in FORMATS.items() if name != "json"}
    answers = {**_json_of("Scores"), **scores}
    key = {
        "name": "Idempotency-Key",
        "in": "header",
        "schema": {"type": "string", "maxLength": 200},
        "description": "A request that is sent again with the same key gets the same scores, and counts once.",
    }
    errors = {status: {"description": text, "content": _json_of("Error")} for status, text in _ERRORS.items()}
    operation = {
        "summary": "Score rows",
        "operationId": "score",
        "description": (
            "The answer has the format that Accept names, JSON by default: a score for each row, or the reason why it "
            "has none."
        ),
        "parameters": [key] if keyed else [],
        "requestBody": {"required": True, "content": bodies},
        "responses": {"200": {"description": "Scores", "content": answers}, **errors},
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Scores",
            "version": model.version,
            "description": f"fairtransport {__version__}; a {type(model.scorer.estimator_).__name__}.",
        },
        "security": [{"bearer": []}, {}],
        "paths": {
            "/score": {"post": operation},
            "/healthz": {"get": _status_path("Whether the server runs, and what is wrong with it")},
            "/readyz": {"get": _status_path("Whether requests are answered; status 503 if not")},
            "/metrics": {"get": {"summary": "Figures for Prometheus", "responses": {"200": {"description": "Text"}}}},
        },
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Row": row, "Scores": _scores_schema(model), "Error": _ERROR},
        },
    }


def _json_of(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}


_ERROR = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}


def _scores_schema(model: ServedModel) -> dict[str, Any]:
    limits = {"minimum": 0, "maximum": 1} if model.scorer.task == "classification" else {}
    rejected = {
        "type": "object",
        "properties": {"row": {"type": "integer", "minimum": 0}, "reason": {"type": "string"}},
    }
    return {
        "type": "object",
        "properties": {
            "model": {"type": "string", "description": "Version of the model."},
            "scores": {
                "type": "array",
                "items": {"type": ["number", "null"], **limits},
                "description": "One for each row, in their order; null for a row that has none.",
            },
            "rejected": {"type": "array", "items": rejected, "description": "Rows without a score, and why."},
            "replaced": {
                "type": "object",
                "additionalProperties": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
                "description": "Cells taken for others, such as unseen categories: their number, by kind and column.",
            },
        },
        "required": ["model", "scores", "rejected", "replaced"],
    }


def _schema_of(column: InputColumn) -> dict[str, Any]:
    kind = {"number": "number", "date": "string"}.get(column.kind, "string")
    schema: dict[str, Any] = {"type": [kind, "null"] if column.allows_missing else kind}
    if column.kind == "date":
        schema["format"] = "date"
    if column.categories:
        schema["examples"] = [value for value in column.categories if isinstance(value, (str, int, bool))][:20]
    return schema


def _status_path(summary: str) -> dict[str, Any]:
    return {"summary": summary, "security": [], "responses": {"200": {"description": "JSON"}}}


# Page that describes the server: columns, an example row, and commands to copy; nothing is loaded from elsewhere.

_PACKAGE = "fairtransport.serving"
_MAX_CATEGORIES = 12
_LIVE = '<li><a href="../live/">live</a>: how the model is adjusted</li>\n'


def documentation_routes(model: Callable[[], ServedModel], *, live: bool = False) -> list[Route]:
    """Return the routes of the page."""
    style = base_style() + _read("page.css")

    async def page(_: Request) -> Response:
        return HTMLResponse(render_page(model(), live=live))

    async def stylesheet(_: Request) -> Response:
        return Response(style, media_type="text/css")

    return [Route("/", page), Route("/page.css", stylesheet)]


def render_page(model: ServedModel, *, live: bool = False) -> str:
    """Return the page as HTML."""
    texts = {
        "model": type(model.scorer.estimator_).__name__,
        "task": model.scorer.task,
        "version": model.version,
        "loaded": model.loaded,
        "software": __version__,
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
