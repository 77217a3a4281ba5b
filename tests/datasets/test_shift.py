"""``shift_class_rate``: the rate is met, nothing is doubled, everything is cut alike, and errors help."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils import Bunch

from fairtransport.datasets import _counts, load_adult, load_communities, shift_class_rate

PAPER = {"Female": 0.4, "Male": 0.3}


@pytest.fixture(scope="module")
def adult():
    return load_adult()


@pytest.fixture
def small():
    """Six rows of group a (two positive), three of group b (one positive), one of c (positive)."""
    return Bunch(
        data=np.arange(20.0).reshape(10, 2),
        target=np.array([1, 1, 0, 0, 0, 0, 1, 0, 0, 1]),
        sensitive_features=np.array([["a"]] * 6 + [["b"]] * 3 + [["c"]], dtype=object),
        sensitive_names=["group"],
        feature_names=["x", "y"],
        split=None,
        DESCR="ten rows",
    )


def rate_of(bunch, column, group):
    names = list(bunch.sensitive_names)
    member = np.asarray(bunch.sensitive_features)[:, names.index(column)] == group
    labels = np.asarray(bunch.target)[member]
    return labels.mean(), labels.size


def test_the_papers_shift_of_adult(adult):
    shifted = shift_class_rate(adult, PAPER, by="sex", random_state=0)
    # All 1,769 positive women stay, and 1,769 * 0.6 / 0.4 = 2,653.5 negative ones; of the men, all 22,732
    # negatives and 22,732 * 0.3 / 0.7 = 9,742.3 positives.
    rate, rows = rate_of(shifted, "sex", "Female")
    assert rows in {1_769 + 2_653, 1_769 + 2_654}
    assert abs(rate - 0.4) <= 0.5 / rows
    rate, rows = rate_of(shifted, "sex", "Male")
    assert rows == 22_732 + 9_742
    assert abs(rate - 0.3) <= 0.5 / rows
    kept = shifted.indices
    assert np.unique(kept).size == kept.size
    assert (np.diff(kept) < 0).any()  # in random order


def test_every_kind_is_cut_to_the_same_rows(kind, load):
    adult = load(load_adult)
    shifted = shift_class_rate(adult, PAPER, by="sex", random_state=0)
    assert list(shifted) == [*adult, "indices"]
    kept = shifted.indices
    for entry in ("data", "target", "sensitive_features", "split", "frame"):
        assert type(shifted[entry]) is type(adult[entry])
        if adult[entry] is not None:
            assert len(shifted[entry]) == kept.size
    np.testing.assert_array_equal(shifted.split, adult.split[kept])
    np.testing.assert_array_equal(np.asarray(shifted.target), np.asarray(adult.target)[kept])
    np.testing.assert_array_equal(np.asarray(shifted.data)[:, 2], np.asarray(adult.data)[kept, 2])
    np.testing.assert_array_equal(np.asarray(shifted.sensitive_features), np.asarray(adult.sensitive_features)[kept])
    assert shifted.feature_names == adult.feature_names
    assert shifted.DESCR == adult.DESCR


def test_entries_of_communities_are_cut_too(kind, load):
    communities = load(load_communities)
    shifted = shift_class_rate(communities, {"high": 0.2}, by="black", random_state=1)
    kept = shifted.indices
    np.testing.assert_array_equal(np.asarray(shifted.rate), np.asarray(communities.rate)[kept])
    np.testing.assert_array_equal(np.asarray(shifted.identifiers)[:, 3], np.asarray(communities.identifiers)[kept, 3])
    assert shifted.split is None


@pytest.mark.parametrize(
    ("rates", "kept"),
    [
        ({"a": 0.5}, {0, 1, 6, 7, 8, 9}),  # of the others, which are not named, every row
        ({"a": 0, "b": 1}, {2, 3, 4, 5, 6, 9}),  # one class is left
    ],
)
def test_the_rows_that_are_kept(small, rates, kept):
    small.sensitive_features[9] = np.nan  # of no group
    before = {name: np.copy(value) for name, value in small.items() if isinstance(value, np.ndarray)}
    shifted = shift_class_rate(small, rates, by="group", random_state=0)
    assert kept <= set(shifted.indices.tolist())
    assert shifted.indices.size == (8 if len(rates) == 1 else len(kept))
    shifted.data[:] = -1
    assert "indices" not in small
    assert all(np.array_equal(small[name].astype(str), value.astype(str)) for name, value in before.items())


def test_the_same_seed_gives_the_same_rows_and_another_others(adult):
    def draw(random_state, rates=PAPER):
        return shift_class_rate(adult, rates, by="sex", random_state=random_state).indices.tolist()

    assert draw(0) == draw(np.random.default_rng(0)) == draw(0, {"Male": 0.3, "Female": 0.4})
    assert draw(0) != draw(1)
    assert draw(np.random.RandomState(0)) == draw(np.random.RandomState(0))


@pytest.mark.parametrize(
    ("size", "rows"), [(100, {"Female": 100, "Male": 100}), ({"Female": 50}, {"Female": 50, "Male": 32_474})]
)
def test_size_sets_the_rows_of_each_group(adult, size, rows):
    shifted = shift_class_rate(adult, PAPER, by="sex", size=size, random_state=0)
    for group, count in rows.items():
        rate, found = rate_of(shifted, "sex", group)
        assert found == count
        assert abs(rate - PAPER[group]) <= 0.5 / count + 1e-12


counts = st.integers(0, 200)


@given(positives=counts, negatives=counts, rate=st.floats(0, 1))
def test_counts_meet_the_rate_within_half_a_row_and_keep_one_class_whole(positives, negatives, rate):
    if (rate > 0 and not positives) or (rate < 1 and not negatives):
        with pytest.raises(ValueError, match="cannot become"):
            _counts("g", rate, positives, negatives, size=None)
        return
    n_positive, n_negative = _counts("g", rate, positives, negatives, size=None)
    assert 0 <= n_positive <= positives
    assert 0 <= n_negative <= negatives
    assert n_positive == positives or n_negative == negatives
    assert abs(n_positive - rate * (n_positive + n_negative)) <= 0.5 + 1e-9


@pytest.mark.parametrize(
    ("change", "rates", "options", "message"),
    [
        *(
            (None, {"a": rate}, {}, "rate of 'a' must be a finite number at least 0 and at most 1")
            for rate in (-0.1, 1.1, np.nan)
        ),
        (None, {"a": "0.5"}, {}, "rate of 'a' must be a number; got str"),
        (None, {"x": 0.5}, {}, "'x', which is none of the 3 groups of column 'group'"),
        (None, {"a": 0.5}, {"by": "gender"}, "by must be one of 'group'; got 'gender'"),
        (None, {"c": 0.5}, {}, r"cannot become 0\.5: the group has no negative label"),
        (None, {"a": 0.5}, {"size": {"a": 6}}, r"size asks for 6 rows of 'a'; .* at most 4 are possible"),
        (None, {"a": 0.5}, {"size": 0}, "size must be at least 1"),
        (None, {"a": 0.5}, {"size": 2.5}, "size must be a whole number"),
        (None, {"a": 0.5}, {"size": {"b": 2}}, "size has the group 'b', which is not in rates"),
        (None, 0.4, {}, "rates must map groups to rates"),
        (None, {}, {}, "rates is empty"),
        (dict, {"a": 0.5}, {}, "dataset must be a Bunch"),
        (lambda small: Bunch(data=small.data), {"a": 0.5}, {}, "dataset must be a Bunch"),
        (lambda small: Bunch(**{**small, "target": small.target + 1}), {"a": 0.5}, {}, "labels 0 and 1"),
        (
            lambda small: Bunch(**{**small, "sensitive_features": small.sensitive_features[:9]}),
            {"a": 0.5},
            {},
            r"sensitive_features has 9 rows, but dataset\.target has 10",
        ),
        (
            lambda small: Bunch(**{name: small[name] for name in small if name != "sensitive_names"}),
            {"a": 0.5},
            {},
            r"dataset\.sensitive_names must name its columns",
        ),
    ],
)
def test_what_it_refuses(small, change, rates, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        shift_class_rate(change(small) if change else small, rates, **{"by": "group", **options})
