"""The line below scikit-learn's diagram says what was fitted; the diagram itself stays as it is."""

from html import escape

import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from tests.worlds import people

import fairtransport as ft
from fairtransport.linear import SgdSettings

X, Y, GROUPS = people(400, aware=True)
COLUMN = "<script>alert(1)</script>"


@pytest.mark.parametrize(
    "estimator",
    [
        ft.TransportClassifier(parity_weight=1.0),
        ft.TransportClassifier(distance="discrete"),
        ft.TransportClassifier(
            distance="discrete", solver=SgdSettings(n_updates=300, random_state=0), parity_weight=1.0
        ),
        ft.QuantileRepairClassifier(LogisticRegression()),
        ft.BlindRepairClassifier(LogisticRegression(), LogisticRegression(), cv=2),
    ],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.filterwarnings("ignore:The features tell")  # a column is the group
def test_fitted_classifiers_say_so(estimator):
    before = estimator._repr_html_()
    assert "Fitted to" not in before
    assert type(estimator).__name__ in before
    estimator.fit(X, Y, sensitive_features={COLUMN: GROUPS})
    for html in (estimator._repr_html_(), estimator._repr_mimebundle_()["text/html"]):
        assert html.count("Fitted to 2 groups of &lt;script&gt;") == 1
        assert COLUMN not in html
        assert "sk-" in html  # scikit-learn's own diagram
    assert escape(estimator.outcome_) in estimator._repr_html_()
    if hasattr(estimator, "before_after_"):
        for name in ("disparity", "rank_disparity", "auc"):
            before, after = estimator.before_after_[name]
            assert f"{name.replace('_', ' ')} {before:.3f} to {after:.3f}" in estimator._repr_html_()
        assert f"{estimator.information_kept_:.0%} of the information kept" in estimator._repr_html_()


def test_text_where_diagrams_are_switched_off():
    model = ft.QuantileRepairClassifier(LogisticRegression()).fit(X, Y, sensitive_features=GROUPS)
    with sklearn.config_context(display="text"):
        assert list(model._repr_mimebundle_()) == ["text/plain"]
        assert not hasattr(model, "_repr_html_")
