"""The container gives back what it was given, and believes nothing that it did not write."""

import hashlib
import io
import json
import os
import stat
import struct
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fairtransport.storage import ModelFileError, pack_container, read_container, unpack_container, write_atomically
from fairtransport.storage._container import from_npy, read_zip, to_npy, write_zip

ARRAYS = {"theta": np.arange(6.0).reshape(2, 3), "deep/er.flags": np.array([True, False]), "names": np.array(["ä", ""])}
SCHEMA = {"batch": 7, "labels": ["F", None, 1.5, True], "text": "\x00\u2028</script>"}
CONTENT = pack_container("checkpoint", SCHEMA, ARRAYS, reveals="nothing", versions={"river": "0.22"})

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
    | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
plain_types = (
    hnp.boolean_dtypes() | hnp.integer_dtypes(endianness="<") | hnp.unsigned_integer_dtypes(endianness=">")
    | hnp.floating_dtypes(sizes=(16, 32, 64)) | hnp.unicode_string_dtypes(max_len=4)
)  # fmt: skip


def same(one, other):
    return one.shape == other.shape and one.dtype == other.dtype.newbyteorder("=") and one.tobytes() == other.tobytes()


def test_there_and_back():
    container = unpack_container(CONTENT, kind="checkpoint")
    assert (container.schema, container.kind, container.reveals) == (SCHEMA, "checkpoint", "nothing")
    assert {"fairtransport", "numpy", "python", "river"} == set(container.made_by)
    assert sorted(container.arrays) == sorted(ARRAYS)
    assert all(same(container.arrays[name], array) for name, array in ARRAYS.items())
    assert all(array.flags.writeable for array in container.arrays.values())
    assert repr(container) == "Container(kind='checkpoint', 3 arrays, format_version=1)"


def test_equal_content_gives_equal_bytes_in_any_order():
    backwards = dict(reversed(ARRAYS.items()))
    again = pack_container("checkpoint", dict(reversed(SCHEMA.items())), backwards, reveals="nothing",
                           versions={"river": "0.22"})  # fmt: skip
    assert again == CONTENT
    assert pack_container("checkpoint", {**SCHEMA, "batch": 8}, ARRAYS) != CONTENT


def test_any_zip_tool_reads_it(tmp_path):
    path = write_atomically(tmp_path / "state.ft", pack_container("checkpoint", SCHEMA, ARRAYS))
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        head = json.loads(archive.read("schema.json"))
        np.testing.assert_array_equal(np.load(io.BytesIO(archive.read("arrays/theta.npy"))), ARRAYS["theta"])
        for name, part in head["parts"].items():
            assert hashlib.sha256(archive.read(name)).hexdigest() == part["sha256"]
    assert (head["format"], head["format_version"], head["content"]) == ("fairtransport", 1, SCHEMA)
    assert read_container(path, kind="checkpoint").schema == SCHEMA


@given(st.dictionaries(words, json_values, max_size=4))
def test_any_schema_comes_back(schema):
    assert unpack_container(pack_container("x", schema, {})).schema == schema


@given(hnp.arrays(plain_types, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)))
def test_any_plain_array_comes_back(array):
    if array.dtype.kind == "U" and any(0xD800 <= ord(letter) <= 0xDFFF for text in array.ravel() for letter in text):
        with pytest.raises(TypeError, match="not Unicode"):
            to_npy(array)
        return
    container = from_npy(to_npy(array), name="x")
    assert container.shape == array.shape
    assert container.dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(container, array)
    assert to_npy(np.array(array, order="F")) == to_npy(array)


@pytest.mark.parametrize(
    ("kind", "schema", "arrays", "error"),
    [
        ("Check Point", {}, {}, ValueError),
        ("x", {"a": float("nan")}, {}, TypeError),
        ("x", {"a": {1, 2}}, {}, TypeError),
        ("x", {"a": "y" * (5 << 20)}, {}, ValueError),
        ("x", {}, {"a": np.array([object()])}, TypeError),
        ("x", {}, {"a": np.array(["2020-01-01"], dtype="M8[D]")}, TypeError),
        ("x", {}, {"a": np.zeros(2, dtype="f8,i4")}, TypeError),
        ("x", {}, {"a": np.zeros(2, dtype=complex)}, TypeError),
        ("x", {}, {"../a": np.zeros(2)}, ValueError),
        ("x", {}, {"/a": np.zeros(2)}, ValueError),
        ("x", {}, {f"a{number}": np.zeros(0, dtype=bool) for number in range(10_001)}, ValueError),
    ],
)
def test_what_cannot_be_stored_is_refused_when_it_is_written(kind, schema, arrays, error):
    with pytest.raises(error):
        pack_container(kind, schema, arrays)


def forged(head=None, made=None, **changes):
    """A file whose checksums are right and whose content is not."""
    made = {"arrays/a.npy": to_npy(np.zeros(3))} if made is None else made
    base = {
        "format": "fairtransport", "format_version": 1, "kind": "x", "made_by": {"fairtransport": "9.9"},
        "reveals": "", "content": {},
        "parts": {n: {"bytes": len(p), "sha256": hashlib.sha256(p).hexdigest()} for n, p in made.items()},
    }  # fmt: skip
    text = json.dumps({**base, **changes}).encode() if head is None else head
    comment = f"fairtransport sha256:{hashlib.sha256(text).hexdigest()}".encode()
    return write_zip({**made, "schema.json": text}, comment=comment)


def npy_with_header(header, body=b"", version=1):
    padded = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H", len(padded)) + padded + body


def header(descr="'<f8'", shape="(3,)", fortran="False"):
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}"


BODY = bytes(24)
HEADERS = {
    "2**60": (header(shape=f"({2**60},)"), BODY),
    "2**60 of nothing": (header(shape=f"(0, {2**60})"), b""),
    "overflow to the right size": (header(shape=f"({2**61}, 8)"), b""),
    "negative sides": (header(shape="(-1, -3)"), BODY),
    "too many sides": (header(shape="(1, 1, 1, 1, 1, 1, 1, 1, 3)"), BODY),
    "not all there": (header(shape="(4,)"), BODY),
    "truth as a number": (header(shape="(True, 3)"), BODY),
    "truth as a number, of nothing": (header(shape="(False, 3)"), b""),
    "another way to write three": (header(shape="(0x3,)"), BODY),
    "a side with an underscore": (header(shape="(0_3,)"), BODY),
    "another order of keys": ("{'shape': (3,), 'descr': '<f8', 'fortran_order': False, }", BODY),
    "more than announced": (header(shape="(2,)"), BODY),
    "objects": (header(descr="'|O'"), BODY),
    "a record": (header(descr="[('a', '<f8')]"), BODY),
    "a subarray": (header(descr="('<f8', (3,))", shape="(1,)"), BODY),
    "nothing wide": (header(descr="'<U0'", shape=f"({2**30},)"), b""),
    "void": (header(descr="'|V8'"), BODY),
    "big-endian": (header(descr="'>f8'"), BODY),
    "dates": (header(descr="'<M8[s]'"), BODY),
    "Fortran": (header(fortran="True", shape="(3, 1)"), BODY),
    "no truth": (header(descr="'|b1'"), b"\x02\x01\x00"),
    "no letters": (header(descr="'<U1'"), b"\xff\xff\xff\xff" * 3),
    "half a pair of letters": (header(descr="'<U1'"), b"\x00\xd8\x00\x00" * 3),
    "code": ("__import__('os').system('false')", BODY),
    "deep": ("(" * 110, BODY),
    "no header": ("", BODY),
}


LYING = {
    **{name: npy_with_header(*case) for name, case in HEADERS.items()},
    "another version": npy_with_header(header(), BODY, version=2),
    "empty": b"",
    "pickle": b"\x80\x04N.",
    "only a beginning": b"\x93NUMPY\x01\x00\xff\xff",
}


@pytest.mark.parametrize("case", LYING)
def test_arrays_that_lie(case):
    with pytest.raises(ModelFileError, match="arrays/a"):
        unpack_container(forged(made={"arrays/a.npy": LYING[case]}))


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"kind": 3},
        {"kind": "no kind"},
        {"content": []},
        {"made_by": {"fairtransport": 1}},
        {"made_by": None},
        {"reveals": None},
        {"parts": {}},
        {"parts": None},
        {"parts": {"arrays/a.npy": {"bytes": 152, "sha256": "0" * 64}}},
        {"parts": {"arrays/a.npy": None}},
        {"parts": {"arrays/a.npy": {}, "arrays/b.npy": {}}},
        {"format_version": None},
        {"format_version": True},
        {"format_version": -1},
        {"format_version": 10**4000},
    ],
)
def test_heads_that_lie(change):
    unpack_container(forged())
    with pytest.raises(ModelFileError):
        unpack_container(forged(**change))


def test_an_unknown_version_comes_with_advice():
    with pytest.raises(ModelFileError, match=r"format version 2 \(written by fairtransport 9.9\).*Upgrade"):
        unpack_container(forged(format_version=2))
    with pytest.raises(ModelFileError) as caught:
        unpack_container(forged(format_version=2, made_by={"fairtransport": "\x1b[31m CANARY"}))
    assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[" * 200_000,
        b'{"a":' * 90_000,
        b'{"format": "fairtransport", "a": ' + b"[" * 150 + b"]" * 150 + b"}",
        b'{"format": "fairtransport", "format": "fairtransport"}',
        b'{"format": "fairtransport", "a": NaN}',
        b'{"format": "fairtransport", "a": 1e999}',
        b'{"format": "fairtransport", "a": ' + b"1" * 10_000 + b"}",
        b'{"format": "fairtransport", "a": "\\ud800"}',
        b"\xff\xfe",
        b"\x00" * 100,
        b" " * (5 << 20),
        b"[" + b"[]," * 1_000_000 + b"[]]",  # 3 MB that would take 130 MB
        b"[" + b"{}," * 1_000_000 + b"{}]",
        b"null",
        b"[]",
    ],
)
def test_json_that_is_none(text):
    with pytest.raises(ModelFileError):
        unpack_container(forged(text))


def zip_of(*entries, comment=b"", **options):
    """A zip by the standard library, in the order given."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **options) as archive, warnings.catch_warnings(action="ignore"):  # of duplicates
        archive.comment = comment
        for info, content in entries:
            archive.writestr(info, content)
    return buffer.getvalue()


def entry(name, mode=stat.S_IFREG | 0o644):
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    return info


NAMES = ["../schema.json", "/etc/passwd", "a\\b", "C:a", "a//b", "a/", "..", "", "a\x00b", "a\nb", "é", "a" * 500,
         ".hid"]  # fmt: skip
OTHERS = {
    **{f"name {name[:20]!r}": lambda name=name: zip_of((zipfile.ZipInfo(name or "x"), b"{}")) for name in NAMES},
    "a link": lambda: zip_of((entry("schema.json", stat.S_IFLNK | 0o777), b"/etc/passwd")),
    "a bomb": lambda: zip_of(("schema.json", bytes(64 << 20)), compression=zipfile.ZIP_DEFLATED),
    "bzip2": lambda: zip_of(("schema.json", b"{}"), compression=zipfile.ZIP_BZIP2),
    "lzma": lambda: zip_of(("schema.json", b"{}"), compression=zipfile.ZIP_LZMA),
    "another file": lambda: zip_of(("other.json", b"{}")),
    "many parts": lambda: zip_of(*((f"a{number}", b"") for number in range(10_001))),
    "nothing in it": zip_of,
    "empty": lambda: b"",
    "two letters": lambda: b"PK",
    "a beginning": lambda: b"PK\x03\x04",
    "an end": lambda: b"PK\x05\x06" + bytes(18),
    "pickle": lambda: b"\x80\x04\x95",
    "NUL": lambda: bytes(1000),
    "junk before": lambda: b"junk before" + CONTENT,
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_zips_and_no_zips(case):
    with pytest.raises(ModelFileError):
        unpack_container(OTHERS[case]())


def as_zipfile_writes(parts, comment):
    """A zip with the settings of ours."""
    return zip_of(*((entry(name), content) for name, content in parts), comment=comment)


def test_the_form_of_the_zip_is_that_of_the_standard_library():
    parts, comment = read_zip(CONTENT)
    assert as_zipfile_writes(parts.items(), comment) == CONTENT
    assert write_zip({}, comment=b"") == as_zipfile_writes([], b"")


@pytest.mark.parametrize("change", ["duplicate", "other order", "one is not listed", "another comment"])
def test_a_zip_of_our_own_settings_that_we_would_not_write(change):
    parts, comment = read_zip(CONTENT)
    items = list(parts.items())
    assert unpack_container(as_zipfile_writes(items, comment)).schema == SCHEMA
    changed = {
        "duplicate": [items[0], *items],
        "other order": items[::-1],
        "one is not listed": [*items, ("zz", b"")],
        "another comment": items,
    }[change]
    with pytest.raises(ModelFileError):
        unpack_container(as_zipfile_writes(changed, comment + b" " * (change == "another comment")))


@pytest.mark.parametrize("junk", [b"\0", b"\n", b"junk", b"PK\x05\x06" + bytes(18), bytes(70_000)])
def test_bytes_after_before_and_between_are_refused(junk):
    directory = CONTENT.index(b"PK\x01\x02")
    second = CONTENT.index(b"PK\x03\x04", 4)
    for changed in (
        CONTENT + junk,
        CONTENT + CONTENT,
        junk + CONTENT,
        CONTENT[:directory] + junk + CONTENT[directory:],
        CONTENT[:second] + junk + CONTENT[second:],
    ):
        with pytest.raises(ModelFileError):
            unpack_container(changed)


def test_every_truncation_and_every_flipped_bit_is_refused(record_property):
    """Also of bits that mean nothing to a zip tool, such as dates."""
    record_property("cases", 9 * len(CONTENT))
    for index in range(len(CONTENT)):
        for bit in range(9):
            damaged = bytearray(CONTENT[:index] if bit == 8 else CONTENT)
            if bit < 8:
                damaged[index] ^= 1 << bit
            with pytest.raises(ModelFileError):
                unpack_container(bytes(damaged))


@settings(max_examples=300)
@given(st.binary(max_size=300), st.integers(0, 150))
def test_any_bytes_as_an_array(content, keep):
    try:
        array = from_npy(to_npy(np.arange(3.0))[:keep] + content, name="x")
    except ModelFileError:
        return
    assert array.nbytes <= keep + len(content)


def test_no_more_is_read_than_allowed(tmp_path):
    path = write_atomically(tmp_path / "big.ft", pack_container("x", {}, {"a": np.zeros(2_000_000)}))
    tracemalloc.start()
    with pytest.raises(ModelFileError, match=r"has 16\d* bytes, more than max_bytes=1000.*raise max_bytes="):
        read_container(path, max_bytes=1000)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.reset_peak()
    assert read_container(path).arrays["a"].size == 2_000_000
    assert tracemalloc.get_traced_memory()[1] < 3.1 * path.stat().st_size
    tracemalloc.stop()


def test_only_plain_files_are_read_and_no_descriptor_stays_open(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "bad").write_bytes(b"bad")
    before = len([*Path("/dev/fd").iterdir()])
    for path in (tmp_path / "pipe", tmp_path, "/dev/zero"):
        with pytest.raises(ModelFileError, match="not a regular file"):
            read_container(path)
    for limit in (1, 1000):
        with pytest.raises(ModelFileError):
            read_container(tmp_path / "bad", max_bytes=limit)
    assert len([*Path("/dev/fd").iterdir()]) == before
    with pytest.raises(FileNotFoundError):
        read_container(tmp_path / "none")


def test_another_kind_is_refused(tmp_path):
    path = write_atomically(tmp_path / "a.ft", pack_container("note", {}, {}))
    with pytest.raises(ModelFileError, match="contains a 'note', but a 'model' is needed"):
        read_container(path, kind="model")
