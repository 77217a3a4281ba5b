import pytest

from fairtransport.metrics import error_rate, wasserstein_disparity
from fairtransport.paper import comparison as module
from fairtransport.paper.comparison import compare_on_adult
from fairtransport.paper.splits import german_splits


@pytest.fixture(scope="module")
def small():
    """The comparison on a small stand-in for Adult; also what it said on the way."""
    said = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "adult_split", lambda: german_splits(1)[0])
        return compare_on_adult(quick=True, random_state=3, progress=said.append), said


def test_methods_in_the_order_of_the_page(small):
    comparison, said = small
    assert [outcome.name for outcome in comparison.outcomes] == ["LR", "DPP", "DOT", "COT"]
    trained = ["Compiling, the first time only", "Training DPP", "Training DOT", "Training COT"]
    assert said == ["Reading Adult", "Training LR", *trained, "Measuring"]


def test_metrics_are_those_of_the_scores(small):
    comparison, _ = small
    for outcome in comparison.outcomes:
        assert outcome.metrics["error_rate"] == error_rate(comparison.y_true, outcome.scores)
        # The page's target has 4,096 values of equal mass, the exact one as many as there are levels.
        assert outcome.metrics["wasserstein_disparity"] == pytest.approx(
            wasserstein_disparity(outcome.scores, sensitive_features=comparison.groups, target=comparison.target),
            abs=1e-3,
        )


@pytest.mark.paper
def test_on_adult():
    comparison = compare_on_adult()
    lr, _, _, cot = comparison.outcomes
    assert comparison.groups.n_rows == 15_507
    assert cot.metrics["strong_pairwise_disparity"] < 0.1 * lr.metrics["strong_pairwise_disparity"]
    assert cot.metrics["error_rate"] < lr.metrics["error_rate"] + 0.035
    assert sum(outcome.seconds for outcome in comparison.outcomes) < 60
