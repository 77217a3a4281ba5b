"""Model files of counterfactuals and of models trained with them: the same results, and no file can run code."""

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairtransport as ft
from fairtransport.causal import CounterfactuallyFairClassifier, CounterfactuallyFairRegressor, CounterfactualTransport
from fairtransport.causal.conditional_distributions import Cells, ForestCells
from fairtransport.persistence.recipes._registry import types_by_kind
from fairtransport.storage import ModelFileError

EDGES = [("sex", "job"), ("age", "job"), ("sex", "hours"), ("job", "hours"), ("hours", "gain"), ("sex", "gain")]


def people(n=800, seed=0):
    rng = np.random.default_rng(seed)
    man = rng.integers(0, 2, n)
    age = rng.normal(40, 10, n)
    job = np.where(rng.random(n) < 0.3 + 0.3 * man, "smith", rng.choice(["cook", "clerk"], n))
    hours = rng.normal(35, 5, n) + 3 * man + 2 * (job == "smith")
    gain = np.where(rng.random(n) < 0.5, 0.0, rng.gamma(2, 1, n) * (1 + man))
    gain[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame({"sex": np.where(man, "M", "F"), "age": age, "job": job, "hours": hours, "gain": gain})


@pytest.mark.parametrize(
    ("graph", "quantiles"),
    [
        (EDGES, "forest"),
        (EDGES, Ridge()),
        (nx.DiGraph(EDGES), "linear"),
        ("digraph { sex -> {job hours gain}; age -> job; job -> hours -> gain }", "linear"),
    ],
)
def test_counterfactuals_are_the_same_after_loading(graph, quantiles, tmp_path):
    table, new = people(), people(300, seed=1)
    resolving = ["job"] if isinstance(graph, str) else ()
    transport = CounterfactualTransport(graph, sensitive="sex", resolving=resolving, quantiles=quantiles).fit(table)
    path = ft.save(transport, tmp_path / "transport.ft")
    again = ft.load(path)
    pd.testing.assert_frame_equal(again.transform(new, to="M"), transport.transform(new, to="M"))
    np.testing.assert_array_equal(again.support(new, to="F"), transport.support(new, to="F"))
    assert again.graph_ == transport.graph_
    assert again.get_params()["resolving"] == transport.resolving
    assert ft.save(again, tmp_path / "again.ft").read_bytes() == path.read_bytes()


def test_regressors_that_files_do_not_know_are_named(tmp_path):
    transport = CounterfactualTransport(EDGES, sensitive="sex", quantiles=KNeighborsRegressor()).fit(
        people(300).dropna()
    )
    with pytest.raises(TypeError, match="KNeighborsRegressor, which a model file cannot store"):
        ft.save(transport, tmp_path / "transport.ft")


@pytest.mark.parametrize("kind", ["classifier", "regressor"])
def test_a_trained_model_is_stored_with_its_graph_and_needs_none(kind, tmp_path):
    table = people()[["sex", "age", "hours"]]
    X, sex = table[["age", "hours"]], table["sex"]
    y = X["hours"] + np.random.default_rng(2).normal(size=len(X))
    transport = CounterfactualTransport("digraph { sex -> hours }", sensitive="sex", quantiles="linear", cv=2)
    if kind == "classifier":
        inner = make_pipeline(StandardScaler(), ft.TransportClassifier(distance="discrete", parity_weight=1.0))
        model = CounterfactuallyFairClassifier(inner, transport).fit(X, y > 36, sensitive_features=sex)
    else:
        inner = ft.TransportRegressor(parity_weight=1.0)
        model = CounterfactuallyFairRegressor(inner, transport).fit(X, y, sensitive_features=sex)
    again = ft.load(ft.save(model, tmp_path / "model.ft"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.graph_.edges == (("sex", "hours"),)
    assert not again.needs_groups_
    assert list(again.feature_names_in_) == ["age", "hours"]
    scores = again.score_rows(pl.from_pandas(X)).scores
    expected = model.predict_proba(X)[:, 1] if kind == "classifier" else model.predict(X)
    np.testing.assert_allclose(scores, expected)
    # The graph is a record of training; the file has no distributions of columns.
    assert not hasattr(again.transport, "distributions_")


def parts_of(value):
    return types_by_kind[type(value)]


def test_forests_whose_nodes_are_no_trees_are_refused():
    transport = CounterfactualTransport(EDGES, sensitive="sex").fit(people())
    forest = next(
        part.model
        for parts in transport.distributions_.values()
        for part in parts
        if isinstance(part.model, ForestCells)
    )
    _, _, to_parts, from_parts = parts_of(forest)
    parts = to_parts(forest)
    X = np.zeros((3, forest.n_features))
    np.testing.assert_array_equal(from_parts(parts).predict(X), forest.predict(X))
    inner = int(np.flatnonzero(parts["left"] >= 0)[0])
    for name, value in (
        ("left", inner), ("right", len(parts["left"])), ("feature", forest.n_features), ("leaf", 3), ("left", -5),
    ):  # fmt: skip
        forged = {**parts, name: parts[name].copy()}
        forged[name][inner] = value
        with pytest.raises((ValueError, TypeError)):
            from_parts(forged)
    for name in ("roots", "shares"):
        with pytest.raises((ValueError, TypeError)):
            from_parts({**parts, name: parts[name] - 10**7})
    with pytest.raises(ValueError, match="features"):
        forest.predict(np.zeros((3, forest.n_features + 1)))


def test_cells_and_graphs_that_are_none_are_refused():
    _, _, _, from_parts = parts_of(Cells.of_levels(3, missing=True))
    for low in ([2.0, 1.0], [np.nan, np.nan], [np.inf, np.inf], []):
        with pytest.raises((ValueError, TypeError)):
            from_parts({"low": np.array(low), "high": np.array(low)})
    _, _, _, graph = parts_of(ft.causal.as_graph(EDGES))
    for nodes, edges in ((("a", "b"), (("b", "a"),)), (("a",), (("a", "b"),)), (("a", "b"), (("a", "b"), ("b", "a")))):
        with pytest.raises((ValueError, TypeError)):
            graph({"nodes": nodes, "edges": edges})


def test_a_file_whose_parts_do_not_agree_is_refused(tmp_path):
    transport = CounterfactualTransport(EDGES, sensitive="sex", quantiles="linear").fit(people())
    transport.groups_ = ("F", "X")
    path = ft.save(transport, tmp_path / "transport.ft")
    with pytest.raises(ModelFileError):
        ft.load(path)
