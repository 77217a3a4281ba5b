"""Criteria with labels and strata, as comparisons of cells."""

import numpy as np
import pytest

from fairtransport.criteria import DemographicParity, EqualizedOdds, EqualOpportunity
from fairtransport.criteria.criterion import as_criterion, resolve_criterion
from fairtransport.groups import make_groups
from fairtransport.strata import make_strata


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return make_groups(rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])), rng.integers(2, size=n), rng.choice(5, n)


def test_equalized_odds_compares_groups_among_rows_with_the_same_label():
    groups, labels, _ = table()
    pairs = resolve_criterion("equalized_odds", groups, labels=labels).comparisons()
    assert pairs.weights.tolist() == [0.5] * 6
    for one, other in pairs.pairs:
        assert len(set(labels[pairs.cells[one]]) | set(labels[pairs.cells[other]])) == 1
    assert sorted(np.concatenate(pairs.cells).tolist()) == list(range(400))


def test_equal_opportunity_compares_positive_rows_only():
    groups, labels, _ = table()
    pairs = resolve_criterion("equal_opportunity", groups, labels=labels).comparisons()
    assert len(pairs.pairs) == 3
    assert pairs.weights.tolist() == [1.0] * 3
    assert sorted(np.concatenate(pairs.cells).tolist()) == np.flatnonzero(labels == 1).tolist()


def test_strata_count_by_share_and_labels_the_same():
    groups, labels, values = table()
    strata = make_strata(values)
    parts = resolve_criterion("demographic_parity", groups, strata=strata).compared
    shares = np.bincount(values) / values.size
    assert [part.weight for part in parts] == pytest.approx(shares.tolist())
    both = resolve_criterion("equalized_odds", groups, labels=labels, strata=strata).compared
    for label in (0, 1):
        assert sum(part.weight for part in both if part.label == label) == pytest.approx(0.5)
    equal = resolve_criterion(DemographicParity(stratum_weight="equal"), groups, strata=strata).compared
    assert [part.weight for part in equal] == pytest.approx([0.2] * 5)


def test_strata_with_one_group_are_set_aside_and_counted():
    groups = make_groups(["a", "b", "a", "a", "b"])
    resolved = resolve_criterion("demographic_parity", groups, strata=make_strata([0, 0, 1, 1, 0]))
    assert [part.stratum for part in resolved.compared] == [0]
    assert resolved.set_aside == ((None, 1),)
    assert resolved.n_set_aside == 2
    with pytest.raises(ValueError, match="nothing to compare: no stratum has rows of two groups"):
        resolve_criterion("demographic_parity", groups, strata=make_strata([0, 1, 0, 0, 1]))


def test_targets_belong_to_strata():
    groups, labels, _ = table()
    targets = [np.linspace(0.0, 0.5, 10), np.linspace(0.5, 1.0, 10)]
    pairs = resolve_criterion("equalized_odds", groups, labels=labels).comparisons(targets)
    assert pairs.pairs.tolist() == [[0, 6], [1, 6], [2, 6], [3, 7], [4, 7], [5, 7]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"criterion": "parity"}, "criterion"),
        ({"criterion": "equalized_odds"}, "needs labels"),
        ({"criterion": "equalized_odds", "labels": [0, 1]}, "labels"),
        ({"criterion": "equalized_odds", "labels": np.full(400, 2)}, "0 or 1"),
        ({"criterion": "demographic_parity", "strata": make_strata([1, 2])}, "strata"),
    ],
)
def test_bad_input_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        resolve_criterion(groups=table()[0], **options)


def test_names_are_short_for_the_default_criteria():
    for one in (DemographicParity(), EqualizedOdds(), EqualOpportunity()):
        assert as_criterion(one.name) == as_criterion(one) == one
    assert EqualizedOdds(label_weight="share").stratum_weight == "share"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EqualizedOdds(label_weight="rows"), "label_weight must be one of 'equal', 'share'"),
        (lambda: DemographicParity(stratum_weight="rows"), "stratum_weight must be one of 'equal', 'share'"),
        (lambda: EqualOpportunity(stratum_weight=2), "stratum_weight must be one of 'equal', 'share'"),
        (lambda: as_criterion("parity"), "criterion must be one of"),
        (lambda: as_criterion(EqualizedOdds), "criterion must be one of"),
    ],
)
def test_wrong_criteria_are_refused(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()
