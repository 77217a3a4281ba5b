"""Audits as JSON, and back."""

from __future__ import annotations

import base64
import json
import math
import types
import zlib
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from fairtransport.histograms import GroupHistograms

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["FORMAT", "VERSION", "decode_histograms", "decode_record", "encode_histograms", "plain_values", "read_json"]

#: What the file says it is, and the version of its layout.
FORMAT, VERSION = "fairtransport audit", 1

_MAX_BYTES = 1 << 28  # of a file
_MAX_ENTRIES = 1 << 19  # occupied bins that are stored; finer histograms are merged
_MAX_INFLATED = 1 << 27  # bytes of an array
_KINDS = {name: np.dtype(name) for name in ("<i8", "<f8", "|b1")}


def plain_values(value: Any) -> Any:
    """Turn tuples into lists, NumPy scalars into Python numbers, NaN into None and infinity into text."""
    if isinstance(value, Mapping):
        return {str(name): plain_values(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_values(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value


# ------------------------------------------------------------------------------------------------------------- reading


def read_json(source: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the content of a JSON file of an audit, or of such text, after checking what it says it is.

    Parameters
    ----------
    source : path or str
        A file, or JSON text, which begins with a brace.

    Returns
    -------
    dict
    """
    text, name = _text_of(source)
    try:
        content = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ValueError(f"{name} is not JSON.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{name} is not an audit; Audit.to_json and `fairtransport audit --json` write audits.")
    found = content.get("version")
    if found != VERSION:
        shown = found if isinstance(found, int) else "unknown"
        raise ValueError(
            f"{name} has version {shown} of the layout of audits, and this release reads version {VERSION}. Write the "
            "file again with this release, or read it with the release that wrote it."
        )
    return content


def _text_of(source: str | os.PathLike[str]) -> tuple[str, str]:
    if isinstance(source, str) and source.lstrip()[:1] == "{":
        return source, "The text"
    path = Path(source)
    if path.stat().st_size > _MAX_BYTES:
        raise ValueError(f"{path} has more than {_MAX_BYTES >> 20} MiB, and is no audit.")
    try:
        return path.read_text("utf-8"), str(path)
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not JSON.") from None


def _refuse_constant(name: str) -> float:
    raise ValueError(name)


# ------------------------------------------------------------------------------------------------------------- records


def decode_record(kind: Any, value: Any, namespace: Mapping[str, Any], path: str = "audit") -> Any:
    """Return a value of JSON as an instance of a type: a dataclass, a tuple, a mapping, an array or a plain value.

    Parameters
    ----------
    kind : type
        Dataclasses are built field by field from the types that their fields declare.
    value : object
        A value that `plain_values` returned.
    namespace : dict of str to type
        The names that occur in declarations.
    path : str
        Where the value is, for error messages.

    Returns
    -------
    object

    Raises
    ------
    ValueError
        Where the value does not have the type; the message says where, and not what it is.

    Examples
    --------
    >>> from fairtransport.auditing.proportions import Estimate
    >>> decode_record(Estimate, {"value": 0.5, "low": None, "high": "Infinity"}, {})
    Estimate(value=0.5, low=nan, high=inf)
    """
    origin = get_origin(kind)
    if origin in {Union, types.UnionType}:
        return _decode_union(get_args(kind), value, namespace, path)
    if is_dataclass(kind):
        return _decode_dataclass(kind, value, namespace, path)
    if origin is tuple:
        return _decode_tuple(get_args(kind), value, namespace, path)
    if kind is np.ndarray or origin is np.ndarray:
        return _decode_array(value, path)
    if origin is not None and issubclass(origin, Mapping):
        return _decode_mapping(get_args(kind)[1], value, namespace, path)
    return _decode_plain(kind, value, path)


def _decode_mapping(kind: Any, value: Any, namespace: Mapping[str, Any], path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _mismatch(path)
    return {name: decode_record(kind, item, namespace, f"{path}.{name}") for name, item in value.items()}


def _decode_union(kinds: tuple[Any, ...], value: Any, namespace: Mapping[str, Any], path: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    others = [kind for kind in kinds if kind is not type(None)]
    for kind in others[:-1]:
        try:
            return decode_record(kind, value, namespace, path)
        except ValueError:
            continue
    return decode_record(others[-1], value, namespace, path)


def _decode_dataclass(kind: Any, value: Any, namespace: Mapping[str, Any], path: str) -> Any:
    if not isinstance(value, dict):
        raise _mismatch(path)
    hints = get_type_hints(kind, localns={**namespace})
    values = {}
    for part in fields(kind):
        if part.name in value:
            values[part.name] = decode_record(hints[part.name], value[part.name], namespace, f"{path}.{part.name}")
        elif part.default is MISSING and part.default_factory is MISSING:
            raise ValueError(f"The audit has no {path.partition('.')[2]}.{part.name}.".replace(" .", " "))
    return kind(**values)


def _decode_tuple(kinds: tuple[Any, ...], value: Any, namespace: Mapping[str, Any], path: str) -> Any:
    if not isinstance(value, list):
        raise _mismatch(path)
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        kinds = (kinds[0],) * len(value)
    if len(kinds) != len(value):
        raise _mismatch(path)
    return tuple(
        decode_record(kind, item, namespace, f"{path}[{index}]")
        for index, (kind, item) in enumerate(zip(kinds, value, strict=True))
    )


def _decode_array(value: Any, path: str) -> NDArray[np.float64]:
    try:
        array = np.asarray(value, dtype=np.float64)  # None becomes NaN
    except (TypeError, ValueError):
        raise _mismatch(path) from None
    return array


_PLAIN: dict[Any, Callable[[Any], bool]] = {
    bool: lambda value: isinstance(value, bool),
    int: lambda value: isinstance(value, int) and not isinstance(value, bool),
    str: lambda value: isinstance(value, str),
}


def _decode_plain(kind: Any, value: Any, path: str) -> Any:
    if kind is float:
        if value is None:
            return math.nan
        if value in ("Infinity", "-Infinity") or (isinstance(value, (int, float)) and not isinstance(value, bool)):
            return float(value)
        raise _mismatch(path)
    if kind is Any or (kind in _PLAIN and _PLAIN[kind](value)):
        return value
    raise _mismatch(path)


def _mismatch(path: str) -> ValueError:
    return ValueError(f"The audit is damaged: {path.partition('.')[2] or path} has another type than audits have.")


# ---------------------------------------------------------------------------------------------------------- histograms


def encode_histograms(histograms: GroupHistograms) -> dict[str, Any]:
    """Return histograms as plain values: the occupied bins, as compressed arrays in base 64."""
    while np.count_nonzero(histograms.masses) > _MAX_ENTRIES and _can_halve(histograms):
        histograms = histograms.coarsen(histograms.grid.n_bins // 2)
    arrays = histograms.to_arrays()
    spec = json.loads(str(arrays.pop("spec")))
    return {**spec, **{name: _pack(array) for name, array in arrays.items()}}


def _can_halve(histograms: GroupHistograms) -> bool:
    return bool(histograms.grid.positions) or histograms.grid.n_bins % 2 == 0


def decode_histograms(value: Any) -> GroupHistograms:
    """Return the histograms that `encode_histograms` stored; raise ValueError for anything else."""
    names = ("range", "n_bins", "n_classes", "groups")
    if not isinstance(value, dict) or not {*names, "at", "masses", "rows"} <= {*value}:
        raise ValueError("The audit is damaged: it has no histograms.")
    spec = {name: value[name] for name in names}
    names_of_arrays = ("at", "masses", "rows", "squares", "members", "nodes")
    arrays = {name: _unpack(value[name]) for name in names_of_arrays if name in value}
    return GroupHistograms.from_arrays({"spec": json.dumps(spec), **arrays})


def _pack(array: NDArray[Any]) -> dict[str, Any]:
    data = np.diff(array, prepend=0) if array.dtype.kind == "i" and array.ndim == 1 else array
    kind = next(name for name, dtype in _KINDS.items() if dtype.kind == data.dtype.kind)
    content = zlib.compress(np.ascontiguousarray(data, dtype=kind).tobytes(), 6)
    return {"dtype": kind, "shape": list(array.shape), "data": base64.b64encode(content).decode()}


def _unpack(value: Any) -> NDArray[Any]:
    try:
        kind, shape = value["dtype"], tuple(value["shape"])
        content = base64.b64decode(value["data"], validate=True)
        array = np.frombuffer(_inflate(content), dtype=_KINDS[kind]).reshape([int(size) for size in shape])
    except (KeyError, TypeError, ValueError, zlib.error):
        raise ValueError("The audit is damaged: its histograms cannot be read.") from None
    return np.cumsum(array) if kind == "<i8" and array.ndim == 1 else array


def _inflate(content: bytes) -> bytes:
    inflater = zlib.decompressobj()
    data = inflater.decompress(content, _MAX_INFLATED)
    if not inflater.eof:
        raise ValueError("too much data, or too little")
    return data
