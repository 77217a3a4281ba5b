"""OpenAPI document, from the columns of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairtransport import __version__
from fairtransport.serving.bodies import FORMATS

if TYPE_CHECKING:
    from fairtransport.serving._models import ServedModel
    from fairtransport.tabular import InputColumn

__all__ = ["openapi_document"]

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
    """Return the description of the server.

    Parameters
    ----------
    model : ServedModel
    keyed : bool, default=False
        Whether requests may have a key, with which they can be sent again.

    Returns
    -------
    dict
        An OpenAPI 3.1 document.
    """
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
    answers = {"application/json": {"schema": {"$ref": "#/components/schemas/Scores"}}, **scores}
    key = {
        "name": "Idempotency-Key",
        "in": "header",
        "schema": {"type": "string", "maxLength": 200},
        "description": "A request that is sent again with the same key gets the same scores, and counts once.",
    }
    errors = {
        status: {
            "description": text,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        }
        for status, text in _ERRORS.items()
    }
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
        },
        "required": ["model", "scores", "rejected"],
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
