"""Table 1 of the paper as printed."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["METRICS", "PUBLISHED", "published_value", "three_digits"]

METRICS: Mapping[str, str] = MappingProxyType(
    {
        "Err-.5": "error_rate",
        "Wass1": "wasserstein_disparity",
        "SDD": "strong_demographic_disparity",
        "SPDD": "strong_pairwise_disparity",
    }
)
"""The paper's names of the four metrics, and this package's."""


def _row(*values: float) -> Mapping[str, float]:
    return MappingProxyType(dict(zip(METRICS, values, strict=True)))


PUBLISHED: Mapping[str, Mapping[str, Mapping[str, float]]] = MappingProxyType(
    {
        "Adult": MappingProxyType(
            {
                "LR": _row(0.142, 0.313, 0.426, 0.806),
                "DOT": _row(0.175, 0.027, 0.023, 0.054),
                "DPP": _row(0.170, 0.025, 0.017, 0.043),
                "COT": _row(0.175, 0.023, 0.020, 0.044),
            }
        ),
        "German": MappingProxyType(
            {
                "LR": _row(0.248, 0.103, 0.102, 0.102),
                "DOT": _row(0.282, 0.035, 0.020, 0.020),
                "DPP": _row(0.248, 0.032, 0.024, 0.024),
                "COT": _row(0.242, 0.042, 0.027, 0.027),
            }
        ),
        "Communities": MappingProxyType(
            {
                "LR": _row(0.116, 1.435, 1.402, 7.649),
                "DOT": _row(0.327, 0.207, 0.176, 0.848),
                "DPP": _row(0.327, 0.356, 0.159, 0.821),
                "COT": _row(0.324, 0.223, 0.204, 0.928),
            }
        ),
    }
)
"""Data set, method, metric (names as the paper has them) -> the printed value, on test rows."""


def published_value(dataset: str, method: str, metric: str) -> float | None:
    """Return the printed figure, or None where the paper has none.

    Parameters
    ----------
    dataset, method : str
        As in our table, with a variant in parentheses: ``"Communities (each)"``, ``"COT (anchor)"``. Variants
        have the published figure of the method itself.
    metric : str
        One of `METRICS`, in the paper's spelling.

    Returns
    -------
    float or None

    Examples
    --------
    >>> published_value("Adult", "COT (anchor)", "Wass1")
    0.023
    >>> published_value("Adult", "EquiPy", "Wass1") is None
    True
    """
    plain_dataset, plain_method = dataset.partition(" (")[0], method.partition(" (")[0]
    return PUBLISHED.get(plain_dataset, {}).get(plain_method, {}).get(metric)


def three_digits(value: float) -> str:
    """Write a number as the paper does, without the leading zero.

    Parameters
    ----------
    value : float

    Returns
    -------
    str

    Examples
    --------
    >>> three_digits(0.0451), three_digits(1.2)
    ('.045', '1.200')
    """
    return f"{value:.3f}".replace("0.", ".", 1) if abs(value) < 0.9995 else f"{value:.3f}"
