"""Which label is positive: one rule for arrays, tables and raw files."""

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport._labels import infer_task, is_positive
from fairtransport.tables import count_table
from fairtransport.tabular import TableModel


@pytest.mark.parametrize("labels", [["no", "yes"], [-1, 1], [False, True]])
def test_arrays_tables_and_models_agree(labels):
    rng = np.random.default_rng(0)
    n = 200
    group, scores = np.repeat(["a", "b"], n // 2), rng.random(n)
    y = np.array(labels)[(scores + rng.normal(0, 0.3, n) > 0.5).astype(int)]
    table = pl.DataFrame({"s": scores, "g": group, "y": y})
    counted = count_table(table, score="s", sensitive_features="g", label="y").histograms
    model = TableModel(LogisticRegression(), label="y", sensitive_features=["g"]).fit(table)
    positive = y == labels[1]
    assert counted.by_class[1].sum() == np.count_nonzero(positive)
    assert ft.metrics.error_rate(y, scores) == ft.metrics.error_rate(positive, scores)
    assert model.classes_[1] == str(labels[1]).lower()
    assert is_positive(y, size=n).tolist() == positive.tolist()


@pytest.mark.parametrize(
    ("labels", "task"),
    [
        ([0, 1, 1], "classification"),
        ([0.0, 1.0], "classification"),
        ([1.5, 1.5, 2.5], "classification"),
        (["no", "yes", "maybe"], "classification"),
        ([True, False], "classification"),
        ([0.1, 0.2, 0.3], "regression"),
        (np.arange(21), "regression"),
        ([0.5, np.nan, 1.5, 2.0], "regression"),
    ],
)
def test_the_task_is_recognised_from_the_labels(labels, task):
    assert infer_task(labels) == task


def test_a_few_whole_numbers_may_be_classes_or_measurements():
    with pytest.raises(ValueError, match=r'3 different whole numbers.* task="regression"'):
        infer_task([1, 2, 3, 1])
