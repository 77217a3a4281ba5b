"""Fuzz the reader of model files with atheris: no crash but our own error, no hang, no memory beyond the limit.

    pip install atheris
    python scripts/fuzz/model_file.py -max_total_time=600 -rss_limit_mb=2048

Every case is tried three ways: as a whole file; as the bytes of an array; and as the JSON of a part of a model whose
checksums are right.
"""
# ruff: noqa: INP001

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["fairtransport.storage", "fairtransport.persistence", "zipfile", "json"]):
    import zipfile  # noqa: F401 - instrumented

    from fairtransport.persistence.files import _model_of
    from fairtransport.storage import ModelFileError, pack_container, unpack_container
    from fairtransport.storage.npy import from_npy
    from fairtransport.storage.schema import from_json

EXAMPLES = Path(__file__).parents[2] / "tests" / "persistence" / "data"
HELD = [unpack_container(path.read_bytes()) for path in sorted(EXAMPLES.glob("*.ft"))]


def _as_model(data: bytes) -> None:
    """Put the case, as JSON, in the place of one part of a model that is otherwise right."""
    held = HELD[data[0] % len(HELD)]
    at, value = held.schema["model"], from_json(data[2:], name="case")
    keys = sorted(at["fitted"] if data[1] % 2 else at["params"]) or ["x"]
    section = "fitted" if data[1] % 2 else "params"
    changed = {**at, section: {**at[section], keys[data[1] // 2 % len(keys)]: value}}
    try:
        content = pack_container("model", {**held.schema, "model": changed}, held.arrays)
    except (TypeError, ValueError):  # more than a file may hold
        return
    _model_of(unpack_container(content))


def one_case(data: bytes) -> None:
    """Try one case; anything but ModelFileError is a finding."""
    with warnings.catch_warnings(action="ignore"):
        for attempt in (unpack_container, lambda case: from_npy(case, name="case"), _as_model):
            if attempt is _as_model and len(data) < 3:
                continue
            try:
                attempt(data)
            except ModelFileError:
                continue


def main() -> None:
    """Hand over to the fuzzer."""
    atheris.Setup(sys.argv, one_case)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
