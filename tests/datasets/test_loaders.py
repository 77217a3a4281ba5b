"""What all three loaders promise."""

import dataclasses
import hashlib
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.utils import Bunch

from fairtransport.datasets import list_datasets, load_adult, load_communities, load_german

LOADERS = {"adult": load_adult, "german": load_german, "communities": load_communities}
FRAMES = {"pandas": (pd.DataFrame, pd.Series), "polars": (pl.DataFrame, pl.Series), None: (np.ndarray, np.ndarray)}
# Written by scripts/make_datasets.py, whose inputs carry UCI's sha256.
SHA256 = {
    "adult": "79cb39d8446b7c0ba606cf5b105fffff2ec0e3b60d2da90b774a6b936248a6d1",
    "german": "e51d964328b11bc9b5a64f985aaa2958f85811776377c0a228f335657ec7aa5e",
    "communities": "51d2ccbcbb38f9accd5c9af9557af06f86775d83d78b999b2949dd9430ec0336",
}


def plain(cells):
    """Spell every missing value as None, so that columns of different kinds can be compared."""
    return [None if cell is None or (isinstance(cell, float) and np.isnan(cell)) else cell for cell in cells]


@pytest.fixture(params=list_datasets(), ids=lambda entry: entry.name)
def info(request):
    return request.param


def test_entries_have_the_kind_and_the_size_that_was_asked_for(info, kind, load):
    bunch = load(LOADERS[info.name])
    table, column = FRAMES[kind]
    assert isinstance(bunch, Bunch)
    assert isinstance(bunch.data, table)
    assert isinstance(bunch.target, column)
    assert isinstance(bunch.sensitive_features, table)
    assert bunch.data.shape == (info.rows, info.columns)
    assert bunch.target.shape == (info.rows,)
    assert bunch.sensitive_features.shape == (info.rows, len(info.sensitive))
    assert len(bunch.feature_names) == info.columns
    assert tuple(bunch.sensitive_names) == info.sensitive
    assert len(bunch.target_names) == 2
    assert np.asarray(bunch.target).dtype == np.int64
    assert set(np.unique(np.asarray(bunch.target))) == {0, 1}


def test_the_three_kinds_hold_the_same_values(info, monkeypatch):
    loader = LOADERS[info.name]
    frames, arrays = loader(), loader(as_frame=False)
    monkeypatch.setitem(sys.modules, "pandas", None)
    polars = loader()
    np.testing.assert_array_equal(frames.target.to_numpy(), arrays.target)
    np.testing.assert_array_equal(polars.target.to_numpy(), arrays.target)
    for entry in ("data", "sensitive_features"):
        for position, name in enumerate(frames[entry].columns):
            expected = plain(arrays[entry][:, position].tolist())
            assert plain(frames[entry][name].tolist()) == expected, name
            assert plain(polars[entry][name].to_list()) == expected, name


def test_every_call_returns_new_objects(info):
    loader = LOADERS[info.name]
    first = loader(as_frame=False)
    first.target[:] = -1
    first.data[0, 0] = -1
    first.feature_names.clear()
    second = loader(as_frame=False)
    assert set(np.unique(second.target)) == {0, 1}
    assert second.data[0, 0] != -1
    assert len(second.feature_names) == info.columns


def test_changing_one_entry_leaves_the_others(info):
    bunch = LOADERS[info.name]()
    before = bunch.frame.iloc[0, 0]
    bunch.data.iloc[0, 0] = bunch.data.iloc[1, 0]
    assert bunch.data.iloc[0, 0] != before
    bunch.target.iloc[:] = 0
    assert bunch.frame.iloc[0, 0] == before
    assert bunch.frame[info.label].sum() > 0


def test_without_pandas_and_polars_the_error_says_what_to_do(info, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"fairtransport\[tables\].*as_frame=False"):
        LOADERS[info.name]()
    assert LOADERS[info.name](as_frame=False).data.shape == (info.rows, info.columns)


def test_shipped_file_is_the_one_that_was_checked(info):
    path = Path(LOADERS[info.name](as_frame=False).filename)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == SHA256[info.name]


def test_description_cites_and_licenses(info):
    description = LOADERS[info.name](as_frame=False).DESCR
    flat = " ".join(description.split())
    assert info.title in flat
    assert info.citation in flat
    assert info.licence in flat
    assert f"{info.rows:,}" in flat
    assert info.label in flat
    assert all(f"``{name}``" in flat for name in info.sensitive)


def test_catalogue_lists_the_three_and_cannot_be_changed():
    entries = list_datasets()
    assert [entry.name for entry in entries] == list(LOADERS)
    assert {entry.licence for entry in entries} == {"CC BY 4.0"}
    with pytest.raises(dataclasses.FrozenInstanceError):
        entries[0].rows = 0
