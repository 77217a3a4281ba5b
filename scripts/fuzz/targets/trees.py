"""Trees in model files with correct checksums: arrays of nodes overwritten, cut and mixed; what loads is used."""

from __future__ import annotations

import struct
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.persistence.forged_trees import MODELS, example, forge, use

SHARE = 2
_EDIT = struct.Struct("<BBHq")  # number of the array, kind of change, position, number


class RefusedError(ValueError):
    """The file was refused when it was read or used."""


REFUSALS = (RefusedError,)


def seeds() -> list[bytes]:
    """Return each model as it is, and with one number changed."""
    paths = {name: sorted(example(name)[0].arrays) for name in MODELS}
    edits = [
        (0, _index(paths["lightgbm"], "trees.left"), 0, 0, 7),
        (0, _index(paths["lightgbm"], "trees.words"), 0, 0, 1 << 31),
        (1, _index(paths["xgboost"], "trees.set_starts"), 0, 0, 1 << 23),
        (2, _index(paths["histogram"], "trees.threshold"), 1, 0, 1 << 62),
        (3, _index(paths["forest"], "trees.starts"), 2, 1, 0),
    ]
    return [*(bytes([number]) for number in range(len(MODELS))),
            *(bytes([model]) + _EDIT.pack(*edit) for model, *edit in edits)]  # fmt: skip


def case(data: bytes) -> None:
    """Apply the edits to the model that the first byte selects; load it and predict."""
    name = list(MODELS)[(data[0] if data else 0) % len(MODELS)]
    edits = [_EDIT.unpack_from(data, start) for start in range(1, len(data) - _EDIT.size + 1, _EDIT.size)]

    def change(part: dict[str, Any], arrays: dict[str, Any]) -> None:
        paths = sorted(arrays)
        for index, kind, position, number in edits:
            if index == len(paths):
                part["n_columns"] = number
            else:
                path = paths[index % len(paths)]
                arrays[path] = _edit(arrays[path], kind, position, number)

    with warnings.catch_warnings(action="ignore"):
        if use(name, forge(name, change)) != "used":
            raise RefusedError("The file was refused.")


def _edit(array: Any, kind: int, position: int, number: int) -> Any:
    """Set an element, to a number or to the number with these bits; cut; repeat; or swap two elements."""
    if not array.size or array.dtype.kind not in "iuf":
        return array[: position % (array.size + 1)]
    changed, at, other = array.copy(), position % array.size, number % array.size
    elements = changed.reshape(-1)  # a view: some arrays have two dimensions
    if kind % 5 == 0:
        elements[at] = np.array(number).astype(array.dtype)
    elif kind % 5 == 1:
        elements.view(f"i{array.itemsize}")[at] = np.array(number).astype(f"i{array.itemsize}")
    elif kind % 5 == 2:
        return array[: position % len(array)]
    elif kind % 5 == 3:
        return np.concatenate((array, array[: number % 64]))
    else:
        elements[[at, other]] = elements[[other, at]]
    return changed


def _index(paths: list[str], end: str) -> int:
    short = sorted(path.removeprefix("model.") for path in paths)
    return short.index(end)
