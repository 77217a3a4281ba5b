"""The output of ``--json``, to a file or to standard output."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from fairtransport.storage import write_atomically

__all__ = ["JsonOutput"]


@dataclass(frozen=True)
class JsonOutput:
    """Where JSON goes: to a file, to standard output, or nowhere.

    Parameters
    ----------
    option : str or None
        Value of ``--json``: a path, ``"-"`` for standard output, or None without the option.
    """

    option: str | None

    @property
    def to_stdout(self) -> bool:
        """Whether JSON is all that standard output gets."""
        return self.option == "-"

    @property
    def path(self) -> Path | None:
        """The file, if there is one."""
        return None if self.option is None or self.to_stdout else Path(self.option)

    def write(self, content: Any) -> None:
        """Write a value that JSON can represent, or text that is JSON already."""
        if self.option is None:
            return
        text = content if isinstance(content, str) else json.dumps(content, indent=2, allow_nan=False)
        if self.path is not None:
            write_atomically(self.path, (text + "\n").encode())
        else:
            typer.echo(text)
