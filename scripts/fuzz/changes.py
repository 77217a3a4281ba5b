"""Changes of a container with JSON and arrays, chosen by the bytes of a case."""
# ruff: noqa: INP001 - beside a program

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Source", "change_array", "change_json"]

_ODD: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 7, 10**6, 2**31, 2**62, -(2**63), 0.0, 0.5, -0.5, 1e-300, 1e300, "", "x", "drop",
    "passthrough", "./fuzzed", "os.system", [], [0], [[]], ["x"], [-1, 10**6], {},
    {"$": "float", "value": "nan"}, {"$": "float", "value": "inf"}, {"$": "tuple", "items": []},
    {"$": "tuple", "items": ["a", "b"]}, {"$": "slice", "items": [0, 10**9, None]}, {"$": "slice", "items": [None] * 3},
    {"$": "dtype", "name": "<U999"}, {"$": "dtype", "name": "object"}, {"$": "type", "name": "numpy.int8"},
    {"$": "objects", "shape": [2], "items": [None, -1]}, {"$": "objects", "shape": [0, 10**9], "items": []},
    {"$": "same", "as": "model.estimator"}, {"$": "dict", "keys": ["a"], "values": [1.0]},
    {"$": "grid", "low": 0.0, "high": 1.0, "n_bins": 1 << 20},
    {"$": "object", "class": "sklearn.preprocessing.StandardScaler", "params": {}, "fitted": {}},
    {"$": "object", "class": "sklearn.linear_model.LogisticRegression", "params": {}, "fitted": {}},
]  # fmt: skip
_PARAMS = (
    "memory",
    "n_jobs",
    "verbose",
    "func",
    "kw_args",
    "dtype",
    "cv",
    "steps",
    "estimator",
    "solver",
    "random_state",
)
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e300, -1e300, 5e-324, np.inf, -np.inf, np.nan, 2.0**31, -(2.0**63), 1e6)
_TYPES = ("<f8", "<f4", "<f2", "<i8", "<i4", "|i1", "|u1", "<u8", "|b1", "<U1", "<U3")


class Source:
    """The bytes of a case, and zeros after them."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def byte(self) -> int:
        """Return the next byte."""
        value = self._data[self._at] if self._at < len(self._data) else 0
        self._at += 1
        return value

    def number(self) -> int:
        """Return the next two bytes as a number."""
        return self.byte() << 8 | self.byte()

    def rest(self) -> bytes:
        """Return all bytes that are left."""
        rest, self._at = self._data[self._at :], len(self._data)
        return rest


def change_json(content: Any, source: Source) -> None:
    """Change, add or remove something in JSON."""
    places = _places(content)
    owner, key = places[source.number() % len(places)]
    kind = source.byte() % 12
    if kind < 5:
        owner[key] = _odd_value(source)
    elif kind == 5:
        owner[key] = _json_of(source.rest())
    elif kind == 6:
        other, name = places[source.number() % len(places)]
        owner[key] = copy.deepcopy(other[name])
    elif kind == 7:
        del owner[key]
    elif kind == 8 and isinstance(owner, dict):
        owner[_PARAMS[source.byte() % len(_PARAMS)]] = _odd_value(source)
    elif kind == 9 and isinstance(owner, list):
        owner.insert(key, copy.deepcopy(owner[key]))
    elif kind == 10 and isinstance(owner[key], (int, float)):
        owner[key] += (-1, 1, 2, 0.5)[source.byte() % 4]
    elif isinstance(owner[key], dict) and isinstance(owner[key].get("params"), dict):
        owner[key]["params"][_PARAMS[source.byte() % len(_PARAMS)]] = _odd_value(source)


def change_array(arrays: dict[str, Any], source: Source) -> None:
    """Change the values, the type or the shape of an array."""
    names = sorted(arrays)
    name, other = names[source.byte() % len(names)], names[source.byte() % len(names)]
    array, kind, index = np.array(arrays[name]), source.byte() % 11, source.number()
    value, dtype = _FLOATS[source.byte() % len(_FLOATS)], _TYPES[source.byte() % len(_TYPES)]
    changes: list[Callable[[], Any]] = [
        lambda: _with_item(array, index, value),
        lambda: np.full(array.shape, np.asarray(value).astype(array.dtype)),
        lambda: array.astype(dtype),
        lambda: array.reshape(-1)[: index % (array.size + 1)],
        lambda: array[::-1],
        lambda: np.concatenate([array.reshape(-1)] * 2),
        lambda: array[None],
        lambda: np.array(arrays[other]),
        lambda: np.empty((0, index), dtype=array.dtype),
        lambda: array.T,
        lambda: np.concatenate([array, array[: index % 4]]),
    ]
    with np.errstate(all="ignore"):
        try:
            arrays[name] = changes[kind]()
        except (ValueError, IndexError):  # text as a number; an empty array
            return


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return the container and key of everything in a piece of JSON."""
    items = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    return [place for key, inner in items for place in ((value, key), *_places(inner))]


def _odd_value(source: Source) -> Any:
    return copy.deepcopy(_ODD[source.byte() % len(_ODD)])


def _json_of(text: bytes) -> Any:
    try:
        return json.loads(text, parse_constant=lambda _: 0.0)
    except (ValueError, RecursionError):
        return text.decode(errors="replace")


def _with_item(array: Any, index: int, value: float) -> Any:
    array.flat[index % array.size if array.size else 0] = np.asarray(value).astype(array.dtype)
    return array
