"""Atomic writing of files, and a checked container of JSON and arrays."""

from fairtransport.storage._atomic import remove_leftovers, replacing, sync_folder, write_atomically
from fairtransport.storage._container import (
    Container,
    SignatureError,
    make_keys,
    pack_container,
    read_container,
    read_file,
    sign_container,
    unpack_container,
)
from fairtransport.storage.schema import MAX_BYTES, ModelFileError

__all__ = [
    "MAX_BYTES",
    "Container",
    "ModelFileError",
    "SignatureError",
    "make_keys",
    "pack_container",
    "read_container",
    "read_file",
    "remove_leftovers",
    "replacing",
    "sign_container",
    "sync_folder",
    "unpack_container",
    "write_atomically",
]
