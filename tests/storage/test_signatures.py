"""Signatures: every byte counts, and another key, another purpose or no signature at all are refused."""

import hashlib
import os
import shutil
import stat
import subprocess

import numpy as np
import pytest

from fairtransport.storage import (
    ModelFileError,
    SignatureError,
    make_keys,
    pack_container,
    read_container,
    sign_container,
    unpack_container,
)

pytest.importorskip("cryptography")  # the oldest versions are tested without extras
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

KEY, OTHER = (Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32) for number in (1, 2))
CONTENT = pack_container("note", {"n": 1}, {"a": np.arange(3.0)})
SIGNED = sign_container(CONTENT, KEY)
PEM = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def test_a_signed_file_is_the_same_file():
    assert len(SIGNED) == len(CONTENT) + 137
    for content, options in ((CONTENT, {}), (SIGNED, {}), (SIGNED, {"verify": PEM})):
        container = unpack_container(content, **options)
        assert container.schema == {"n": 1}
        assert container.is_signed == (content is SIGNED)


def test_equal_files_have_equal_signatures_and_signing_again_replaces():
    assert sign_container(CONTENT, KEY) == SIGNED
    assert sign_container(SIGNED, KEY) == SIGNED
    again = sign_container(SIGNED, OTHER)
    unpack_container(again, verify=OTHER.public_key())
    with pytest.raises(SignatureError):
        unpack_container(again, verify=PEM)


def test_no_signature_or_another_key_is_refused():
    with pytest.raises(SignatureError, match="is not signed, and verify= requires"):
        unpack_container(CONTENT, verify=PEM)
    with pytest.raises(SignatureError, match="not signed by the key"):
        unpack_container(SIGNED, verify=OTHER.public_key())
    assert unpack_container(SIGNED, verify=[OTHER.public_key(), PEM]).is_signed
    assert issubclass(SignatureError, ModelFileError)


def test_every_flipped_bit_is_refused_before_anything_is_read(monkeypatch, record_property):
    record_property("cases", 8 * len(SIGNED))
    monkeypatch.setattr("fairtransport.storage._container.read_zip", None)  # nothing may call it
    for bit in range(8 * len(SIGNED)):
        changed = bytearray(SIGNED)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(SignatureError):
            unpack_container(bytes(changed), verify=KEY.public_key())
    for content in (b"", SIGNED[:-1], SIGNED[1:], SIGNED + b"\0", SIGNED[-137:], CONTENT + SIGNED[-137:]):
        with pytest.raises(SignatureError):
            unpack_container(content, verify=KEY.public_key())


def test_a_signature_for_another_purpose_does_not_fit():
    for message in (hashlib.sha256(SIGNED[:-128]).digest(), SIGNED[:-128]):
        with pytest.raises(SignatureError):
            unpack_container(SIGNED[:-128] + KEY.sign(message).hex().encode(), verify=PEM)


def test_keys_are_written_once_and_for_their_owner_only(tmp_path):
    private, public = make_keys(tmp_path / "a.key")
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    signed = sign_container(CONTENT, private)
    path = tmp_path / "note.ft"
    path.write_bytes(signed)
    for key in (public, str(public), public.read_bytes()):
        assert read_container(path, verify=key).is_signed
    before = private.read_bytes(), public.read_bytes()
    with pytest.raises(FileExistsError, match=r"unchanged\. Choose another name"):
        make_keys(private)
    private.unlink()
    with pytest.raises(FileExistsError):
        make_keys(private)
    assert not private.exists()
    assert public.read_bytes() == before[1]
    with pytest.raises(ValueError, match="another suffix"):
        make_keys(tmp_path / "b.pub")


def test_a_password_is_needed(tmp_path):
    private, public = make_keys(tmp_path / "a.key", password=b"open")
    signed = sign_container(CONTENT, private, password=b"open")
    assert unpack_container(signed, verify=public).is_signed
    for password in (None, b"wrong"):
        with pytest.raises(ValueError, match="Ed25519 private key"):
            sign_container(CONTENT, private, password=password)


RSA = rsa.generate_private_key(65537, 1024)  # noqa: S505 - not for use


@pytest.mark.parametrize(
    "key",
    [
        b"",
        b"-----BEGIN PUBLIC KEY-----\nCANARY7\n-----END PUBLIC KEY-----\n",
        PEM[:-30],
        KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
    ],
)
def test_what_is_no_public_key(key):
    with pytest.raises(ValueError, match="verify= must be an Ed25519 public key") as caught:
        unpack_container(SIGNED, verify=key)
    assert "CANARY7" not in str(caught.value)


def test_other_keys_and_files_that_are_none(tmp_path):
    for key in (3, None, KEY.public_key()):
        with pytest.raises(TypeError, match="key must be an Ed25519 private key"):
            sign_container(CONTENT, key)
    with pytest.raises(TypeError, match="verify="):
        unpack_container(SIGNED, verify=KEY)
    with pytest.raises(ValueError, match="at least one"):
        unpack_container(SIGNED, verify=[])
    with pytest.raises(FileNotFoundError):
        unpack_container(SIGNED, verify=tmp_path / "none.pub")
    for content in (b"", b"PK\x03\x04", CONTENT[:-1], CONTENT + b" "):
        with pytest.raises(ModelFileError):
            sign_container(content, KEY)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command")
def test_openssl_makes_keys_and_checks_signatures(tmp_path):
    """A peer: keys by openssl sign here, and openssl verifies what was signed here."""

    def openssl(*words):
        return subprocess.run(["openssl", *words], cwd=tmp_path, capture_output=True, check=False, env={**os.environ})

    assert openssl("genpkey", "-algorithm", "ed25519", "-out", "a.key").returncode == 0
    assert openssl("pkey", "-in", "a.key", "-pubout", "-out", "a.pub").returncode == 0
    signed = sign_container(CONTENT, tmp_path / "a.key")
    assert unpack_container(signed, verify=tmp_path / "a.pub").is_signed
    message = b"fairtransport file, signature 1\0" + hashlib.sha256(signed[:-128]).digest()
    (tmp_path / "message").write_bytes(message)
    (tmp_path / "signature").write_bytes(bytes.fromhex(signed[-128:].decode()))
    check = ("pkeyutl", "-verify", "-pubin", "-inkey", "a.pub", "-rawin", "-in", "message", "-sigfile", "signature")
    assert openssl(*check).returncode == 0
    (tmp_path / "message").write_bytes(message + b"x")
    assert openssl(*check).returncode != 0


def test_a_torn_signature_is_not_taken_for_a_comment():
    for content in (SIGNED[:-128] + b"g" * 128, SIGNED[:-128] + b"A" * 128):
        with pytest.raises(ModelFileError):
            unpack_container(content)
