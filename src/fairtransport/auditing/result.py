"""The audit: every figure with how sure it is, in frozen records that JSON can hold."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fairtransport._extras import render
from fairtransport.auditing._audit_text import audit_text
from fairtransport.auditing._pair_summary import pair_summary
from fairtransport.auditing._small_groups import SmallGroups

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from fairtransport.auditing._pair_summary import PairSummary
    from fairtransport.auditing.proportions import Estimate
    from fairtransport.histograms import GroupHistograms

__all__ = [
    "QUANTILE_LEVELS",
    "Audit",
    "GroupSummary",
    "Reading",
    "Settings",
    "StratumSummary",
    "ThresholdSummary",
    "plain_values",
]

#: Levels of the quantiles that each group is described by.
QUANTILE_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)

_CDF_POINTS = 101  # of the distribution functions in `Audit.to_dict`


@dataclass(frozen=True)
class Reading:
    """A metric and how sure it is.

    Parameters
    ----------
    value : float
        As read from the data.
    low, high : float
        The interval. A disparity is read too high, the more so the smaller the groups; the interval takes this into
        account, so the value may lie in its upper part or even above it.
    corrected : float
        The value without that bias.
    margin : float
        Distribution-free: with the same confidence the truth is no farther from the value than this, whatever the
        distributions are (Dvoretzky-Kiefer-Wolfowitz; Hoeffding for the error). Wide, and valid for every size.
    floor : float or None
        Noise floor: the mean after shuffling group membership. None for the error.
    p_value : float or None
        How often chance alone reads as much, if the groups do not differ. None for the error.
    resolution : float
        By how much the value may be off because scores were counted at nodes; 0 for rows.
    """

    value: float
    low: float
    high: float
    corrected: float
    margin: float
    floor: float | None = None
    p_value: float | None = None
    resolution: float = 0.0


@dataclass(frozen=True)
class GroupSummary:
    """One group: its size, its scores, its errors.

    Parameters
    ----------
    name : str
    rows : int
    weight : float
        Total weight; the rows where there are no weights.
    effective_rows : float
        Rows of equal weight that would tell as much.
    unsure : bool
        Whether these are too few to say much; such a group is not judged at thresholds.
    mean : float
    quantiles : tuple of float
        At `QUANTILE_LEVELS`.
    distance_to_everyone : float
    error, auc : Estimate or None
        At the first threshold; where labels were given, and for the AUC where there are both.
    """

    name: str
    rows: int
    weight: float
    effective_rows: float
    unsure: bool
    mean: float
    quantiles: tuple[float, ...]
    distance_to_everyone: float
    error: Estimate | None = None
    auc: Estimate | None = None


@dataclass(frozen=True)
class ThresholdSummary:
    """What a threshold would do.

    Parameters
    ----------
    threshold : float
        Scores strictly above are selected.
    rates : tuple of Estimate
        Share selected, by group.
    overall : float
    ratios : tuple of float or None
        Each group's rate over the highest; None where nobody is selected.
    lowest, highest : int
        The groups of the extreme rates, of those that are sure (of all, where fewer than two are).
    difference, ratio : Estimate
        Between these two. The interval is for the pair, and does not count that it was picked.
    four_fifths : bool or None
        Whether the ratio is at least 0.8; None where nobody is selected.
    sure : bool
        Whether the interval of the ratio lies on one side of 0.8.
    errors : tuple of Estimate, or None
        Share decided wrongly, by group, where labels were given.
    """

    threshold: float
    rates: tuple[Estimate, ...]
    overall: float
    ratios: tuple[float | None, ...]
    lowest: int
    highest: int
    difference: Estimate
    ratio: Estimate
    four_fifths: bool | None
    sure: bool
    errors: tuple[Estimate, ...] | None = None


@dataclass(frozen=True)
class StratumSummary:
    """One stratum: the disparities among its rows.

    Parameters
    ----------
    name : str
    rows : int
    share : float
        Its share of the weight of all strata that are compared; 0 when set aside.
    n_groups : int
        Groups with rows here.
    n_unsure : int
        Those of them with too few rows to say much.
    metrics, floors, p_values : dict of str to float
        Empty when set aside: fewer than two groups, or not the one that is the target.
    """

    name: str
    rows: int
    share: float
    n_groups: int
    n_unsure: int
    metrics: Mapping[str, float]
    floors: Mapping[str, float]
    p_values: Mapping[str, float]


@dataclass(frozen=True)
class Settings:
    """How the figures were made.

    Parameters
    ----------
    target : str
        What the Wasserstein disparity is measured to, in words.
    confidence : float
    n_bootstrap, n_permutations : int
    exact : bool
        Whether figures are those of the rows. If not, they are those of histograms with ``n_bins`` bins.
    n_bins : int
    range : pair of float
        Of the scores. Distances are shares of it.
    columns : tuple of str
        The sensitive columns.
    weighted : bool
    null : str
        How "no difference" was drawn: ``"shuffled"`` (a permutation test) or ``"redrawn"`` (weights, or very many
        rows).
    n_nodes : int
        Bins in which noise was drawn.
    unsure_below : int
        Groups with fewer effective rows are unsure.
    set_aside : dict of str to int
        Rows that were not counted, by reason.
    small_groups : SmallGroups
        How groups of few rows were treated, and how many were pooled or left out.
    """

    target: str
    confidence: float
    n_bootstrap: int
    n_permutations: int
    exact: bool
    n_bins: int
    range: tuple[float, float]
    columns: tuple[str, ...]
    weighted: bool
    null: str
    n_nodes: int
    unsure_below: int
    set_aside: Mapping[str, int] = field(default_factory=dict)
    small_groups: SmallGroups = field(default_factory=SmallGroups)


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """How far apart the groups' scores are, for whom, where, and how sure that is.

    Made by `fairtransport.audit`. ``print(audit)`` shows it, `to_dict` hands it on.

    Parameters
    ----------
    groups : tuple of GroupSummary
    readings : dict of str to Reading
        The metrics with their intervals.
    thresholds : tuple of ThresholdSummary
    distances : array of shape (n_groups, n_groups)
        Between every two groups.
    farthest : PairSummary
        The two groups that are farthest apart (of those that are sure, where there are two), and where.
    auc : Estimate or None
        Of everyone, where labels were given.
    strata : tuple of StratumSummary
        Where strata were given.
    conditional : dict of str to Reading
        The metrics within strata: the mean over strata, by weight. Empty without strata.
    histograms : GroupHistograms
        The scores that all this is about, counted.
    settings : Settings
    """

    groups: tuple[GroupSummary, ...]
    readings: Mapping[str, Reading]
    thresholds: tuple[ThresholdSummary, ...]
    distances: NDArray[np.float64]
    farthest: PairSummary
    auc: Estimate | None
    strata: tuple[StratumSummary, ...]
    conditional: Mapping[str, Reading]
    histograms: GroupHistograms
    settings: Settings

    @property
    def metrics(self) -> dict[str, float]:
        """The values: ``error_rate`` (with labels), and the three disparities."""
        return {name: reading.value for name, reading in self.readings.items()}

    @property
    def rows(self) -> int:
        """How many rows were counted."""
        return int(self.histograms.rows.sum())

    @property
    def unsure(self) -> tuple[str, ...]:
        """Names of the groups that are too small to say much about."""
        return tuple(group.name for group in self.groups if group.unsure)

    def cdf(self, points: ArrayLike) -> NDArray[np.float64]:
        """Return the share of each group at or below each point: shape (n_groups, n_points)."""
        return 1.0 - self.histograms.shares_above(points).T

    def pair(self, one: Any, other: Any) -> PairSummary:
        """Return how far two groups, given by label or name, are apart and where.

        Examples
        --------
        >>> import fairtransport as ft
        >>> found = ft.audit([0.1, 0.2, 0.3, 0.9], sensitive_features=["a", "a", "b", "b"], n_bootstrap=99)
        >>> round(found.pair("a", "b").distance, 3)
        0.45
        """
        places = self.histograms.groups.index_of(one), self.histograms.groups.index_of(other)
        return pair_summary(self.histograms, *places, float(self.distances[places]))

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the histograms as plain values that JSON can hold; what is not finite is None."""
        points = self.histograms.grid.from_unit(np.linspace(0, 1, _CDF_POINTS))
        return plain_values(
            {
                "rows": self.rows,
                "metrics": self.metrics,
                "readings": {name: asdict(reading) for name, reading in self.readings.items()},
                "groups": [asdict(group) for group in self.groups],
                "quantile_levels": QUANTILE_LEVELS,
                "thresholds": [asdict(threshold) for threshold in self.thresholds],
                "distances": self.distances.tolist(),
                "farthest": asdict(self.farthest),
                "auc": None if self.auc is None else asdict(self.auc),
                "strata": [asdict(stratum) for stratum in self.strata],
                "conditional": {name: asdict(reading) for name, reading in self.conditional.items()},
                "cdf": {"points": points.tolist(), "groups": self.cdf(points).tolist()},
                "settings": asdict(self.settings),
            }
        )

    def to_json(self, *, indent: int | None = None) -> str:
        """Return `to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def plot(self, kind: str = "distribution", **options: Any) -> Any:
        """Draw the audit; needs the extra ``report``.

        Parameters
        ----------
        kind : {"distribution", "cdf", "pairs", "map"}, default "distribution"
            The groups' distributions; their distribution functions, with the disparity of the farthest pair as an area;
            the distance between every two groups; or where repair would carry each score.
        **options
            ``ax=``, and what ``from_audit`` of the display takes.

        Returns
        -------
        Display
            `fairtransport.report.GroupDistributionDisplay`, `CdfDisplay`, `PairwiseDisparityDisplay` or
            `TransportMapDisplay`, with ``ax_`` and ``figure_``.
        """
        return render("plot_audit", self, kind=kind, **options)

    def to_html(self, path: Any = None, **options: Any) -> Any:
        """Write the page that can be handed on; needs the extra ``report``.

        Parameters
        ----------
        path : path, optional
            File to write, in a folder that exists. An older file of that name is replaced, all at once. Without a path
            the page is returned as text.
        title : str, optional
            Heading of the page.
        repair_target : str, label or array, default "barycenter_w2"
            What the page's repair carries every group to; as in `fairtransport.QuantileRepair`.

        Returns
        -------
        Path or str
            One file that works offline: no network request, under 5 MB for any number of rows and up to 200 groups.
        """
        return render("audit_to_html", self, path=path, **options)

    def _repr_html_(self) -> str:
        """Show a notebook the verdict and the groups."""
        return str(render("audit_repr_html", self))

    def __repr__(self) -> str:
        spdd = self.readings["strong_pairwise_disparity"]
        told = f"{self.rows} rows in {len(self.groups)} groups, pairwise disparity {spdd.value:.3f}"
        return f"Audit({told}, {spdd.low:.3f} to {spdd.high:.3f})"

    def __str__(self) -> str:
        return audit_text(self)


def plain_values(value: Any) -> Any:
    """Turn tuples into lists, NumPy's numbers into Python's, and what is not finite into None."""
    if isinstance(value, dict):
        return {str(name): plain_values(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_values(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
