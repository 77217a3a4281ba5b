"""Settings of ``partial_fit``: how fast earlier rows are forgotten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairtransport._validation import check_real


@dataclass(frozen=True)
class OnlineSettings:
    """Settings of ``partial_fit``.

    Parameters
    ----------
    half_life : float
        After so many further rows a row counts half: for the linear models, rows of its group (1,000 where ``online``
        is omitted); for quantile repairs, rows of the stream (10,000), so that groups keep their shares.

    See Also
    --------
    TransportClassifier, TransportRegressor, QuantileRepair : Take it as ``online``.

    Examples
    --------
    >>> from fairtransport import TransportClassifier
    >>> from fairtransport.linear import OnlineSettings
    >>> TransportClassifier(online=OnlineSettings(half_life=300)).online.half_life
    300
    """

    half_life: float

    def __post_init__(self) -> None:
        check_real(self.half_life, name="half_life", strict=True, finite=False)


def half_life_of(online: Any, default: float) -> float:
    """Return the half-life of a parameter ``online``, which may be None."""
    if online is not None and not isinstance(online, OnlineSettings):
        raise ValueError(f"online must be None or an instance of OnlineSettings; got a {type(online).__name__}.")
    return default if online is None else float(online.half_life)
