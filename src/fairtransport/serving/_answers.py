"""Responses with scores, in the format that a request asks for."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from starlette.responses import Response

from fairtransport._arrays import Floats
from fairtransport._extras import load_extra
from fairtransport.serving.bodies import FORMATS, RequestError, in_worker
from fairtransport.tabular.rows import RowReason

_SMALL_ANSWER = 500  # rows


@dataclass(frozen=True)
class Answer:
    """Scores of the rows of a request."""

    scores: Floats
    reasons: dict[int, RowReason] = field(default_factory=dict)
    version: str = ""
    replaced: dict[str, dict[str, int]] = field(default_factory=dict)

    def scores_or_none(self) -> list[float | None]:
        scores: list[float | None] = self.scores.tolist()
        for row in self.reasons:
            scores[row] = None
        return scores


def answer_format(accept: str) -> str:
    """Return the format of the response to a request with this header ``Accept``."""
    if not accept.strip():
        return "json"
    wanted: list[tuple[float, str]] = []
    for part in accept.lower().split(","):
        kind, *parameters = (text.strip() for text in part.split(";"))
        weight = next((text[2:] for text in parameters if text.startswith("q=")), "1")
        with contextlib.suppress(ValueError):
            wanted.append((float(weight), kind))
    for quality, kind in sorted(wanted, key=lambda one: -one[0]):
        if quality > 0.0 and (kind in FORMATS or kind in {"*/*", "application/*"}):
            return FORMATS.get(kind, "json")
    raise RequestError(406, f"Accept names none of the formats of this server: {', '.join(FORMATS)}.")


def make_response(answer: Answer, file_format: str) -> Response:
    """Return the response in one of the formats that `answer_format` returns."""
    media_type = next(kind for kind, name in FORMATS.items() if name == file_format)
    headers = {"X-Model-Version": answer.version}
    if answer.replaced:
        headers["X-Replaced-Cells"] = json.dumps({kind: sum(cells.values()) for kind, cells in answer.replaced.items()})
    return Response(_WRITERS[file_format](answer), headers=headers, media_type=media_type)


async def respond(answer: Answer, file_format: str) -> Response:
    """Return the response, a large one from a thread."""
    if answer.scores.size <= _SMALL_ANSWER:
        return make_response(answer, file_format)
    return await in_worker(answer.scores.nbytes, make_response, answer, file_format)


def _json(answer: Answer) -> str:
    rejected = ({"row": row, "reason": answer.reasons[row]} for row in sorted(answer.reasons))
    lists = f'"scores":[{_elements(answer.scores_or_none())}],"rejected":[{_elements(rejected)}]'
    return f'{{"model":{json.dumps(answer.version)},{lists},"replaced":{_elements([answer.replaced])}}}'


def _elements(values: Iterable[Any]) -> str:
    """Return the elements of a JSON list, encoded in parts, so that other threads run meanwhile."""
    values = iter(values)
    parts = iter(lambda: [*islice(values, 100)], [])
    return ",".join(json.dumps(part, allow_nan=False, separators=(",", ":"))[1:-1] for part in parts)


def _json_lines(answer: Answer) -> str:
    reasons = answer.reasons
    lines = [
        json.dumps({"reason": reasons[row]} if row in reasons else {"score": score}, allow_nan=False)
        for row, score in enumerate(answer.scores_or_none())
    ]
    return "".join(f"{line}\n" for line in lines)


def _csv(answer: Answer) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("score", "reason"))
    reasons = answer.reasons
    writer.writerows(
        ("" if score is None else repr(score), reasons.get(row, ""))
        for row, score in enumerate(answer.scores_or_none())
    )
    return text.getvalue()


def _arrow(answer: Answer) -> bytes:
    arrow: Any = load_extra("pyarrow")
    load_extra("pyarrow.ipc")
    scores = arrow.array(answer.scores, mask=np.isnan(answer.scores))
    reasons = arrow.array([answer.reasons.get(row) for row in range(len(answer.scores))], arrow.string())
    table = arrow.table({"score": scores, "reason": reasons})
    sink = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


_WRITERS: dict[str, Callable[[Answer], str | bytes]] = {
    "json": _json,
    "jsonl": _json_lines,
    "csv": _csv,
    "arrow": _arrow,
}
