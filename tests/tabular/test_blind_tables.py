"""Blind repair of tables whose rows stay in parts: both models are those of scikit-learn, the map that of memory."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import wasserstein_distance
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.tabular.test_fit_table import write

import fairtransport as ft
from fairtransport.linear import table_predictions, table_training
from fairtransport.linear._partitions import Grid, PredictionCounts
from fairtransport.linear.table_predictions import predict_parts
from fairtransport.linear.table_training import TableColumns, opened
from fairtransport.repair import BlindRepair
from fairtransport.tabular import TableModel

pytestmark = pytest.mark.filterwarnings("ignore::fairtransport.FairnessWarning")
NUMBERS = ["a", "b", "c"]
EXACT = {"tol": 1e-10, "max_iter": 5000}


def applicants(n=2_400, n_groups=2, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(n_groups, size=n)
    X = rng.normal(size=(n, 3)) * [1.0, 20.0, 0.1] + np.outer(group, [0.8, 0.0, 0.05])
    eta = X @ [1.0, 0.03, 3.0] - 0.5
    table = pd.DataFrame(X, columns=NUMBERS)
    table["job"] = np.where(rng.random(n) < 0.3, "cook", "smith")
    table["y"] = (eta + 0.5 * (table["job"] == "cook") + rng.logistic(size=n) > 0).astype(int)
    table["pay"] = 100 * (eta + rng.normal(size=n))
    table["g"] = np.array(["F", "M", "X"])[group]
    return table


@pytest.fixture(scope="module")
def table():
    return applicants()


@pytest.fixture(autouse=True)
def on_disk(monkeypatch):
    monkeypatch.setattr(table_training, "MOST_IN_MEMORY", 0)


def fitted(table, folder, estimator, n_files=3, label="y"):
    drop = ["pay" if label == "y" else "y"]
    return TableModel(estimator, label=label, sensitive_features=["g"], drop=drop).fit_table(
        write(table, folder, n_files)
    )


@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("criterion", ["demographic_parity", "equalized_odds"])
def test_both_models_are_those_of_scikit_learn(tmp_path, n_groups, criterion):
    """Of groups, or of groups crossed with labels; by default, of scaled columns with a tenth of the usual C."""
    table = applicants(900, n_groups)
    repair = BlindRepair(criterion)
    model = fitted(table, tmp_path, ft.BlindRepairClassifier(LogisticRegression(C=0.5), repair=repair)).estimator_
    kept = TableModel(LogisticRegression(), label="y", sensitive_features=["g"], drop=["pay"]).fit(table).encoder_
    encoded = kept.transform(table).toarray()
    label = LogisticRegression(C=0.5, **EXACT).fit(encoded, table["y"])
    assert model.estimator_.predict_proba(encoded) == pytest.approx(label.predict_proba(encoded), abs=2e-5)
    classes = np.unique(table["g"], return_inverse=True)[1]
    if criterion == "equalized_odds":
        classes = 2 * classes + table["y"].to_numpy()
    groups = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, **EXACT)).fit(encoded, classes)
    assert model.group_estimator_.predict_proba(encoded) == pytest.approx(groups.predict_proba(encoded), abs=2e-5)


def test_the_map_is_that_of_the_same_models_in_memory(table, tmp_path):
    """Models that are frozen predict all rows, as those of a table with 200 rows for each feature do.

    The map jumps where two scores cost the same, so that single rows may differ.
    """
    estimator = ft.BlindRepairClassifier(LogisticRegression(), slack=0.01)
    found = fitted(table, tmp_path, estimator)
    one, other = found.estimator_.estimator_, found.estimator_.group_estimator_
    X = found.encoder_.transform(table).toarray()
    frozen = ft.BlindRepairClassifier(FrozenEstimator(one), FrozenEstimator(other), slack=0.01)
    expected = frozen.fit(X, table["y"], sensitive_features=table["g"]).predict_proba(X)[:, 1]
    change = np.abs(found.score_rows(table).scores - expected)
    assert change.mean() < 1e-3
    assert np.quantile(change, 0.99) < 1e-2
    plain, repaired = (
        ft.metrics.pairwise_disparity(scores, sensitive_features=table["g"])
        for scores in (one.predict_proba(X)[:, 1], found.score_rows(table).scores)
    )
    assert repaired < 0.2 * plain
    assert found.estimator_.report_.n_rows == len(table)
    ft.save(found, tmp_path / "model.ft")
    again = ft.load(tmp_path / "model.ft").score_rows(table).scores
    assert again == pytest.approx(found.score_rows(table).scores, abs=1e-12)


@pytest.mark.parametrize("most", [1 << 16, 300])
def test_files_and_the_order_of_rows_do_not_matter(table, tmp_path, monkeypatch, most):
    monkeypatch.setattr(table_predictions, "_MOST_BOXES", most)
    estimator = ft.BlindRepairClassifier(LogisticRegression(), slack=0.01)
    one = fitted(table, tmp_path / "one", estimator, 1).score_rows(table).scores
    mixed = fitted(table.sample(frac=1.0, random_state=1), tmp_path / "many", estimator, 5).score_rows(table).scores
    assert mixed == pytest.approx(one, abs=1e-9)


@pytest.mark.parametrize("most", [1 << 16, 600])
def test_a_regressor_and_strata(table, tmp_path, monkeypatch, most):
    monkeypatch.setattr(table_predictions, "_MOST_BOXES", most)
    estimator = ft.BlindRepairRegressor(LinearRegression(), slack=0.02)
    model = TableModel(estimator, label="pay", sensitive_features=["g"], strata=["job"], drop=["y"])
    found = model.fit_table(write(table, tmp_path, 2))
    X, scores = found.encoder_.transform(table).toarray(), found.score_rows(table).scores
    plain = found.estimator_.estimator_.predict(X)
    assert plain == pytest.approx(LinearRegression().fit(X, table["pay"]).predict(X), abs=0.1)
    for _, rows in table.groupby("job"):
        is_first = (rows["g"] == "F").to_numpy()
        before, after = (
            wasserstein_distance(one[rows.index][is_first], one[rows.index][~is_first]) for one in (plain, scores)
        )
        assert after < 0.4 * before


@pytest.mark.parametrize("n_groups", [2, 3])
def test_a_large_table_sends_counts_of_predictions(tmp_path, monkeypatch, n_groups):
    """More boxes bring the map nearer to that of all rows; held-out figures are those of rows."""
    table, found = applicants(n_groups=n_groups), []
    for most in (60, 1000, 1 << 16):
        monkeypatch.setattr(table_predictions, "_MOST_BOXES", most)
        model = fitted(table, tmp_path, ft.BlindRepairClassifier(LogisticRegression(), slack=0.02))
        found.append((model.score_rows(table).scores, model.estimator_.report_))
    (few, one), (some, two), (whole, report) = found
    assert np.abs(some - whole).mean() < min(2e-2, 0.5 * np.abs(few - whole).mean())
    assert one.n_rows == two.n_rows == report.n_rows == len(table)
    assert two.noise_floor == pytest.approx(report.noise_floor, rel=0.1)
    assert two.disparity == pytest.approx(report.disparity, abs=report.noise_floor)
    assert two.information_kept == pytest.approx(report.information_kept, abs=0.03)
    assert two.calibration_error == pytest.approx(report.calibration_error, abs=0.03)


def test_outcomes_of_boxes_keep_mean_and_variance():
    y = np.random.default_rng(1).normal(3.0, size=(200, 50))
    columns = np.full(200, 50), np.full(200, 25.0), y.sum(axis=1), (y**2).sum(axis=1)
    boxes = PredictionCounts(np.zeros((200, 2), np.int32), np.column_stack(columns), 1 << 16)
    _, means, counts, _ = table_predictions._in_halves(boxes)
    mean = np.average(means[:, -2], weights=counts)
    assert mean == pytest.approx(y.mean(), abs=1e-9)
    assert np.average((means[:, -2] - mean) ** 2, weights=counts) == pytest.approx(y.var(), abs=1e-9)


@pytest.mark.parametrize("n_axes", [0, 2, 12])
def test_boxes_and_sums_do_not_depend_on_parts(n_axes):
    """Whatever is added to what; values are multiples of a power of two."""
    rng = np.random.default_rng(0)
    values, cells = np.rint(1024 * rng.normal(size=(3_000, n_axes + 2))) / 1024.0, rng.integers(3, size=3_000)
    grid = Grid(np.array([0, 1, 1]), np.zeros(n_axes), 100.0 * np.eye(n_axes), 200)
    totals = []
    for n_parts in (1, 2, 7, 3_000):
        parts = np.array_split(rng.permutation(3_000), n_parts)
        totals.append(sum((grid.counted(cells[p], np.ones(p.size), values[p]) for p in parts[1:]),
                          grid.counted(cells[parts[0]], np.ones(parts[0].size), values[parts[0]])))  # fmt: skip
    for total in totals:
        assert np.array_equal(total.boxes, totals[0].boxes)
        assert np.array_equal(total.sums, totals[0].sums)
    assert len(total.boxes) <= 200
    assert total.sums[:, 0].sum() == 3_000
    assert total.sums[:, 1:].sum(axis=0) == pytest.approx(values.sum(axis=0), abs=1e-9)
    assert {*total.boxes[:, 0]} == {0, 1}


def test_few_rows_are_predicted_by_models_that_have_not_seen_them(tmp_path):
    """Twenty columns of noise: models that have seen a row know its label better than chance."""
    rng = np.random.default_rng(0)
    names = [f"x{index}" for index in range(20)]
    table = pd.DataFrame(rng.normal(size=(400, 20)), columns=names).assign(y=rng.integers(2, size=400))
    table["g"] = np.where(rng.random(400) < 0.5, "F", "M")
    path = write(table, tmp_path, 2)
    with opened(path) as source:
        columns = TableColumns(tuple(names), "y", ("g",))
        found = predict_parts(
            source, columns, estimator=LogisticRegression(C=100.0), group_estimator=None, groups=ft.GroupPolicy(),
            criterion="demographic_parity", owner="test",
        )  # fmt: skip
    seen = found.model.predict_proba(table[names])[:, 1]
    assert log_loss(table["y"], seen) < np.log(2) - 0.01
    assert log_loss(found.outcomes, found.predicted) > np.log(2)
    assert log_loss(found.groups.codes, found.probabilities) > np.log(2)


def test_what_is_refused(table, tmp_path):
    path = write(table, tmp_path, 2)
    columns = {"label": "y", "sensitive_features": ["g"]}
    with pytest.raises(TypeError, match=r"estimator must be a LogisticRegression .* got a HistGradient"):
        TableModel(ft.BlindRepairClassifier(HistGradientBoostingClassifier()), **columns).fit_table(path)
    with pytest.raises(TypeError, match="got a LogisticRegressionCV"):  # which was fitted without a penalty
        TableModel(ft.BlindRepairClassifier(LogisticRegressionCV()), **columns).fit_table(path)
    with pytest.raises(ValueError, match="without class weights"):
        TableModel(ft.BlindRepairClassifier(LogisticRegression(class_weight="balanced")), **columns).fit_table(path)
    blind = ft.BlindRepairClassifier(LogisticRegression())
    with pytest.raises(ValueError, match="no column 'sex'"):
        TableModel(blind, label="y", sensitive_features=["sex"]).fit_table(path)
    with pytest.raises(ValueError, match="no checkpoint"):
        TableModel(blind, **columns).fit_table(path, checkpoint=tmp_path / "steps")
    numbers = ft.BlindRepairRegressor(LinearRegression(), repair=BlindRepair("equalized_odds"))
    with pytest.raises(ValueError, match="within ranges of y needs all rows"):
        TableModel(numbers, label="pay", sensitive_features=["g"], drop=["y"]).fit_table(path)


@pytest.mark.parametrize("engine", ["pandas", "polars", "lazy polars", "pyarrow", "duckdb", "duckdb, no rows"])
def test_scores_are_added_where_the_rows_are(table, tmp_path, engine):
    """Twice, as queries may be; with a row that cannot be scored, and columns of other types that stay as they are."""
    model = fitted(table, tmp_path, ft.BlindRepairClassifier(LogisticRegression(), slack=0.02))
    rows = table[:300].assign(day=pd.Timestamp("2024-01-01"), n=pd.array([None, *range(299)], dtype="Int64"))
    rows["a"] = rows["a"].astype(object)
    rows.loc[7, "a"] = "many"
    rows.index = rows.index[::-1]
    expected = model.score_rows(rows).scores
    assert np.isnan(expected).sum() == 1
    rows["a"] = rows["a"].astype(str)
    given = {
        "pandas": lambda: rows,
        "polars": lambda: pl.from_pandas(rows),
        "lazy polars": lambda: pl.from_pandas(rows).lazy(),
        "pyarrow": lambda: pa.Table.from_pandas(rows, preserve_index=False),
        "duckdb": lambda: duckdb.connect().from_arrow(pa.Table.from_pandas(rows, preserve_index=False)),
        "duckdb, no rows": lambda: duckdb.connect().from_arrow(pa.Table.from_pandas(rows[:0], preserve_index=False)),
    }[engine]()
    found = model.score_table(given, output="repaired")
    assert type(found) is type(given)
    for _ in range(2):
        frame = found.collect() if engine == "lazy polars" else found
        frame = frame if engine == "pandas" else frame.df() if "duckdb" in engine else frame.to_pandas()
        size = 0 if "no rows" in engine else 300
        assert frame["repaired"].to_numpy() == pytest.approx(expected[:size], abs=1e-12, nan_ok=True)
        assert list(frame.columns) == [*rows.columns, "repaired"]
    if engine == "pandas":
        pd.testing.assert_frame_equal(frame.drop(columns="repaired"), rows)
    if engine == "lazy polars":
        assert found.select("repaired").filter(pl.col("repaired") > 0.5).collect().height == (expected > 0.5).sum()
    if engine == "duckdb":
        assert [*map(str, found.types)] == [*map(str, given.types), "DOUBLE"]
        assert found.aggregate("count(repaired)").fetchall() == [(299,)]
    with pytest.raises(ValueError, match="has a column 'c' already"):
        model.score_table(given, output="c")
    with pytest.raises(ValueError, match="no column 'b', which the model needs"):
        model.score_table(rows.drop(columns="b"))


def test_counts_of_more_classes_than_boxes_are_joined_and_end():
    boxes = np.column_stack((np.arange(100), np.random.default_rng(0).integers(1 << 20, size=(100, 2))))
    joined = PredictionCounts(np.repeat(boxes, 2, axis=0).astype(np.int32), np.ones((200, 2)), most=50).joined()
    assert sorted(joined.boxes[:, 0]) == list(range(100))
    assert (joined.sums == 2).all()
