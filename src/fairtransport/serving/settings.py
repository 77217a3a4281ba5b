"""Settings of a server, checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtransport._validation import check_choice, check_count, check_real

__all__ = ["ServerSettings"]


@dataclass(frozen=True)
class ServerSettings:
    """Settings of a server of one model.

    Attributes
    ----------
    model : path
        Model file, as `fairtransport.save` or ``fairtransport train`` writes it.
    verify : path, bytes or key, optional
        Public key that the file, and each later version of it, must be signed for; see `fairtransport.load`.
    unknown_group : {"error", "pooled", "common"}, default="error"
        Treatment of rows of unknown groups; see `fairtransport.tabular.RowScorer`.
    features, score
        Names of the columns, for a model that was fitted without names or a `QuantileRepair`; see the same class.
    max_bytes, max_rows : int, default=16 MiB and 100,000
        Largest body and number of rows of a request.
    timeout : float, default=30
        Seconds in which the body of a request must arrive, and in which it must be answered.
    max_connections : int, default=1000
        Connections that a process holds open; further ones are closed.
    token : str, optional
        Requests must have the header ``Authorization: Bearer TOKEN``; those for ``/healthz`` and ``/readyz`` need not.
    reload_every : float, default=2
        Seconds between two checks for a new version of the model file.
    min_group_rows : int, default=30
        Groups with fewer rows are not shown in ``/metrics``.
    store : path, optional
        Store of a stream: the model is adjusted to the rows that it scores.
    batch : int, default=500
        With a store, rows of waiting requests that are adjusted to at once.
    frozen : bool, default=False
        With a store, monitor without adjusting.
    remembered : int, default=10,000
        With a store, the number of answers that are kept for requests that are sent again.
    hosts : tuple of str, default=()
        Permitted values of the header ``Host``; empty for any.
    """

    model: Path
    verify: Any = None
    unknown_group: str = "error"
    features: tuple[str, ...] | None = None
    score: str = "score"
    max_bytes: int = 16 * 2**20
    max_rows: int = 100_000
    timeout: float = 30.0
    max_connections: int = 1000
    token: str | None = None
    reload_every: float = 2.0
    min_group_rows: int = 30
    store: Path | None = None
    batch: int = 500
    frozen: bool = False
    remembered: int = 10_000
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", Path(self.model))
        check_choice(self.unknown_group, ("error", "pooled", "common"), name="unknown_group")
        for name in ("max_bytes", "max_rows", "max_connections", "batch", "remembered", "min_group_rows"):
            check_count(getattr(self, name), name=name)
        check_real(self.timeout, name="timeout", strict=True)
        check_real(self.reload_every, name="reload_every", strict=True)
        if self.token is not None and (not self.token or not self.token.isascii() or not self.token.isprintable()):
            raise ValueError("The token must be a text of printable ASCII characters, and not empty.")
