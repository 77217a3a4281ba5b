"""``fairtransport train``: a model file from a table of raw data, and what parity costs on held-out rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path  # noqa: TC003 - typer reads it
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtransport.cli import _options as shared
from fairtransport.cli._errors import collect_warnings, misuse
from fairtransport.cli._output import (
    JsonOutput,
    count_of,
    make_table,
    prepare_files,
    print_paths,
    print_sentence,
    print_table,
    progress_bar,
    spinner,
    stderr_is_terminal,
)

if TYPE_CHECKING:
    from fairtransport.groups import GroupPolicy
    from fairtransport.tabular import TableModel
    from fairtransport.tabular.held_out_evaluation import HeldOut

# The methods that ``fairtransport train`` offers, and their estimators.

CRITERIA = ("demographic_parity", "equalized_odds", "equal_opportunity")  # fairtransport.criteria.CRITERIA loads slowly

METHODS = {
    "cot": "continuous optimal transport",
    "dot": "discrete optimal transport",
    "trees": "boosted trees of LightGBM with such a penalty (extra boosting)",
    "dpp": "a model with quantile post-processing of its scores (needs the group to score)",
    "blind-repair": "a model whose scores are repaired by a second model, of the groups (not needed to score)",
    "lr": "a linear model without parity: logistic or linear regression",
}
TASKS = ("classification", "regression")
#: Models that are repaired, and which of them a method repairs by default.
BASES = ("linear", "trees")
_USUAL_BASE = {"dpp": "linear", "blind-repair": "trees"}


@dataclass(frozen=True)
class MethodOptions:
    """The options of the method; None for an option that is not used."""

    method: str
    parity_weight: float | str | None
    amount: float | None
    max_disparity: float | None
    aware: bool | None
    target: str | None
    groups: GroupPolicy
    seed: int
    criterion: str = "demographic_parity"
    strata: bool = False
    base: str | None = None

    @property
    def repaired(self) -> str | None:
        """The model that is repaired; None for a method that repairs none."""
        return self.base or _USUAL_BASE.get(self.method)

    @property
    def limit_of_table(self) -> float | None:
        """The limit on the disparity, unless the method keeps it by itself."""
        return None if self.method == "blind-repair" else self.max_disparity

    def check(self, task: str | None) -> None:
        """End the command if options cannot be combined."""
        self._check_task(task)
        if self.method not in METHODS:
            raise misuse(f"--method must be one of {', '.join(METHODS)}; got {self.method!r}")
        if self.base not in {*BASES, None}:
            raise misuse(f"--base must be one of {', '.join(BASES)}; got {self.base!r}")
        if self.criterion not in CRITERIA:
            raise misuse(f"--criterion must be one of {', '.join(CRITERIA)}; got {self.criterion!r}")
        other = None if self.criterion == "demographic_parity" else self.criterion
        for name, value, allowed in (
            ("--criterion", other, self.method != "lr"),
            ("--parity-weight", self.parity_weight, self.method in {"cot", "dot", "trees"}),
            ("--amount", self.amount, self.method != "lr"),
            ("--max-disparity", self.max_disparity, self.method != "lr"),
            ("--target", self.target, self.method not in {"lr", "blind-repair"}),
            ("--base", self.base, self.method in _USUAL_BASE),
            ("--aware", self.aware or None, self.method != "blind-repair"),
        ):
            if value is not None and not allowed:
                raise misuse(f"{name} cannot be combined with --method {self.method}")
        if isinstance(self.parity_weight, str) and self.parity_weight != "auto":
            raise misuse(f"--parity-weight must be auto or a number, zero or more; got {self.parity_weight!r}")
        if self.amount is not None and self.max_disparity is not None:
            raise misuse(
                "--max-disparity and --amount cannot be combined, because both decide how much parity there is"
            )
        if self.method == "dpp" and self.aware is False:
            raise misuse("--method dpp needs the group to score; use --blind with blind-repair, cot, dot, trees or lr")

    def _check_task(self, task: str | None) -> None:
        if task not in {*TASKS, None}:
            raise misuse(f"--task must be one of {', '.join(TASKS)}; got {task!r}")
        if task == "regression" and self.criterion == "equal_opportunity":
            raise misuse(
                "--criterion equal_opportunity compares people with the positive label, and numbers have none; use "
                "equalized_odds"
            )


def make_estimator(options: MethodOptions, *, task: str, verbose: bool) -> Any:
    """Return the unfitted classifier or regressor of a method."""
    from fairtransport import linear, repair  # noqa: PLC0415 - scikit-learn takes a while

    kind = "Regressor" if task == "regression" else "Classifier"
    if options.method == "lr":
        return _make_base("linear", kind, options.seed)
    weight: dict[str, Any] = {} if options.parity_weight is None else {"parity_weight": options.parity_weight}
    shared: dict[str, Any] = {
        "criterion": options.criterion,
        "groups": options.groups,
    }
    shared["amount"] = 1.0 if options.amount is None else options.amount
    if options.method == "trees":
        from fairtransport import boosting  # noqa: PLC0415 - needs an extra

        trees = getattr(boosting, f"TransportBoosting{kind}")
        return trees(target=options.target or "each_other", random_state=options.seed, **weight, **shared)
    if options.repaired is not None:
        base = _make_base(options.repaired, kind, options.seed)
        if options.method == "blind-repair":
            repaired = getattr(repair, f"BlindRepair{kind}")
            return repaired(base, max_disparity=options.max_disparity, random_state=options.seed, **shared)
        amount = shared.pop("amount")
        quantile_repair = repair.QuantileRepair(options.target or "barycenter_w2", **shared)
        return getattr(repair, f"QuantileRepair{kind}")(base, quantile_repair, amount=amount)
    return getattr(linear, f"Transport{kind}")(
        distance="continuous" if options.method == "cot" else "discrete",
        target=options.target or "each_other",
        group_specific=bool(options.aware),
        verbose=verbose,
        **weight,
        **shared,
    )


def _make_base(base: str, kind: str, seed: int) -> Any:
    """Return a model without parity: linear, or scikit-learn's gradient boosting with early stopping."""
    from sklearn.linear_model import LogisticRegression, Ridge  # noqa: PLC0415

    if base == "linear":
        return Ridge() if kind == "Regressor" else LogisticRegression(max_iter=1000)
    from fairtransport.repair.blind import group_model as dense_boosting  # noqa: PLC0415

    return getattr(dense_boosting, f"DenseBoosting{kind}")(
        max_iter=300, max_leaf_nodes=15, max_features=0.5, early_stopping=True, n_iter_no_change=20, random_state=seed
    )


# What ``fairtransport train`` reports: the model, and its figures on held-out rows.

_TITLES = {
    "error_rate": "Error",
    "auc": "Area under the ROC curve",
    "rmse": "Root mean squared error",
    "r2": "R squared",
    "strong_demographic_disparity": "Distance to everyone (SDD)",
    "strong_pairwise_disparity": "Distance between pairs (SPDD)",
    "rank_disparity": "The same for ranks",
    "separation_disparity": "SPDD within labels",
    "opportunity_disparity": "SPDD within the positive label",
    "conditional_disparity": "SPDD within strata",
}


def summarize(model: TableModel, n_rows: int, method: str, shown: HeldOut | None) -> dict[str, Any]:
    """Describe the model and its figures for JSON."""
    estimator = model.estimator_
    summary = {
        "method": method,
        "rows": n_rows,
        "set_aside": model.set_aside_,
        "label": model.label,
        "task": model.task,
        "positive": str(model.classes_[1]) if model.task == "classification" else None,
        "sensitive": list(model.sensitive_features),
        "criterion": model.criterion,
        "strata": list(model.strata),
        "needed_to_score": model.columns,
        "left_out": model.encoder_.left_out_,
        "unreadable": model.encoder_.unreadable_,
        "amount": getattr(estimator, "amount", None),
        "outcome": getattr(estimator, "outcome_", None),
        "parity_weight": getattr(estimator, "parity_weight_", None),
        "information_kept": getattr(estimator, "information_kept_", None),
        "group_model": asdict(estimator.report_) if hasattr(estimator, "report_") else None,
        "held_out": None,
    }
    if shown is not None:
        summary["held_out"] = {
            "rows": shown.rows,
            "groups": shown.groups,
            "small_groups": shown.small_groups,
            "set_aside": shown.set_aside,
            "figures": shown.figures,
            "noise_floor": shown.floor,
        }
    return summary


def _show_held_out(shown: HeldOut) -> None:
    title = f"{shown.rows:,} held-out rows in {shown.groups} groups"
    table = make_table(title, [""], [name.upper() for name in shown.figures] + ["by chance"])
    for name in next(iter(shown.figures.values())):
        row = [_three(figures[name]) for figures in shown.figures.values()]
        table.add_row(_TITLES[name], *row, _three(shown.floor.get(name)))
    print_table(table)
    if shown.small_groups:
        small = f"{count_of(shown.small_groups, 'group')} with fewer than 30 of these rows"
        if shown.groups - shown.small_groups > 1:
            print_sentence(f"Left out of the distances: {small}.")
        else:
            print_sentence(f"Distances are mostly chance: {small}.")
    for reason, rows in shown.set_aside.items():
        print_sentence(f"Not measured: {count_of(rows, 'row')}, {reason}.")


def show(model: TableModel, summary: dict[str, Any], shown: HeldOut | None, method: str) -> None:
    """Print the figures, and what is needed to score."""
    if shown is not None:
        _show_held_out(shown)
    print_sentence(f"{method.upper()} trained on {summary['rows']:,} rows. {_outcome(summary)}".rstrip())
    if summary["group_model"] is not None:
        print_sentence(str(model.estimator_.report_))
    if model.task == "classification":
        print_sentence(f"The score is the probability that {model.label} is {summary['positive']!r}.")
    else:
        print_sentence(f"The score is the predicted {model.label}; distances are in its units.")
    sensitive = ", ".join(model.sensitive_features)
    used = [name for name in model.sensitive_features if name in model.columns]
    print_sentence(f"Needed to score: {len(model.columns)} columns, {'with' if used else 'without'} {sensitive}.")
    if model.needs_strata:
        print_sentence(f"Needed to score, too, for the stratum of a row: {', '.join(model.strata)}.")
    groups, few = model.known_groups, "too small to be compared one by one"
    if groups is not None and groups.pooled:
        pools = ", ".join(groups.names[groups.labels.index(pool)] for pool in groups.pools)
        print_sentence(f"Pooled as {pools}: {count_of(len(groups.pooled), 'group')} {few}.")
    if groups is not None and groups.dropped:
        print_sentence(f"Left out of the comparisons: {count_of(len(groups.dropped), 'group')} {few}.")
    for reason, rows in model.set_aside_.items():
        print_sentence(f"Not used for training: {count_of(rows, 'row')}, {reason}.")
    for name, why in model.encoder_.left_out_.items():
        print_sentence(f"Left out: {name} ({why}).")
    for name, cells in model.encoder_.unreadable_.items():
        print_sentence(
            f"Treated as missing: {count_of(cells, 'cell')} of {name}, unlike the other cells of that column."
        )


def _outcome(summary: dict[str, Any]) -> str:
    outcome, amount, kept = str(summary["outcome"] or ""), summary["amount"], summary["information_kept"]
    sentences = [f"{outcome[:1].upper()}{outcome[1:]}."] if outcome else []
    if summary["parity_weight"] is not None and "parity_weight" not in outcome:
        sentences.append(f"Parity weight {summary['parity_weight']:.3g}.")
    if kept is not None:
        gain = "log-loss" if summary["task"] == "classification" else "squared error"
        sentences.append(f"{max(kept, 0.0):.0%} of the plain model's gain in {gain} over a constant is kept.")
    if amount not in {None, 1.0}:
        sentences.append(f"Amount {amount:.2f}{' of the way there' if kept is not None else ''}.")
    return " ".join(sentences)


def _three(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


@shared.with_reading_options
def run_train(
    files: shared.Files,
    *,
    label: shared.Label,
    sensitive: shared.Sensitive,
    out: Annotated[Path, typer.Option("--out", metavar="PATH", help="Model file to write, such as model.ft.")],
    method: Annotated[
        str,
        typer.Option(
            "--method", metavar="|".join(METHODS), help=f"{'; '.join(f'{k}: {v}' for k, v in METHODS.items())}."
        ),
    ] = "cot",
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="|".join(BASES),
            help="The model that is repaired: linear (default of dpp), or trees, gradient boosting (default of "
            "blind-repair).",
        ),
    ] = None,
    task: shared.Task = None,
    criterion: Annotated[
        str,
        typer.Option(
            "--criterion",
            metavar="CRITERION",
            help="Whose scores should be distributed alike in all groups: demographic_parity (all people), "
            "equalized_odds (people with the same label) or equal_opportunity (people with the positive label; not for "
            "regression).",
        ),
    ] = "demographic_parity",
    strata: Annotated[
        list[str] | None,
        typer.Option(
            "--strata",
            metavar="COLUMNS",
            help="Compare groups only within the values of these columns, such as education; numbers are cut at "
            "quantiles.",
        ),
    ] = None,
    positive: shared.Positive = None,
    aware: Annotated[
        bool | None,
        typer.Option(
            "--aware/--blind",
            help="Aware: the sensitive columns are features and needed to score; cot and dot have separate weights for "
            "each group. Blind, the default: they are used in training only.",
        ),
    ] = None,
    parity_weight: Annotated[
        str | None,
        typer.Option(
            "--parity-weight",
            metavar="X",
            help="Weight of parity relative to accuracy, for cot and dot: a number, or auto, which goes as far as the "
            "data allow while at least half of the model's information about the label is kept [default: auto].",
        ),
    ] = None,
    amount: Annotated[
        float | None,
        typer.Option("--amount", metavar="X", min=0, max=1, help="From 0 (no parity) to 1 (full parity) [default: 1]."),
    ] = None,
    max_disparity: Annotated[
        float | None,
        typer.Option(
            "--max-disparity",
            metavar="X",
            min=0,
            help="Choose --parity-weight (or --amount, where that is given or does not apply; the slack with "
            "blind-repair) for the lowest error with a disparity of X on unseen rows: SPDD, within labels or strata "
            "where these are compared.",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="TARGET",
            help="Distribution that the groups' scores move to: barycenter, barycenter_w2, pooled or the name of a "
            "group [default: towards each other with cot and dot, barycenter_w2 with dpp].",
        ),
    ] = None,
    test: Annotated[
        list[str] | None,
        typer.Option("--test", metavar="FILE", help="Measure on these files, and train on all rows of the others."),
    ] = None,
    test_share: Annotated[
        float,
        typer.Option("--test-share", metavar="X", min=0, max=0.9, help="Fraction of the rows to hold out; 0 for none."),
    ] = 0.25,
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", metavar="COLUMNS", help="Columns that are not features, such as identifiers."),
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(
            "--categorical", metavar="COLUMNS", help="Numeric columns that are categories, such as postcodes."
        ),
    ] = None,
    missing: shared.Missing = "set_aside",
    json_path: shared.JsonPath = None,
    force: shared.Force = False,
    seed: shared.Seed = 0,
    small_groups: shared.SmallGroups = "keep",
    min_group_size: shared.MinGroupSize = 30,
    max_groups: shared.MaxGroups = 200,
    reading: shared.Reading,
) -> None:
    """Train a model with demographic parity, equalized odds or conditional parity on a table of raw data.

    The model is a classifier where the labels are two classes, and a regressor where they are numbers (see --task).
    Numbers, text, dates and missing values become features, and the model file records how. Identifiers, empty and
    constant columns are left out and reported. The table that is printed compares the model with logistic (or
    linear) regression on held-out rows. All rows have to fit into memory.

    \b
    Example:
      fairtransport train data.csv --label income --sensitive race,sex \\
          --method cot --out model.ft
    """  # noqa: D301 - \b keeps the lines of the example
    weight = _number_or_word(parity_weight)
    options = MethodOptions(
        method,
        weight,
        amount,
        max_disparity,
        aware,
        target,
        shared.make_policy(small_groups, min_group_size, max_groups, missing=missing),
        seed,
        criterion,
        bool(strata),
        base,
    )
    options.check(task)
    json_output = JsonOutput(json_path)
    prepare_files([out, json_output.path], force=force, inputs=[*files, *(test or ())])
    settings = {
        "label": label,
        "positive": positive,
        "groups": options.groups,
        "decimal": reading["decimal"],
        "aware": bool(aware),
    }
    column_lists = {
        "sensitive_features": sensitive,
        "strata": strata or (),
        "drop": drop or (),
        "categorical": categorical or (),
    }
    with collect_warnings() as warnings:
        table, named = _read(files, column_lists, reading)
        _check(table, label, named["sensitive_features"], named["strata"], options.groups)
        task = _infer_task(table, label, reading["decimal"]) if task is None else task
        options.check(task)
        if test:
            train, held = table, _read(test, {}, reading)[0]
        else:
            classes = label if task == "classification" else None
            train, held = _split(table, test_share, classes, named["sensitive_features"], seed)
        model, before = _fit(train, options, {**settings, **named}, task=task, compared=held is not None)
        shown = None if held is None else _measure(before, model, held, options)
        _save(model, out)
    summary = summarize(model, train.num_rows, options.method, shown)
    json_output.write({**summary, "warnings": warnings, "written": str(out)})
    if json_output.to_stdout:
        return
    show(model, summary, shown, options.method)
    for text in warnings:
        print_sentence(f"Note: {text}")
    print_paths({"Written": out, "JSON": json_output.path})


def _read(files: list[str], column_lists: dict[str, Any], reading: dict[str, Any]) -> tuple[Any, dict[str, list[str]]]:
    """Return all rows, and the columns that the options name."""
    from fairtransport.tables import open_files  # noqa: PLC0415
    from fairtransport.tabular.file_scoring import collect_file  # noqa: PLC0415 - scikit-learn takes a while

    with open_files(files, **reading) as table, progress_bar("Reading") as tell:
        named = {role: table.split(names) if names else [] for role, names in column_lists.items()}
        return collect_file(table, on_progress=tell), named


def _check(table: Any, label: str, sensitive: list[str], strata: list[str], groups: GroupPolicy) -> None:
    """Raise for unknown columns and for too many groups, before anything is trained."""
    from fairtransport.groups import read_groups  # noqa: PLC0415
    from fairtransport.tables.column_roles import suggest_names  # noqa: PLC0415
    from fairtransport.tabular.column_plans import encode_text  # noqa: PLC0415

    for name in (label, *sensitive, *strata):
        if name not in table.column_names:
            raise ValueError(f"The table has no column {name!r}; {suggest_names(name, table.column_names)}")
    if table.num_rows == 0:
        raise ValueError("The table has no rows.")
    codes = {name: encode_text(table[name], name)[1] for name in sensitive}
    read_groups(codes, replace(groups, missing="error"))


def _infer_task(table: Any, label: str, decimal: str) -> str:
    from fairtransport.tabular.label_columns import infer_task  # noqa: PLC0415

    return infer_task(table[label], label, decimal)


def _split(table: Any, share: float, label: str | None, sensitive: list[str], seed: int) -> tuple[Any, Any]:
    from fairtransport.tabular.held_out_evaluation import split_table  # noqa: PLC0415

    if share == 0.0:
        return table, None
    return split_table(table, share, label=label, sensitive_features=sensitive, random_state=seed)


def _fit(
    train: Any, options: MethodOptions, settings: dict[str, Any], *, task: str, compared: bool
) -> tuple[TableModel, TableModel | None]:
    """Return the model, and logistic or linear regression on the same columns to compare it with."""
    from fairtransport.tabular import TableModel  # noqa: PLC0415

    baseline = MethodOptions("lr", None, None, None, None, None, options.groups, options.seed)
    plain = make_estimator(baseline, task=task, verbose=False)
    before = None
    with spinner("Logistic regression" if task == "classification" else "Linear regression"):
        if compared or options.method == "lr":
            before = TableModel(plain, **settings).fit(train)
    if options.method == "lr" and before is not None:
        return before, before
    show = stderr_is_terminal()
    model = TableModel(
        make_estimator(options, task=task, verbose=show),
        max_disparity=options.limit_of_table,
        verbose=show,
        **settings,
    ).fit(train)
    if str(getattr(model.estimator_, "outcome_", "")).startswith("interrupted"):
        raise KeyboardInterrupt  # the library keeps the best model so far, but an interrupted command writes no file
    for one in (model.estimator, model.estimator_):
        if "verbose" in one.get_params(deep=False):
            one.set_params(verbose=False)
    return model.set_params(verbose=False), before


def _measure(before: TableModel | None, model: TableModel, held: Any, options: MethodOptions) -> HeldOut:
    from fairtransport.tabular.held_out_evaluation import measure_models  # noqa: PLC0415

    models = {"lr": before, "unrepaired": _unrepaired(model, options), options.method: model}
    with spinner("Measuring"):
        return measure_models({k: v for k, v in models.items() if v is not None}, held, random_state=options.seed)


def _unrepaired(model: TableModel, options: MethodOptions) -> TableModel | None:
    """Return the model before its repair, to compare with; None where that is logistic or linear regression."""
    if options.repaired != "trees":
        return None
    from copy import copy  # noqa: PLC0415

    plain = copy(model)
    plain.estimator_ = copy(model.estimator_)
    if options.method == "dpp":
        plain.estimator_.repair_ = copy(model.estimator_.repair_).set_params(amount=0.0)
    plain.estimator_.amount = 0.0
    return plain


def _save(model: TableModel, out: Path) -> None:
    from fairtransport.persistence import save  # noqa: PLC0415

    with spinner("Writing"):
        save(model, out)


def _number_or_word(text: str | None) -> float | str | None:
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        return text
    if not 0.0 <= number < float("inf"):
        raise misuse(f"--parity-weight must be auto or a number, zero or more; got {text!r}")
    return number
