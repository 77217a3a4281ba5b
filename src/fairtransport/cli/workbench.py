"""``fairtransport app``: the workbench in the browser."""

from __future__ import annotations

from pathlib import Path

import typer

from fairtransport._extras import load_extra
from fairtransport.cli import _options as shared
from fairtransport.cli._errors import print_stderr


@shared.described(
    file=shared.argument("FILE", "Table to open at once: CSV, Parquet, Excel, Feather or JSON lines."),
    port=shared.option("PORT", "0 takes a free one.", min=0, max=65535),
    projects=shared.option("DIR", "Folder of the projects [default: fairtransport in the home folder]."),
    browser=shared.flag("--browser/--no-browser", "Open the address in the browser."),
)
def run_app(file: str | None = None, *, port: int = 0, projects: Path | None = None, browser: bool = True) -> None:
    """Audit, choose, repair and train in the browser, without writing code.

    The page is for this machine only: it listens on 127.0.0.1, and the address that is printed works once. Nothing is
    sent elsewhere. Ctrl-C ends it; projects are kept.

    \b
    Example:
      fairtransport app
      fairtransport app scores.csv --projects audits
    """  # noqa: D301 - \b keeps the lines of the example
    for library in ("uvicorn", "starlette", "jinja2", "duckdb"):
        load_extra(library)
    from fairtransport.app.server import serve_app  # noqa: PLC0415 - takes a while

    if file is not None and not Path(file).is_file():
        raise FileNotFoundError(2, "There is no such file", file)
    home = Path.home() / "fairtransport" if projects is None else projects
    serve_app(file, home=home.resolve(), port=port, open_browser=browser, on_start=_say)
    raise typer.Exit(130)


def _say(url: str) -> None:
    print_stderr(f"workbench at {url}")
