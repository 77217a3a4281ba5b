"""The command line: one command per file, each a thin call of the library (extra: ``cli``)."""

from __future__ import annotations

import importlib.util
import sys
import warnings

__all__ = ["main"]


def main() -> None:
    """Run the ``fairtransport`` command with the arguments of this process, and exit."""
    absent = [name for name in ("typer", "rich") if importlib.util.find_spec(name) is None]
    if absent:
        message = f'error: the command line needs {" and ".join(absent)}: pip install "fairtransport[cli]"'
        print(message, file=sys.stderr)  # noqa: T201 - rich is what is missing
        sys.exit(1)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")  # a terminal that lacks a character shows "?" instead
    # Without a writable /dev/shm joblib starts no processes; the commands work in threads.
    warnings.filterwarnings("ignore", message=".*joblib will operate in serial mode", category=UserWarning)
    try:
        from fairtransport.cli.app import app  # noqa: PLC0415 - typer may be missing above

        app(prog_name="fairtransport")
    except KeyboardInterrupt:  # before the command started
        print("stopped", file=sys.stderr)  # noqa: T201
        sys.exit(130)
