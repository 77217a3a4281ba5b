"""``partial_fit`` of COT and DOT: what an operator was promised about streams."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from tests import worlds

import fairtransport as ft
from fairtransport.linear import SgdSettings
from fairtransport.metrics import strong_pairwise_disparity

from .tables import DOT

RNG = np.random.default_rng
KINDS = {"COT": ft.TransportClassifier, "DOT": DOT}


def people(n=600, seed=0, shift=0.0, groups=("a", "b")):
    """Scores of the later groups are higher, and of the first by ``shift`` more than in training."""
    return worlds.people(n, seed, groups=groups, first=shift, aware=True)


def fitted(kind="COT", **options):
    return worlds.fitted(KINDS[kind](**options), aware=True)


def disparity(model, X, group):
    needs = {"sensitive_features": group} if model.group_specific else {}
    return strong_pairwise_disparity(model.predict_proba(X, **needs)[:, 1], sensitive_features=group)


def stream(model, X, group, sizes, y=None):
    start = 0
    for size in sizes:
        rows = slice(start, start + size)
        labels = None if y is None else y[rows]
        model.partial_fit(X[rows], labels, sensitive_features=group[rows])
        start += size
    return model


def assert_same_model(one, other):
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)
    for name, held in vars(one.adjusting_.sketches).items():
        np.testing.assert_array_equal(held, getattr(other.adjusting_.sketches, name))
    for name in ("centre", "target"):
        np.testing.assert_array_equal(getattr(one.adjusting_, name), getattr(other.adjusting_, name))


def test_memory_path_and_maps_are_made_when_asked_for_from_the_rows_of_fit():
    X, y, group = people()
    weights = np.linspace(0.5, 1.5, len(y))
    model, eager = (
        ft.TransportClassifier().fit(X.copy(), y, sensitive_features=group, sample_weight=weights.copy())
        for _ in range(2)
    )
    later = ("path_", "adjusting_", "target_", "spread_", "duals_")
    made = {name: getattr(eager, name) for name in later}
    given = X.copy()
    model.fit(given, y, sensitive_features=group, sample_weight=weights)
    assert not {*later} & set(vars(model))
    given[:], weights[:] = 0.0, 1.0  # the buffers of the next batch
    for name in ("target_", "spread_"):
        np.testing.assert_equal(getattr(model, name), made[name])
    np.testing.assert_array_equal(model.duals_.group_weights, made["duals_"].group_weights)
    assert "_deferred" not in vars(copy.copy(model))  # which refers to the rows
    assert_same_model(model, eager)
    np.testing.assert_array_equal(model.path_["spread"], eager.path_["spread"])
    with pytest.raises(AttributeError, match="adjusting_"):
        ft.TransportClassifier().adjusting_  # noqa: B018


VARIANTS = {
    "COT": fitted,
    "COT to a group": lambda: fitted(target="b", parity_weight=10.0),
    "COT, entropy": lambda: fitted(distance=ft.ContinuousDistance(regularizer="entropy")),
    "the paper's COT": lambda: fitted(solver=SgdSettings(n_updates=400, random_state=0)),
    "COT of each group": lambda: fitted(group_specific=True),
    "DOT": lambda: fitted("DOT"),
    "the paper's DOT": lambda: fitted("DOT", solver=SgdSettings(n_updates=400, random_state=0)),
}
every = pytest.mark.parametrize("name", VARIANTS)


@every
def test_it_follows_a_shift_without_labels(name):
    model = VARIANTS[name]()
    X, _, group = people(2400, seed=1, shift=1.5)
    kept, _, of_kept = people(2000, seed=2, shift=1.5)
    before = disparity(model, kept, of_kept)
    stream(model, X, group, [60] * 40)
    after = disparity(model, kept, of_kept)
    assert before > 0.1
    # Two samples of 1,000 rows of one distribution are about .01 apart.
    assert after < 0.05


@pytest.mark.parametrize("name", ["COT", "DOT"])
def test_while_nothing_changes_the_model_hardly_does(name):
    model = VARIANTS[name]()
    X, y, group = people(3000, seed=1)
    was = model.predict_proba(X)[:, 1]
    first = disparity(model, X, group)
    stream(model, X, group, [50] * 60)
    assert np.abs(model.predict_proba(X)[:, 1] - was).mean() < 0.05
    assert disparity(model, X, group) < max(0.05, first)
    assert model.score(X, y) > 0.65  # as after fit, .67 to .70


@every
@pytest.mark.parametrize("through", ["memory", "file", "pickle"])
def test_a_stream_in_two_parts_is_the_same_stream(name, through, tmp_path):
    X, _, group = people(120, seed=3, shift=1.0)
    sizes = [1, 7, 20, 32, 60]
    whole = stream(VARIANTS[name](), X, group, sizes)
    part = stream(VARIANTS[name](), X[:28], group[:28], sizes[:3])
    if through == "file":
        ft.save(part, tmp_path / "model.ft")
        part = ft.load(tmp_path / "model.ft")
    elif through == "pickle":
        part = pickle.loads(pickle.dumps(part))  # noqa: S301
    stream(part, X[28:], group[28:], sizes[3:])
    assert_same_model(part, whole)
    assert whole.adjusting_.n_rows == 120
    assert whole.adjusting_.n_batches == 5


def test_absent_groups_stay_as_they_are():
    model = fitted()
    X, _, group = people(200, seed=1)
    masses = model.adjusting_.sketches.masses.copy()
    rows = group == "b"
    model.partial_fit(X[rows], sensitive_features=group[rows], updates=0)
    np.testing.assert_array_equal(model.adjusting_.sketches.masses[0], masses[0])
    assert not np.array_equal(model.adjusting_.sketches.masses[1], masses[1])
    for _ in range(300):  # far beyond the memory
        model.partial_fit(X[rows], sensitive_features=group[rows])
    assert np.isfinite(model.predict_proba(X)).all()
    assert disparity(model, X, group) < 0.2


@pytest.mark.parametrize("options", [{}, {"target": "b"}, {"group_specific": True}])
@pytest.mark.parametrize("kind", ["COT", "DOT"])
def test_new_groups_by_choice(kind, options, tmp_path):
    model = fitted(kind, **options)
    X, _, group = people(900, seed=4, groups=("a", "b", "c"))
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="none of the 2 known groups"):
        model.partial_fit(X, sensitive_features=group)
    np.testing.assert_array_equal(model.coef_, before)
    model.set_params(groups=ft.GroupPolicy(new="adopt"))
    stream(model, X, group, [90] * 10)
    assert model.groups_.labels == ("a", "b", "c")
    assert model.group_sizes_.tolist()[2] == 0
    assert len(model.adjusting_.sketches) == 3
    assert disparity(model, X, group) < 0.3
    ft.save(model, tmp_path / "model.ft")
    again = ft.load(tmp_path / "model.ft")
    stream(model, X, group, [50])
    stream(again, X, group, [50])
    assert_same_model(again, model)


def test_memory_is_bounded_and_inputs_are_left_alone():
    model = fitted()
    X, y, group = people(400, seed=1)
    kept = X.copy(), y.copy(), group.copy()
    state = model.adjusting_
    frozen = copy.deepcopy(state)
    model.partial_fit(X, y, sensitive_features=group)
    size = len(pickle.dumps(model.adjusting_))
    stream(model, X, group, [1] * 50 + [350])
    assert len(pickle.dumps(model.adjusting_)) <= size + 64  # counters may need a byte more
    for one, other in zip(kept, (X, y, group), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(state.sketches.masses, frozen.sketches.masses)


def test_labels_teach_what_the_stream_lacks():
    """A column changes its meaning: only labels can say so."""
    rng = RNG(5)
    X, _, group = people(6000, seed=5)
    y = (X @ [1.0, -1.0, 0.5, 0.0] + rng.logistic(size=6000) > 0.5).astype(int)
    blind, taught = fitted(), fitted()
    stream(blind, X[:5000], group[:5000], [250] * 20)
    stream(taught, X[:5000], group[:5000], [250] * 20, y[:5000])
    assert taught.score(X[5000:], y[5000:]) > blind.score(X[5000:], y[5000:]) + 0.05
    assert disparity(taught, X, group) < 0.1


def test_updates_say_how_much_is_spent():
    X, _, group = people(100, seed=1, shift=2.0)
    looking, few, many = fitted(), fitted(), fitted()
    was = looking.coef_.copy()
    looking.partial_fit(X, sensitive_features=group, updates=0)
    np.testing.assert_array_equal(looking.coef_, was)
    assert looking.adjusting_.n_rows == 100
    few.partial_fit(X, sensitive_features=group, updates=1)
    many.partial_fit(X, sensitive_features=group, updates=20)
    far = [np.abs(one.coef_ - was).max() for one in (few, many)]
    assert 0.0 < far[0] < far[1]
    with pytest.raises(ValueError, match="updates must be"):
        few.partial_fit(X, sensitive_features=group, updates=-1)


def test_sparse_and_weighted_batches():
    X, _, group = people(90, seed=1, shift=1.0)
    dense, thin = fitted(), fitted()
    dense.partial_fit(X, sensitive_features=group)
    thin.partial_fit(sparse.csr_matrix(X), sensitive_features=group)
    np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-9, atol=1e-12)
    weights = RNG(0).integers(0, 3, 90)
    copies, weighted = fitted(), fitted()
    rows = np.repeat(np.arange(90), weights)
    copies.partial_fit(X[rows], sensitive_features=group[rows])
    weighted.partial_fit(X, sensitive_features=group, sample_weight=weights.astype(float))
    np.testing.assert_allclose(weighted.coef_, copies.coef_, rtol=1e-9, atol=1e-12)


def test_zeros_that_are_not_stored_count_as_much_as_others():
    """Far from the values of their column they count as bounded ones."""
    X, y, group = people(600, seed=0)
    X[:, 0] += 50.0
    new, _, new_group = people(90, seed=1)
    new[:, 0] += np.where(np.arange(90) % 10, 50.0, -new[:, 0])
    dense, thin = (ft.TransportClassifier().fit(X, y, sensitive_features=group) for _ in range(2))
    dense.partial_fit(new, sensitive_features=new_group)
    thin.partial_fit(sparse.csr_matrix(new), sensitive_features=new_group)
    np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-6, atol=1e-9)


def test_starts_of_a_stream():
    X, y, group = people(600, seed=0)
    by_fit = fitted()
    first = ft.TransportClassifier().partial_fit(X, y, sensitive_features=group)
    np.testing.assert_array_equal(first.coef_, by_fit.coef_)
    base = LogisticRegression().fit(X, y)
    for kind in (ft.TransportClassifier, DOT):
        model = kind(base).partial_fit(X[:100], sensitive_features=group[:100])
        np.testing.assert_array_equal(model.coef_, base.coef_)
        before = disparity(model, X, group)
        stream(model, X, group, [100] * 6)
        assert disparity(model, X, group) < before / 3


def test_errors():
    X, y, group = people(50)
    for estimator in (None, LogisticRegression()):
        model = ft.TransportClassifier(estimator)
        with pytest.raises(ValueError, match="pass y, with both classes, in the first call"):
            model.partial_fit(X, sensitive_features=group)
    with pytest.raises(ValueError, match="y has 1 class"):
        DOT().partial_fit(X, np.zeros(50), sensitive_features=group)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model = fitted()
    with pytest.raises(ValueError, match="50 labels that are none of the two classes"):
        model.partial_fit(X, y + 7, sensitive_features=group)
    with pytest.raises(ValueError, match="X has 2 features"):
        model.partial_fit(X[:, :2], sensitive_features=group)
    with pytest.raises(ValueError, match="needs sensitive_features"):
        model.partial_fit(X, sensitive_features=None)
    with pytest.raises(ValueError, match="sensitive_features"):
        model.partial_fit(X, sensitive_features=group[:-1])
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full_like(X, np.nan), sensitive_features=group)


def test_values_beyond_reason_leave_the_model_alone():
    model = fitted()
    X, _, group = people(40, seed=1)
    model.partial_fit(X * 1e150, sensitive_features=group)
    assert np.isfinite(model.coef_).all()
