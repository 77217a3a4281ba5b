"""Conditional repair: groups are compared within strata, which transform needs, too."""

import numpy as np
import pytest
from scipy.stats import wasserstein_distance
from tests.worlds import scores_in_strata

import fairtransport as ft
from fairtransport.repair.quantile import describe_repair


def within(scores, group, stratum, rows=slice(None)):
    """Largest distance between the groups of a stratum."""
    scores, group, stratum = scores[rows], group[rows], stratum[rows]
    return max(
        wasserstein_distance(scores[(stratum == s) & (group == "a")], scores[(stratum == s) & (group == "b")])
        for s in np.unique(stratum)
    )


def test_each_stratum_has_the_repair_of_its_rows():
    scores, y, group, stratum = scores_in_strata(3000, 2)
    for options in (
        {},
        {"target": "barycenter"},
        {"target": "b"},
        {"criterion": "equal_opportunity"},
        {"criterion": "equalized_odds"},
    ):
        repair = ft.QuantileRepair(**options).fit(scores, y, sensitive_features=group, strata=stratum)
        after = repair.transform(scores, sensitive_features=group, strata=stratum)
        for name in "rst":
            rows = stratum == name
            alone = ft.QuantileRepair(**options).fit(scores[rows], y[rows], sensitive_features=group[rows])
            np.testing.assert_allclose(
                after[rows], alone.transform(scores[rows], sensitive_features=group[rows]), atol=1e-12
            )


def test_small_cells_are_shrunk_to_the_map_of_the_group():
    scores, _, group, stratum = scores_in_strata(3000, 4)
    rare = np.flatnonzero((stratum == "t") & (group == "a"))
    kept = np.setdiff1d(np.arange(3000), rare[12:])
    data = {"sensitive_features": group[kept], "strata": stratum[kept]}
    repair = ft.QuantileRepair().fit(scores[kept], **data)
    within_maps = repair.stratum_maps_
    assert within_maps.sizes[2, 0] == 12
    assert within_maps.shares[2, 0] == pytest.approx(12 / 30)
    assert (within_maps.shares.ravel()[[0, 1, 2, 3, 5]] == 1).all()
    points = np.linspace(0, 1, 11)
    groups, strata = np.full(11, "a"), np.full(11, "t")
    overall = ft.QuantileRepair().fit(scores[kept], sensitive_features=group[kept])
    own = ft.QuantileRepair(groups=ft.GroupPolicy(min_size=1)).fit(scores[kept], **data)
    expected = 0.4 * own.transform(points, sensitive_features=groups, strata=strata)
    expected += 0.6 * overall.transform(points, sensitive_features=groups)
    np.testing.assert_allclose(repair.transform(points, sensitive_features=groups, strata=strata), expected, atol=1e-12)
    assert describe_repair(repair) == [
        "1 of 6 cells of a stratum and a group has fewer than 30 rows: its map is shrunk to that of the group"
    ]
    assert "its map is shrunk" in repair._repr_html_()


def test_a_cell_without_rows_uses_the_map_of_the_group_and_a_stratum_with_one_group_is_unchanged():
    scores, _, group, stratum = scores_in_strata(3000, 5)
    kept = np.flatnonzero(~((stratum == "t") & (group == "a")))
    repair = ft.QuantileRepair().fit(scores[kept], sensitive_features=group[kept], strata=stratum[kept])
    rows = (stratum == "t") & (group == "b")
    after = repair.transform(scores, sensitive_features=group, strata=stratum)
    np.testing.assert_allclose(after[rows], scores[rows])
    plain = ft.QuantileRepair().fit(scores[kept], sensitive_features=group[kept])
    rows = (stratum == "t") & (group == "a")
    np.testing.assert_allclose(after[rows], plain.transform(scores[rows], sensitive_features=group[rows]))
    assert "1 of 3 strata has rows of one group only: nothing to compare there" in describe_repair(repair)


def test_several_columns_and_numbers():
    scores, _, group, stratum = scores_in_strata(4000, 6)
    hours = np.random.default_rng(0).normal(40, 10, size=4000)
    strata = {"education": stratum, "hours": hours}
    repair = ft.QuantileRepair().fit(scores, sensitive_features=group, strata=strata)
    assert repair.strata_.columns == ("education", "hours")
    assert len(repair.strata_) > 10
    after = repair.transform(scores, sensitive_features=group, strata=strata)
    assert np.isfinite(after).all()
    assert within(after, group, stratum) < within(scores, group, stratum) / 2
    one = ft.QuantileRepair().fit(scores, sensitive_features=group, strata=np.full(4000, 7.0))
    np.testing.assert_allclose(
        one.transform(scores, sensitive_features=group, strata=np.full(4000, 7.0)),
        ft.QuantileRepair().fit_transform(scores, sensitive_features=group),
    )


def test_strata_that_cannot_be_used_raise():
    scores, _, group, stratum = scores_in_strata(500, 7)
    repair = ft.QuantileRepair(groups=ft.GroupPolicy(min_size=1)).fit(scores, sensitive_features=group, strata=stratum)
    plain = ft.QuantileRepair().fit(scores, sensitive_features=group)
    new = np.append(stratum[:-2], ["new", "new"])
    for method, strata, message in (
        (ft.QuantileRepair().fit, stratum[:-1], "strata has 499"),
        (ft.QuantileRepair().fit, group, "nothing to compare: no stratum has rows of two groups"),
        (repair.transform, None, "fitted within strata"),
        (repair.transform, stratum[:-1], "strata has 499"),
        (repair.transform, new, "2 of 500 rows belong to a stratum that was not seen in fit"),
        (plain.transform, stratum, "fitted without strata"),
    ):
        with pytest.raises(ValueError, match=message):
            method(scores, sensitive_features=group, strata=strata)
    with pytest.raises(ValueError, match="A repair within strata cannot follow a stream"):
        repair.partial_fit(scores, sensitive_features=group)
