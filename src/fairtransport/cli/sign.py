"""``fairtransport sign``: a signature in a model file, and keys for it."""

from __future__ import annotations

from pathlib import Path

import fairtransport as ft
from fairtransport.cli import _options as shared
from fairtransport.cli._output import print_paths


@shared.described(
    key=shared.option("PATH", "Private key (Ed25519, PEM, without a password)."),
    new_key=shared.flag(
        "--new-key", "Write a new key to PATH, and its public key beside it with the suffix .pub, first."
    ),
)
def run_sign(model: str, *, key: str, new_key: bool = False) -> None:
    """Sign a model file, so that score and stream can verify where it comes from.

    The signature is added to the file, or replaces the one that it has, and covers every byte of it. Keep the private
    key where models are trained, and give the public key to those who use them: with --verify, `fairtransport score`
    and `fairtransport stream` refuse files that were not signed with the private key or were changed since.

    \b
    Example:
      fairtransport sign model.ft --key signing.key --new-key
      fairtransport score model.ft new.csv --verify signing.pub --out scored.csv
    """  # noqa: D301 - \b keeps the lines of the example
    ft.persistence.describe(model)  # before keys are written
    public = None
    if new_key:
        _, public = ft.persistence.make_keys(key)
    print_paths({"Signed": ft.persistence.sign(model, Path(key)), "Public key": public})
