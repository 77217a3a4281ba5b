"""Criteria resolved for the rows of a table: where groups are compared, with what weight and target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport._validation import check_choice, check_length
from fairtransport.criteria.comparisons import Comparisons
from fairtransport.criteria.penalty import DiscretePenalty, TransportPenalty
from fairtransport.groups import Groups
from fairtransport.strata import STRATUM_WEIGHTS, Strata, stratum_weights
from fairtransport.transport.line import Sample
from fairtransport.transport.targets import resolve_target

# Which groups are compared with which, where there is no target.

#: Largest number of groups of which all pairs are compared; beyond it each group is compared with everyone.
MAX_PAIRED_GROUPS = 20


def pairs_of_groups(n_groups: int) -> list[tuple[int, int]]:
    """Return all pairs of groups or, beyond `MAX_PAIRED_GROUPS`, of each group and everyone (index ``n_groups``)."""
    if n_groups > MAX_PAIRED_GROUPS:
        return [(group, n_groups) for group in range(n_groups)]
    return list(combinations(range(n_groups), 2))


@dataclass(frozen=True)
class DemographicParity:
    """All rows of the groups are compared or, with strata, those in the same stratum (conditional parity).

    ``criterion="demographic_parity"`` is the same as ``criterion=DemographicParity()``.

    Parameters
    ----------
    stratum_weight : {"equal", "share"}, optional
        Whether strata count the same or by their share of the rows, which is the default.

    Examples
    --------
    >>> from fairtransport import TransportClassifier
    >>> from fairtransport.criteria import DemographicParity
    >>> TransportClassifier(criterion=DemographicParity(stratum_weight="equal")).criterion.name
    'demographic_parity'
    """

    name: ClassVar[str] = "demographic_parity"

    stratum_weight: str | None = None

    def __post_init__(self) -> None:
        _check_weight(self.stratum_weight, "stratum_weight")


@dataclass(frozen=True)
class EqualizedOdds:
    """Rows of the groups with the same label are compared; those with a similar y, where it is a number.

    Parameters
    ----------
    label_weight : {"equal", "share"}, optional
        Whether labels, and strata, count the same or by their share of the rows. By default two labels count the same,
        or the rarer one would hardly count, and ranges of a real y and strata by share.
    """

    name: ClassVar[str] = "equalized_odds"

    label_weight: str | None = None

    def __post_init__(self) -> None:
        _check_weight(self.label_weight, "label_weight")

    @property
    def stratum_weight(self) -> str | None:
        """The weight of labels and strata."""
        return self.label_weight


@dataclass(frozen=True)
class EqualOpportunity:
    """Rows of the groups with the positive label are compared.

    Parameters
    ----------
    stratum_weight : {"equal", "share"}, optional
        With strata: whether they count the same or by their share of the rows, which is the default.
    """

    name: ClassVar[str] = "equal_opportunity"

    stratum_weight: str | None = None

    def __post_init__(self) -> None:
        _check_weight(self.stratum_weight, "stratum_weight")


Criterion = DemographicParity | EqualizedOdds | EqualOpportunity
_CLASSES = (DemographicParity, EqualizedOdds, EqualOpportunity)

#: Criteria by name.
CRITERIA = tuple(one.name for one in _CLASSES)


def _check_weight(weight: Any, name: str) -> None:
    if weight is not None:
        check_choice(weight, STRATUM_WEIGHTS, name=name)


def as_criterion(value: Any) -> Criterion:
    """Return the criterion of a parameter ``criterion``: a name or an instance."""
    if isinstance(value, _CLASSES):
        return value
    check_choice(value, CRITERIA, name="criterion")
    return _CLASSES[CRITERIA.index(value)]()


def criterion_name(value: Any) -> str:
    """Return the name of the criterion of a parameter ``criterion``."""
    return as_criterion(value).name


def criterion_of(parameter: Any) -> Criterion:
    """Return the criterion of any estimator; that of other libraries, such as ``"gini"``, is demographic parity."""
    known = isinstance(parameter, _CLASSES) or (isinstance(parameter, str) and parameter in CRITERIA)
    return as_criterion(parameter) if known else DemographicParity()


def _name_of(criterion: str | Criterion) -> str:
    return str(getattr(criterion, "name", criterion))


def needs_labels(criterion: str | Criterion) -> bool:
    """Return whether a criterion compares people with the same label."""
    return _name_of(criterion) != "demographic_parity"


def criterion_text(criterion: str | Criterion, *, has_strata: bool) -> str:
    """Return the name of a criterion for texts."""
    name = _name_of(criterion)
    if name == "demographic_parity" and has_strata:
        return "conditional parity"
    return name.replace("_", " ") + (" within strata" if has_strata else "")


@dataclass(frozen=True, eq=False)
class ComparedStratum:
    """The rows within which groups are compared with each other.

    ``label`` is 0 or 1 where only rows with this label are compared; ``stratum`` is None without strata. ``groups`` are
    those with rows here, at least two. ``weight`` is that of each pair of groups; weights of all strata sum to 1.
    """

    label: int | None
    stratum: int | None
    groups: tuple[int, ...]
    rows: tuple[Ints, ...]
    weight: float


@dataclass(frozen=True, eq=False)
class ComparedStrata:
    """A criterion, resolved for the rows of a table.

    ``set_aside`` has labels and strata in which fewer than two groups have rows, ``n_set_aside`` the number of rows.
    """

    n_rows: int
    compared: tuple[ComparedStratum, ...]
    set_aside: tuple[tuple[int | None, int | None], ...] = ()
    n_set_aside: int = 0
    row_weights: Floats | None = None

    @property
    def is_everywhere(self) -> bool:
        """True if all rows are compared: demographic parity without strata."""
        return self.compared[0].label is None and self.compared[0].stratum is None

    @property
    def share_set_aside(self) -> float:
        """Share of the rows that the criterion is about in which nothing is compared."""
        n_compared = sum(np.unique(np.concatenate(stratum.rows)).size for stratum in self.compared)
        return self.n_set_aside / (n_compared + self.n_set_aside)

    def comparisons(self, targets: Sequence[Floats] | None = None) -> Comparisons:
        """Return the pairs of cells: of groups within each stratum or, with targets, of each group and its target."""
        cells: list[Ints] = []
        names: list[int | None] = []
        strata: list[int] = []
        pairs: list[tuple[int, int]] = []
        weights: list[float] = []
        n_targets = 0 if targets is None else len(targets)
        # Sums of floating-point numbers depend on their order, which must not depend on the names of groups or strata.
        for number, stratum in sorted(enumerate(self.compared), key=lambda one: _order_of(one[1])):
            order = sorted(range(len(stratum.groups)), key=lambda k: (stratum.rows[k].size, int(stratum.rows[k][0])))
            first, n = len(cells), len(order)
            cells += [stratum.rows[k] for k in order]
            names += [stratum.groups[k] for k in order]
            if n_targets:  # targets come before the first cell until the number of cells is known
                new = [(first + k, number - n_targets) for k in range(n)]
            else:
                new = [(first + one, first + other) for one, other in pairs_of_groups(n)]
            if any(other == first + n for _, other in new):  # everyone
                cells.append(np.unique(np.concatenate(stratum.rows)))
                names.append(None)
            strata += [number] * (len(cells) - first)
            pairs += new
            weights += [stratum.weight] * len(new)
        return Comparisons.of_cells(
            self.n_rows,
            cells,
            [(one, other if other >= 0 else len(cells) + n_targets + other) for one, other in pairs],
            weights=weights,
            targets=() if targets is None else targets,
            row_weights=self.row_weights,
            names=names,
            strata=() if self.is_everywhere else strata,
            families=None if self.is_everywhere else self._families(pairs, names, strata),
        )

    def _families(self, pairs: list[tuple[int, int]], names: list[int | None], strata: list[int]) -> Ints:
        """Return the same number for pairs of the same groups, with the same label, in different strata."""
        numbers: dict[tuple[Any, ...], int] = {}
        families = []
        for one, other in pairs:
            compared = {names[one], None if other < 0 else names[other]}
            key = (self.compared[strata[one]].label, frozenset(compared))
            families.append(numbers.setdefault(key, len(numbers)))
        return np.array(families, dtype=np.int64)


def resolve_criterion(
    criterion: str | Criterion,
    groups: Groups,
    *,
    labels: ArrayLike | None = None,
    strata: Strata | None = None,
    row_weights: Floats | None = None,
) -> ComparedStrata:
    """Return where a criterion compares groups.

    Examples
    --------
    >>> from fairtransport.groups import make_groups
    >>> groups = make_groups(["a", "b", "a", "b", "b"])
    >>> odds = resolve_criterion("equalized_odds", groups, labels=[0, 0, 1, 1, 1])
    >>> [(part.label, part.weight) for part in odds.compared]
    [(0, 0.5), (1, 0.5)]
    >>> odds.comparisons().pairs.tolist()
    [[0, 1], [2, 3]]
    """
    criterion = as_criterion(criterion)
    if strata is not None:
        check_length(range(strata.n_rows), size=groups.n_rows, name="strata")
    by_label = _label_masks(criterion.name, groups.n_rows, labels)
    found: list[ComparedStratum] = []
    set_aside: list[tuple[int | None, int | None]] = []
    n_set_aside = 0
    for label, of_label in by_label:
        for stratum in [None] if strata is None else range(len(strata)):
            inside = of_label.copy() if strata is None else of_label & (strata.codes == stratum)
            if row_weights is not None:
                inside &= row_weights > 0.0
            rows = list(groups.rows) if inside.all() else [members[inside[members]] for members in groups.rows]
            present = tuple(number for number, members in enumerate(rows) if members.size)
            if len(present) < 2:
                n_inside = int(np.count_nonzero(inside))
                if n_inside:
                    set_aside.append((label, stratum))
                    n_set_aside += n_inside
                continue
            mass = float(np.count_nonzero(inside) if row_weights is None else row_weights[inside].sum())
            found.append(ComparedStratum(label, stratum, present, tuple(rows[number] for number in present), mass))
    if not found:
        where = "no stratum" if strata is not None else "no label"
        raise ValueError(
            f"There is nothing to compare: {where} has rows of two groups."
            if strata is not None or needs_labels(criterion)
            else "There is nothing to compare: fewer than two groups have rows with weight."
        )
    weights = stratum_weights([one.label for one in found], [one.weight for one in found], criterion.stratum_weight)
    compared = tuple(replace(one, weight=weight) for one, weight in zip(found, weights.tolist(), strict=True))
    return ComparedStrata(groups.n_rows, compared, tuple(set_aside), n_set_aside, row_weights)


def _order_of(stratum: ComparedStratum) -> tuple[int, int, int]:
    """Return what strata are sorted by: their label, size and first row."""
    first = min(int(rows[0]) for rows in stratum.rows)
    return stratum.label or 0, sum(rows.size for rows in stratum.rows), first


def _label_masks(criterion: str, n_rows: int, labels: ArrayLike | None) -> list[tuple[int | None, Bools]]:
    """Return the labels within which rows are compared, and the rows of each."""
    if not needs_labels(criterion):
        return [(None, np.ones(n_rows, dtype=bool))]
    if labels is None:
        raise ValueError(f"criterion={criterion!r} compares people with the same label, so it needs labels.")
    values = np.asarray(labels)
    check_length(values, size=n_rows, name="labels")
    if not np.isin(values, (0, 1)).all():
        raise ValueError("labels must be 0 or 1.")
    used = (0, 1) if criterion == "equalized_odds" else (1,)
    return [(label, values == label) for label in used]


# Weights of pairs by reliability: differences that chance explains for samples of these sizes do not count.

_MEAN_ABSOLUTE = float(np.sqrt(2.0 / np.pi))  # of a standard normal number
_BEYOND_CHANCE = 2.0  # times the mean distance under chance, which about one in thirty such pairs exceeds
_SLICES = 256
_SHUFFLES = 10
_ROUNDING = 1e-9


def chance_distances(scores: Floats, comparisons: Comparisons) -> Floats:
    r"""Return the mean Wasserstein-1 distance of each pair if both samples came from one distribution.

    With F the distribution function of all scores, or of those of the pair's stratum, and samples of sizes n and m, it
    is about :math:`\sqrt{2/\pi}\,\sqrt{1/n + 1/m} \int \sqrt{F (1 - F)}`.
    """
    return np.asarray(_MEAN_ABSOLUTE * chance_spreads(scores, comparisons) * comparisons.sampling_errors())


def chance_spreads(scores: Floats, comparisons: Comparisons) -> Floats:
    r"""Return :math:`\int \sqrt{F (1 - F)}` for each pair, F the distribution function of the rows of its stratum."""
    if not comparisons.strata:
        return np.full(len(comparisons.pairs), _spread(scores, comparisons.row_weights))
    strata = np.array(comparisons.strata)
    spreads = np.zeros(strata.max() + 1)
    for stratum in range(spreads.size):
        rows = np.unique(np.concatenate([comparisons.cells[cell] for cell in np.flatnonzero(strata == stratum)]))
        weights = None if comparisons.row_weights is None else comparisons.row_weights[rows]
        spreads[stratum] = _spread(scores[rows], weights)
    return np.asarray(spreads[strata[comparisons.pairs[:, 0]]])


def _spread(scores: Floats, row_weights: Floats | None) -> float:
    order = np.argsort(scores)
    weights = np.ones(scores.size) if row_weights is None else row_weights[order]
    height = np.cumsum(weights)[:-1] / weights.sum()
    return float(np.sqrt(np.maximum(height * (1.0 - height), 0.0)) @ np.diff(scores[order]))


def weigh_by_reliability(comparisons: Comparisons, scores: Floats) -> Comparisons:
    r"""Return comparisons weighted by how far their distances exceed those under chance for samples of their sizes.

    Notes
    -----
    With :math:`d_k` the Wasserstein-1 distance of a pair, :math:`c_k` twice its mean under chance, and
    :math:`d^*` the largest :math:`d_k - c_k` of all pairs, the weight of a pair is multiplied by
    :math:`(1 - c_k / \max(d_k, d^*))_+`. A pair of large groups counts almost in full also where it agrees, so that
    training keeps it so. A group of three rows neither dominates the sum nor dilutes it.

    What the pairs of a family (the same groups in many strata) show together is more precise than each of them. So
    :math:`d_k` is their mean, by precision, and :math:`c_k` the mean under chance plus the norm of its terms, which
    for one pair is twice its mean. Within a family, strata count by their precision: training would otherwise fit the
    noise of the small ones.
    """
    exact = DiscretePenalty(huber_width=0.0, n_slices=_SLICES, scale="score")
    distances = exact.value_and_gradient(scores, comparisons.reweighted(np.ones(len(comparisons.pairs)))).distances
    chance, errors = chance_distances(scores, comparisons), comparisons.sampling_errors()
    precision = comparisons.weights / errors
    families = np.arange(len(distances)) if comparisons.families is None else comparisons.families
    observed, _ = comparisons.family_means(distances, precision)
    expected, noise = comparisons.family_means(chance, precision)
    limit = expected + (_BEYOND_CHANCE - 1.0) * noise
    largest = float((observed - limit).max(initial=0.0))
    if largest <= 0.0:
        return comparisons.reweighted(np.zeros(len(comparisons.pairs)))
    scale = np.maximum(observed, largest)
    reliability = np.clip(1.0 - limit / scale, 0.0, 1.0)[families]
    reliability *= comparisons.smallest_errors() / errors
    return comparisons.reweighted(comparisons.weights * reliability)


def net_of_chance(comparisons: Comparisons, scores: Floats, penalty: TransportPenalty) -> tuple[Floats, float] | None:
    r"""Return which part of what chance adds to each distance is left out of a sum over strata, and what remains of it.

    The parts, multiplied with `Comparisons.sampling_errors`, are the factors of a `ChanceTerm`; None where every pair
    is on its own. Of k strata of equal size the part is :math:`1 - 1/\sqrt{k}`: what remains of chance is the error of
    the sum, as for one pair. The sum then does not fall when scores become equal within strata, whose groups agree.
    """
    if comparisons.families is None or not comparisons.active.size:
        return None
    chance = chance_distances(scores, comparisons)
    means, norms = comparisons.family_means(chance, comparisons.weights)
    parts = np.where(means > 0.0, 1.0 - norms / np.maximum(means, 1e-300), 0.0)
    if not (parts > _ROUNDING).any():
        return None
    by_stratum, people = comparisons.people(scores)
    expected = float(people.weights @ chance_distances(np.concatenate(by_stratum), people))
    by_chance = []
    for seed, step in product(range(_SHUFFLES), (1, -1)):  # both, so that labels may be exchanged
        rng = np.random.default_rng(seed)
        shuffled = np.concatenate([rng.permutation(one[::step]) for one in by_stratum])
        by_chance.append(penalty.value(shuffled, people))
    observed = np.mean(by_chance)
    expected /= penalty.unit if penalty.scale == "standardized" else 1.0
    by_pair = parts[comparisons.families]
    left_out, remaining = (float((comparisons.weights * chance) @ part) for part in (by_pair, 1.0 - by_pair))
    return np.asarray(_MEAN_ABSOLUTE * by_pair * float(observed) / expected), remaining / left_out


# The parameter ``target`` of estimators, resolved for the groups of a table.

#: The value of ``target`` with which groups are compared with each other.
EACH_OTHER = "each_other"


def compares_each_other(target: Any) -> bool:
    """Return whether a ``target`` means that groups are compared with each other."""
    return isinstance(target, str) and target == EACH_OTHER


def resolve_group_target(
    target: Any,
    scores: Floats,
    groups: Groups,
    weights: Floats | None,
    stratum: ComparedStratum | None = None,
    *,
    score_range: tuple[float, float] | None = (0.0, 1.0),
) -> Sample:
    """Return the distribution that a ``target`` names, for groups with these scores, of all rows or of a stratum."""

    def sample(rows: Any) -> Sample:
        return Sample.from_values(scores[rows], None if weights is None else weights[rows])

    rows_by_group, members = groups.rows, tuple(range(len(groups)))
    everyone: Any = slice(None)
    if stratum is not None and not (stratum.label is None and stratum.stratum is None):
        rows_by_group, members, everyone = stratum.rows, stratum.groups, np.unique(np.concatenate(stratum.rows))
    return resolve_target(
        target,
        [sample(rows) for rows in rows_by_group],
        [rows.size if weights is None else weights[rows].sum() for rows in rows_by_group],
        labels=[groups.labels[group] for group in members],
        names=[groups.names[group] for group in members],
        everyone=sample(everyone),
        score_range=score_range,
    )
