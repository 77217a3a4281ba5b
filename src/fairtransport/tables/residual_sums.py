"""Sums of residuals of real-valued labels, by group and decile of the score, on the engine that holds the table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from fairtransport.tables._dask_partitions import sum_partitions
from fairtransport.tables._engines import collect

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtransport.groups import Groups
    from fairtransport.histograms import GroupHistograms
    from fairtransport.tables.column_roles import Columns

__all__ = ["PRODUCTS", "ResidualSums", "collect_residuals", "decile_edges"]

_N_DECILES = 10
_N_TERMS = 6
#: Pairs of terms whose products are summed, for the covariances of their means.
PRODUCTS = tuple((one, other) for one in range(_N_TERMS) for other in range(one, _N_TERMS))


@dataclass(frozen=True, eq=False)
class ResidualSums:
    r"""Sums over the rows of each group and decile.

    Parameters
    ----------
    centre, scale : float
        Of labels y and scores s, :math:`r = (y - s) / scale` and :math:`d = (y - centre) / scale`.
    edges : array of shape (n_deciles - 1,)
        Scores up to the first edge are in the first decile.
    groups : Groups
        The groups of the entries.
    deciles : array of int of shape (n_entries,)
    sums : array of shape (n_entries, 6)
        Sums of the weights times 1, r, \|r\|, :math:`r^2`, d and :math:`d^2`.
    products : array of shape (n_entries, 21)
        Sums of the squared weights times the products of every two of these terms, as in `PRODUCTS`.
    """

    centre: float
    scale: float
    edges: NDArray[np.float64]
    groups: Groups
    deciles: NDArray[np.int64]
    sums: NDArray[np.float64]
    products: NDArray[np.float64]


def decile_edges(histograms: GroupHistograms) -> NDArray[np.float64]:
    """Return the distinct scores that divide all rows into ten parts of about equal weight, or fewer."""
    levels = np.arange(1, _N_DECILES) / _N_DECILES
    places = np.searchsorted(histograms.cdf_of_everyone, levels * (1 - 1e-12))
    last = np.flatnonzero(histograms.everyone)[-1]
    return np.unique(histograms.grid.nodes[places[places < last]])


def collect_residuals(
    table: nw.LazyFrame[Any], columns: Columns, edges: NDArray[np.float64]
) -> tuple[nw.DataFrame[Any], float, float]:
    """Sum the terms on the engine.

    Parameters
    ----------
    table : LazyFrame
    columns : Columns
        Names of the columns in ``table``; rows without score, label or weight are left out.
    edges : array
        As in `ResidualSums`.

    Returns
    -------
    tuple of DataFrame and two floats
        One row for each combination of the groups' columns (g0, g1, ...) and decile, with the columns s0 to s5 and p0
        to p20; and the centre and scale of the labels.
    """
    named = {f"g{number}": nw.col(name) for number, name in enumerate(columns.sensitive_features)}
    chosen = {
        **named,
        "score": nw.col(columns.score).cast(nw.Float64),
        "y": nw.col(str(columns.label)).cast(nw.Float64),
        "w": nw.lit(1.0) if columns.weight is None else nw.col(columns.weight).cast(nw.Float64),
    }
    whole = table.select(**chosen)
    known = [(nw.col(name) > float("-inf")) & (nw.col(name) < float("inf")) for name in ("score", "y", "w")]
    finite = whole.filter(known[0] & known[1] & known[2])
    row = collect(finite.select(mean=nw.col("y").mean(), deviation=nw.col("y").std())).rows(named=True)[0]
    centre = float(row["mean"] or 0.0)
    deviation = row["deviation"]
    scale = float(deviation) if deviation is not None and deviation > 0 else 1.0
    add = partial(_sum_terms, keys=[*named], edges=edges, centre=centre, scale=scale)
    summed = sum_partitions(finite, add, keys=[*named, "decile"]) if table.implementation.is_dask() else add(finite)
    return collect(summed), centre, scale


def _sum_terms(
    table: nw.LazyFrame[Any], *, keys: list[str], edges: NDArray[np.float64], centre: float, scale: float
) -> nw.LazyFrame[Any]:
    score, y, weight = nw.col("score"), nw.col("y"), nw.col("w")
    decile = nw.lit(0, nw.Int64)
    for edge in edges.tolist():
        decile = decile + nw.when(score > edge).then(nw.lit(1, nw.Int64)).otherwise(nw.lit(0, nw.Int64))
    prepared = table.with_columns(decile=decile, r=(y - score) / scale, d=(y - centre) / scale)
    r, d = nw.col("r"), nw.col("d")
    terms = [nw.lit(1.0), r, r.abs(), r * r, d, d * d]
    sums = {f"s{number}": weight * term for number, term in enumerate(terms)}
    products = {
        f"p{number}": weight * weight * terms[one] * terms[other] for number, (one, other) in enumerate(PRODUCTS)
    }
    values = prepared.select(*keys, "decile", **sums, **products)
    return values.group_by(*keys, "decile").agg(nw.col(*sums, *products).sum())
