"""Small inputs that ask for much, and large ones, each read; run by the test, which looks at what this prints."""

import gc
import hashlib
import io
import json
import os
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

import fairtransport as ft
from fairtransport.persistence import pack_model
from fairtransport.storage import pack_container, unpack_container
from fairtransport.storage._container import from_npy, write_zip
from fairtransport.storage.schema import from_json
from fairtransport.tables import Columns, count_table, open_files

# ------------------------------------------------------------------------------------------------------ model files


def npy(shape, body=b""):
    head = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).encode()
    head += b" " * (118 - len(head)) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + body


def deflated(n_bytes):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("schema.json", "w") as part:
        for _ in range(n_bytes >> 20):
            part.write(b" " * (1 << 20))
    return buffer.getvalue()


def zipped(parts):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def with_json(text):
    """A file with correct checksums and this JSON."""
    return write_zip({"schema.json": text}, comment=f"fairtransport sha256:{hashlib.sha256(text).hexdigest()}".encode())


def with_model(model, arrays=None):
    return pack_container("model", {"model": model, "people_per_point": 1, "changes": {}}, arrays or {})


def with_arrays(model, **arrays):
    """The file of a fitted model with other arrays."""
    container = unpack_container(pack_model(model, people_per_point=1)[0])
    return pack_container("model", container.schema, {**container.arrays, **arrays})


def scaler(names):
    fitted = {"feature_names_in_": {"$": "array", "name": "a"}}
    model = {"$": "object", "class": "sklearn.preprocessing.StandardScaler", "params": {}, "fitted": fitted}
    return with_model(model, {"a": names})


def spec_of(n_labels):
    return {"columns": ["a"], "grouping": "crossed", "missing": "error", "labels": [str(k) for k in range(n_labels)]}


def groups(n_labels):
    spec = spec_of(n_labels)
    return with_model({"$": "groups", "spec": {"$": "dict", "keys": [*spec], "values": [*spec.values()]}})


def histograms(n_labels, n_bins, n_rows=None):
    spec = {"range": [0.0, 1.0], "n_bins": n_bins, "n_classes": 1, "groups": spec_of(n_labels)}
    numbers = {"at": np.zeros(0, np.int64), "masses": np.zeros(0), "rows": np.zeros(n_rows or n_labels, np.int8)}
    parts = {name: {"$": "array", "name": name} for name in numbers}
    return with_model({"$": "histograms", "spec": json.dumps(spec), **parts}, numbers)


def sketches():
    parts = {name: {"$": "array", "name": name} for name in ("masses", "means")}
    return with_model({"$": "sketches", **parts}, {"masses": np.zeros((50_000, 8)), "means": np.empty((0, 2_000_000))})


def large_repair(dtype, n_knots=1_500_000):
    scores, group = np.arange(200) / 199, np.arange(200) % 2
    repair = ft.QuantileRepair().fit(scores, sensitive_features=group)
    line, rows = np.linspace(0, 1, n_knots).astype(dtype), np.ones(n_knots, np.int64)
    ours = {f"model.maps_.{k}.{name}": line for k in (0, 1) for name in ("knots", "images")}
    return with_arrays(repair, **ours, **{f"model.rows_at_knots_.{k}": rows for k in (0, 1)})


def large_encoder(n_categories, dtype):
    encoder = OneHotEncoder().fit(np.arange(3)[:, None])
    return with_arrays(encoder, **{"model.categories_.0": np.arange(n_categories).astype(dtype)})


def large_regression(dtype):
    regression = LogisticRegression().fit(np.arange(8.0).reshape(4, 2), [0, 0, 1, 1])
    container = unpack_container(pack_model(regression)[0])
    container.schema["model"]["fitted"]["n_features_in_"] = 1 << 20
    return pack_container("model", container.schema, {**container.arrays, "model.coef_": np.ones((1, 1 << 20), dtype)})


FILES = {
    "zip of 256 MiB of blanks": lambda: deflated(256 << 20),
    "shape of 2^60": lambda: zipped({"schema.json": b"{}", "arrays/a.npy": npy((1 << 60,))}),
    "deep JSON": lambda: zipped({"schema.json": b"[" * 2_000_000}),
    "deep JSON with a checksum": lambda: with_json(b"[" * 290_000),
    "names that leave the folder": lambda: zipped({"../../schema.json": b"{}"}),
    "NUL in a name": lambda: zipped({"schema.json": b"{}", "arrays/a\0.npy": b""}),
    "many parts": lambda: zipped({f"a{k}": b"" for k in range(60_000)}),
    "many lists in JSON": lambda: with_json(b"[" + b"[]," * 1_398_000 + b"[]]"),
    "as many lists as allowed": lambda: with_json(b"[" + b",".join([b"[" * 50 + b"]" * 50] * 5_800) + b"]"),
    "as many dicts as allowed": lambda: with_json(b"[" + b",".join([b'{"a":0}'] * 99_000) + b"]"),
    "as many keys as allowed": lambda: with_json(b"{" + b",".join(b'"%x":[]' % k for k in range(99_000)) + b"}"),
    "many dicts in JSON": lambda: with_json(b"[" + b"{}," * 1_398_000 + b"{}]"),
    "many keys in JSON": lambda: with_json(b"{" + b",".join(b'"%x":0' % k for k in range(400_000)) + b"}"),
    "many numbers in JSON": lambda: with_json(b"[" + b"0," * 2_090_000 + b"0]"),
    "wide text in JSON": lambda: with_json(b'["\xf0\x9f\x98\x80' + b"a" * 4_000_000 + b'"]'),
    "many lists in a model": lambda: with_model([[]] * 145_000),
    "many tuples in a model": lambda: with_model([{"$": "tuple", "items": []}] * 45_000),
    "many labels of groups": lambda: groups(250_000),
    "many texts as objects": lambda: with_model({"$": "objects", "shape": [280_000], "items": ["x"] * 280_000}),
    "a grid, many times": lambda: with_model([{"$": "grid", "low": 0.0, "high": 1.0, "n_bins": 1 << 20}] * 25_000),
    "names of columns": lambda: scaler(np.full(16_000_000, "\u4e00")),
    "names of columns in 8 bits": lambda: scaler(np.zeros(32_000_000, np.int8)),
    "histograms of 2^20 bins": lambda: histograms(2, 1 << 20),
    "histograms of many groups": lambda: histograms(100_000, 1 << 10),
    "histograms of many rows": lambda: histograms(2, 8, n_rows=32_000_000),
    "sketches without rows": sketches,
    "a repair of 3,000,000 knots": lambda: large_repair(np.float64),
    "a repair in single precision": lambda: large_repair(np.float32),
    "a repair in half precision": lambda: large_repair(np.float16),
    "10,000,000 categories": lambda: large_encoder(10_000_000, np.int64),
    "weights of 2^20 columns": lambda: large_regression(np.float64),
    "weights in half precision": lambda: large_regression(np.float16),
    "an array without rows": lambda: scaler(np.empty((0, 2**31 - 1))),
}


def others(folder):
    columns = Columns.named(score="s", sensitive_features="g")
    for name, text in {"warm.csv": "s,g\n0.5,a\n0.25,b\n", "warm.jsonl": '{"s": 0.5, "g": "a"}\n'}.items():
        (folder / name).write_text(text)
        with open_files([folder / name]) as table:  # what is loaded for any file, before memory is measured
            table.run(count_table, columns)
    ft.make_groups(["a", "b"])

    def linked(target):
        path = folder / "link.ft"
        path.symlink_to(target)
        return path

    def long(name):
        os.truncate(folder / name, 1 << 40)
        return folder / name

    def read(name, content):
        path = folder / name
        path.write_bytes(content)
        with open_files([path], memory="128MiB", threads=1) as table:
            table.run(count_table, columns)

    return {
        "shape of 2^60, alone": lambda: from_npy(npy((1 << 60,)), name="a"),
        "shape that overflows": lambda: from_npy(npy((1 << 32, 1 << 32)), name="a"),
        "deep JSON, as JSON": lambda: from_json(b"[" * 4_000_000, name="a"),
        "a link to a device": lambda: ft.load(linked("/dev/zero")),
        "a device": lambda: ft.load("/dev/zero"),
        "a file of 1 TiB without bytes": lambda: ft.load(long("warm.csv")),
        "deep JSON line": lambda: read("a.jsonl", b'{"s": 0.5, "g": ' + b"[" * 1_000_000 + b"\n"),
        "a line without end": lambda: read("a.csv", b"s,g\n" + b"x" * 20_000_000),
        "columns without end": lambda: read("a.csv", b"," * 1_000_000 + b"\n"),
        "NUL in a table": lambda: read("a.csv", b"s,g\n0.5,\0\n\0,b\n" * 3),
        "a million groups": lambda: ft.make_groups([str(i) for i in range(1_000_000)]),
        "a group of 10 MB": lambda: ft.make_groups(["x" * 10_000_000, "y"]).require(min_size=2),
    }


def memory(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def measure(call):
    """Return the answer, and the MiB by which the memory of the process grew at most."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the largest memory so far is that of now
    before = memory("VmRSS:")
    try:
        call()
        answer = "accepted"
    except (ValueError, TypeError, OSError) as error:
        answer = type(error).__name__
    return answer, memory("VmHWM:") - before


def main():
    folder = Path(sys.argv[1])
    path = folder / "bomb.ft"
    path.write_bytes(large_repair(np.float64, 100))
    ft.load(path)  # what is loaded for any file, before memory is measured
    found = {}
    for name, make in FILES.items():
        path.write_bytes(make())
        size = path.stat().st_size / (1 << 20)
        found[name] = (*measure(lambda: ft.load(path)), 3 * size + 100)
    for name, call in others(folder).items():
        found[name] = (*measure(call), 350)  # engines have buffers of their own
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main()
