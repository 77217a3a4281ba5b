"""An audit written as JSON comes back as it was, and nothing else is taken for one."""

import base64
import json
import zlib

import numpy as np
import pytest

import fairtransport as ft
from fairtransport.auditing import Audit, Inference
from fairtransport.auditing import result as json_file

CANARY = "CANARY"


def make(n=900, seed=0, *, labels=True, names=("a", "b", "c"), **options):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, len(names), n)
    scores = rng.beta(2 + codes / 2, 3)
    y = (rng.random(n) < scores).astype(int) if labels else None
    sensitive = np.array(names, dtype=object)[codes]
    options = {"inference": Inference(n_bootstrap=50, n_permutations=50, random_state=seed), **options}
    return ft.audit(scores, y, sensitive_features=options.pop("sensitive", sensitive), **options)


CASES = {
    "plain": {},
    "no labels": {"labels": False},
    "numbers as groups": {"names": (1, 2, 30)},
    "two columns": {"sensitive": {"g": np.arange(900) % 3, "h": np.where(np.arange(900) % 2, "x", "y")}},
    "overlapping": {
        "sensitive": {"g": np.arange(900) % 3, "h": np.where(np.arange(900) % 2, "x", "y")},
        "groups": ft.GroupPolicy(crossed=False),
    },
    "weights": {"sample_weight": np.linspace(0.5, 2, 900)},
    "strata": {"strata": np.arange(900) % 4},
    "equalized odds": {"criterion": "equalized_odds"},
    "equal opportunity within strata": {"criterion": "equal_opportunity", "strata": np.linspace(0, 1, 900)},
    "range": {"range": (-1, 3), "thresholds": [0.2, 0.9]},
    "nobody is selected": {"thresholds": [1.0]},
    "pooled": {"names": tuple("abcdefghijklmnopqrstuvwxyz"), "groups": ft.GroupPolicy(small="pool", min_size=35)},
}


@pytest.mark.parametrize("case", CASES)
def test_an_audit_comes_back_as_it_was(case, tmp_path):
    audit = make(**CASES[case])
    path = audit.to_json(tmp_path / "audit.json")
    restored = Audit.from_json(path)
    assert restored.to_json() == audit.to_json() == path.read_text().rstrip("\n")
    assert str(restored) == str(audit)
    assert restored.verdict == audit.verdict
    np.testing.assert_array_equal(restored.histograms.masses, audit.histograms.masses)
    assert restored.histograms.groups.labels == audit.histograms.groups.labels
    changes = ft.compare(audit, restored).changes.values()
    assert {change.value for change in changes} == {0.0}


def test_fine_histograms_of_many_rows_are_merged_and_stay_exact_at_the_nodes_left(monkeypatch):
    audit = make()
    monkeypatch.setattr(json_file, "_MAX_ENTRIES", 300)
    restored = Audit.from_json(audit.to_json()).histograms
    assert np.count_nonzero(restored.masses) <= 300
    points = restored.grid.nodes[::16]
    np.testing.assert_allclose(restored.shares_above(points), audit.histograms.shares_above(points), atol=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ('{"format": "fairtransport audit", "version": NaN}', "is not JSON"),
        ('{"version": 1}', "is not an audit"),
        ('{"format": "fairtransport audit", "version": 1}', "has version 1 of the layout"),
        ('{"format": "fairtransport audit", "version": "CANARY"}', "has version unknown of the layout"),
        ('{"format": "fairtransport audit", "version": 2}', "has no histograms"),
        ("{" * 100_000, "is not JSON"),
    ],
)
def test_other_texts_are_refused(text, message):
    with pytest.raises(ValueError, match=message) as error:
        Audit.from_json(text)
    assert CANARY not in str(error.value)


def parts_of(value, path=()):
    """Yield the path of every value in nested lists and dicts."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield from parts_of(part, (*path, key))


def replaced(content, path, value):
    copy = json.loads(json.dumps(content))
    at = copy
    for key in path[:-1]:
        at = at[key]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return copy


@pytest.mark.trust
def test_forged_parts_are_refused_or_harmless():
    """Parts are deleted, or replaced by a value of another type: a ValueError without it, or an audit."""
    content = json.loads(make(strata=np.arange(900) % 2).to_json())
    rng = np.random.default_rng(0)
    paths = [path for path in parts_of(content) if path]
    messages = []
    for index in rng.choice(len(paths), 250, replace=False):
        value = [None, CANARY, -1, [], {}, True, 1e300][rng.integers(7)]
        forged = json.dumps(replaced(content, paths[index], value))
        try:
            audit = Audit.from_json(forged)
        except ValueError as error:
            messages.append(str(error))
        else:
            assert isinstance(audit, Audit)
    assert len(messages) > 75
    assert not any(CANARY in message for message in messages)


def test_arrays_that_inflate_beyond_the_limit_are_refused(monkeypatch):
    content = json.loads(make().to_json())
    monkeypatch.setattr(json_file, "_MAX_INFLATED", 1000)
    bomb = base64.b64encode(zlib.compress(bytes(10**6))).decode()
    content["histograms"]["masses"]["data"] = bomb
    with pytest.raises(ValueError, match="its histograms cannot be read"):
        Audit.from_json(json.dumps(content))
