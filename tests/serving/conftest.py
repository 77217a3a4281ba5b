"""Small models in files, and clients of an application."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from tests import worlds

import fairtransport as ft
from fairtransport.serving import ServerSettings, create_app
from fairtransport.tabular import TableModel

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # a newer client than httpx is recommended
    from starlette.testclient import TestClient

NAMES = ["hours", "age", "grade"]


def people(n, seed=0):
    return worlds.people(n, seed, groups=("F", "M"), coef=(1.0, 1.0, 1.0), names=NAMES)


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Model files: of numbers, of raw columns, and one that needs the groups."""
    folder = tmp_path_factory.mktemp("models")
    X, y, sex = people(2000)
    ft.save(ft.TransportClassifier(parity_weight=1.0).fit(X, y, sensitive_features={"sex": sex}), folder / "m.ft")
    ft.save(ft.TransportClassifier(parity_weight=0.0).fit(X, y, sensitive_features={"sex": sex}), folder / "n.ft")
    raw = X.assign(job=np.where(X["age"] > 0, "cook", "smith"), sex=sex, hired=y)
    raw["job"] = raw["job"].where(np.arange(len(raw)) % 9 > 0, None)
    table = TableModel(ft.TransportClassifier(parity_weight=0.3), label="hired", sensitive_features=["sex"])
    ft.save(table.fit(raw), folder / "table.ft")
    aware = ft.QuantileRepairClassifier(LogisticRegression(), cv=2).fit(X, y, sensitive_features={"sex": sex})
    ft.save(aware, folder / "aware.ft")
    return folder


@pytest.fixture
def client(files):
    """Make a client of a model file."""
    opened = []

    def make(name="m.ft", **settings):
        path = name if hasattr(name, "parent") else files / name
        opened.append(TestClient(create_app(ServerSettings(path, **settings)), base_url="http://127.0.0.1:8000"))
        return opened[-1].__enter__()

    yield make
    for one in reversed(opened):
        one.__exit__(None, None, None)


@pytest.fixture(scope="session")
def rows():
    X, _, sex = people(40, seed=1)
    return X, [{**row, "sex": own} for row, own in zip(X.to_dict("records"), sex, strict=True)]
