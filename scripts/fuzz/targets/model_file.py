"""Model files and checkpoints: as a whole file, as an array, and as JSON in a model with correct checksums."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

from fairtransport.persistence._files import _model_of
from fairtransport.storage import ModelFileError, pack_container, unpack_container
from fairtransport.storage._npy import from_npy, to_npy
from fairtransport.storage.schema import from_json, to_json

SHARE = 3
REFUSALS = (ModelFileError,)

_EXAMPLES = Path(__file__).parents[3] / "tests" / "persistence" / "data"
_MODELS = [unpack_container(path.read_bytes()) for path in sorted(_EXAMPLES.glob("*.ft"))]
_CHECKPOINT = pack_container("checkpoint", {"batch": 7, "note": ["CANARY7"]}, {"theta": np.arange(3.0)})


def seeds() -> list[bytes]:
    """Return a small container, arrays, and pieces of the schemas of example files."""
    arrays = [np.arange(3.0), np.array(["CANARY7"]), np.zeros((2, 0)), np.array(True), np.ones(2, np.uint8)]
    pieces = [bytes([2, number, position]) + to_json(value) for number, model in enumerate(_MODELS)
              for section in ("params", "fitted")
              for position, value in enumerate(model.schema["model"][section].values())
              if len(to_json(value)) < 2000]  # fmt: skip
    return [b"\0" + _CHECKPOINT, *(b"\1" + to_npy(array) for array in arrays), *pieces[:60]]


def case(data: bytes) -> None:
    """Read the case as the kind of data that the first byte selects."""
    kind, rest = data[:1], data[1:]
    with warnings.catch_warnings(action="ignore"):  # about another version of scikit-learn
        if kind == b"\1":
            from_npy(rest, name="case")
        elif kind == b"\2" and len(rest) > 2:
            _as_model(rest)
        else:
            unpack_container(rest)


def _as_model(data: bytes) -> None:
    """Replace one part of a valid model by the case, as JSON."""
    model = _MODELS[data[0] % len(_MODELS)]
    content, value = model.schema["model"], from_json(data[2:], name="case")
    section = "fitted" if data[1] % 2 else "params"
    keys = sorted(content[section]) or ["x"]
    changed = {**content, section: {**content[section], keys[data[1] // 2 % len(keys)]: value}}
    _model_of(
        replace(model, schema={**model.schema, "model": changed})
    )  # as if read from a file with correct checksums
