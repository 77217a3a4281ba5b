"""``--json``: the same on every command, to a file or to standard output."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from fairtransport.storage import write_atomically

__all__ = ["JsonGoal", "JsonTo"]

JsonTo = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="[PATH]",
        help="Write everything as JSON to a file; without PATH, or with -, to standard output instead of tables.",
    ),
]


@dataclass(frozen=True)
class JsonGoal:
    """Where JSON goes: a file, standard output, or nowhere."""

    given: str | None

    @property
    def to_stdout(self) -> bool:
        """Whether standard output is for programs."""
        return self.given == "-"

    @property
    def path(self) -> Path | None:
        """The file, if there is one."""
        return None if self.given is None or self.to_stdout else Path(self.given)

    def write(self, content: Any) -> None:
        """Write what JSON can hold, or text that is JSON already."""
        if self.given is None:
            return
        text = content if isinstance(content, str) else json.dumps(content, indent=2, allow_nan=False)
        if self.path is not None:
            write_atomically(self.path, (text + "\n").encode())
        else:
            typer.echo(text)
