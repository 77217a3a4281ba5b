"""A person's values through every failure of every public entry point: none comes out in an error, a warning or a log.

Each corruption spoils one input and puts canaries into it: a text, and a number whose digits are looked for. Each entry
point is called with each. Whatever is raised, warned, logged or printed is searched.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import logging
import re
import warnings
from functools import cache, partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fairtransport as ft
from fairtransport import histograms, metrics, tables, transport
from fairtransport.criteria import demographic_parity, weigh_by_reliability
from fairtransport.criteria.penalty import DiscretePenalty
from fairtransport.persistence import describe

DOT = partial(ft.TransportClassifier, distance="discrete")


pytestmark = pytest.mark.trust

WORD, NUMBER = "CANARY7", 0.7311731173
PATTERN = re.compile(r"CANARY7|731173|7\.3117")
N = 80


def people():
    rng = np.random.default_rng(0)
    group = np.where(np.arange(N) % 2, "a", "b").astype(object)
    X = rng.normal(size=(N, 3)) + (group == "b")[:, None] * [1.0, 0.0, 0.0]
    y = (X @ [1.0, 1.0, 0.5] + rng.logistic(size=N) > 0.5).astype(int)
    scores = 1 / (1 + np.exp(-X[:, 0]))
    scores[3] = NUMBER  # a person's score, in all that is not spoilt, too
    X[3, 1] = 73.11731173
    return {"X": X, "y": y, "scores": scores, "group": group, "weight": np.ones(N)}


def put(column, value, *, rows=(5,), kind=object):
    """A column with some values replaced."""

    def spoil(given):
        made = given[column].astype(kind)
        made[list(rows)] = value
        return {**given, column: made}

    return spoil


def cut(column):
    return lambda given: {**given, column: given[column][:-1]}


def alone(given):
    """One person has the group, another is missing."""
    group = given["group"].copy()
    group[0], group[1] = WORD, None
    return {**given, "group": group}


CORRUPTIONS = {
    "nothing wrong": lambda given: given,
    "group of one": put("group", WORD),
    "groups of everyone": lambda given: {**given, "group": np.array([f"{WORD}-{i}" for i in range(N)], dtype=object)},
    "one group": lambda given: {**given, "group": np.full(N, WORD, dtype=object)},
    "missing group": alone,
    "group that is a list": lambda given: {**given, "group": [[WORD, "x"], *([["a", "b"]] * (N - 2)), ["a"]]},
    "group that is a dict": lambda given: {**given, "group": np.array([{WORD: 1}] * N, dtype=object)},
    "group that is a date": lambda given: {**given, "group": np.array([np.datetime64("2026-01-01")] * N)},
    "group that is bytes": put("group", WORD.encode()),
    "group with half a letter": put("group", f"{WORD}\ud800", rows=range(0, N, 3)),
    "group with NUL and escapes": put("group", f"{WORD}\0\x1b[31m", rows=range(0, N, 3)),
    "group of numbers": lambda given: {**given, "group": np.where(np.arange(N) % 2, 7.3117311, np.inf)},
    "groups by name": lambda given: {**given, "group": {"race": [WORD] * N, "sex": ["b"] * (N - 1)}},
    "short groups": cut("group"),
    "score as text": put("scores", WORD),
    "score out of range": put("scores", 7.3117311),
    "score infinite": put("scores", np.inf),
    "score missing": put("scores", None),
    "scores as logits": lambda given: {**given, "scores": given["scores"] * 10 - 7.3117311},
    "scores all equal": lambda given: {**given, "scores": np.full(N, NUMBER)},
    "scores of two columns": lambda given: {**given, "scores": np.full((N, 2), NUMBER)},
    "short scores": cut("scores"),
    "third label": put("y", WORD),
    "label that is a number": put("y", 7.3117311, kind=float),
    "label missing": put("y", None),
    "one label": lambda given: {**given, "y": np.full(N, WORD, dtype=object)},
    "short labels": cut("y"),
    "cell of text": put("X", WORD),
    "cell missing": put("X", np.nan, kind=float),
    "cell infinite": put("X", np.inf, kind=float),
    "cell too large": put("X", 7.3117311e300, kind=float),
    "column missing": lambda given: {**given, "X": given["X"][:, :2]},
    "short cells": cut("X"),
    "names of columns": lambda given: {**given, "X": pd.DataFrame(given["X"], columns=["p", "q", "r"])},
    "cells of text with names": lambda given: {**given, "X": pd.DataFrame(np.full((N, 3), WORD), columns=[*"pqr"])},
    "weight below zero": put("weight", -7.3117311, kind=float),
    "weight as text": put("weight", WORD),
    "weight missing": put("weight", np.nan, kind=float),
    "no weight": lambda given: {**given, "weight": np.zeros(N)},
    "short weights": cut("weight"),
}  # fmt: skip

SGD = {"solver": ft.linear.SgdSettings(n_updates=20, random_state=0)}
QUICK = {"n_bootstrap": 20, "n_permutations": 20, "random_state": 0}
MODELS = {
    "COT": ft.TransportClassifier,
    "COT of each group": lambda **o: ft.TransportClassifier(parity_weight=0.3, group_specific=True, **o),
    "COT of the paper": lambda **o: ft.TransportClassifier(**SGD, **o),
    "DOT": DOT,
    "DOT of the paper": lambda **o: ft.TransportClassifier(distance="discrete", **SGD, **o),
    "repair of categories": lambda **o: ft.QuantileRepairClassifier(
        make_pipeline(
            ColumnTransformer([("a", OneHotEncoder(), [1])], remainder=SimpleImputer()), LogisticRegression()
        ),
        **o,
    ),
    "repair": lambda **o: ft.QuantileRepairClassifier(make_pipeline(StandardScaler(), LogisticRegression()), **o),
}


@cache
def fitted(name):
    given = people()
    if name == "scores":
        return ft.QuantileRepair().fit(given["scores"], sensitive_features=given["group"])
    return MODELS[name]().fit(given["X"], given["y"], sensitive_features=given["group"])


def of_groups(d):
    groups = ft.make_groups(people()["group"])
    yield lambda: groups.encode(d["group"])
    yield lambda: groups.adopt(d["group"])
    yield lambda: groups.index_of(WORD)
    yield lambda: ft.make_groups(d["group"], missing="group").to_spec()
    yield lambda: ft.make_groups(d["group"], grouping="each", min_size=5)


def of_model(name, d):
    keys = {"sensitive_features": d["group"]}
    weighted = {**keys, "sample_weight": d["weight"]}
    yield lambda: MODELS[name]().fit(d["X"], d["y"], **weighted)
    yield lambda: MODELS[name](missing="group", target=WORD).fit(d["X"], d["y"], **weighted)
    yield lambda: MODELS[name]().partial_fit(d["X"], d["y"], **weighted)
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(fitted(name), method):
            yield lambda method=method: getattr(fitted(name), method)(d["X"], **keys)
    yield lambda: fitted(name).score(d["X"], d["y"], **weighted)


def of_repair(d):
    keys = {"sensitive_features": d["group"]}
    yield lambda: ft.QuantileRepair().fit(d["scores"], **keys, sample_weight=d["weight"])
    yield lambda: ft.QuantileRepair(target=WORD).fit(d["scores"], **keys)
    yield lambda: ft.QuantileRepair(target=[WORD]).fit(d["scores"], **keys)
    yield lambda: ft.to_onnx(ft.QuantileRepair(missing="group", min_group_size=1).fit(d["scores"], **keys))
    yield lambda: ft.QuantileRepair().partial_fit(d["scores"], **keys, sample_weight=d["weight"])
    yield lambda: fitted("scores").transform(d["scores"], **keys)
    yield lambda: ft.QuantileRepair().fit_transform(d["scores"], **keys)
    for frame in frames(d):
        yield lambda frame=frame: ft.TableRepair(score="s", sensitive_features="g", weight="w").fit(frame)
        yield lambda frame=frame: fitted_table().transform(frame, output="r")


@cache
def fitted_table():
    given = people()
    return ft.TableRepair(score="s", sensitive_features="g").fit(
        pd.DataFrame({"s": given["scores"], "g": given["group"]})
    )


def frames(d):
    columns = {"s": d["scores"], "g": d["group"], "y": d["y"], "w": d["weight"]}
    if any(isinstance(column, dict) for column in columns.values()):
        return
    lists = {name: list(column) for name, column in columns.items()}
    for make in (
        lambda: pd.DataFrame(lists),
        lambda: pl.DataFrame(lists, strict=False),
        lambda: pa.table({name: pa.array(column) for name, column in lists.items()}),
    ):
        with contextlib.suppress(Exception):  # the library itself cannot hold such a column
            yield make()


def of_tables(d):
    named = {"score": "s", "sensitive_features": "g", "label": "y", "weight": "w"}
    for frame in frames(d):
        yield lambda frame=frame: tables.count_table(frame, **named)
        yield lambda frame=frame: tables.count_table(frame, **named, missing="error", pos_label=WORD)
        yield lambda frame=frame: ft.audit_table(frame, **named, **QUICK)


def of_metrics(d):
    keys = {"sensitive_features": d["group"], "sample_weight": d["weight"]}
    yield lambda: metrics.error_rate(d["y"], d["scores"], sample_weight=d["weight"])
    yield lambda: metrics.error_rate(d["y"], d["scores"], pos_label=WORD)
    yield lambda: metrics.wasserstein_disparity(d["scores"], **keys, target=WORD)
    yield lambda: metrics.noise_floor(
        metrics.strong_pairwise_disparity, d["scores"], sensitive_features=d["group"], n_shuffles=3
    )
    yield lambda: metrics.pooled_ranks(d["scores"], d["weight"])
    yield lambda: metrics.rank_disparity(d["scores"], **keys, min_size=3)
    for name in ("disparities", "pairwise_distances", "strong_demographic_disparity", "strong_pairwise_disparity",
                 "wasserstein_disparity"):  # fmt: skip
        yield lambda name=name: getattr(metrics, name)(d["scores"], **keys, min_size=3)


def of_transport(d):
    yield lambda: ft.solve_dual(d["scores"], d["weight"], n_updates=5, random_state=0)
    for name in ("wasserstein", "coupling", "quantile_map"):
        yield lambda name=name: getattr(transport, name)(d["scores"], d["scores"][:9])
    yield lambda: transport.wasserstein(d["scores"], d["scores"], x_weights=d["weight"])
    yield lambda: transport.resolve_target(
        WORD, [transport.Sample.from_values([NUMBER])] * 2, [1, 1], labels=("a", "b")
    )
    yield lambda: transport.QuantileMap(np.array([NUMBER, NUMBER]), d["scores"])
    yield lambda: DiscretePenalty().value_and_gradient(d["scores"], demographic_parity(ft.make_groups(d["group"])))
    yield lambda: DiscretePenalty().value_and_gradient(
        d["scores"], demographic_parity(ft.make_groups(people()["group"]), target=d["scores"], row_weights=d["weight"])
    )
    yield lambda: weigh_by_reliability(demographic_parity(ft.make_groups(d["group"])), d["scores"])


def of_others(d):
    keys = {"sensitive_features": d["group"], "sample_weight": d["weight"]}
    yield lambda: ft.audit(d["scores"], d["y"], **keys, **QUICK)
    yield lambda: ft.audit(d["scores"], d["y"], **keys, **QUICK, strata=d["group"], target=WORD, pos_label=WORD)
    yield lambda: ft.audit(d["scores"], sensitive_features=d["group"], **QUICK, range=(0.2, 0.5))
    yield lambda: ft.compare(an_audit(), ft.audit(d["scores"], sensitive_features=d["group"], **QUICK))
    yield lambda: histograms.count_scores(d["scores"], d["y"], **keys)
    yield lambda: ft.fit_many([MODELS["DOT"]()], d["X"], d["y"], **keys, n_jobs=1)
    yield lambda: ft.frontier(MODELS["repair"](), d["X"], d["y"], **keys, amounts=[1.0], cv=2, n_jobs=1, random_state=0)


@cache
def an_audit():
    given = people()
    return ft.audit(given["scores"], sensitive_features=given["group"], **QUICK)


def of_files(d, folder):
    model = MODELS["repair"]().fit(people()["X"], people()["y"], sensitive_features=people()["group"])
    for place in ("classes_", "groups_"):
        model.repair_.note = d["scores"]
        setattr(model, place, d["group"])
        yield lambda: ft.save(model, folder / "model.ft")
    for number, content in enumerate(
        [WORD.encode() * 9, json.dumps({WORD: NUMBER}).encode(), str(d["group"]).encode()]
    ):
        path = folder / f"{number}.ft"
        path.write_bytes(b"PK\3\4" * (number % 2) + content)
        yield lambda path=path: ft.load(path)
        yield lambda path=path: describe(path)


ENTRIES = {
    "groups": of_groups,
    "metrics": of_metrics,
    "transport": of_transport,
    "tables": of_tables,
    "repair of scores": of_repair,
    "others": of_others,
    "files": of_files,
    **{name: lambda d, name=name: of_model(name, d) for name in MODELS},
}


def said_by(error):
    """All that a traceback would print of an error, and of the errors behind it."""
    while error is not None:
        yield from (str(error), repr(error), str(getattr(error, "__notes__", "")))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


@pytest.mark.parametrize("entry", ENTRIES)
def test_no_failure_tells_a_persons_value(entry, tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    logging.getLogger("numba").setLevel(logging.WARNING)  # the compiler's own diary: byte code
    n_failures, told = 0, []
    for name, spoil in CORRUPTIONS.items():
        given = spoil(people())
        calls = ENTRIES[entry](given, tmp_path) if entry == "files" else ENTRIES[entry](given)
        for call in calls:
            where = f"{name}: {inspect.getsource(call).strip()}"
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    call()
                except Exception as error:  # noqa: BLE001 - whatever it is, its text is looked at
                    n_failures += 1
                    told += [(where, text) for text in said_by(error)]
            told += [(where, str(warning.message)) for warning in caught]
    told += [("log", record.getMessage()) for record in caplog.records]
    told += [("printed", text) for text in capfd.readouterr()]
    found = [(where, text) for where, text in told if PATTERN.search(text)]
    assert not found, "\n".join(f"{where}\n    {text[:300]}" for where, text in found)
    assert n_failures > 20


def test_what_is_printed_of_objects_tells_nobody():
    """A repr ends up in logs."""
    given = people()
    shown = [repr(ft.make_groups(given["group"])), repr(fitted("scores").maps_), repr(an_audit().histograms)]
    shown += [repr(fitted(name)) for name in MODELS]
    shown += [repr(transport.Sample.from_values(given["scores"])), repr(transport.quantile_map(given["scores"], [0.5]))]
    assert not [text for text in shown if PATTERN.search(text)]
