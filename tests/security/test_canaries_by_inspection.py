"""Canaries of every type, in every argument of every public function and method that inspection finds.

The other arguments are valid. Whatever is raised, with all that stands behind it, and whatever is warned of, logged or
printed, is searched for the canaries. A name that a package exports is tried from the day on which it is exported.
"""

from __future__ import annotations

import datetime as dt
import decimal
import importlib
import inspect
import logging
import re
import warnings
import zlib
from functools import partial
from types import FunctionType

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from lightgbm import LGBMClassifier
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport import boosting, criteria, histograms, stream, tables, tabular, transport
from fairtransport.criteria import penalty as penalties
from fairtransport.linear import SgdSettings
from fairtransport.report import WhatIf
from fairtransport.torch import TransportPenalty

DOT = partial(ft.TransportClassifier, distance="discrete")


pytestmark = [pytest.mark.trust, pytest.mark.filterwarnings("ignore")]  # those of the calls are recorded

N = 24
WORD, NUMBER, DAY = "CANARY7", 0.7311731173, dt.date(7311, 7, 31)
HUGE = int("731173" * 60)
PATTERN = re.compile(r"CANARY7|731173|7\.3117|7311-07-31|datetime.date\(7311")


class Awkward:
    """An object that tells its content to whoever asks."""

    def __repr__(self):
        return WORD

    def __array__(self, dtype=None, copy=None):
        raise ValueError(f"cannot convert {WORD}")

    def __len__(self):
        return N


def structured():
    rows = np.zeros(N, dtype=[("name", "U9"), ("score", float)])
    rows["name"], rows["score"] = WORD, NUMBER
    return rows


def objects(*values):
    made = np.empty(N, dtype=object)
    made[:] = [values[i % len(values)] for i in range(N)]
    return made


KINDS = {
    "complex": lambda: np.full(N, NUMBER + 0j),
    "complex matrix": lambda: np.full((N, 3), NUMBER + 2j),
    "matrix beyond bounds": lambda: np.full((N, 3), 7.3117311),
    "vector beyond bounds": lambda: np.full(N, -7.3117311),
    "one row": lambda: np.full((1, N, 1), NUMBER),
    "objects": lambda: objects(WORD, NUMBER, None),
    "object matrix": lambda: np.full((N, 3), WORD, dtype=object),
    "structured": structured,
    "dates": lambda: np.full(N, np.datetime64(DAY)),
    "durations": lambda: np.full(N, np.timedelta64(731173, "s")),
    "masked": lambda: np.ma.array(np.full(N, NUMBER), mask=np.arange(N) % 2 == 0),
    "masked text": lambda: np.ma.array(np.full(N, WORD), mask=np.arange(N) % 2 == 0),
    "text": lambda: np.full(N, WORD),
    "bytes": lambda: np.full(N, WORD.encode()),
    "list of text": lambda: [WORD] * N,
    "nested lists": lambda: [[[NUMBER, WORD]] * 2] * N,
    "ragged": lambda: [[NUMBER] * (1 + i % 3) for i in range(N)],
    "decimals": lambda: [decimal.Decimal(repr(NUMBER))] * (N - 1) + [decimal.Decimal("sNaN")],
    "missing": lambda: [None, NUMBER] * (N // 2),
    "huge": lambda: [HUGE] * N,
    "dict": lambda: {"a": [NUMBER] * N, "b": [WORD] * N},
    "set": lambda: {WORD, NUMBER},
    "generator": lambda: (WORD for _ in range(N)),
    "sparse": lambda: sparse.csr_matrix(np.full((N, 3), 7.3117311)),
    "sparse complex": lambda: sparse.csr_matrix(np.full((N, 3), NUMBER + 1j)),
    "pandas objects": lambda: pd.Series([WORD, NUMBER, None, DAY] * (N // 4), dtype=object),
    "pandas categories": lambda: pd.Series(pd.Categorical([WORD, f"{WORD}b"] * (N // 2))),
    "pandas integers with missing": lambda: pd.Series([731173, None] * (N // 2), dtype="Int64"),
    "pandas text": lambda: pd.Series([WORD, None] * (N // 2), dtype="string"),
    "pandas frame": lambda: pd.DataFrame({"s": [WORD] * N, "g": [NUMBER] * N, "y": [DAY] * N, "w": [WORD] * N}),
    "polars": lambda: pl.Series("s", [WORD] * N),
    "polars categories": lambda: pl.Series("s", [WORD] * N, dtype=pl.Enum([WORD])),
    "polars frame": lambda: pl.DataFrame({"s": [WORD] * N, "g": [[NUMBER]] * N, "y": [DAY] * N, "w": [WORD] * N}),
    "arrow": lambda: pa.array([WORD] * N),
    "arrow table": lambda: pa.table({"s": [WORD] * N, "g": [NUMBER] * N, "y": [NUMBER] * N, "w": [WORD] * N}),
    "tensor": lambda: torch.full((N,), 7.3117311),
    "tensor of integers": lambda: torch.full((N, 3), 731173),
    "object": Awkward,
}

#: Columns, files and plain labels: what they are given is the user's own word, which an error may repeat.
NAMES = {"path", "paths", "folder", "store", "source", "score", "label", "weight", "columns", "name", "names", "title",
         "output", "by", "table_name", "library", "kind", "format", "delimiter", "encoding", "null", "decimal", "sheet",
         "memory", "metric", "parameter", "theme", "layout", "note", "entry", "tag", "options", "amounts",
         "parity_weights"}  # fmt: skip

#: Optional arguments that are given, to be quick.
FASTER = {"n_updates", "n_bootstrap", "n_permutations", "n_shuffles", "n_bins", "cv", "amounts", "n_jobs"}
SLOW = {"FrontierDisplay.from_estimator": {"amounts": [1.0], "cv": 2, "n_jobs": 1}}

rng = np.random.default_rng(0)
GROUP = np.where(np.arange(N) % 2, "a", "b")
X = rng.normal(size=(N, 3)) + (GROUP == "b")[:, None] * [1.0, 0.0, 0.0]
Y = (np.arange(N) // 2) % 2
SCORES = 1 / (1 + np.exp(-X[:, 0]))
FRAME = pd.DataFrame({"s": SCORES, "g": GROUP, "y": Y, "w": np.ones(N), "a": X[:, 1]})
QUICK = {"n_bootstrap": 20, "n_permutations": 20, "random_state": 0}


def given():
    """Valid values of arguments by name."""
    groups = ft.make_groups(GROUP)
    comparisons = criteria.demographic_parity(groups)
    counted = histograms.count_scores(SCORES, Y, sensitive_features=GROUP, n_bins=64)
    audit = ft.audit(SCORES, Y, sensitive_features=GROUP, **QUICK)
    sample = transport.Sample.from_values(SCORES)
    model = ft.QuantileRepairClassifier(LogisticRegression(), min_group_size=1).fit(X, Y, sensitive_features=GROUP)
    scores_repair = ft.QuantileRepair(min_group_size=1).fit(SCORES, sensitive_features=GROUP)
    table_repair = ft.TableRepair(score="s", sensitive_features="g").fit(FRAME)
    solution = ft.solve_dual(SCORES, SCORES, n_updates=3, random_state=0)
    cot = ft.TransportClassifier(parity_weight=1.0).fit(X, Y, sensitive_features=GROUP)
    return {
        "X": X, "y": Y, "y_true": Y, "scores": SCORES, "sensitive_features": GROUP, "sample_weight": np.ones(N),
        "weights": np.ones(N), "x": SCORES, "frame": FRAME, "table": FRAME, "groups": groups, "settled": groups,
        "comparisons": comparisons, "histograms": counted, "audit": audit, "before": audit, "after": audit,
        "counts": tables.count_table(FRAME, score="s", sensitive_features="g"), "grid": histograms.Grid(n_bins=64),
        "samples": [sample] * 2, "sizes": [3.0, 4.0], "sample": sample, "values": SCORES, "points": SCORES,
        "levels": SCORES, "target": "barycenter", "model": model, "estimator": model, "estimators": [model],
        "rng": np.random.default_rng(0), "size": 3, "n": 3, "min_size": 1, "n_bins": 64, "small_groups": "keep",
        "min_group_size": 1, "keep": 0.5, "n_updates": 3, "metric": ft.metrics.strong_pairwise_disparity,
        "parity_weights": [1.0], "thresholds": [0.5], "score": "s", "label": "a", "output": "r", "by": "g",
        "lookup": table_repair.lookup(), "solution": solution, "margins": X[:, 0], "labels": Y, "masses": np.ones(N),
        "nodes": np.arange(N), "cells": np.zeros(N, dtype=int), "pool": np.ones(8), "source": SCORES, "one": "a",
        "other": "b", "spec": groups.to_spec(), "arrays": counted.to_arrays(), "mask_or_rows": np.arange(3),
        "maps": scores_repair.maps_, "amount": 1.0, "members": [0], "n_rows": N, "pairs": [(0, 1)],
        "rows": np.arange(N), "state": cot.online_state(), "history": [{"batch": 0, "disparity": 0.1}],
        "threshold": 0.5, "squares": np.ones(8), "group_codes": torch.arange(N) % 2,
        "max_disparity": 0.5, "version": 0, "n_bootstrap": 20, "n_permutations": 20, "n_shuffles": 3, "cv": 2,
        "amounts": [1.0], "n_jobs": 1,
    }  # fmt: skip


def instances(values):
    """An instance of each public class with methods that take arguments."""
    keys = {"sensitive_features": GROUP}
    audit = values["audit"]
    yield from (audit, ft.compare(audit, audit), values["groups"], values["grid"], values["histograms"])
    for kind in (ft.TransportClassifier, DOT):
        yield kind(parity_weight=1.0).fit(X, Y, **keys)
        yield kind(solver=SgdSettings(n_updates=5, random_state=0)).fit(X, Y, **keys)
    yield from (values["model"], ft.QuantileRepair(min_group_size=1).fit(SCORES, **keys))
    yield ft.TableRepair(score="s", sensitive_features="g").fit(FRAME)
    yield from (values["lookup"], values["solution"], values["sample"], values["comparisons"])
    yield penalties.DiscretePenalty()
    yield ft.frontier(values["model"], X, Y, **keys, amounts=[0.5, 1.0], cv=2, n_jobs=1, random_state=0)
    sgd = ft.TransportClassifier(solver=SgdSettings(n_updates=5, random_state=0)).fit(X, Y, **keys)
    yield from (sgd.duals_, sgd.make_trainer(X, Y, **keys), WhatIf.of(audit))
    yield ft.audit_by(FRAME, by="g", score="s", sensitive_features="y", **QUICK)
    FRAME.to_csv("people.csv")
    with tables.open_files(["people.csv"]) as opened:
        yield opened
    yield from (transport.coupling(SCORES, SCORES), transport.quantile_map(SCORES, [0.1, 0.2]))
    yield ft.QuantileRepair(min_group_size=1).fit(SCORES, **keys).online_state()
    yield tabular.TableEncoder().fit(FRAME[["a", "g"]])
    yield tables.Columns.named(score="s", sensitive_features="g")
    yield tabular.TableModel(LogisticRegression(), label="y", sensitive_features=["g"]).fit(FRAME)
    trees = LGBMClassifier(n_estimators=2, min_child_samples=1, verbose=-1, n_jobs=1)
    yield boosting.TransportBoostingClassifier(trees, parity_weight=0.3, random_state=0).fit(X, Y, **keys)
    yield boosting.TransportObjective(GROUP)
    yield TransportPenalty(2)
    yield stream.ContinualAdjuster(values["model"], store=None)


def public_names():
    """Everything that the package and its folders export."""
    packages = ["fairtransport", *(f"fairtransport.{name}" for name in sorted(ft._PACKAGES))]
    found = {}
    for package in packages:
        module = importlib.import_module(package)
        for name in module.__all__:
            found.setdefault(id(getattr(module, name)), (f"{package}.{name}", getattr(module, name)))
    return [pair for pair in found.values() if callable(pair[1])]


METHODS = (FunctionType, classmethod, staticmethod)


def methods(owner):
    """The methods of ours that a class or an instance has."""
    kind = owner if isinstance(owner, type) else type(owner)
    for name in dir(kind):
        static = inspect.getattr_static(kind, name)
        bound = isinstance(static, (classmethod, staticmethod))
        if name.startswith("_") or bound is not isinstance(owner, type) or not isinstance(static, METHODS):
            continue
        function = getattr(owner, name)
        if str(getattr(function, "__module__", "")).startswith("fairtransport"):
            yield f"{kind.__name__}.{name}", function


def public_callables(values):
    for name, thing in public_names():
        if isinstance(thing, FunctionType):
            yield name, thing
        elif isinstance(thing, type) and not issubclass(thing, BaseException):
            if not inspect.isabstract(thing):
                yield name, thing
            yield from methods(thing)
    for instance in instances(values):
        yield from methods(instance)


def calls(name, function, values):
    """Yield a description and the arguments of each call: canaries of each kind in each argument.

    Of the kinds, optional data get every third and other options every twelfth, each another selection.
    """
    parameters = [
        p for p in inspect.signature(function).parameters.values() if p.kind not in {p.VAR_KEYWORD, p.VAR_POSITIONAL}
    ]
    required = SLOW.get(name, {}) | {
        p.name: values.get(p.name) for p in parameters if p.default is p.empty or p.name in FASTER
    }
    for parameter in parameters:
        data = re.search("Array|Any", str(parameter.annotation))
        share = 1 if parameter.default is parameter.empty else 3 if data else 12
        for number, (kind, make) in enumerate(KINDS.items()):
            if parameter.name not in NAMES and (zlib.crc32(f"{name}{parameter.name}".encode()) + number) % share == 0:
                yield f"{name}({parameter.name}: {kind})", {**required, parameter.name: make()}


def said_by(error):
    """All that a traceback or a log could print of an error, and of the errors behind it, suppressed or not."""
    waiting = [error]
    while waiting:
        error = waiting.pop()
        if error is not None:
            yield from (str(error), repr(error), str(getattr(error, "__notes__", "")))
            waiting += [error.__cause__, error.__context__]


def test_no_canary_comes_out(tmp_path, monkeypatch, caplog, capfd):
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    caplog.set_level(logging.DEBUG)
    for library in ("numba", "matplotlib"):
        logging.getLogger(library).setLevel(logging.WARNING)
    values = given()
    n_calls = n_failures = 0
    told = []
    for name, function in public_callables(values):
        for where, arguments in calls(name, function, values):
            n_calls += 1
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    result = function(**arguments)
                    if isinstance(result, tables.FileTable):
                        result.close()
                except Exception as error:  # noqa: BLE001 - whatever it is, its text is looked at
                    n_failures += 1
                    told += [(where, text) for text in said_by(error)]
            told += [(where, str(warning.message)) for warning in caught]
    told += [("log", record.getMessage()) for record in caplog.records]
    told += [("printed", text) for text in capfd.readouterr()]
    found = [(where, text) for where, text in told if PATTERN.search(text)]
    assert not found, "\n".join(f"{where}\n    {text[:300]}" for where, text in found)
    assert n_calls > 5000
    assert n_failures > 3000
