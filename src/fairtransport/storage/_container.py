"""Container of JSON and arrays in one file, with a checksum for each part; the format of models and checkpoints.

The file is a zip without compression. ``schema.json`` contains the format, its version, the versions of the libraries
that wrote it, and the SHA-256 of every array; ``arrays/*.npy`` are the arrays; the comment of the zip is the SHA-256 of
``schema.json``, which a signature may follow.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import itertools
import math
import os
import platform
import re
import stat
import struct
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from fairtransport._extras import load_extra
from fairtransport.storage._atomic import create_file
from fairtransport.storage.schema import MAX_BYTES, MAX_DIMENSION, MAX_PARTS, ModelFileError, from_json, to_json

# Zip archives without compression, of one form: equal parts give equal bytes, and no other bytes are read.

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")  # no "..", "/", "\\", ":" or NUL
_MAX_NAME = 400
_MAX_ZIP = (1 << 31) - 1  # bytes; beyond, a zip has another form
_MAX_COMMENT = 1000
_HEADER_BYTES = 30  # before the name of a part
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # the first date of a zip; files have no time, so that they can be equal
_FOREIGN = (
    "The file is damaged or incomplete, or was not written by fairtransport: it has bytes that a model file does not "
    "have. Copy it again, or use a backup."
)


def write_zip(parts: Mapping[str, bytes], *, comment: bytes) -> bytes:
    """Return the zip of the parts, sorted by name."""
    for name in itertools.filterfalse(_is_name, parts):
        raise ValueError(f"{name!r} is not a valid name of a part; use letters, digits, '_', '-', '.' and '/'.")
    if len(parts) > MAX_PARTS:
        raise ValueError(f"A file can have at most {MAX_PARTS} parts; got {len(parts)}.")
    size = sum(map(len, parts.values()))
    if size > _MAX_ZIP:
        raise ValueError(f"A file can have at most {_MAX_ZIP} bytes; the parts have {size}.")
    return _write(parts, comment).getvalue()


def _write(parts: Mapping[str, bytes | memoryview], comment: bytes) -> io.BytesIO:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.comment = comment
        for name in sorted(parts):
            entry = zipfile.ZipInfo(name, _EARLIEST)
            entry.create_system, entry.external_attr = 3, (stat.S_IFREG | 0o644) << 16  # the same on every system
            archive.writestr(entry, parts[name])
    return buffer


def read_zip(content: bytes, *, max_bytes: int = MAX_BYTES) -> tuple[dict[str, memoryview], bytes]:
    """Return the parts and the comment of a zip from an untrusted source: one that `write_zip` would write."""
    _check_size(len(content), max_bytes)
    if content[:4] != b"PK\x03\x04":
        raise ModelFileError("This is not a model file: it does not begin like one. Check the path.")
    if content.count(b"PK\x01\x02") > MAX_PARTS:  # before Python objects are made of them
        raise ModelFileError(_FOREIGN)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries, comment = archive.infolist(), archive.comment
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, struct.error):
        raise ModelFileError(_FOREIGN) from None
    if sum(one.file_size for one in entries) > len(content):  # parts that overlap
        raise ModelFileError(_FOREIGN)
    parts: dict[str, memoryview] = {}
    for one in entries:
        begin = one.header_offset + _HEADER_BYTES + len(one.filename)
        parts[one.filename] = memoryview(content)[begin : begin + one.file_size]
    if len(comment) > _MAX_COMMENT or not all(map(_is_name, parts)) or _write(parts, comment).getbuffer() != content:
        raise ModelFileError(_FOREIGN)
    return parts, comment


def _check_size(n_bytes: int, max_bytes: int) -> None:
    if n_bytes > max_bytes:
        raise ModelFileError(
            f"The file has {n_bytes} bytes, more than max_bytes={max_bytes}. If you trust it, raise max_bytes=."
        )


def _is_name(name: str) -> bool:
    return len(name) <= _MAX_NAME and _NAME.fullmatch(name) is not None


# Conversion of arrays of numbers, booleans and text to NumPy's ``.npy`` format, and back.

_MAX_HEADER = 1024
_MAX_AXES = 8
_LAST_CHARACTER = 0x10FFFF
_TYPE = rb"\|b1|\|[iu]1|<[iuf][248]|<U[1-9][0-9]{0,7}"
_SIDE = rb"(?:0|[1-9][0-9]{0,9})"
#: The header as NumPy writes it; a parser of Python literals would also accept ``(True, 3)`` as a shape.
_HEADER = re.compile(
    rb"\{'descr': '(%b)', 'fortran_order': False, 'shape': \((|%b,|%b(?:, %b)+)\), \} *\n" % (_TYPE, *[_SIDE] * 3)
)


def to_npy(array: NDArray[Any]) -> bytes:
    """Return the array as ``.npy`` bytes: version 1.0, little-endian, in C order; equal arrays give equal bytes."""
    array = np.asarray(array)
    plain = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False).reshape(array.shape)
    if re.fullmatch(_TYPE, plain.dtype.str.encode()) is None:
        raise TypeError(
            f"An array of type {array.dtype} cannot be stored; use numbers of up to 64 bits, booleans or text."
        )
    _check_characters(plain, TypeError("An array of text has characters that are not Unicode; it cannot be stored."))
    buffer = io.BytesIO()
    npy.write_array(buffer, plain, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def from_npy(content: bytes | memoryview, *, name: str) -> NDArray[Any]:
    """Return the array of ``.npy`` bytes from an untrusted source; ``name`` is for the error message."""
    head = bytes(content[: 10 + _MAX_HEADER])
    size = int.from_bytes(head[8:10], "little")
    match = _HEADER.fullmatch(head[10 : 10 + size])
    if head[:8] != b"\x93NUMPY\x01\x00" or match is None:
        raise ModelFileError(
            f"Part {name!r} has no valid header of an array; only numbers, booleans and text in C order are read."
        )
    dtype, shape = np.dtype(match[1].decode()), tuple(map(int, match[2].replace(b",", b" ").split()))
    if len(shape) > _MAX_AXES or not all(side <= MAX_DIMENSION for side in shape):
        raise ModelFileError(f"Part {name!r} has a shape beyond the limits; the file is damaged.")
    body = memoryview(content)[10 + size :]
    if math.prod(shape) * dtype.itemsize != len(body):  # Python integers do not overflow
        raise ModelFileError(f"Part {name!r} has {len(body)} bytes, which does not match its shape.")
    array = np.frombuffer(body, dtype=dtype).reshape(shape)
    if dtype.kind == "b" and body and np.frombuffer(body, dtype=np.uint8).max() > 1:
        raise ModelFileError(f"Part {name!r} has booleans that are neither true nor false; the file is damaged.")
    _check_characters(array, ModelFileError(f"Part {name!r} has text that is not Unicode; the file is damaged."))
    return array.astype(dtype.newbyteorder("="), copy=True)


def _check_characters(array: NDArray[Any], error: Exception) -> None:
    if array.dtype.kind != "U" or array.size == 0:
        return
    characters = np.ascontiguousarray(array).reshape(-1).view(np.dtype("<u4"))
    if characters.max() > _LAST_CHARACTER or np.any((characters >= 0xD800) & (characters <= 0xDFFF)):
        raise error


# Ed25519 signatures: who wrote a file, where a checksum only says that it is whole. A signature is the end of the zip's
# comment, and so of the file, and covers every byte before it. It is checked before anything else is read.

_LABEL = b" ed25519:"
_DIGITS = 128
_SIGNATURE = re.compile(_LABEL + rb"([0-9a-f]{%d})" % _DIGITS)
_DOMAIN = b"fairtransport file, signature 1\0"  # a signature for another purpose does not fit
_MAX_KEY_BYTES = 1 << 16


class SignatureError(ModelFileError):
    """A file that is not signed, or whose signature is not of one of the keys."""


def make_keys(path: str | os.PathLike[str], *, password: bytes | None = None) -> tuple[Path, Path]:
    """Write a new pair of Ed25519 keys for signatures of model files."""
    private = Path(path)
    public = private.with_suffix(".pub")
    if public == private:
        raise ValueError("path is that of the private key; choose another suffix than .pub.")
    serialization = load_extra("cryptography.hazmat.primitives.serialization")
    key = _ed25519().Ed25519PrivateKey.generate()
    pem, encryption = serialization.Encoding.PEM, serialization.NoEncryption()
    if password is not None:
        encryption = serialization.BestAvailableEncryption(password)
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, encryption)
    shown = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    create_file(private, secret, mode=0o600)
    try:
        create_file(public, shown, mode=0o666)
    except BaseException:
        private.unlink(missing_ok=True)
        raise
    return private, public


def _load_private_key(key: Any, *, password: bytes | None = None) -> Any:
    """Return the Ed25519 private key of a PEM file or its bytes; a key object is returned as it is."""
    kind = _ed25519().Ed25519PrivateKey
    load = load_extra("cryptography.hazmat.primitives.serialization").load_pem_private_key
    return _load(key, kind, lambda pem: load(pem, password), "key must be an Ed25519 private key (PEM)")


def _load_public_keys(keys: Any) -> list[Any]:
    """Return the Ed25519 public keys of one or a list of PEM files, their bytes, or key objects."""
    kind = _ed25519().Ed25519PublicKey
    load = load_extra("cryptography.hazmat.primitives.serialization").load_pem_public_key
    several = list(keys) if isinstance(keys, (list, tuple)) else [keys]
    if not several:
        raise ValueError("verify= needs at least one public key.")
    return [_load(key, kind, load, "verify= must be an Ed25519 public key (PEM), or a list of them") for key in several]


def _check_signature(content: bytes, keys: list[Any]) -> None:
    """Raise SignatureError unless the file ends with a signature by one of the keys."""
    match = _SIGNATURE.fullmatch(content[-len(_LABEL) - _DIGITS :])
    if match is None:
        raise SignatureError("The file is not signed, and verify= requires a signature. Do not use it.")
    invalid = load_extra("cryptography.exceptions").InvalidSignature
    message, signature = _message(memoryview(content)[:-_DIGITS]), bytes.fromhex(match[1].decode())
    for key in keys:
        try:
            key.verify(signature, message)
        except invalid:
            continue
        return
    raise SignatureError(
        "The file is not signed by the key of verify=, or was changed after it was signed. Do not use it."
    )


def _message(body: bytes | memoryview) -> bytes:
    return _DOMAIN + hashlib.sha256(body).digest()


def _ed25519() -> Any:
    return load_extra("cryptography.hazmat.primitives.asymmetric.ed25519")


def _load(key: Any, kind: type, load: Callable[[bytes], Any], expected: str) -> Any:
    if isinstance(key, kind):
        return key
    if not isinstance(key, (str, bytes, os.PathLike)):
        raise TypeError(f"{expected}; got {type(key).__name__}.")
    if isinstance(key, bytes):
        pem = key
    else:
        with Path(key).open("rb") as file:
            pem = file.read(_MAX_KEY_BYTES)
    try:
        loaded = load(pem)
    except TypeError:  # with a password and not encrypted, or the other way round
        raise ValueError(f"{expected}; a password is needed for this one, or it has none.") from None
    except Exception:  # noqa: BLE001 - the library has its own errors, and keys must not be in messages
        raise ValueError(f"{expected}; this is none.") from None
    if not isinstance(loaded, kind):
        raise ValueError(f"{expected}; this is of another kind.")  # noqa: TRY004 - the type of the argument is right
    return loaded


# Containers.

FORMAT = "fairtransport"
FORMAT_VERSION = 1
_SCHEMA = "schema.json"
_KIND = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
_PRINTABLE_VERSION = re.compile(r"[A-Za-z0-9_.+!-]{1,40}")  # that an error message may quote


@dataclass(frozen=True, eq=False, repr=False)
class Container:
    """Content of a file, each part of which was checked."""

    kind: str
    schema: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    made_by: dict[str, str]
    reveals: str
    format_version: int
    is_signed: bool = False

    def __repr__(self) -> str:
        return f"Container(kind={self.kind!r}, {len(self.arrays)} arrays, format_version={self.format_version})"


def pack_container(
    kind: str,
    schema: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    *,
    reveals: str = "",
    versions: Mapping[str, str] | None = None,
) -> bytes:
    """Return a container as bytes; equal content and equal versions of libraries give equal bytes."""
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise ValueError("kind must be a short name in lower-case letters, digits, '_', '-' and '.'.")
    parts = {f"arrays/{name}.npy": to_npy(array) for name, array in arrays.items()}
    made_by = {"fairtransport": _fairtransport_version(), "numpy": np.__version__, "python": platform.python_version()}
    head = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": kind,
        "made_by": {**made_by, **(versions or {})},
        "reveals": reveals,
        "content": dict(schema),
        "parts": {name: {"bytes": len(part), "sha256": _sha256(part)} for name, part in parts.items()},
    }
    parts[_SCHEMA] = to_json(head)
    return write_zip(parts, comment=_comment(parts[_SCHEMA]))


def unpack_container(
    content: bytes, *, kind: str | None = None, max_bytes: int = MAX_BYTES, verify: Any = None
) -> Container:
    """Return the checked content of a container from an untrusted source."""
    if verify is not None:
        _check_signature(content, _load_public_keys(verify))
    parts, comment = read_zip(content, max_bytes=max_bytes)
    if _SCHEMA not in parts:
        raise ModelFileError("This zip is not a model file: it has no schema.json. Check the path.")
    text = parts.pop(_SCHEMA)
    head = from_json(text, name=_SCHEMA)
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise ModelFileError("This zip is not a model file of fairtransport. Check the path.")
    _check_version(head)
    checksum = _comment(text)
    is_signed = _SIGNATURE.fullmatch(comment[len(checksum) :]) is not None
    if not comment.startswith(checksum) or not (is_signed or comment == checksum):
        raise ModelFileError(
            "The file is damaged: its schema does not match its checksum. Copy it again, or use a backup."
        )
    container = _read_content(head, parts, is_signed=is_signed)
    if kind is not None and container.kind != kind:
        raise ModelFileError(f"The file contains a {container.kind!r}, but a {kind!r} is needed. Check the path.")
    return container


def sign_container(content: bytes, key: Any, *, password: bytes | None = None) -> bytes:
    """Return a container with a signature, instead of the one that it may have."""
    private = _load_private_key(key, password=password)
    unpack_container(content, max_bytes=len(content))
    parts, comment = read_zip(content, max_bytes=len(content))
    label = _SIGNATURE.sub(b"", comment) + _LABEL
    body = _write(parts, label + b"0" * _DIGITS).getvalue()[:-_DIGITS]
    return body + bytes(private.sign(_message(body)).hex().encode())


def read_container(
    path: str | os.PathLike[str], *, kind: str | None = None, max_bytes: int = MAX_BYTES, verify: Any = None
) -> Container:
    """Read a container; see `unpack_container`. A path that is not a regular file raises a ModelFileError."""
    return unpack_container(read_file(path, max_bytes=max_bytes), kind=kind, max_bytes=max_bytes, verify=verify)


def read_file(path: str | os.PathLike[str], *, max_bytes: int) -> bytes:
    """Return the bytes of a regular file; raise a ModelFileError for other paths and larger files."""
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)  # opening a pipe must not block
    handle = os.open(Path(path), flags)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise ModelFileError("The path is not a regular file but a folder, pipe or device. Check it.")
        _check_size(status.st_size, max_bytes)
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(status.st_size + 1)
    finally:
        os.close(handle)


def _read_content(head: dict[str, Any], parts: dict[str, memoryview], *, is_signed: bool) -> Container:
    names = ("parts", "content", "kind", "made_by", "reveals")
    listed, content, kind, made_by, reveals = (cast("Any", head.get(name)) for name in names)
    shaped = all(isinstance(one, dict) for one in (listed, content, made_by))
    shaped = shaped and all(isinstance(one, str) for one in (kind, reveals, *made_by.values()))
    if not shaped or not _KIND.fullmatch(kind):
        raise ModelFileError("The schema of the file is not valid; do not trust it.")
    if set(listed) != set(parts):
        raise ModelFileError("The parts of the file are not those that its schema lists; do not trust it.")
    arrays = {}
    for name in sorted(parts):
        if listed[name] != {"bytes": len(parts[name]), "sha256": _sha256(parts[name])}:
            raise ModelFileError(f"Part {name!r} does not match its checksum: the file is damaged. Use a backup.")
        if not name.startswith("arrays/") or not name.endswith(".npy"):
            raise ModelFileError("The file has a part that is not an array; do not trust it.")
        arrays[name[len("arrays/") : -len(".npy")]] = from_npy(parts[name], name=name)
    return Container(kind, content, arrays, made_by, reveals, FORMAT_VERSION, is_signed)


def _check_version(head: dict[str, Any]) -> None:
    version, made_by = head.get("format_version"), head.get("made_by")
    if version == FORMAT_VERSION and type(version) is int:
        return
    if type(version) is not int or not 0 <= version < 1_000_000:
        raise ModelFileError("The file does not state its format version; do not trust it.")
    writer = made_by.get("fairtransport") if isinstance(made_by, dict) else None
    is_known = isinstance(writer, str) and _PRINTABLE_VERSION.fullmatch(writer)
    origin = f" (written by fairtransport {writer})" if is_known else ""
    raise ModelFileError(
        f"The file has format version {version}{origin}; fairtransport {_fairtransport_version()} reads "
        f"versions up to {FORMAT_VERSION}. Upgrade fairtransport, or save the model again with this version."
    )


def _fairtransport_version() -> str:
    return str(importlib.import_module("fairtransport").__version__)  # by name, to avoid a circular import


def _comment(schema: bytes | memoryview) -> bytes:
    return f"{FORMAT} sha256:{_sha256(schema)}".encode("ascii")


def _sha256(content: bytes | memoryview) -> str:
    return hashlib.sha256(content).hexdigest()
