"""TableModel: scores of raw rows do not depend on the batch; rows without a known group have none."""

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from tests.worlds import raw_people

import fairtransport as ft
from fairtransport.tabular import RowScorer, TableEncoder, TableModel
from fairtransport.tabular.held_out_evaluation import measure_models, split_table

CANARY = "Zebulon"
PLAIN = LogisticRegression(max_iter=1000)


def cot(**options):
    return ft.TransportClassifier(**{"parity_weight": 0.8, **options})


def make(estimator=PLAIN, **options):
    return TableModel(estimator, **{"label": "hired", "sensitive_features": ["sex"], **options})


@pytest.fixture(scope="module")
def blind():
    return make(cot()).fit(raw_people())


@pytest.fixture(scope="module")
def repaired():
    return make(ft.QuantileRepairClassifier(PLAIN), sensitive_features=["sex", "region"]).fit(raw_people())


def test_scores_are_those_of_encoder_and_classifier():
    frame = raw_people()
    features = frame.drop("hired", "sex")
    encoder = TableEncoder().fit(features)
    by_hand = PLAIN.fit(encoder.transform(features), frame["hired"].to_numpy() == "yes")
    expected = by_hand.predict_proba(encoder.transform(raw_people(50, seed=1)))[:, 1]
    found = make().fit(frame).score_rows(raw_people(50, seed=1).drop("hired", "sex"))
    np.testing.assert_allclose(found.scores, expected, atol=1e-6)  # sparse and dense sums differ in the last bits
    assert found.counts == {}


def test_blind_needs_no_group_and_the_group_changes_nothing(blind):
    assert not blind.needs_groups_
    assert blind.columns == ["region", "hours", "skill", "job", "joined"]
    new = raw_people(100, seed=3)
    other = new.with_columns(sex=pl.lit("?"))
    np.testing.assert_array_equal(blind.score_rows(new).scores, blind.score_rows(other.drop("sex")).scores)


def test_aware_uses_the_group(blind):
    aware = make(cot(group_specific=True), aware=True).fit(raw_people())
    assert aware.needs_groups_
    assert "sex" in aware.columns
    new = raw_people(100, seed=3)
    swapped = new.with_columns(sex=pl.col("sex").replace({"F": "M", "M": "F"}))
    assert not np.allclose(aware.score_rows(new).scores, aware.score_rows(swapped).scores)
    shared = make(aware=True).fit(raw_people())  # a feature, and no more than that
    assert (shared.needs_groups_, "sex" in shared.columns) == (False, True)


def test_rows_without_a_known_group_have_no_score_and_are_counted(repaired):
    new = raw_people(20, seed=4).with_columns(
        sex=pl.Series([None, " ", "X", "F "] + ["M"] * 16), region=pl.Series([None] + ["north"] * 19)
    )
    found = repaired.score_rows(new)
    assert np.flatnonzero(np.isnan(found.scores)).tolist() == [0, 1, 2]
    named = "in 'sex', 'region'"
    assert found.reasons == {0: f"no group {named}", 1: f"no group {named}", 2: f"unknown group {named}"}
    whole = repaired.score_rows(new[3:]).scores
    np.testing.assert_array_equal(found.scores[3:], whole)  # nobody's score depends on the batch
    nobody = repaired.score_rows(new[:3])
    assert np.isnan(nobody.scores).all()


def test_sensitive_columns_may_have_other_names(repaired):
    new = raw_people(30, seed=6)
    renamed = new.rename({"sex": "gender"})
    found = repaired.score_rows(renamed, sensitive_features=["gender", "region"]).scores
    np.testing.assert_array_equal(found, repaired.score_rows(new).scores)
    with pytest.raises(ValueError, match="2 sensitive columns; 1 are named"):
        repaired.score_rows(renamed, sensitive_features=["gender"])


def test_the_positive_label_may_be_named():
    small = make(pos_label="no").fit(raw_people())
    large = make().fit(raw_people())
    assert (small.classes_.tolist(), large.classes_.tolist()) == (["yes", "no"], ["no", "yes"])
    new = raw_people(40, seed=7)
    np.testing.assert_allclose(small.score_rows(new).scores, 1 - large.score_rows(new).scores, atol=1e-3)


def test_rows_without_label_or_group_are_set_aside():
    frame = raw_people().with_columns(
        hired=pl.Series([None, "?", *raw_people()["hired"].to_list()[2:]]),
        sex=pl.Series(["F", "F", None, *raw_people()["sex"].to_list()[3:]]),
    )
    assert make(groups=ft.GroupPolicy(missing="set_aside")).fit(frame).set_aside_ == {"no label": 2, "no group": 1}
    kept = make(groups=ft.GroupPolicy(missing="group")).fit(frame)
    assert kept.set_aside_ == {"no label": 2}
    with pytest.raises(ValueError, match="None of the 600 rows has a label and a group: 600 have no group"):
        make(groups=ft.GroupPolicy(missing="set_aside")).fit(raw_people().with_columns(sex=pl.lit(None)))


def test_missing_groups_are_counted_by_column():
    frame = raw_people().with_columns(region=pl.Series([None, *raw_people()["region"].to_list()[1:]]))
    with pytest.raises(ValueError, match=r"in 1 row of column 'region'\. .* groups=ft.GroupPolicy"):
        make(cot(), sensitive_features=["sex", "region"]).fit(frame)


@pytest.mark.parametrize("estimator", [cot(), ft.QuantileRepairClassifier(PLAIN)])
def test_one_sensitive_column_may_be_named_without_a_list(estimator, tmp_path):
    model, listed = make(estimator, sensitive_features="sex").fit(raw_people()), make(estimator).fit(raw_people())
    assert model.sensitive_features == "sex"
    assert model.columns == listed.columns
    new = raw_people(40, seed=7)
    np.testing.assert_array_equal(model.score_rows(new).scores, listed.score_rows(new).scores)
    ft.save(model, tmp_path / "model.ft")
    again = ft.load(tmp_path / "model.ft")
    assert again.sensitive_features == "sex"
    np.testing.assert_allclose(again.score_rows(new).scores, listed.score_rows(new).scores, atol=0.02)  # rounded maps


def test_read_rows_gives_what_measuring_and_adjusting_need(blind):
    new = raw_people(300, seed=8)
    rows = blind.read_rows(new)
    assert rows.X.shape == (300, blind.estimator_.n_features_in_)
    assert rows.labels.tolist() == (new["hired"] == "yes").cast(int).to_list()
    assert rows.sensitive_features["sex"].tolist() == new["sex"].to_list()
    strange = new.with_columns(sex=pl.Series(["other"] * 5 + new["sex"].to_list()[5:]))
    assert blind.read_rows(strange).set_aside == {"unknown group": 5}
    unlabelled = RowScorer(blind).read(strange.drop("hired"), groups=True)
    assert unlabelled.sensitive_features["sex"].tolist()[:5] == ["other"] * 5
    adjusted, known = make(cot()).fit(raw_people()), slice(5, None)
    adjusted.estimator_.partial_fit(unlabelled.X[known], sensitive_features=new["sex"][known])
    assert not np.array_equal(adjusted.estimator_.coef_, blind.estimator_.coef_)


def test_an_audit_is_that_of_the_labelled_rows_and_of_their_scores(blind):
    new = raw_people(600, seed=4)
    holes = new.with_columns(hired=pl.when(pl.int_range(600) < 50).then(None).otherwise(pl.col("hired")))
    found = blind.audit(holes, favourable="low", thresholds=[0.4])
    kept = new[50:]
    expected = ft.audit(
        blind.score_rows(kept).scores,
        (kept["hired"] == "yes").to_numpy().astype(int),
        sensitive_features={"sex": kept["sex"].to_numpy()},
        favourable="low",
        thresholds=[0.4],
    )
    assert found.metrics == expected.metrics
    assert (found.provenance.positive, found.thresholds[0].threshold) == ("yes", pytest.approx(0.4))


def test_an_audit_of_numbers_is_one_of_predictions():
    model = make(ft.TransportRegressor(parity_weight=0.5), label="hours", drop=["hired"]).fit(raw_people())
    found = model.audit(raw_people(300, seed=5))
    assert found.provenance.positive is None
    assert found.regression is not None


def test_an_amount_is_chosen_for_a_limit():
    model = make(ft.QuantileRepairClassifier(PLAIN), max_disparity=0.1).fit(raw_people(1500))
    assert 0 < model.estimator_.amount < 1
    new = raw_people(4000, seed=9)
    apart = ft.metrics.pairwise_disparity(model.score_rows(new).scores, sensitive_features=new["sex"])
    assert 0.05 < apart < 0.15


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"label": "nope"}, r"no column 'nope' \(label\)"),
        ({"sensitive_features": ["nope"]}, r"no column 'nope' \(sensitive_features\)"),
        ({"sensitive_features": []}, "at least one column"),
        ({"sensitive_features": "nope"}, r"no column 'nope' \(sensitive_features\)"),
        ({"sensitive_features": ["sex", "sex"]}, "each once"),
        ({"sensitive_features": ["hired"]}, "cannot be a group as well"),
        ({"drop": ["nope"]}, r"\(drop\)"),
        ({"pos_label": "maybe"}, "none of the 2 labels"),
        ({"label": "job"}, "has 3 different labels and .* rows without a label; two are needed"),
        ({"max_disparity": 0.1}, "needs a method with an amount"),
        ({"drop": ["person", "region", "hours", "skill", "job", "joined"]}, "No column is left"),
    ],
)
def test_wrong_parameters(options, match):
    with pytest.raises(ValueError, match=match):
        make(**options).fit(raw_people())


def test_wrong_tables_raise_without_anyones_value(blind, repaired):
    with pytest.raises(ValueError, match="no columns 'hours', 'job', which the model needs"):
        blind.score_rows(raw_people(5).drop("hours", "job"))
    with pytest.raises(ValueError, match="no column 'sex', which the model needs"):
        repaired.score_rows(raw_people(5).drop("sex"))
    with pytest.raises(ValueError, match="2 labels that the training rows did not have") as caught:
        blind.read_rows(raw_people(5).with_columns(hired=pl.Series([CANARY, CANARY, CANARY + "2", "yes", "no"])))
    assert CANARY not in str(caught.value)


def test_a_split_keeps_the_shares_of_groups_and_labels():
    frame = raw_people(2000)
    assert [len(part) for part in split_table(frame, 0.25, label=None, sensitive_features=[])] == [1500, 500]
    train, held_out = split_table(frame, 0.25, label="hired", sensitive_features=["sex", "region"], random_state=1)
    assert set(train["person"]) | set(held_out["person"]) == set(frame["person"])
    assert train.height + held_out.height == 2000
    for cell in frame.group_by("sex", "region", "hired").len().iter_rows():
        kept = held_out.filter(
            (pl.col("sex") == cell[0]) & (pl.col("region") == cell[1]) & (pl.col("hired") == cell[2])
        )
        assert abs(kept.height - 0.25 * cell[3]) <= 1
    again = split_table(frame, 0.25, label="hired", sensitive_features=["sex", "region"], random_state=1)[1]
    assert held_out.equals(again)
    other = split_table(frame, 0.25, label="hired", sensitive_features=["sex", "region"], random_state=2)[1]
    assert not held_out.equals(other)


def test_measured_figures_are_those_of_the_metrics(blind):
    new = raw_people(1000, seed=10)
    plain = make().fit(raw_people())
    shown = measure_models({"lr": plain, "cot": blind}, new)
    assert (shown.rows, shown.groups, shown.small_groups, shown.set_aside) == (1000, 2, 0, {})
    for name, model in (("lr", plain), ("cot", blind)):
        scores = model.score_rows(new).scores
        figures = shown.figures[name]
        assert figures["error_rate"] == ft.metrics.error_rate((new["hired"] == "yes").to_numpy(), scores)
        expected = ft.metrics.pairwise_disparity(scores, sensitive_features=new["sex"])
        assert figures["pairwise_disparity"] == pytest.approx(expected)
        assert figures["auc"] > 0.6
    assert 0 < shown.floor["pairwise_disparity"] < 0.05


def test_numbers_and_text_are_the_same_groups_and_labels():
    frame = raw_people().with_columns(
        sex=(pl.col("sex") == "M").cast(pl.Int64), hired=(pl.col("hired") == "yes").cast(pl.Float64)
    )
    typed = make(ft.QuantileRepairClassifier(PLAIN)).fit(frame)
    text = make(ft.QuantileRepairClassifier(PLAIN)).fit(frame.with_columns(sex=pl.col("sex").cast(pl.String)))
    assert typed.classes_.tolist() == ["0", "1"]
    new = frame[:50]
    np.testing.assert_array_equal(
        typed.score_rows(new.with_columns(pl.col("sex").cast(pl.String))).scores, text.score_rows(new).scores
    )


def test_distances_are_those_of_groups_with_thirty_rows(blind):
    new = raw_people(1000, seed=10)
    few = new.with_columns(sex=pl.when(pl.int_range(1000) < 5).then(pl.lit("x")).otherwise(pl.col("sex")))
    model = make().fit(pl.concat([raw_people(), few]))
    shown, alone = (measure_models({"cot": model}, table) for table in (few, few[5:]))
    assert (shown.rows, shown.groups, shown.small_groups) == (1000, 3, 1)
    for name in ("pairwise_disparity", "rank_disparity"):
        assert shown.figures["cot"][name] == pytest.approx(alone.figures["cot"][name])
