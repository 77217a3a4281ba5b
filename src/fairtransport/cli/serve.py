"""``fairtransport serve``: the scores of a model file over HTTP."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import typer

from fairtransport._extras import load_extra
from fairtransport.cli import _options as shared
from fairtransport.cli._errors import handling, misuse, print_stderr


@shared.described(
    host=shared.option("ADDRESS", "Address to listen on; 0.0.0.0 for other machines."),
    port=shared.option("PORT", "0 takes a free one.", min=0, max=65535),
    workers=shared.option("N", "Number of processes.", min=1),
    token_env=shared.option(
        "NAME", "Environment variable with a token, which requests must have: Authorization: Bearer TOKEN."
    ),
    adjust=shared.flag("--adjust", "Adjust the model to the rows that it scores, as `stream` does."),
    store=shared.option("DIR", "With --adjust: folder for checkpoints and answers."),
    freeze=shared.flag("--freeze", "With --adjust: monitor, but do not adjust the model."),
    batch=shared.option("N", "With --adjust: largest number of rows in a batch.", min=1),
    score=shared.REPAIRED_SCORE,
    max_body=shared.option("MIB", "Largest body of a request, in MiB.", min=0.001),
    max_rows=shared.option("N", "Largest number of rows in a request.", min=1),
    timeout=shared.option("SECONDS", "For the body of a request, and for its answer.", min=0.1),
    grace=shared.option("SECONDS", "For requests to finish after SIGTERM.", min=1),
    reload_every=shared.option("SECONDS", "Between looks at the model file.", min=0.1),
    min_group_rows=shared.option("N", "Groups with fewer rows are not in /metrics.", min=1),
)
def run_serve(
    model: str,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = 1,
    token_env: str | None = None,
    adjust: bool = False,
    store: Path | None = None,
    freeze: bool = False,
    batch: int = 500,
    unknown_group: str = "error",
    features: list[str] | None = None,
    score: str = "score",
    max_body: float = 16.0,
    max_rows: int = 100_000,
    timeout: float = 30.0,
    grace: float = 30.0,
    reload_every: float = 2.0,
    min_group_rows: int = 30,
    verify: str | None = None,
) -> None:
    """Serve the scores of a model over HTTP.

    POST /score takes rows as JSON, JSON lines, CSV or Arrow; GET / describes the columns. A new version of MODEL is
    served as soon as the file is replaced; if it is damaged, the old one goes on, and /healthz says why. There is no
    TLS: put a proxy in front that has it. SIGTERM and Ctrl-C finish the requests, SIGHUP looks for a new version.

    \b
    Exit status:
      0    SIGTERM
      1    the port is in use, the model cannot be loaded, or another failure
      64   wrong usage
      130  interrupted by Ctrl-C

    \b
    Example:
      fairtransport serve model.ft --port 8000 --workers 2
      fairtransport serve model.ft --adjust --store run
    """  # noqa: D301 - \b keeps the lines of the example
    if adjust != (store is not None):
        raise misuse("--adjust and --store DIR belong together")
    if freeze and not adjust:
        raise misuse("--freeze needs --adjust")
    if adjust and workers > 1:
        raise misuse("--adjust needs --workers 1: one process holds the model")
    token = None if token_env is None else os.environ.get(token_env)
    if token_env is not None and not token:
        raise misuse(f"the environment variable {token_env} of --token-env is not set")
    for library in ("uvicorn", "starlette", "prometheus_client"):
        load_extra(library)
    from fairtransport.serving import ServerSettings, serve  # noqa: PLC0415 - takes a while
    from fairtransport.serving.server import log_to_standard_error  # noqa: PLC0415

    settings = ServerSettings(
        Path(model),
        verify=verify,
        unknown_group=unknown_group,
        features=None if features is None else tuple(shared.split_names(features)),
        score=score,
        max_bytes=int(max_body * 2**20),
        max_rows=max_rows,
        timeout=timeout,
        token=token,
        reload_every=reload_every,
        min_group_rows=min_group_rows,
        store=store,
        batch=batch,
        frozen=freeze,
    )
    log_to_standard_error()
    if token is None and host not in {"127.0.0.1", "localhost", "::1"}:
        print_stderr("warning: other machines can ask for scores without a token; see --token-env")
    with handling(signal.SIG_IGN, "SIGHUP"):  # until the server runs, which looks for a new version of the model then
        ended_by = serve(
            settings,
            host=host,
            port=port,
            workers=workers,
            grace=grace,
            on_start=lambda url: print_stderr(f"serving {Path(model).name} at {url}"),
        )
    print_stderr("stopped")
    if ended_by == signal.SIGINT:
        raise typer.Exit(130)
