"""Models of raw tables as files: no rare word, no row; and plans that nobody made are refused."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport.persistence import ModelFileError
from fairtransport.tabular import TableEncoder, TableModel

from .models import fitted, forge, table

CANARY = "Zebulon"


def test_no_word_that_few_people_have_is_in_the_file(tmp_path):
    frame, y, group = table()
    raw = frame.assign(sex=group, hired=y, city=np.where(np.arange(len(y)) < 4, CANARY, "Bath"))
    raw["name"] = [f"{CANARY} {k}" for k in range(len(y))]
    model = TableModel(LogisticRegression(), label="hired", sensitive_features=["sex"]).fit(raw)
    path = ft.save(model, tmp_path / "model.ft")
    content = path.read_bytes()
    assert CANARY.encode() not in content
    assert b"Bath" in content


def test_an_encoder_alone_is_a_file_too(tmp_path):
    frame, _, _ = table()
    encoder = TableEncoder(sparse_output=True, max_categories=2).fit(frame)
    again = ft.load(ft.save(encoder, tmp_path / "encoder.ft"))
    assert again.get_params() == encoder.get_params()
    assert (again.transform(frame) != encoder.transform(frame)).nnz == 0
    plain = TableEncoder().fit(frame[["age", "hours"]].to_numpy())
    matrix = ft.load(ft.save(plain, tmp_path / "matrix.ft")).transform(frame[["age", "hours"]].to_numpy())
    np.testing.assert_array_equal(matrix, plain.transform(frame[["age", "hours"]].to_numpy()))


def _words(plans):
    return next(plan for plan in plans if plan["kind"] == "words")


@pytest.mark.parametrize(
    "change",
    [
        lambda _, plans: plans[0].update(kind="code"),
        lambda _, plans: plans[0].update(pattern="%c"),
        lambda _, plans: plans[0].update(name=3),
        lambda _, plans: plans[0].update(other=1),
        lambda _, plans: plans[0].update(more=1),
        lambda _, plans: _words(plans)["words"].update(items=["a", "a", "b"]),
        lambda _, plans: plans.pop(),
        lambda model, _: model["params"].update(sensitive=["other"]),
        lambda model, _: model["params"].update(groups="keep"),
        lambda model, _: model["fitted"].pop("encoder_"),
        lambda model, _: model["fitted"]["encoder_"]["fitted"].update(n_features_in_=2**62),
    ],
)
def test_plans_that_nobody_made_are_refused(change):
    with pytest.raises(ModelFileError):
        forge(
            fitted("raw table to COT")[0],
            lambda model, _: change(model, model["fitted"]["encoder_"]["fitted"]["plans_"]),
        )
