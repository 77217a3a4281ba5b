"""Small inputs that ask for much, each read; run by the test, which looks at what this prints."""

import io
import json
import os
import resource
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np

import fairtransport as ft
from fairtransport.storage import pack_container, unpack_container
from fairtransport.storage._npy import from_npy
from fairtransport.storage.schema import from_json
from fairtransport.tables import Columns, count_table, open_files


def npy(shape, body=b""):
    head = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).encode()
    head += b" " * (118 - len(head)) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + body


def deflated(n_bytes):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("schema.json", "w") as part:
        for _ in range(n_bytes >> 20):
            part.write(b" " * (1 << 20))
    return held.getvalue()


def zipped(parts):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return held.getvalue()


def main():
    folder = Path(sys.argv[1])
    columns = Columns.named(score="s", sensitive_features="g")
    # What is loaded for any file, before memory is measured.
    unpack_container(pack_container("x", {"n": 1}, {"a": np.zeros(3)}))
    ft.QuantileRepair().fit([0.1, 0.2, 0.3, 0.4], sensitive_features=[0, 0, 1, 1])
    (folder / "warm.csv").write_text("s,g\n0.5,a\n0.25,b\n")
    (folder / "warm.jsonl").write_text('{"s": 0.5, "g": "a"}\n')
    for name in ("warm.csv", "warm.jsonl"):
        with open_files([folder / name]) as table:
            table.run(count_table, columns)
    ft.make_groups(["a", "b"])

    def linked(target):
        path = folder / "link.ft"
        path.symlink_to(target)
        return path

    def long(name):
        os.truncate(folder / name, 1 << 40)
        return folder / name

    def load(content):
        path = folder / "bomb.ft"
        path.write_bytes(content)
        ft.load(path)

    def read(name, content):
        path = folder / name
        path.write_bytes(content)
        with open_files([path], memory="128MiB", threads=1) as table:
            table.run(count_table, columns)

    CASES = {
        "zip of 256 MiB of blanks": lambda: load(deflated(256 << 20)),
        "shape of 2^60": lambda: load(zipped({"schema.json": b"{}", "arrays/a.npy": npy((1 << 60,))})),
        "shape of 2^60, alone": lambda: from_npy(npy((1 << 60,)), name="a"),
        "shape that overflows": lambda: from_npy(npy((1 << 32, 1 << 32)), name="a"),
        "deep JSON": lambda: load(zipped({"schema.json": b"[" * 2_000_000})),
        "deep JSON, as JSON": lambda: from_json(b"[" * 4_000_000, name="a"),
        "names that leave the folder": lambda: load(zipped({"../../schema.json": b"{}"})),
        "NUL in a name": lambda: load(zipped({"schema.json": b"{}", "arrays/a\0.npy": b""})),
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
    told = {}
    for name, call in CASES.items():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            call()
            answer = "accepted"
        except (ValueError, TypeError, OSError) as error:
            answer = type(error).__name__
        told[name] = [answer, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024]
    print(json.dumps(told))  # noqa: T201


if __name__ == "__main__":
    main()
