"""Models of raw tables: an encoder and a classifier or regressor, as ``fairtransport train`` saves them."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.utils.validation import check_is_fitted

from fairtransport._arrays import Bools, Floats, Ints
from fairtransport._columns import say_columns
from fairtransport._sklearn import fit_model, model_scores, needs_groups, policy_of, take_rows, takes
from fairtransport._validation import check_flag, check_real
from fairtransport._warnings import FairnessWarning, warn_caller
from fairtransport.criteria.criterion import criterion_of
from fairtransport.groups import GroupPolicy, Groups, check_policy, missing_values_error
from fairtransport.selection import Frontiers, frontier
from fairtransport.strata import Strata
from fairtransport.tables.column_roles import close_names
from fairtransport.tabular._encoder import TableEncoder
from fairtransport.tabular._row_scorer import RowScorer
from fairtransport.tabular.column_plans import ColumnPlan, encode_text, parse_numbers, read_table
from fairtransport.tabular.input_columns import InputColumn
from fairtransport.tabular.label_columns import order_labels, read_classes, read_numbers
from fairtransport.tabular.rows import ReasonKind, RowScores, TableRows, count_rows, find_numeric

if TYPE_CHECKING:
    from fairtransport.auditing import Audit

# Columns that give the label away.

_MIN_ROWS = 20  # of the rarer label; a few rows are separated by chance
_MAX_ERROR = 0.005  # relative to the error of always predicting the more frequent label


def find_leaking_columns(plans: Sequence[ColumnPlan], X: Any, labels: NDArray[Any]) -> list[str]:
    """Return the names of the raw columns that predict the label by themselves, almost without error."""
    classes = labels.dtype.kind in "iub"
    by_number, by_category = (_separates, _predicts_classes) if classes else (_ranks_alike, _predicts_numbers)
    if not _has_enough(labels):
        return []
    columns, names, start = X.tocsc(), [], 0
    for plan in plans:
        block, start = columns[:, start : start + plan.width], start + plan.width
        if plan.kind == "words":
            leaks = by_category(block, labels)
        else:
            leaks = any(by_number(block[:, [part]].toarray()[:, 0], labels) for part in range(block.shape[1]))
        if leaks:
            names.append(plan.name)
    return names


def _has_enough(labels: NDArray[Any]) -> bool:
    n_positive = int(np.count_nonzero(labels))
    return (min(n_positive, labels.size - n_positive) if labels.dtype.kind in "iub" else labels.size) >= _MIN_ROWS


def _ranks_alike(values: Floats, labels: Floats) -> bool:
    """Return whether the rank correlation of values and labels is almost 1 or -1."""
    ranks, others = (rankdata(one) - (one.size + 1) / 2 for one in (values, labels))
    scale = float(np.sqrt((ranks @ ranks) * (others @ others)))
    return bool(scale > 0 and abs(ranks @ others) >= (1 - _MAX_ERROR / 2) * scale)


def _predicts_numbers(block: Any, labels: Floats) -> bool:
    """Return whether the mean label of the other rows of a category has almost no squared error."""
    numbers = labels - labels.mean()
    sizes, sums = np.asarray(block.sum(axis=0)).ravel(), np.asarray(block.T @ numbers).ravel()
    squares = np.asarray(block.T @ numbers**2).ravel()
    several = sizes > 1  # the only row of a category cannot be predicted from others
    means = sums[several] / sizes[several]
    within = squares[several] - sizes[several] * means**2
    errors = (within * (sizes[several] / (sizes[several] - 1)) ** 2).sum()
    outside = numbers @ numbers - squares[several].sum()
    return bool(errors + outside <= _MAX_ERROR * (numbers @ numbers))


def _separates(values: Floats, positive: Ints) -> bool:
    """Return whether a threshold on the values tells the labels apart, in either direction."""
    n_positive = int(positive.sum())
    n_negative = positive.size - n_positive
    wins = rankdata(values) @ positive - n_positive * (n_positive + 1) / 2
    auc = float(wins / (n_positive * n_negative))
    return max(auc, 1 - auc) >= 1 - _MAX_ERROR / 2


def _predicts_classes(block: Any, positive: Ints) -> bool:
    """Return whether the other rows of a category predict almost all labels; rows without one are one category."""
    sizes, positives = np.asarray(block.sum(axis=0)).ravel(), np.asarray(block.T @ positive).ravel()
    sizes = np.append(sizes, positive.size - sizes.sum())
    positives = np.append(positives, positive.sum() - positives.sum())
    negatives = sizes - positives
    # Without the row itself, a tie or an empty category predicts nothing.
    wrong = np.where(positives - 1 <= negatives, positives, 0) + np.where(negatives - 1 <= positives, negatives, 0)
    return bool(wrong.sum() <= _MAX_ERROR * min(positives.sum(), negatives.sum()))


def trains_for_parity(estimator: Any) -> bool:
    """Return whether ``fit`` takes groups; a method without a signature to tell does not."""
    return "sensitive_features" in inspect.signature(estimator.fit).parameters


def check_parameters(model: Any, columns: dict[str, Any]) -> None:  # noqa: C901, PLR0912 - one check after another
    """Raise for parameters that are not allowed, or that name a column which the training table does not have."""
    if not isinstance(model.label, str):
        raise TypeError(f"label must be the name of a column; got a {type(model.label).__name__}.")
    if not model.sensitive_features or len({*model.group_columns}) < len(model.group_columns):
        raise ValueError("sensitive_features must name at least one column, and each once.")
    if model.label in model.group_columns:
        raise ValueError(f"Column {model.label!r} is the label and cannot be a group as well.")
    if isinstance(model.strata, str) or len({*model.strata}) < len(model.strata):
        raise ValueError("strata must be a list that names each column once.")
    if model.label in model.strata:
        raise ValueError(
            f"Column {model.label!r} is the label and cannot be a stratum as well; to compare people with the same "
            "label, use criterion='equalized_odds'."
        )
    both = [name for name in model.strata if name in model.group_columns]
    if both:
        raise ValueError(
            f"{say_columns(both).capitalize()}: a stratum that is a group as well has people of one group only, so "
            "there is nothing to compare."
        )
    check_flag(model.aware, name="aware")
    if not model.candidates:
        raise ValueError("estimator names no estimator.")
    if model.pos_label is not None and model.task == "regression":
        raise ValueError("pos_label is the label of a class; a regressor predicts numbers.")
    check_policy(model.groups)
    if model.max_disparity is not None:
        check_real(model.max_disparity, name="max_disparity")
        for one in model.candidates.values():
            if not trains_for_parity(one):
                raise ValueError(f"max_disparity needs a method with an amount; {type(one).__name__} is none.")
    elif isinstance(model.estimator, dict) and model.estimator:
        raise ValueError("Of several estimators, max_disparity chooses the one with the least error: give a limit.")
    for role in ("label", "sensitive_features", "strata", "drop", "categorical"):
        given = getattr(model, role)
        names = [given] if isinstance(given, str) else given
        absent = [name for name in names if name not in columns]
        if absent:
            close = close_names(absent[0], columns)
            raise ValueError(f"The table has no {say_columns(absent)} ({role}){f'; {close}' if close else '.'}")


_FOLDS = 3  # of the cross-validation that chooses a weight or an amount
_AMOUNTS = tuple(k / 10 for k in range(11))
_PARITY_WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0)


class TableModel(BaseEstimator):
    """Model of raw tables: encodes the columns, fits a classifier or regressor, and scores raw rows.

    Parameters
    ----------
    estimator : classifier or regressor, or dict of several by name
        A transport estimator, boosted trees, a repair around a model, or a model of scikit-learn. Its ``criterion`` is
        the one that is trained for. Of several, the one with the least error at ``max_disparity`` is used.
    label : str
        Column of the labels: two classes for a classifier, numbers for a regressor.
    sensitive_features : str or sequence of str
        Columns of the groups. They are features only with ``aware=True``.
    strata : sequence of str, default=()
        Columns within whose values groups are compared (conditional parity); numbers are cut at quantiles, see
        `fairtransport.strata.make_strata`. They are features as well, unless dropped.
    pos_label : str, optional
        The label whose probability is the score of a classifier; needed unless labels are 0 and 1, false and true, no
        and yes or -1 and 1.
    aware : bool, default=False
        Whether the sensitive columns are features as well.
    drop : sequence of str, default=()
        Columns that are not used as features.
    categorical : sequence of str, default=()
        Columns of numbers that are codes; see `TableEncoder`.
    decimal : {".", ","}, default="."
        The decimal separator of numbers that are written as text.
    groups : GroupPolicy, optional
        Whether rows without a group raise, form a group, "missing", or are left out of training; by default, as the
        estimator says.
    max_disparity : float, optional
        Largest disparity of the estimator's criterion that new rows may show: for demographic parity the mean over
        pairs of groups (`metrics.pairwise_disparity`). The weight of an estimator with ``parity_weight="auto"``, and
        the ``amount`` of others, is chosen by cross-validation for the least error.
    verbose : bool, default=False

    Attributes
    ----------
    encoder_, estimator_ : estimator
        The `TableEncoder`, and the model fitted to the encoded rows; a classifier with labels 0 and 1.
    classes_ : ndarray of shape (2,)
        The two labels of a classifier as text, the positive one last.
    chosen_ : str
        Name of the estimator that ``max_disparity`` has chosen of several.
    set_aside_ : dict of str to int
        Training rows without label or group.
    numeric_strata_, leaking_columns_ : list of str
        Columns of the strata that are read as numbers; columns that predict the label by themselves, almost without
        error, about which `fit` warns.

    Notes
    -----
    ``fit`` takes one table that includes labels and groups; scikit-learn's searches apply to the encoder and the
    estimator. Labels and groups are compared as text: ``1``, ``1.0`` and ``" 1"`` are the same.

    Examples
    --------
    >>> import numpy as np, fairtransport as ft
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["F", "M"], 2000)
    >>> table = {"sex": sex, "hours": rng.normal(35, 5, 2000) + 3 * (sex == "M"), "job": rng.choice(["a", "b"], 2000)}
    >>> table["hired"] = np.where(table["hours"] + rng.normal(0, 4, 2000) > 38, "yes", "no")
    >>> estimator = ft.TransportClassifier(parity_weight=0.3)
    >>> model = TableModel(estimator, label="hired", sensitive_features="sex").fit(table)
    >>> model.columns, model.needs_groups_
    (['hours', 'job'], False)
    >>> result = model.score_rows({"job": ["a", "new"], "hours": ["31", None]})
    >>> result.scores.shape, result.counts
    ((2,), {'unseen category': {'job': 1}})
    """

    def __init__(
        self,
        estimator: Any,
        *,
        label: str,
        sensitive_features: str | Sequence[str],
        strata: Sequence[str] = (),
        pos_label: str | None = None,
        aware: bool = False,
        drop: Sequence[str] = (),
        categorical: Sequence[str] = (),
        decimal: str = ".",
        groups: GroupPolicy | None = None,
        max_disparity: float | None = None,
        verbose: bool = False,
    ) -> None:
        self.estimator = estimator
        self.label = label
        self.sensitive_features = sensitive_features
        self.strata = strata
        self.pos_label = pos_label
        self.aware = aware
        self.drop = drop
        self.categorical = categorical
        self.decimal = decimal
        self.groups = groups
        self.max_disparity = max_disparity
        self.verbose = verbose

    def fit(self, table: Any) -> Self:
        """Fit the encoder and the estimator to a raw table: of pandas, polars or pyarrow, or a dict of columns."""
        columns = read_table(table)
        check_parameters(self, columns)
        if self.task == "classification":
            words, codes = encode_text(columns[self.label], self.label)
            self.classes_ = order_labels(words, codes, self.label, self.pos_label)
        self.numeric_strata_ = find_numeric(columns, self.strata, categorical=self.categorical, decimal=self.decimal)
        labels, has_label = self.read_labels(columns[self.label])
        kept, set_aside = self.usable_rows(columns, has_label)
        if self.policy.missing == "error" and ReasonKind.NO_GROUP in set_aside:
            raise missing_values_error(self.count_missing(columns, set_aside))
        chosen = np.flatnonzero(kept)
        if not chosen.size:
            reasons = ", ".join(f"{rows:,} have {reason}" for reason, rows in count_rows(set_aside).items())
            raise ValueError(f"None of the {kept.size:,} rows has a label and a group: {reasons}.")
        not_features = {self.label, *self.drop, *(() if self.aware else self.group_columns)}
        features = {n: take_rows(c, chosen) for n, c in columns.items() if n not in not_features}
        if not features:
            raise ValueError("No column is left for the features: all are labels, groups or dropped.")
        self.encoder_ = TableEncoder(
            categorical=tuple(name for name in self.categorical if name in features),
            decimal=self.decimal,
            sparse_output=True,
        )
        X = self.encoder_.fit(features).transform(features)
        labels = labels[kept]
        self.set_aside_ = count_rows(set_aside)
        self.set_leaking(find_leaking_columns(self.encoder_.plans_, X, labels))
        groups = self.groups_of(columns, kept)
        self.estimator_ = self._fit_estimator(X, labels, groups, self.strata_of(columns, kept))
        return self

    def fit_table(self, table: Any, *, checkpoint: str | os.PathLike[str] | None = None) -> Self:
        """Fit the encoder and the estimator to files, also larger than memory, or to a table of Dask or Spark.

        Parameters
        ----------
        table : path, list of paths, or table
            As in `TransportClassifier.fit_table`: tables in memory and those of up to 50 million values are fitted as
            ``fit`` does. Rows of the others stay where they are; the estimator must be a `TransportClassifier` or
            `TransportRegressor`, of which ``max_disparity`` is a limit for training rows, or a `BlindRepairClassifier`
            or `BlindRepairRegressor` of a linear model of scikit-learn.
        checkpoint : path, optional
            As there.
        """
        from fairtransport.linear.table_training import Journal, RawParts, opened, read_small  # noqa: PLC0415
        from fairtransport.tabular.partitioned_training import fit_parts  # noqa: PLC0415 - engines take a while

        if checkpoint is not None:
            Journal(checkpoint)  # so that a wrong name is noticed before anything is read
        with opened(table, raw=True) as source:
            rows = read_small(source, source.names) if isinstance(source, RawParts) else source
            if rows is not None:
                return self.fit(rows)
            check_parameters(self, dict.fromkeys(source.names))
            fit_parts(self, source, checkpoint)
        return self

    def leaks(self, X: Any, labels: NDArray[Any]) -> list[str] | None:
        """Return the columns that give the label of encoded rows away; None where rows are too few to say."""
        return find_leaking_columns(self.encoder_.plans_, X, labels) if _has_enough(labels) else None

    def set_leaking(self, names: list[str]) -> None:
        """Store the columns that give the label away, and warn of them."""
        self.leaking_columns_ = names
        if names:
            warn_caller(
                f"The labels can be told almost without error from {say_columns(names)} alone. What is known only "
                "after the label does not belong to the features: leave it out with drop=.",
                FairnessWarning,
            )

    def _fit_estimator(
        self, X: Any, labels: NDArray[Any], sensitive: dict[str, NDArray[Any]], strata: dict[str, NDArray[Any]] | None
    ) -> Any:
        if self.max_disparity is not None:
            curves: dict[str, Any] = {}
            options: Any = {"cv": _FOLDS, "random_state": 0, "verbose": self.verbose, "strata": strata}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FairnessWarning)  # of models that are tried, not of the chosen one
                for name, one in self.candidates.items():
                    # The limit determines the weight of a method that would choose it itself, the amount of others,
                    # and of boosters among several: these are trained once a fold then.
                    is_quick = hasattr(one, "fit_path") or len(self.candidates) == 1
                    weighs = is_quick and getattr(one, "parity_weight", None) == "auto"
                    weighs = weighs or not hasattr(one, "amount")
                    path: Any = {"parity_weights": _PARITY_WEIGHTS} if weighs else {"amounts": _AMOUNTS}
                    curves[name] = frontier(one, X, labels, sensitive_features=sensitive, **options, **path)
            found = Frontiers(curves)
            self.chosen_ = found.best(max_disparity=self.max_disparity)
            return found[self.chosen_].choose(max_disparity=self.max_disparity)
        model = clone(self._first)
        if not trains_for_parity(model):
            return model.fit(X, labels)
        return fit_model(model, X, labels, sensitive_features=sensitive, strata=strata)

    @property
    def needs_groups_(self) -> bool:
        """True if the model needs the group of a row to score it, apart from features."""
        check_is_fitted(self)
        return needs_groups(self.estimator_)

    @property
    def needs_strata(self) -> bool:
        """True if the model needs the stratum of a row to score it, apart from features."""
        check_is_fitted(self)
        return takes(self.estimator_, "strata") and self.known_strata is not None

    @property
    def candidates(self) -> dict[str, Any]:
        """The estimator, or the several of which one is chosen, by name."""
        return self.estimator if isinstance(self.estimator, dict) else {"": self.estimator}

    @property
    def _first(self) -> Any:
        return next(iter(self.candidates.values()))

    @property
    def group_columns(self) -> tuple[str, ...]:
        """Names of the sensitive columns."""
        given = self.sensitive_features
        return (given,) if isinstance(given, str) else tuple(given)

    @property
    def policy(self) -> GroupPolicy:
        """Rules by which sensitive columns become groups."""
        return policy_of(self._first) if self.groups is None else self.groups

    @property
    def task(self) -> str:
        """The task of the estimator: "classification" (labels are classes) or "regression" (numbers)."""
        return "regression" if is_regressor(self._first) else "classification"

    @property
    def criterion(self) -> str:
        """The criterion of the estimator; demographic parity for one that has none."""
        return criterion_of(getattr(self._first, "criterion", None)).name

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Columns that the encoder was fitted to."""
        check_is_fitted(self)
        return np.asarray(self.encoder_.feature_names_in_)

    def input_columns(self) -> dict[str, InputColumn]:
        """Return the columns of the features and strata that scoring needs, with their kinds and categories."""
        kinds = {"number": "number", "date": "date", "words": "text"}
        plans = {plan.name: plan for plan in self.encoder_.plans_}
        columns = {name: InputColumn(name, kinds[plan.kind], plan.words or None) for name, plan in plans.items()}
        for name in self.strata if self.needs_strata else ():
            columns.setdefault(name, InputColumn(name, "number" if name in self.numeric_strata_ else "text"))
        return columns

    @property
    def columns(self) -> list[str]:
        """Columns that scoring needs."""
        check_is_fitted(self)
        groups = self.group_columns if self.needs_groups_ else ()
        return list(dict.fromkeys([*self.encoder_.names, *groups, *(self.strata if self.needs_strata else ())]))

    def read_rows(self, table: Any) -> TableRows:
        """Return the rows of a raw table that have a label and a known group, as the estimator takes them."""
        check_is_fitted(self)
        columns = read_table(table)
        absent = [name for name in (*self.group_columns, self.label, *self.strata) if name not in columns]
        if absent:
            raise ValueError(f"The table has no {say_columns(absent)}, which the model was trained with.")
        labels, has_label = self.read_labels(columns[self.label])
        kept, set_aside = self.usable_rows(columns, has_label, known=True)
        chosen = np.flatnonzero(kept)
        X = self.encoder_.transform({name: take_rows(columns[name], chosen) for name in self.encoder_.names})
        groups, strata = self.groups_of(columns, kept), self.strata_of(columns, kept)
        return TableRows(X, labels[kept], groups, count_rows(set_aside), strata)

    def score_encoded(self, rows: TableRows) -> Floats:
        """Return the scores of rows that `read_rows` returned."""
        return model_scores(
            self.estimator_,
            rows.X,
            sensitive_features=rows.sensitive_features if self.needs_groups_ else None,
            strata=rows.strata if self.needs_strata else None,
        )

    def audit(self, table: Any, **options: Any) -> Audit:
        """Audit the scores of the rows of a raw table that have a label and a known group.

        Parameters
        ----------
        table : table
            Rows that the model was not trained on, of pandas, polars or pyarrow.
        **options
            Those of `fairtransport.audit`, such as ``criterion``, ``groups`` and ``favourable``.

        Returns
        -------
        Audit
            Within the strata of the model, where it has any.
        """
        from fairtransport.auditing import audit  # noqa: PLC0415 - servers score, and do not audit

        rows = self.read_rows(table)
        known: Any = {"sensitive_features": rows.sensitive_features, "strata": rows.strata, "task": self.task}
        result: Audit = audit(self.score_encoded(rows), rows.labels, **known, **options)
        return result.with_provenance(positive=None if self.task == "regression" else str(self.classes_[-1]))

    def score_rows(
        self, table: Any, *, unknown_group: str = "error", sensitive_features: Sequence[str] | None = None
    ) -> RowScores:
        """Return a score for each row of a raw table, which does not depend on the others, or NaN and a reason.

        Parameters
        ----------
        table : table
            A batch of rows: a table of pandas, polars or pyarrow, or a dict of columns, found by name in any order.
            Labels are not needed; sensitive columns are needed with ``needs_groups_`` or as features.
        unknown_group, sensitive_features
            See `RowScorer`.
        """
        check_is_fitted(self)
        return RowScorer(self, unknown_group=unknown_group, sensitive_features=sensitive_features).score_rows(table)

    def score_table(self, table: Any, *, output: str = "score") -> Any:
        """Return a table of any engine with the scores in one more column, lazily; see `RowScorer.score_table`."""
        check_is_fitted(self)
        return RowScorer(self).score_table(table, output=output)

    def _require_scores(self, table: Any, **options: Any) -> Floats:
        """Return the scores; raise ValueError unless every row has one."""
        result = self.score_rows(table, **options)
        if result.reasons:
            reasons = "; ".join(sorted({*result.reasons.values()}))
            raise ValueError(
                f"{len(result.reasons):,} of {result.scores.size:,} rows cannot be scored: {reasons}. Use score_rows, "
                "which scores the others."
            )
        return result.scores

    def predict_proba(
        self, table: Any, *, unknown_group: str = "error", sensitive_features: Sequence[str] | None = None
    ) -> Floats:
        """Return a classifier's probabilities of ``classes_``; as `score_rows`, but a row without a score raises."""
        if self.task == "regression":
            raise AttributeError("A regressor has no predict_proba.")
        positive = self._require_scores(table, unknown_group=unknown_group, sensitive_features=sensitive_features)
        return np.column_stack((1.0 - positive, positive))

    def predict(
        self, table: Any, *, unknown_group: str = "error", sensitive_features: Sequence[str] | None = None
    ) -> NDArray[Any]:
        """Return the more probable label, as text, or a regressor's prediction; a row without a score raises."""
        scores = self._require_scores(table, unknown_group=unknown_group, sensitive_features=sensitive_features)
        return scores if self.task == "regression" else np.asarray(self.classes_[(scores > 0.5).astype(int)])

    @property
    def known_groups(self) -> Groups | None:
        """Groups of the training rows, with the treatment of small ones; None where no groups were used."""
        return getattr(getattr(self.estimator_, "repair_", self.estimator_), "groups_", None)

    @property
    def known_strata(self) -> Strata | None:
        """Strata of the training rows; None where no strata were used."""
        return getattr(getattr(self.estimator_, "repair_", None) or self.estimator_, "strata_", None)

    def read_labels(self, column: Any) -> tuple[NDArray[Any], Bools]:
        """Return the labels as numbers, and which rows have one."""
        if self.task == "regression":
            return read_numbers(column, self.label, self.decimal)
        return read_classes(column, self.label, self.classes_)

    def with_decimal(self, decimal: str) -> Self:
        """Return the model for tables in which numbers that are text have this decimal separator."""
        model = copy(self)
        model.encoder_ = copy(self.encoder_).set_params(decimal=decimal)
        return model.set_params(decimal=decimal)

    def usable_rows(
        self, columns: dict[str, Any], has_label: Bools, *, known: bool = False
    ) -> tuple[Bools, dict[ReasonKind, Bools]]:
        """Return which rows have a label and a group, and the others by reason; ``known``: one that training saw."""
        has_group = np.ones(has_label.size, dtype=bool)
        for name in self.group_columns if self.policy.missing != "group" else ():
            has_group &= encode_text(columns[name], name)[1] >= 0
        usable = has_label & has_group
        reasons = {ReasonKind.NO_LABEL: ~has_label, ReasonKind.NO_GROUP: has_label & ~has_group}
        groups = self.known_groups if known else None
        strata = self.known_strata if groups is not None and self.needs_strata else None
        if groups is not None and usable.any():
            new = reasons[ReasonKind.UNKNOWN_GROUP] = np.zeros(usable.size, dtype=bool)
            new[usable] = ~groups.is_known(self.groups_of(columns, usable))
            usable &= ~new
        if strata is not None and usable.any():
            new = reasons[ReasonKind.UNKNOWN_STRATUM] = np.zeros(usable.size, dtype=bool)
            new[usable] = strata.encode(self.strata_of(columns, usable)).codes == len(strata)
            usable &= ~new
        return usable, {reason: rows for reason, rows in reasons.items() if rows.any()}

    def count_missing(self, columns: dict[str, Any], set_aside: Mapping[ReasonKind, Bools]) -> dict[str, int]:
        """Return how many of the rows that are set aside without a group have no value, by sensitive column."""
        rows = set_aside.get(ReasonKind.NO_GROUP)
        if rows is None:
            return {}
        return {n: int(np.count_nonzero(encode_text(columns[n], n)[1][rows] < 0)) for n in self.group_columns}

    def groups_of(self, columns: dict[str, Any], kept: Bools) -> dict[str, NDArray[Any]]:
        """Return the sensitive columns as text; a missing value is the text "missing"."""
        groups = {}
        for name in self.group_columns:
            words, codes = encode_text(columns[name], name)
            groups[name] = np.array([*words, "missing"], dtype=object)[codes[kept]]
        return groups

    def strata_of(self, columns: Mapping[str, Any], kept: Bools) -> dict[str, NDArray[Any]] | None:
        """Return the columns of the strata, numbers as numbers and the others as text, or None without any."""
        if not self.strata:
            return None
        strata: dict[str, NDArray[Any]] = {}
        for name in self.strata:
            column = take_rows(columns[name], np.flatnonzero(kept))
            if name in self.numeric_strata_:
                strata[name] = parse_numbers(column, name, self.decimal)[0]
            else:
                words, codes = encode_text(column, name)
                strata[name] = np.array([*words, None], dtype=object)[codes]
        return strata
