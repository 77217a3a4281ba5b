"""``fairtransport train``: a model file from a table of raw data, and what parity costs on held-out rows."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads it
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtransport.cli import _options as shared
from fairtransport.cli._console import (
    print_paths,
    print_sentence,
    progress_bar,
    spinner,
    stderr_is_terminal,
)
from fairtransport.cli._errors import collect_warnings, misuse, option_names_in_errors
from fairtransport.cli._json import JsonOutput
from fairtransport.cli._methods import BASES, METHODS, MethodOptions, make_estimator
from fairtransport.cli._output import prepare_files
from fairtransport.cli._train_report import show, summarize

if TYPE_CHECKING:
    from fairtransport.tabular import TableModel
    from fairtransport.tabular.held_out_evaluation import HeldOut

__all__ = ["run_train"]


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
        small_groups,
        min_group_size,
        seed,
        criterion,
        bool(strata),
        base,
    )
    options.check(task)
    shared.check_policies(small_groups, missing)
    json_output = JsonOutput(json_path)
    prepare_files([out, json_output.path], force=force, inputs=[*files, *(test or ())])
    settings = {
        "label": label,
        "positive": positive,
        "missing": missing,
        "decimal": reading["decimal"],
        "aware": bool(aware),
    }
    column_lists = {
        "sensitive_features": sensitive,
        "strata": strata or (),
        "drop": drop or (),
        "categorical": categorical or (),
    }
    with option_names_in_errors(), collect_warnings() as warnings:
        table, named = _read(files, column_lists, reading)
        _check(table, label, named["sensitive_features"], named["strata"], max_groups)
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


def _check(table: Any, label: str, sensitive: list[str], strata: list[str], max_groups: int) -> None:
    """Raise for unknown columns and for too many groups, before anything is trained."""
    from fairtransport.groups import make_groups  # noqa: PLC0415
    from fairtransport.tables.column_roles import suggest_names  # noqa: PLC0415
    from fairtransport.tabular.value_parsing import encode_text  # noqa: PLC0415

    for name in (label, *sensitive, *strata):
        if name not in table.column_names:
            raise ValueError(f"The table has no column {name!r}; {suggest_names(name, table.column_names)}")
    if table.num_rows == 0:
        raise ValueError("The table has no rows.")
    codes = {name: encode_text(table[name], name)[1] for name in sensitive}
    make_groups(codes, max_groups=max_groups)


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

    baseline = MethodOptions("lr", None, None, None, None, None, "keep", 1, options.seed)
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
