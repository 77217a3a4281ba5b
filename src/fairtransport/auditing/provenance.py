"""Provenance of an audit: files, columns, labels, the command, versions, seed and date."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fairtransport._text import shorten

_CHUNK = 1 << 20
_LIBRARIES = ("fairtransport", "numpy", "scipy", "scikit-learn", "numba")


@dataclass(frozen=True)
class SourceFile:
    """A file that an audit was made from: its name without folders, its size, and the hash of its content."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Provenance:
    """Provenance of an audit, for its readers.

    Parameters
    ----------
    title : str or None
    files : tuple of SourceFile
        Empty for audits of arrays and frames.
    rows : int or None
        Number of rows of the table, including those that were set aside.
    columns : dict of str to tuple of str
        Names of the columns by role: ``score``, ``sensitive_features``, ``label``, ``strata``, ``weight``.
    positive, command : str or None
        The label that counts as positive, and the command line.
    filters : tuple of str
        Which rows were selected before the audit, in words.
    strata_cuts : dict of str to tuple of float
        Points at which columns of the strata are cut: quantiles of the column.
    seed : int or None
        Of the bootstrap and of the permutations; None where it is not known.
    date, versions
        When the audit was made (ISO 8601, UTC), and the versions of the software.
    """

    title: str | None = None
    files: tuple[SourceFile, ...] = ()
    rows: int | None = None
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    positive: str | None = None
    filters: tuple[str, ...] = ()
    strata_cuts: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    command: str | None = None
    seed: int | None = None
    date: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def now(cls, **values: Any) -> Provenance:
        """Return a provenance with today's date and the versions of the software."""
        date = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(**{"date": date, "versions": software_versions(), **values})

    @classmethod
    def of_files(
        cls, paths: Iterable[Any], columns: Any, on_progress: Callable[[float], None] | None = None, **values: Any
    ) -> Provenance:
        """Return a provenance of now, with hashes of files and names of columns by role (`fairtransport.tables`)."""
        named = {role: name for role, name in vars(columns).items() if name}
        roles = {role: (name,) if isinstance(name, str) else tuple(name) for role, name in named.items()}
        return cls.now(files=describe_files(paths, on_progress), columns=roles, **values)

    @property
    def label_text(self) -> str:
        """The end of a headline that names the positive label; empty without one."""
        return "" if self.positive is None else f"; positive label: {shorten(self.positive, 40)}"

    def lines(self) -> Iterable[tuple[str, str]]:
        """Yield the parts that are known as pairs of a title and a text.

        Examples
        --------
        >>> list(Provenance(rows=12, columns={"score": ("s",)}, seed=0).lines())
        [('Rows', '12'), ('Score', 's'), ('Seed', '0')]
        """
        for file in self.files:
            yield "File", f"{file.name} ({file.bytes:,} bytes, sha256 {file.sha256})"
        if self.rows is not None:
            yield "Rows", f"{self.rows:,}"
        for role, names in self.columns.items():
            yield role.replace("_", " ").capitalize(), ", ".join(names)
        if self.positive is not None:
            yield "Positive label", self.positive
        for text in self.filters:
            yield "Selected", text
        for name, points in self.strata_cuts.items():
            yield f"Strata of {name}", f"cut at the quantiles {', '.join(f'{point:.6g}' for point in points)}"
        software = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        last = {"Command": self.command, "Seed": self.seed, "Date": self.date, "Software": software or None}
        yield from ((name, str(value)) for name, value in last.items() if value is not None)


def software_versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that figures depend on."""
    return {"python": platform.python_version(), **{name: version(name) for name in _LIBRARIES}}


def describe_files(
    paths: Iterable[str | os.PathLike[str]], on_progress: Callable[[float], None] | None = None
) -> tuple[SourceFile, ...]:
    """Return name, size and hash of files."""
    known = [Path(path) for path in paths]
    total, done = max(1, sum(path.stat().st_size for path in known)), 0
    files = []
    for path in known:
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                done += len(chunk)
                if on_progress is not None:
                    on_progress(min(done / total, 1.0))
        files.append(SourceFile(path.name, path.stat().st_size, digest.hexdigest()))
    return tuple(files)
