"""Model files and checkpoints as bytes: a whole file, an array, JSON, and a file with a signature."""

from __future__ import annotations

import numpy as np

from fairtransport.storage import ModelFileError, pack_container, unpack_container
from fairtransport.storage._container import from_npy, read_zip, to_npy, write_zip
from fairtransport.storage.schema import from_json, to_json

try:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from fairtransport.storage import sign_container
except ImportError:  # without the extra, the cases with signatures are read as files
    Ed25519PrivateKey = None

SHARE = 2
REFUSALS = (ModelFileError,)

_CHECKPOINT = pack_container("checkpoint", {"batch": 7, "note": ["CANARY7"]}, {"theta": np.arange(3.0)})
_KEY = None if Ed25519PrivateKey is None else Ed25519PrivateKey.from_private_bytes(bytes(32))
_SIGNED = _CHECKPOINT if _KEY is None else sign_container(_CHECKPOINT, _KEY)


def seeds() -> list[bytes]:
    """Return a small container with and without a signature, arrays, and JSON."""
    arrays = [np.arange(3.0), np.array(["CANARY7"]), np.zeros((2, 0)), np.array(True), np.ones(2, np.uint8)]
    values = [{"a": [1, None, "CANARY7", {"b": 0.5}]}, [[[[]]]], "\U0001f600"]
    bare = write_zip({"a": b"1", "b/c": b""}, comment=b"x")
    return [
        *(b"\0" + content for content in (_CHECKPOINT, _SIGNED, bare, _CHECKPOINT[:-1])),
        *(b"\1" + to_npy(array) for array in arrays),
        *(b"\2" + to_json(value) for value in values),
        *(b"\3" + content for content in (_SIGNED, _CHECKPOINT)),
    ]


def case(data: bytes) -> None:
    """Read the case as the kind of data that the first byte selects."""
    kind, rest = data[:1], data[1:]
    if kind == b"\1":
        array = from_npy(rest, name="case")
        if array.nbytes > len(rest) or not np.array_equal(
            from_npy(to_npy(array), name="again"), array, equal_nan=array.dtype.kind == "f"
        ):
            raise RuntimeError("An array differs after storing.")
    elif kind == b"\2":
        value = from_json(rest, name="case")
        if from_json(to_json(value), name="again") != value:
            raise RuntimeError("A value differs after storing.")
    elif kind == b"\3" and _KEY is not None:
        unpack_container(rest, verify=_KEY.public_key())
        if rest != _SIGNED:
            raise RuntimeError("A file was accepted that the key has not signed.")
    else:
        parts, comment = read_zip(rest)
        if write_zip({name: bytes(part) for name, part in parts.items()}, comment=comment) != rest:
            raise RuntimeError("Two files have the same parts.")
        unpack_container(rest)
