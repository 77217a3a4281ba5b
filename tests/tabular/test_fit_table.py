"""Models of raw tables whose rows stay in parts: encoder and scores are those of the table in memory."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fairtransport as ft
from fairtransport.linear import _partitions, table_training
from fairtransport.tabular import TableEncoder, TableModel
from fairtransport.tabular.column_plans import ColumnRules, tally_column

pytestmark = pytest.mark.filterwarnings("ignore::fairtransport.FairnessWarning")
COLUMNS = {"label": "hired", "sensitive_features": ["sex"], "pos_label": "yes", "drop": ["pay"]}


def people(n=8_000, seed=0):
    """Numbers with gaps, texts, one of them rare, booleans, dates, numbers as text; rows without label or group."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    hours = rng.normal(35, 5, n) + 3 * (sex == "M")
    job = rng.choice(["cook", "smith", "judge"], n, p=[0.7, 0.2, 0.1]).astype(object)
    night = rng.random(n) < 0.3
    eta = 0.3 * (hours - 37) + 0.8 * (job == "judge") - 0.7 * night
    table = pd.DataFrame(
        {
            "sex": sex,
            "hours": np.where(rng.random(n) < 0.05, np.nan, hours),
            "job": job,
            "night": night,
            "joined": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "grade": rng.integers(1, 9, n).astype(str),
            "id": np.arange(n),
            "area": rng.choice(["n", "s"], n),
            "pay": np.round(1000 * (eta + rng.normal(size=n)), 2),
            "hired": np.where(eta + rng.logistic(size=n) > 0, "yes", "no"),
        }
    )
    table.loc[rng.choice(n, 3, replace=False), "job"] = "astronaut"
    table.loc[rng.choice(n, 200, replace=False), "job"] = None
    table.loc[[5, 7_000], "hired"] = None
    table.loc[[11], "sex"] = None
    table.loc[[77], "grade"] = "none of your business"
    return table


@pytest.fixture(scope="module")
def table():
    return people()


@pytest.fixture
def on_disk(monkeypatch):
    monkeypatch.setattr(table_training, "MOST_IN_MEMORY", 0)


def write(table, folder, n_files):
    folder.mkdir(exist_ok=True)
    for number, part in enumerate(np.array_split(np.arange(len(table)), n_files)):
        table.iloc[part].to_parquet(folder / f"{number:03}.parquet", row_group_size=1777)
    return str(folder / "*.parquet")


def model(*, regression=False, own=False, **options):
    kind = ft.TransportRegressor if regression else ft.TransportClassifier
    estimator = kind(parity_weight=0.5, tol=1e-6, group_specific=own, groups=ft.GroupPolicy(missing="set_aside"))
    return TableModel(estimator, **{**COLUMNS, **options})


@pytest.mark.parametrize(
    "options",
    [{}, {"aware": True, "strata": ["area"], "categorical": ["grade"]}, {"aware": True, "own": True}],
    ids=str,
)
@pytest.mark.usefixtures("on_disk")
def test_scores_and_reports_are_those_of_rows_in_memory(table, tmp_path, options):
    whole, found = model(**options).fit(table), model(**options).fit_table(write(table, tmp_path / "rows", 3))
    few = table[:500].assign(job=np.where(table["job"][:500] == "cook", "never seen", table["job"][:500]))
    for rows in (table.dropna(subset="sex"), few.dropna(subset="sex")):
        limit = 1e-2 if "strata" in options else 1e-3
        assert np.abs(found.score_rows(rows).scores - whole.score_rows(rows).scores).max() < limit
    assert found.score_rows(few).counts == whole.score_rows(few).counts
    for name in ("set_aside_", "leaking_columns_", "numeric_strata_"):
        assert getattr(found, name) == getattr(whole, name)
    assert found.classes_.tolist() == whole.classes_.tolist() == ["no", "yes"]
    assert found.encoder_.left_out_ == whole.encoder_.left_out_ == {"id": "it numbers the rows"}
    assert found.encoder_.unreadable_ == whole.encoder_.unreadable_
    assert {*found.encoder_.get_feature_names_out()} == {*whole.encoder_.get_feature_names_out()}
    assert found.estimator_.group_sizes_.tolist() == whole.estimator_.group_sizes_.tolist()
    ft.save(found, tmp_path / "model.ft")
    again = ft.load(tmp_path / "model.ft").score_rows(few.dropna(subset="sex")).scores
    assert again == pytest.approx(found.score_rows(few.dropna(subset="sex")).scores, abs=1e-12)


@pytest.mark.usefixtures("on_disk")
def test_files_and_the_order_of_rows_do_not_matter(table, tmp_path):
    one = model().fit_table(write(table, tmp_path / "one", 1))
    mixed = model().fit_table(write(table.sample(frac=1.0, random_state=1), tmp_path / "many", 7))
    rows = table.dropna(subset="sex")
    assert mixed.score_rows(rows).scores == pytest.approx(one.score_rows(rows).scores, abs=1e-9)


@pytest.mark.usefixtures("on_disk")
def test_a_regressor_and_a_column_that_gives_the_label_away(table, tmp_path):
    options = {"label": "pay", "pos_label": None, "drop": ["hired"], "regression": True}
    table = table.assign(code=np.where(table["pay"] > 0, "p", "q"), rank=table["pay"].rank() / 7)
    whole = model(**options).fit(table)
    with pytest.warns(ft.FairnessWarning, match="'rank' alone"):
        found = model(**options).fit_table(write(table, tmp_path / "rows", 2))
    assert found.leaking_columns_ == whole.leaking_columns_ == ["rank"]
    rows = table.dropna(subset="sex")
    change = np.abs(found.score_rows(rows).scores - whole.score_rows(rows).scores) / (6 * table["pay"].std())
    assert change.max() < 2e-3


@pytest.mark.usefixtures("on_disk")
def test_what_is_refused(table, tmp_path):
    path = write(table, tmp_path / "rows", 2)
    with pytest.raises(ValueError, match="QuantileRepairClassifier needs all rows in memory"):
        TableModel(ft.QuantileRepairClassifier(None), **COLUMNS).fit_table(path)
    with pytest.raises(ValueError, match="missing values in 1 row of column 'sex'"):
        TableModel(ft.TransportClassifier(), **COLUMNS).fit_table(path)
    both = {**COLUMNS, "sensitive_features": ["area", "sex"]}
    with pytest.raises(ValueError, match="missing values in 1 row of column 'sex'"):
        TableModel(ft.TransportClassifier(), **both).fit_table(path)
    with pytest.raises(ValueError, match="no column 'age'"):
        model(drop=["age"]).fit_table(path)


# Merged tallies of parts are the plans of all rows.


@pytest.mark.parametrize("name", ["hours", "job", "night", "joined", "grade", "id", "area", "pay"])
def test_tallies_of_parts_give_the_plan_of_all_rows(table, name):
    rules = ColumnRules()
    whole = tally_column(name, table[name], rules, categorical=False)
    parts = [table[name][:100], table[name][100:100], table[name][100:7000], table[name][7000:]]
    merged = tally_column(name, parts[0], rules, categorical=False)
    for part in parts[1:]:
        merged = merged.merged(tally_column(name, part, rules, categorical=False))
    if name == "id":
        with pytest.raises(Exception, match="numbers the rows"):
            merged.plan(rules)
        return
    (plan, unreadable), (expected, n) = merged.plan(rules), whole.plan(rules)
    assert (plan.kind, plan.parts, plan.pattern, plan.words, plan.other, plan.missing, unreadable) == (
        expected.kind, expected.parts, expected.pattern, expected.words, expected.other, expected.missing, n
    )  # fmt: skip
    assert plan.centre == pytest.approx(expected.centre, rel=1e-12)
    assert plan.scale == pytest.approx(expected.scale, rel=1e-12)


def test_texts_of_which_there_are_too_many_are_pruned(monkeypatch):
    monkeypatch.setattr("fairtransport.tabular.column_plans._MOST_TEXTS", 60)
    rng, rules = np.random.default_rng(0), ColumnRules()
    values = np.where(
        rng.random(4000) < 0.5, rng.choice(["a", "b", "c"], 4000), rng.integers(400, size=4000).astype(str)
    )
    values = np.char.add("t", values)
    parts = [tally_column("t", part, rules, categorical=False) for part in np.array_split(values.astype(object), 20)]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merged(part)
    plan = merged.plan(ColumnRules(min_frequency=100))[0]
    assert plan.words == ("ta", "tb", "tc")
    assert plan.other
    ids = [tally_column("t", np.array([f"u{k}{j}" for j in range(50)]), rules, categorical=False) for k in range(9)]
    merged = ids[0]
    for part in ids[1:]:
        merged = merged.merged(part)
    with pytest.raises(Exception, match="text of its own"):
        merged.plan(rules)


def test_other_types_in_another_part_are_refused():
    numbers, texts = (
        tally_column("x", np.array(v), ColumnRules(), categorical=False) for v in ([1.0, 2.0], ["a", "b"])
    )
    with pytest.raises(ValueError, match="'x' contains numbers in one part and text in another of the table"):
        numbers.merged(texts)


def test_an_encoder_of_tallies_encodes_as_the_one_of_rows(table):
    rows = table[["hours", "job", "night", "joined", "grade"]]
    whole, rules = TableEncoder().fit(rows), ColumnRules()
    parts = TableEncoder().fit_tallies({n: tally_column(n, rows[n], rules, categorical=False) for n in rows})
    order = [parts.get_feature_names_out().tolist().index(name) for name in whole.get_feature_names_out()]
    assert parts.transform(rows)[:, order] == pytest.approx(whole.transform(rows), abs=1e-8)


# Parts as workers have them: some are empty, or without any value of a column.


class Parts(table_training.RawParts):
    """Pandas tables, converted one by one, as partitions of Dask are."""

    def __init__(self, *parts):
        self.parts = parts

    @property
    def names(self):
        return tuple(self.parts[0].columns)

    def _mapped(self, work, names):
        return [work(pa.Table.from_pandas(part[list(names)], preserve_index=False)) for part in self.parts]

    def summaries(self, work, names):
        return self._mapped(work, names)

    def encoded(self, work, names):
        return _partitions.PartsInMemory(self._mapped(work, names))


def test_parts_without_rows_values_labels_or_a_group(table):
    table = table.sort_values(["job", "sex"], ignore_index=True)  # no group, and no missing job, in most parts
    unlabelled = table[900:4_000].assign(hired=None)
    parts = [table[:900], table[:0], unlabelled, table[4_000:7_850], table[7_850:]]
    found, whole = model().fit_table(Parts(*parts)), model().fit(table.drop(unlabelled.index))
    known = table.drop(unlabelled.index).dropna(subset="sex")
    assert np.abs(found.score_rows(known).scores - whole.score_rows(known).scores).max() < 1e-3
    assert found.set_aside_ == {**whole.set_aside_, "no label": whole.set_aside_.get("no label", 0) + 3_100}
    assert found.estimator_.group_sizes_.tolist() == whole.estimator_.group_sizes_.tolist()


def test_parts_of_other_types_or_without_any_label_are_refused(table):
    drift = Parts(table[:4000], table[4000:].assign(hours="many"))
    with pytest.raises(ValueError, match="'hours' contains numbers in one part and text in another"):
        model().fit_table(drift)
    with pytest.raises(ValueError, match="None of the rows has a label and a group: 8,000 have no label"):
        model().fit_table(Parts(table.assign(hired=None)))
    with pytest.raises(ValueError, match="'hired' has 3 different labels"):
        model().fit_table(Parts(table[:4000], table[4000:].assign(hired="perhaps")))
