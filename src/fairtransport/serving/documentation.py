"""Documentation of a server from the columns of its model: the OpenAPI document and a page."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from fairtransport import __version__
from fairtransport.report.style.web_pages import base_style
from fairtransport.serving._models import ServedModel
from fairtransport.tabular import InputColumn

if TYPE_CHECKING:
    from starlette.requests import Request


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
