"""Conversion of values to JSON and arrays, and back, for an explicit list of types.

JSON has no tuples, arrays, infinite numbers or estimators; these become a dict with the key ``"$"``, the type's tag.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairtransport.storage import ModelFileError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_FLOATS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_BUILTIN = {"bool": bool, "float": float, "int": int, "object": object, "str": str}
_NUMPY = (
    *("bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64"),
    *("object", "uint8", "uint16", "uint32", "uint64"),
)
_TEXT_DTYPE = re.compile(r"<U([1-9][0-9]{0,2})")  # a use of the type allocates its characters for each cell
_MAX_DEPTH = 60  # of nested values


class ValueType(NamedTuple):
    """How values of one type are stored, other than estimators; see `add_value_type`."""

    tag: str
    kind: type | str
    to_parts: Callable[[Any], dict[str, Any]]
    from_parts: Callable[[dict[str, Any]], Any]


_types_by_kind: dict[type | str, ValueType] = {}
_types_by_tag: dict[str, ValueType] = {}


def add_value_type(
    tag: str, kind: type | str, to_parts: Callable[[Any], dict[str, Any]], from_parts: Callable[[dict[str, Any]], Any]
) -> None:
    """Allow values of one more type in model files.

    Parameters
    ----------
    tag : str
        Name of the type in files.
    kind : type or str
        The type, or its full name, ``"module.Name"``, if its library need not be installed.
    to_parts : callable
        Takes a value and returns a dict of values of types that files may already contain.
    from_parts : callable
        Takes this dict and returns the value; raises for a dict that is not valid.
    """
    _types_by_kind[kind] = _types_by_tag[tag] = ValueType(tag, kind, to_parts, from_parts)


def attributes_of(*names: str) -> Callable[[Any], dict[str, Any]]:
    """Return the function that converts a value to a dict of these attributes."""
    return lambda value: {name: getattr(value, name) for name in names}


class Writer:
    """Converter of values to JSON, which collects the arrays among them by path."""

    def __init__(self, write_object: Callable[[Any, str], dict[str, Any]]) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._write_object = write_object

    def write(self, value: Any, path: str) -> Any:
        """Return the JSON of a value; ``path`` is its position in the model, for array names and errors."""
        plain = value.item() if isinstance(value, np.generic) else value
        if isinstance(plain, (bool, int, float, str, type(None))):
            return _write_plain(plain)
        if isinstance(value, np.ndarray):
            return self._write_array(value, path)
        if isinstance(value, list):
            return [self.write(item, f"{path}.{index}") for index, item in enumerate(value)]
        writers: tuple[tuple[type, Callable[[Any, str], Any]], ...] = (
            (tuple, self._write_tuple),
            (dict, self._write_dict),
            (slice, self._write_slice),
            (np.dtype, _write_dtype),
            (type, _write_type),
        )
        for kind, write in writers:
            if isinstance(value, kind):
                return write(value, path)
        return self._write_special(value, path)

    def _write_special(self, value: Any, path: str) -> Any:
        kind = type(value)
        known = _types_by_kind.get(kind, _types_by_kind.get(f"{kind.__module__}.{kind.__qualname__}"))
        if known is not None:
            parts = known.to_parts(value)
            return {"$": known.tag, **{key: self.write(part, f"{path}.{key}") for key, part in parts.items()}}
        if type(value).__name__ == "Index" and type(value).__module__.partition(".")[0] == "pandas":
            return self.write(value.tolist(), path)  # a selection of columns
        return self._write_object(value, path)

    def _write_tuple(self, value: tuple[Any, ...], path: str) -> dict[str, Any]:
        return {"$": "tuple", "items": self.write(list(value), path)}

    def _write_dict(self, value: dict[Any, Any], path: str) -> dict[str, Any]:
        keys, values = self.write(list(value), f"{path}.keys"), self.write(list(value.values()), path)
        return {"$": "dict", "keys": keys, "values": values}

    def _write_slice(self, value: slice, path: str) -> dict[str, Any]:
        return {"$": "slice", "items": self.write([value.start, value.stop, value.step], path)}

    def _write_array(self, array: NDArray[Any], path: str) -> dict[str, Any]:
        if array.dtype.kind == "O":
            return {"$": "objects", "shape": list(array.shape), "items": self.write(array.ravel().tolist(), path)}
        self.arrays[path] = array
        return {"$": "array", "name": path}


class Reader:
    """Converter of the JSON of a `Writer` back to values; each array is used once."""

    def __init__(self, arrays: dict[str, NDArray[Any]], read_object: Callable[[dict[str, Any], str], Any]) -> None:
        self._arrays = dict(arrays)
        self._read_object = read_object
        self._depth = 0

    @property
    def n_unread(self) -> int:
        """Number of arrays that were not used."""
        return len(self._arrays)

    def read(self, value: Any, path: str) -> Any:
        """Return the value of JSON at this path."""
        if not isinstance(value, (dict, list)):
            return value
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ModelFileError(
                f"The file nests values more than {_MAX_DEPTH} levels deep, which fairtransport never writes."
            )
        try:
            if isinstance(value, list):
                return [self.read(item, f"{path}.{index}") for index, item in enumerate(value)]
            return self._read_tagged(value, path)
        finally:
            self._depth -= 1

    def _read_tagged(self, value: dict[str, Any], path: str) -> Any:
        tag = value.get("$")
        if tag in _types_by_tag:
            parts = {key: self.read(part, f"{path}.{key}") for key, part in value.items() if key != "$"}
            return _types_by_tag[tag].from_parts(parts)
        simple: dict[str, Callable[[], Any]] = {
            "float": lambda: _FLOATS[value["value"]],
            "tuple": lambda: tuple(self._list(value["items"], path)),
            "dict": lambda: self._read_dict(value, path),
            "slice": lambda: slice(*self._list(value["items"], path, size=3)),
            "dtype": lambda: np.dtype(_known_dtype(value["name"])),
            "type": lambda: _known_type(value["name"]),
            "array": lambda: self._arrays.pop(value["name"]),
            "objects": lambda: self._read_objects(value, path),
        }
        if isinstance(tag, str) and tag in simple:
            return simple[tag]()
        return self._read_object(value, path)

    def _list(self, items: Any, path: str, size: int | None = None) -> list[Any]:
        if not isinstance(items, list) or (size is not None and len(items) != size):
            raise ModelFileError("The file has a value of another type where a list is required; do not trust it.")
        return self.read(items, path)

    def _read_dict(self, value: dict[str, Any], path: str) -> dict[Any, Any]:
        keys = self._list(value["keys"], f"{path}.keys")
        return dict(zip(keys, self._list(value["values"], path, size=len(keys)), strict=True))

    def _read_objects(self, value: dict[str, Any], path: str) -> NDArray[Any]:
        items = self._list(value["items"], path)
        array = np.empty(len(items), dtype=object)
        array[:] = [item if isinstance(item, (str, int, float, bool, type(None))) else _refuse() for item in items]
        return array.reshape([side if type(side) is int and side >= 0 else _refuse() for side in value["shape"]])


def _refuse() -> Any:
    raise ModelFileError("The file has an array of objects other than text, numbers and None; do not trust it.")


def _write_plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"$": "float", "value": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    return value


def _write_dtype(dtype: np.dtype[Any], path: str) -> dict[str, Any]:
    name = dtype.str if dtype.kind == "U" else dtype.name
    try:
        _known_dtype(name)
    except ModelFileError:
        raise TypeError(f"{path} has a data type that a model file cannot store: {dtype}.") from None
    return {"$": "dtype", "name": name}


def _known_dtype(name: Any) -> str:
    if name in _NUMPY or (isinstance(name, str) and _TEXT_DTYPE.fullmatch(name)):
        return str(name)
    raise ModelFileError("The file names a data type that is not allowed; do not trust it.")


def _write_type(kind: type, path: str) -> dict[str, Any]:
    name = kind.__name__
    if _BUILTIN.get(name) is kind:
        return {"$": "type", "name": name}
    if issubclass(kind, np.generic) and name in _NUMPY:
        return {"$": "type", "name": f"numpy.{name}"}
    raise TypeError(f"{path} is the class {name}, which a model file cannot store; only number types are allowed.")


def _known_type(name: Any) -> type:
    if name in _BUILTIN:
        return _BUILTIN[name]
    if isinstance(name, str) and name.startswith("numpy.") and name[6:] in _NUMPY:
        return np.dtype(name[6:]).type
    raise ModelFileError("The file names a type that is not allowed; do not trust it.")
