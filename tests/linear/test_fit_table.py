"""Training on files and tables by the names of columns: the model of rows in memory, however the rows are divided."""

import tempfile

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport.linear import _table_problem, _table_reading, _training, table_training
from fairtransport.linear._partitions import PartsInMemory, RawParts

FEATURES = [f"x{j}" for j in range(5)]
COLUMNS = {"label": "y", "sensitive_features": "g", "features": FEATURES}
DROPPED = ft.GroupPolicy(small="drop", min_size=800)
pytestmark = pytest.mark.filterwarnings("ignore::fairtransport.FairnessWarning")


def rows(n=12_000, seed=0):
    """Five features: of group b one is higher, one is a year, one is mostly zero; two strata, weights, a real label."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], n, p=[0.5, 0.35, 0.15])
    X = rng.normal(size=(n, 5))
    X[:, 0] += (group == "b") + 0.5 * (group == "c")
    X[:, 1] = np.round(2020 + 3 * X[:, 1], 1)
    X[:, 2] = X[:, 2] > 1.5
    eta = X[:, 0] + 0.3 * (X[:, 1] - 2020) + X[:, 2] - 0.5
    table = pd.DataFrame(X, columns=FEATURES).assign(g=group, y=(eta + rng.logistic(size=n) > 0).astype(int))
    return table.assign(
        r=eta + rng.normal(size=n), s=rng.choice(["u", "v"], n), w=rng.random(n) + 0.5, k=rng.integers(1, 4, n)
    )


@pytest.fixture(scope="module")
def table():
    return rows()


@pytest.fixture
def on_disk(monkeypatch):
    """Make every table too large for memory."""
    monkeypatch.setattr(table_training, "MOST_IN_MEMORY", 0)


def write(table, folder, n_files=1):
    for number, part in enumerate(np.array_split(np.arange(len(table)), n_files)):
        table.iloc[part].to_parquet(folder / f"{number:03}.parquet", row_group_size=1777)
    return str(folder / "*.parquet")


def in_memory(model, table, *, label="y", strata=None, weight=None, **_):
    return model.fit(
        table[FEATURES],
        table[label],
        sensitive_features=table[["g"]],
        strata=None if strata is None else table[[strata]],
        sample_weight=None if weight is None else table[weight],
    )


@pytest.mark.parametrize(
    ("options", "columns", "limit"),
    [
        ({}, {}, 1e-3),
        ({"distance": "discrete"}, {}, 1e-3),
        ({"criterion": "equalized_odds"}, {}, 1e-3),
        ({"criterion": "equal_opportunity"}, {}, 1e-3),
        ({"target": "barycenter_w2"}, {}, 1e-3),
        ({"scale": "score"}, {}, 1e-3),
        ({}, {"weight": "w"}, 1e-3),
        ({}, {"weight": "k"}, 1e-3),
        ({}, {"strata": "s"}, 1e-3),
    ],
    ids=str,
)
@pytest.mark.usefixtures("on_disk")
def test_scores_are_those_of_rows_in_memory(table, tmp_path, options, columns, limit):
    """At a minimum: with the default tolerance both stop before it, at slightly different places."""
    model = ft.TransportClassifier(parity_weight=0.5, tol=1e-6, **options)
    whole = in_memory(ft.TransportClassifier(**model.get_params()), table, **columns)
    model.fit_table(write(table, tmp_path), **COLUMNS, **columns)
    scores, expected = (one.predict_proba(table[FEATURES])[:, 1] for one in (model, whole))
    assert np.abs(scores - expected).max() < limit
    assert np.abs(expected - whole.initial_estimator_.predict_proba(table[FEATURES])[:, 1]).max() > 0.05
    assert model.initial_estimator_.coef_ == pytest.approx(whole.initial_estimator_.coef_, abs=1e-4)
    for name, (before, after) in whole.before_after_.items():
        assert model.before_after_[name] == pytest.approx((before, after), abs=2e-3)
    assert model.group_sizes_.tolist() == whole.group_sizes_.tolist()
    assert {*vars(whole)} - {*vars(model)} <= {"_deferred", "adjusting_"}


@pytest.mark.parametrize(
    ("options", "n", "limit"),
    [
        ({"group_specific": True, "parity_weight": 0.5, "tol": 1e-6}, 12_000, 1e-3),
        ({"group_specific": True}, 12_000, 5e-3),
        ({"parity_weight": 0.5, "tol": 1e-6}, 900, 1e-3),
        ({"parity_weight": 0.5, "tol": 1e-6, "group_specific": True, "groups": DROPPED}, 3_000, 2e-3),
    ],
    ids=["own weights", "own weights, automatic", "few rows", "own weights, a small group"],
)
@pytest.mark.usefixtures("on_disk")
def test_flexible_models_are_checked_on_rows_that_they_have_not_seen(table, tmp_path, options, n, limit):
    """Folds are other rows than those in memory, so held-out figures differ by chance, and scores hardly."""
    table = table[:n]
    whole = in_memory(ft.TransportClassifier(**options), table)
    model = ft.TransportClassifier(**options).fit_table(write(table, tmp_path, 2), **COLUMNS)
    known = {"sensitive_features": table[["g"]]} if "group_specific" in options else {}
    scores, expected = (one.predict_proba(table[FEATURES], **known) for one in (model, whole))
    assert np.abs(scores - expected).max() < limit
    assert model.parity_weight_ == whole.parity_weight_
    assert model.information_kept_ == pytest.approx(whole.information_kept_, abs=0.03)
    assert model.coef_.shape == whole.coef_.shape
    assert model.common_coef_ == pytest.approx(whole.common_coef_, abs=2e-3)
    assert model.path_["theta"].shape[1:] == whole.path_["theta"].shape[1:]


def test_rows_of_a_fold_have_no_part_in_its_model(table, tmp_path, on_disk, monkeypatch):
    """A model without one fold is that of a table without its rows."""
    build, losses = table_training.build_table_problem, []

    def check(*parts, **options):
        problem, rows = build(*parts, **options)
        fold = problem.fold_of_row
        kept = np.flatnonzero(fold != 1)
        loss = problem.loss_of(kept, problem.loss.shares[kept], kept.size)
        theta = np.array([[0.3, 0.1, -0.2, 0.0, 0.1, 0.2]])
        before = loss.terms(theta, compared=False)
        for index, key in enumerate(problem.loss.cells.keys):
            if key[0] == 1:
                loss.cell_outcomes[index] = 1.0 - loss.cell_outcomes[index]
        after = loss.terms(theta, compared=False)
        losses.extend((before[0], after[0], before[2](None), after[2](None), len(loss.scores(theta)), kept.size))
        return problem, rows

    monkeypatch.setattr(table_training, "build_table_problem", check)
    ft.TransportClassifier(parity_weight=0.1).fit_table(write(table[:900], tmp_path), **COLUMNS)
    assert losses[0] == losses[1]
    assert np.array_equal(losses[2], losses[3])
    assert losses[4] == losses[5]


@pytest.mark.usefixtures("on_disk")
@pytest.mark.parametrize(("criterion", "limit"), [("demographic_parity", 2e-3), ("equalized_odds", 1e-2)])
def test_a_regressor_too(table, tmp_path, criterion, limit):
    """In units of scores, six standard deviations of y; ranges of y are strata."""
    options = {"parity_weight": 0.5, "tol": 1e-5, "criterion": criterion}
    table = table[:6000]
    whole = in_memory(ft.TransportRegressor(**options), table, label="r")
    model = ft.TransportRegressor(**options).fit_table(write(table, tmp_path), **{**COLUMNS, "label": "r"})
    change = np.abs(model.predict(table[FEATURES]) - whole.predict(table[FEATURES])) / (6 * table["r"].std(ddof=0))
    assert change.max() < limit
    assert model.before_after_["r2"] == pytest.approx(whole.before_after_["r2"], abs=5e-3)
    assert (model.strata_ is None) == (whole.strata_ is None)


def public_data(name):
    """Return features as numbers, label and groups; 6,000 rows of Adult."""
    data = getattr(ft.datasets, f"load_{name}")(**({"task": "regression"} if name == "communities" else {}))
    X = ft.tabular.TableEncoder(sparse_output=False).fit_transform(data.data)
    y = data.target.to_numpy(float) if name == "communities" else (data.target == max(data.target)) * 1
    sensitive = data.sensitive_features
    group = sensitive["sex"] if "sex" in sensitive else sensitive.iloc[:, 0].astype(str)
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(y=y, g=group.to_numpy())
    return table.sample(min(6000, len(table)), random_state=0, ignore_index=True)


@pytest.mark.parametrize("weight", [0.1, 0.5, 1.0, 3.0, "auto"])
@pytest.mark.parametrize("name", ["german", "adult", "communities"])
def test_public_data_have_the_scores_and_the_objective_of_rows_in_memory(tmp_path, monkeypatch, name, weight):
    """The penalty has kinks, at which paths of the solver part: single scores differ more than their mean.

    Both ends have the same value of the objective to 1e-4. Features that change by 1e-5 change scores as much.
    """
    table, problems, train = public_data(name), [], _training.train_problem
    monkeypatch.setattr(_training, "train_problem", lambda *parts: problems.append(parts[0]) or train(*parts))
    cls = ft.TransportRegressor if name == "communities" else ft.TransportClassifier
    X, y = table.drop(columns=["y", "g"]), table["y"]
    unit = 6 * y.std(ddof=0) if name == "communities" else 1.0
    expected = cls(parity_weight=weight).fit(X, y, sensitive_features=table[["g"]])
    monkeypatch.setattr(table_training, "MOST_IN_MEMORY", 0)
    model = cls(parity_weight=weight).fit_table(write(table, tmp_path, 2), label="y", sensitive_features="g")
    scores, whole = (
        (one.predict(X) if name == "communities" else one.predict_proba(X)[:, 1]) / unit for one in (model, expected)
    )
    assert np.abs(scores - whole).mean() < 1e-3
    assert np.abs(scores - whole).max() < 0.03
    assert model.parity_weight_ == pytest.approx(expected.parity_weight_, rel=0.3)
    assert model.initial_estimator_.coef_ == pytest.approx(expected.initial_estimator_.coef_, abs=1e-3)
    response, scaling = problems[0].rows.response, problems[0].scaling
    scaling.apply(problems[0].rows.X, overwrite=True)  # which ``fit`` returned to the units as given
    solver = problems[0].solver()
    values = [
        solver.value_and_gradient(
            scaling.to_scaled(response.to_standard(np.append(one.coef_, one.intercept_)))[None], model.parity_weight_
        )[0]
        for one in (model, expected)
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-3 if weight == "auto" else 1e-4)


def test_the_objective_is_that_of_rows_and_its_error_falls_with_the_number_of_bins(tmp_path, monkeypatch):
    """A bin's rows have their mean score: rows that are alone in their bin are exact."""
    table, found = public_data("german"), []

    def stop(problem):
        theta = 0.9 * problem.start
        found.append(problem.solver().value_and_gradient(theta, 1.0))
        raise KeyboardInterrupt

    for n_bins in (None, 32, 512, 8192, 65_536):
        for module in (_training, table_training):
            monkeypatch.setattr(module, "train_problem", stop)
        monkeypatch.setattr(table_training, "MOST_IN_MEMORY", 0 if n_bins else 50_000_000)
        monkeypatch.setattr(_table_problem, "N_BINS", n_bins)
        with pytest.raises(KeyboardInterrupt):
            ft.TransportClassifier().fit_table(write(table, tmp_path), label="y", sensitive_features="g")
    (value, gradient), *others = found
    errors = np.array([[abs(v - value), np.abs(g - gradient).max() / np.abs(gradient).max()] for v, g in others])
    assert (np.diff(errors, axis=0) < 0.0).all()
    assert (errors[-2] < [1e-7, 1e-4]).all()
    assert (errors[-1] < [1e-8, 1e-6]).all()


def test_the_difference_falls_with_the_number_of_bins(table, tmp_path, on_disk, monkeypatch):
    """A score is moved by less than the width of a bin."""
    options = {"parity_weight": 1.0, "tol": 1e-7}
    expected = in_memory(ft.TransportClassifier(**options), table).predict_proba(table[FEATURES])[:, 1]
    path, found = write(table, tmp_path), []
    for n_bins in (32, 128, 8192):
        monkeypatch.setattr(_table_problem, "N_BINS", n_bins)
        model = ft.TransportClassifier(**options).fit_table(path, **COLUMNS)
        found.append(np.abs(model.predict_proba(table[FEATURES])[:, 1] - expected).max())
    assert found == sorted(found, reverse=True)
    assert found[0] > 3 * found[-1]


@pytest.mark.usefixtures("on_disk")
def test_the_automatic_weight_is_chosen_and_checked_as_in_memory(table, tmp_path):
    whole = in_memory(ft.TransportClassifier(), table)
    model = ft.TransportClassifier().fit_table(write(table, tmp_path), **COLUMNS)
    assert model.parity_weight_ == pytest.approx(whole.parity_weight_, rel=0.5)
    assert model.before_after_["rank_disparity"] == pytest.approx(whole.before_after_["rank_disparity"], abs=0.01)
    assert set(model.path_) == set(whole.path_)
    ft.save(model, tmp_path / "model.ft")
    again = ft.load(tmp_path / "model.ft")
    assert np.array_equal(again.predict_proba(table[FEATURES]), model.predict_proba(table[FEATURES]))
    assert again.at(max_rank_disparity=0.1).parity_weight_ <= model.parity_weight_
    model.partial_fit(table[FEATURES][:500], table["y"][:500], sensitive_features=table[["g"]][:500])


@pytest.mark.usefixtures("on_disk")
def test_any_number_of_files_gives_the_same_model(table, tmp_path):
    """Rows are cached in blocks of a fixed size, so that sums do not depend on the batches they came in."""
    models = []
    for n_files in (1, 3, 20):
        folder = tmp_path / str(n_files)
        folder.mkdir()
        model = ft.TransportClassifier().fit_table(write(table, folder, n_files), **COLUMNS, strata="s", weight="w")
        models.append(np.append(model.coef_, model.intercept_))
    assert models[1] == pytest.approx(models[0], abs=1e-9)
    assert models[2] == pytest.approx(models[0], abs=1e-9)


def test_the_order_of_rows_does_not_change_the_model(tmp_path, on_disk):
    """Five groups, one of 45 rows: many iterations over kinks of the penalty, which magnify every difference."""
    race = ft.datasets.load_adult().sensitive_features["race"].astype(str)
    table = public_data("adult").assign(g=race.sample(6000, random_state=0).to_numpy())
    models = []
    for number, rows in enumerate((table, table[::-1])):
        path = write(rows.reset_index(drop=True), tmp_path, 1 + number)
        models.append(ft.TransportClassifier(parity_weight=1.0).fit_table(path, label="y", sensitive_features="g"))
    assert models[1].coef_ == pytest.approx(models[0].coef_, abs=1e-9)


def test_small_files_and_tables_are_trained_on_in_memory(table, tmp_path):
    whole = in_memory(ft.TransportClassifier(), table)
    table.to_csv(tmp_path / "rows.csv", index=False)
    for given in (write(table, tmp_path), tmp_path / "rows.csv", table):
        model = ft.TransportClassifier().fit_table(given, **COLUMNS)
        assert model.coef_ == pytest.approx(whole.coef_, abs=1e-8)
        assert model.feature_names_in_.tolist() == FEATURES


@pytest.mark.usefixtures("on_disk")
def test_csv_and_duckdb_give_the_model_of_parquet(table, tmp_path):
    model = ft.TransportClassifier(parity_weight=0.1).fit_table(write(table, tmp_path), **COLUMNS)
    table.to_csv(tmp_path / "rows.csv", index=False)
    relation = duckdb.connect().read_parquet(str(tmp_path / "000.parquet"))
    for given in (tmp_path / "rows.csv", relation):
        other = ft.TransportClassifier(parity_weight=0.1).fit_table(given, **COLUMNS)
        assert other.coef_ == pytest.approx(model.coef_, abs=1e-9)


def test_features_are_all_other_columns_by_default(table):
    model = ft.TransportClassifier(parity_weight=0.1).fit_table(
        table[[*FEATURES, "g", "y", "w"]], label="y", sensitive_features=["g"], weight="w"
    )
    assert model.feature_names_in_.tolist() == FEATURES


@pytest.mark.usefixtures("on_disk")
def test_many_columns(tmp_path):
    """Where rows in memory have the penalty's curvature in the solver's metric."""
    rng = np.random.default_rng(1)
    n, names = 8_000, [f"z{j}" for j in range(32)]
    group, X = rng.integers(2, size=n), rng.normal(size=(n, 32))
    X[:, :3] += 0.4 * group[:, None]
    table = pd.DataFrame(X, columns=names).assign(y=X[:, :6].sum(axis=1) + rng.logistic(size=n) > 1.0, g=group)
    options = {"parity_weight": 0.5, "tol": 1e-6}
    whole = ft.TransportClassifier(**options).fit(table[names], table["y"], sensitive_features=table[["g"]])
    model = ft.TransportClassifier(**options).fit_table(write(table, tmp_path), label="y", sensitive_features="g")
    assert np.abs(model.predict_proba(table[names]) - whole.predict_proba(table[names])).max() < 2e-3


@pytest.mark.usefixtures("on_disk")
def test_a_fitted_model_is_the_initial_model(table, tmp_path):
    given = LogisticRegression(C=0.3, max_iter=10_000).fit(table[FEATURES], table["y"])
    options = {"parity_weight": 0.5, "tol": 1e-6}
    whole = in_memory(ft.TransportClassifier(given, **options), table)
    model = ft.TransportClassifier(given, **options).fit_table(write(table, tmp_path), **COLUMNS)
    scores, expected = (one.predict_proba(table[FEATURES])[:, 1] for one in (model, whole))
    assert np.abs(scores - expected).max() < 1e-3
    with pytest.raises(ValueError, match="None or a fitted linear model"):
        ft.TransportClassifier(LogisticRegression()).fit_table(str(tmp_path / "*.parquet"), **COLUMNS)


def test_quantiles_are_exact(table):
    class Halves:
        def summaries(self, work, names):
            import pyarrow as pa  # noqa: PLC0415

            return [work(pa.Table.from_pandas(part[list(names)])) for part in (table[:5000], table[5000:])]

    levels = np.array([0.001, 0.25, 0.5, 0.9])
    found = _table_reading.column_quantiles(Halves(), {"r": levels, "x1": levels})
    for name in ("r", "x1"):
        assert found[name] == pytest.approx(np.quantile(table[name], levels, method="lower"), rel=1e-9)


@pytest.mark.usefixtures("on_disk")
def test_the_check_for_harm_leaves_groups_of_a_few_rows_out(table, tmp_path, monkeypatch):
    """Its figures are those of the rows: three people, whose distances are chance, decide about nobody."""
    changes, check = [], _training.evaluated_change
    monkeypatch.setattr(_training, "evaluated_change", lambda *a, **o: changes.append(check(*a, **o)) or changes[-1])
    table = table.assign(g=np.where(table.index < 3, "few", table["g"]))
    model = ft.TransportClassifier(parity_weight=0.1).fit_table(write(table, tmp_path), **COLUMNS)
    in_memory(ft.TransportClassifier(parity_weight=0.1), table)
    rows = table[3:]
    for scores, found, in_rows in zip(
        (model.initial_estimator_.predict_proba(rows[FEATURES]), model.predict_proba(rows[FEATURES])),
        *(change.rank_disparity for change in changes),
        strict=True,
    ):
        expected = ft.metrics.rank_disparity(scores[:, 1], sensitive_features=rows["g"])
        assert found == pytest.approx(expected, abs=5e-4)
        assert in_rows == pytest.approx(expected, abs=5e-4)


# Bad input: names of columns and counts, never values; no file is left behind.


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.assign(y=t["y"].where(t.index != 9_000)), "'y' .label. is missing in 1 of 12,000 rows"),
        (lambda t: t.assign(x0=t["x0"].where(t.index > 3)), "'x0' .features. is missing in 4 of 12,000"),
        (lambda t: t.assign(x0=t["x0"].where(t.index > 3, np.inf)), "'x0' .features. is infinite in 4"),
        (lambda t: t.assign(g=t["g"].where(t.index > 5)), "missing values in 6 rows of column 'g'"),
        (lambda t: t.assign(y=t["y"] + (t.index == 7)), "exactly two classes"),
        (lambda t: t.assign(w=-t["w"]), "'w' .weight. must be zero or more"),
        (lambda t: t.assign(x0="n"), "'x0'.*text where numbers are needed"),
        (lambda t: t.assign(g=np.arange(len(t))), "12000 groups"),
        (lambda t: t.assign(g="a"), "1 group"),
        (lambda t: t[:0], "no rows"),
        (lambda t: t.drop(columns="x3"), "no column 'x3'"),
        (lambda t: t.rename(columns={"x3": "X_3"}), "no column 'x3'; close to it: 'X_3'"),
    ],
)
@pytest.mark.usefixtures("on_disk")
def test_bad_columns_are_named(table, tmp_path, monkeypatch, change, message):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    path = write(change(table), tmp_path, 2)
    with pytest.raises((ValueError, TypeError), match=message):
        ft.TransportClassifier().fit_table(path, **COLUMNS, weight="w")
    assert not [*(tmp_path / "temporary").glob("fairtransport-*")]


@pytest.mark.usefixtures("on_disk")
def test_files_with_other_types_or_columns_are_refused(table, tmp_path):
    write(table, tmp_path, 2)
    table[:3000].assign(x1="2020").to_parquet(tmp_path / "100.parquet")
    with pytest.raises(ValueError, match=r"'x1' contains numbers in .* and text in"):
        ft.TransportClassifier().fit_table(str(tmp_path / "*.parquet"), **COLUMNS)


@pytest.mark.usefixtures("on_disk")
def test_a_group_of_one_file_and_an_empty_file_are_no_problem(table, tmp_path):
    ordered = table.sort_values("g", ignore_index=True)
    path = write(ordered, tmp_path, 3)
    ordered[:0].to_parquet(tmp_path / "001b.parquet")
    model = ft.TransportClassifier(parity_weight=0.3, tol=1e-6).fit_table(path, **COLUMNS)
    whole = in_memory(ft.TransportClassifier(parity_weight=0.3, tol=1e-6), table)
    assert model.coef_ == pytest.approx(whole.coef_, abs=5e-3)


def test_a_table_that_changes_between_readings_is_refused(table, tmp_path, on_disk, monkeypatch):
    path, encode = write(table, tmp_path), _table_reading.RowEncoder.__call__

    def other(self, batch):
        self.numbers.pop(next(iter(self.numbers)))
        return encode(self, batch)

    monkeypatch.setattr(_table_reading.RowEncoder, "__call__", other)
    with pytest.raises(ValueError, match="it has changed meanwhile"):
        ft.TransportClassifier().fit_table(path, **COLUMNS)


@pytest.mark.usefixtures("on_disk")
def test_what_needs_rows_in_memory_says_so(table, tmp_path):
    path = write(table, tmp_path)
    with pytest.raises(ValueError, match="solver='sgd' needs all rows in memory"):
        ft.TransportClassifier(solver="sgd").fit_table(path, **COLUMNS)
    overlapping = ft.TransportClassifier(group_specific=True, groups=ft.GroupPolicy(crossed=False))
    with pytest.raises(ValueError, match="needs groups that do not overlap"):
        overlapping.fit_table(path, **{**COLUMNS, "sensitive_features": ["g", "s"]})
    with pytest.raises(TypeError, match="table must be a path"):
        ft.TransportClassifier().fit_table(3, **COLUMNS)
    with pytest.raises(ValueError, match="is the label and cannot have another role"):
        ft.TransportClassifier().fit_table(path, **{**COLUMNS, "features": ["x0", "y"]})


def test_an_interrupted_training_leaves_no_file(table, tmp_path, on_disk, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()

    def interrupt(*_):
        assert [*(tmp_path / "temporary").glob("fairtransport-*/rows")]
        raise KeyboardInterrupt

    monkeypatch.setattr(table_training, "train_problem", interrupt)
    with pytest.raises(KeyboardInterrupt):
        ft.TransportClassifier().fit_table(write(table, tmp_path), **COLUMNS)
    assert not [*(tmp_path / "temporary").glob("fairtransport-*")]


def test_many_columns_are_trained_with_the_same_curvature_of_the_penalty(tmp_path, on_disk):
    rng = np.random.default_rng(0)
    n, names = 6_500, [f"x{j:02}" for j in range(32)]
    group = rng.integers(3, size=n)
    X = rng.normal(size=(n, 32)) + 0.6 * group[:, None] * rng.normal(size=32)
    y = (X @ rng.normal(scale=0.25, size=32) + rng.logistic(size=n) > 0).astype(int)
    wide = pd.DataFrame(X, columns=names).assign(y=y, g=np.array(["a", "b", "c"])[group])
    path, options = write(wide, tmp_path, 2), {"parity_weight": 0.5, "tol": 1e-6}
    expected = ft.TransportClassifier(**options).fit(wide[names], y, sensitive_features=wide[["g"]])
    model = ft.TransportClassifier(**options).fit_table(path, label="y", sensitive_features="g", features=names)
    assert np.abs(model.predict_proba(wide[names]) - expected.predict_proba(wide[names])).max() < 1e-3
    assert model.n_iter_ < 2 * expected.n_iter_


def test_derivatives_of_sums_of_slices_are_their_differences(tmp_path, table, on_disk, monkeypatch):
    build, checked = table_training.build_table_problem, []

    def check(*parts, **options):
        problem, rows = build(*parts, **options)
        loss, start = problem.loss, problem.start
        slices, n_cells = np.arange(len(loss.outcomes)), len(loss.cells.keys)
        numbers, weights = (loss.cells.repeated(each) for each in (np.arange(n_cells), 1.0 / loss.cells.n_slices))
        found = loss.score_sum_derivatives(start, slices, weights, numbers, n_cells)
        for column in range(start.size):
            step = 1e-3 * (np.arange(start.size) == column)
            moved = (loss.scores(start + sign * step) for sign in (1, -1))
            higher, lower = (np.bincount(numbers, weights * scores) for scores in moved)
            np.testing.assert_allclose(found[:, 0, column], (higher - lower) / 2e-3, atol=1e-4)
        checked.append(loss.feature_sums(problem.comparisons.penalised))
        return problem, rows

    monkeypatch.setattr(table_training, "build_table_problem", check)
    ft.TransportClassifier(parity_weight=0.1).fit_table(write(table, tmp_path, 2), **COLUMNS)
    np.testing.assert_allclose(np.sort(checked[0][:, -1]), np.sort(table.g.value_counts()), rtol=1e-9)


@pytest.mark.parametrize("empty", [("g", "y"), ("g", "s")])
def test_cells_without_weight_count_nowhere(tmp_path, table, on_disk, empty):
    values = {"g": "b", "y": 1, "s": "v"}
    inside = (table[list(empty)] == [values[name] for name in empty]).all(axis=1)
    table = table.assign(w=np.where(inside, 0.0, table.w))
    columns = {"weight": "w", **({"strata": "s"} if "s" in empty else {})}
    model = ft.TransportClassifier(parity_weight=0.5).fit_table(write(table, tmp_path, 2), **COLUMNS, **columns)
    expected = in_memory(ft.TransportClassifier(parity_weight=0.5), table, **columns)
    apart = np.abs(model.predict_proba(table[FEATURES]) - expected.predict_proba(table[FEATURES])).max()
    assert apart < 1e-2


class Workers(RawParts):
    """Arrow tables that workers hold."""

    is_remote = True

    def __init__(self, *parts):
        self.parts, self.readings = [pa.Table.from_pandas(part, preserve_index=False) for part in parts], []

    @property
    def names(self):
        return self.parts[0].column_names

    def summaries(self, work, names):
        self.readings.append(tuple(names))
        return [work(part.select(names)) for part in self.parts]

    def encoded(self, work, names):
        return PartsInMemory([work(part.select(names)) for part in self.parts])


def test_small_tables_of_workers_are_read_into_memory(table, monkeypatch):
    """The model is that of ``fit``, whatever the parts and the order of rows; larger tables stay where they are."""
    expected = in_memory(ft.TransportClassifier(), table, strata="s").predict_proba(table[FEATURES])
    whole, mixed = Workers(table), Workers(*(table[start::3] for start in range(3)))
    for parts in (whole, mixed):
        model = ft.TransportClassifier().fit_table(parts, **COLUMNS, strata="s")
        assert model.predict_proba(table[FEATURES]) == pytest.approx(expected, abs=1e-9)
    assert [len(each) for each in mixed.readings] == [1, 8]
    monkeypatch.setattr(table_training, "MOST_IN_MEMORY", 8 * len(table) - 1)
    model = ft.TransportClassifier().fit_table(whole, **COLUMNS, strata="s")
    assert np.abs(model.predict_proba(table[FEATURES]) - expected).max() > 1e-9
    with pytest.raises(ValueError, match="Column 'x1' contains numbers in one part of the table and text in another"):
        ft.TransportClassifier().fit_table(Workers(table[:9], table[9:20].assign(x1="2020")), **COLUMNS)
    with pytest.raises(ValueError, match="The table has no rows"):
        ft.TransportClassifier().fit_table(Workers(table[:0]), **COLUMNS)


def test_strata_that_one_part_does_not_know_are_cut():
    columns = _table_reading.TableColumns((), "y", ("g",), ("s",))
    unknown, known = (
        _table_reading.summarise(pa.table({"y": [0] * 20, "g": ["a"] * 20, "s": s}), columns)
        for s in (pa.nulls(20), pa.array(np.arange(20.0)))
    )
    for one, other in ((unknown, known), (known, unknown)):
        assert len(one.merged(other).few["s"]) == 13
