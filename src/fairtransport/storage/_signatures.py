"""Ed25519 signatures of files: who wrote a file, where a checksum only says that it is whole.

A signature stands at the very end of the file, as the end of the zip's comment, and covers every byte before it. It is
checked before anything else in the file is read.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtransport._extras import load_extra
from fairtransport.storage._atomic import create_file
from fairtransport.storage.schema import ModelFileError

if TYPE_CHECKING:
    from collections.abc import Callable


LABEL = b" ed25519:"
DIGITS = 128
SIGNATURE = re.compile(LABEL + rb"([0-9a-f]{%d})" % DIGITS)
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


def load_private_key(key: Any, *, password: bytes | None = None) -> Any:
    """Return the Ed25519 private key of a PEM file or its bytes; a key object is returned as it is."""
    kind = _ed25519().Ed25519PrivateKey
    load = load_extra("cryptography.hazmat.primitives.serialization").load_pem_private_key
    return _load(key, kind, lambda pem: load(pem, password), "key must be an Ed25519 private key (PEM)")


def load_public_keys(keys: Any) -> list[Any]:
    """Return the Ed25519 public keys of one or a list of PEM files, their bytes, or key objects."""
    kind = _ed25519().Ed25519PublicKey
    load = load_extra("cryptography.hazmat.primitives.serialization").load_pem_public_key
    several = list(keys) if isinstance(keys, (list, tuple)) else [keys]
    if not several:
        raise ValueError("verify= needs at least one public key.")
    return [_load(key, kind, load, "verify= must be an Ed25519 public key (PEM), or a list of them") for key in several]


def signature_of(body: bytes, key: Any) -> bytes:
    """Return the signature of a file without its last bytes, as these last bytes: hexadecimal digits."""
    digits: str = key.sign(_message(body)).hex()
    return digits.encode()


def check_signature(content: bytes, keys: list[Any]) -> None:
    """Raise SignatureError unless the file ends with a signature by one of the keys."""
    match = SIGNATURE.fullmatch(content[-len(LABEL) - DIGITS :])
    if match is None:
        raise SignatureError("The file is not signed, and verify= requires a signature. Do not use it.")
    invalid = load_extra("cryptography.exceptions").InvalidSignature
    message, signature = _message(memoryview(content)[:-DIGITS]), bytes.fromhex(match[1].decode())
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
