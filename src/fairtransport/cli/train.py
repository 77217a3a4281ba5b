"""``fairtransport train``: a model file from a table of raw data, and what parity costs on held-out rows."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fairtransport as ft
from fairtransport._extras import load_extra
from fairtransport.cli import _options as shared
from fairtransport.cli._errors import collect_warnings, misuse, without_logs
from fairtransport.cli._output import (
    Output,
    count_of,
    figure_text,
    print_sentence,
    print_table,
    progress_bar,
    spinner,
    stderr_is_terminal,
)
from fairtransport.cli._small_groups import describe_small_groups, name_some

if TYPE_CHECKING:
    from fairtransport.groups import GroupPolicy
    from fairtransport.repair.blind.group_model import GroupModelReport
    from fairtransport.tabular import TableModel
    from fairtransport.tabular.held_out_evaluation import HeldOut

# The methods that ``fairtransport train`` offers, and their estimators.

METHODS = {
    "cot": "continuous optimal transport",
    "dot": "discrete optimal transport",
    "trees": "boosted trees of LightGBM with such a penalty (extra boosting)",
    "dpp": "a model with quantile post-processing of its scores (needs the group to score)",
    "blind-repair": "a model whose scores are repaired by a second model, of the groups (not needed to score)",
    "lr": "a linear model without parity: logistic or linear regression",
    "auto": "the best of cot and of repaired linear models and trees (dpp with --aware, blind-repair without) or, with "
    "--base trees, of trees and repaired trees, at --max-disparity, by cross-validation",
}
_MOST_TEST_ROWS = 100_000  # that are held out of files which are not read into memory
#: The model that a method repairs by default.
_USUAL_BASE = {"dpp": "linear", "blind-repair": "trees"}


@shared.described(
    method=shared.choice("|".join(METHODS), f"{'; '.join(f'{name}: {text}' for name, text in METHODS.items())}."),
    base=shared.choice(
        "linear|trees",
        "The model that is repaired: linear (default of dpp), or trees, gradient boosting (default of blind-repair); "
        "auto tries both, or one kind of model where it is given.",
    ),
    criterion=shared.choice(
        "CRITERION",
        "Whose scores should be distributed alike in all groups: demographic_parity (all people), equalized_odds "
        "(people with the same label) or equal_opportunity (people with the positive label; not for regression).",
        among=shared.CRITERIA,
    ),
    aware=shared.flag(
        "--aware/--blind",
        "Aware: the sensitive columns are features and needed to score; cot and dot have separate weights for each "
        "group. Blind, the default: they are used in training only.",
    ),
    parity_weight=shared.option(
        "X",
        "Weight of parity relative to accuracy, for cot and dot: a number, or auto, which goes as far as the data "
        "allow while at least half of the model's information about the label is kept [default: auto].",
    ),
    amount=shared.option("X", "From 0 (no parity) to 1 (full parity) [default: 1].", min=0, max=1),
    max_disparity=shared.option(
        "X",
        "Choose --parity-weight (or --amount, where that is given or does not apply; the slack with blind-repair) "
        "for the lowest error with a disparity of X on unseen rows: the mean over pairs of groups, within labels "
        "or strata where these are compared.",
        min=0,
    ),
    target=shared.option(
        "TARGET",
        "Distribution that the groups' scores move to: barycenter, barycenter_w2, pooled or the name of a group "
        "[default: towards each other with cot and dot, barycenter_w2 with dpp].",
    ),
)
@dataclass(frozen=True)
class MethodOptions:
    """The method and its options; None for an option that is not used."""

    method: str = "cot"
    base: str | None = None
    criterion: str = "demographic_parity"
    aware: bool | None = None
    parity_weight: str | None = None
    amount: float | None = None
    max_disparity: float | None = None
    target: str | None = None
    seed: int = 0

    @property
    def weight(self) -> dict[str, Any]:
        """The weight of parity as a parameter of an estimator, where there is one."""
        if self.parity_weight is None or self.parity_weight == "auto":
            return {} if self.parity_weight is None else {"parity_weight": "auto"}
        try:
            number = float(self.parity_weight)
        except ValueError:
            number = math.nan
        if not 0.0 <= number < math.inf:
            raise misuse(f"--parity-weight must be auto or a number, zero or more; got {self.parity_weight!r}")
        return {"parity_weight": number}

    @property
    def can_stay_in_parts(self) -> bool:
        """True if the method trains on rows that are not in memory."""
        return self.method in {"cot", "dot"} or (self.method == "blind-repair" and self.base == "linear")

    @property
    def repaired(self) -> str | None:
        """The model that is repaired; None for a method that repairs none."""
        return self.base or _USUAL_BASE.get(self.method)

    def check(self, task: str | None) -> None:
        """End the command if options cannot be combined."""
        if task == "regression" and self.criterion == "equal_opportunity":
            raise misuse(
                "--criterion equal_opportunity compares people with the positive label, and numbers have none; use "
                "equalized_odds"
            )
        for name, is_given, allowed in (
            ("--criterion", self.criterion != "demographic_parity", self.method != "lr"),
            ("--parity-weight", bool(self.weight), self.method in {"cot", "dot", "trees"}),
            ("--amount", self.amount is not None, self.method != "lr"),
            ("--max-disparity", self.max_disparity is not None, self.method != "lr"),
            ("--target", self.target is not None, self.method not in {"lr", "blind-repair", "auto"}),
            ("--base", self.base is not None, self.method in {*_USUAL_BASE, "auto"}),
            ("--aware", self.aware is True, self.method != "blind-repair"),
        ):
            if is_given and not allowed:
                raise misuse(f"{name} cannot be combined with --method {self.method}")
        if self.amount is not None and self.max_disparity is not None:
            raise misuse(
                "--max-disparity and --amount cannot be combined, because both decide how much parity there is"
            )
        if self.method == "auto" and self.max_disparity is None:
            raise misuse("--method auto chooses between methods by their error at a limit: give --max-disparity")
        if self.method == "dpp" and self.aware is False:
            raise misuse("--method dpp needs the group to score; use --blind with blind-repair, cot, dot, trees or lr")


def make_estimator(options: MethodOptions, groups: GroupPolicy, *, task: str, verbose: bool) -> Any:
    """Return the unfitted classifier or regressor of a method, or those that are to be compared, by name."""
    if options.method == "auto":
        tried = _candidates(replace(options, max_disparity=None)).items()
        return {name: make_estimator(one, groups, task=task, verbose=False) for name, one in tried}
    from fairtransport.tabular import methods  # noqa: PLC0415

    shared = {"criterion": options.criterion, "groups": groups, **options.weight}
    shared |= {} if options.amount is None else {"amount": options.amount}
    return methods.make_estimator(
        options.method,
        task,
        base=options.repaired or "linear",
        aware=bool(options.aware),
        target=options.target,
        max_disparity=options.max_disparity,
        random_state=options.seed,
        verbose=verbose,
        **shared,
    )


def _candidates(options: MethodOptions) -> dict[str, MethodOptions]:
    """Return the options of the methods that ``auto`` compares, by name."""
    repair, trained = "dpp" if options.aware else "blind-repair", "trees" if options.base == "trees" else "cot"
    return {trained: replace(options, method=trained, base=None)} | {
        f"{repair} ({base})": replace(options, method=repair, base=base)
        for base in ([options.base] if options.base else ["linear", "trees"])
    }


# What ``fairtransport train`` reports: the model, and its figures on held-out rows.

_MOST_COLUMNS = 15  # that are listed
_TELLS, _MOST_ROWS = 0.9, 100_000  # area under the ROC curve of a column that nearly tells another, and rows for it

_TITLES = {
    "error_rate": "Error",
    "auc": "Area under the ROC curve",
    "rmse": "Root mean squared error",
    "r2": "R squared",
    "pairwise_disparity": "Distance between pairs, mean",
    "rank_disparity": "Rank disparity",
    "separation_disparity": "Distance within labels",
    "opportunity_disparity": "Within the positive label",
    "conditional_disparity": "Distance within strata",
}


def summarize(model: TableModel, n_rows: int, method: str, shown: HeldOut | None) -> dict[str, Any]:
    """Describe the model and its figures for JSON."""
    estimator = model.estimator_
    summary = {
        "method": method,
        "chosen": getattr(model, "chosen_", None) or None,
        "tried": list(model.candidates) if isinstance(model.estimator, dict) else None,
        "rows": n_rows,
        "set_aside": model.set_aside_,
        "label": model.label,
        "task": model.task,
        "positive": str(model.classes_[1]) if model.task == "classification" else None,
        "sensitive": list(model.sensitive_features),
        "criterion": model.criterion,
        "strata": list(model.strata),
        "needed_to_score": model.columns,
        "named_like_scores": _named_like_scores(model),
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
        held_out = asdict(shown)
        summary["held_out"] = held_out | {"noise_floor": held_out.pop("floor")}
    return summary


def _named_like_scores(model: TableModel) -> list[str]:
    """Return numeric columns among the features that, by their names, are scores of another model."""
    from fairtransport.tabular.proxies import guess_roles  # noqa: PLC0415 - loaded by now

    # The names are those by which the workbench proposes the column of scores.
    unknown = {"kind": "number", "distinct": math.inf, "unit": False, "values": {}, "left_out": ""}
    numbers = [plan.name for plan in model.encoder_.plans_ if plan.kind == "number"]
    return [name for name in numbers if guess_roles([{"name": name, **unknown}])[1]["score"] == "score_name"]


def _show_held_out(shown: HeldOut, limit: float | None) -> None:
    title = f"{shown.rows:,} test rows in {shown.groups} groups"
    names = next(iter(shown.figures.values()))
    lines = [[_TITLES[n], *(figures[n] for figures in shown.figures.values()), shown.floor.get(n)] for n in names]
    print_table(title, [""], [*map(str.upper, shown.figures), "by chance"], lines)
    of_model = list(shown.figures.values())[-1]
    judged = of_model["pairwise_disparity" if (last := list(names)[-1]) == "rank_disparity" else last]
    if limit is not None and judged is not None and judged > limit:
        print_sentence(f"Test rows are above --max-disparity {limit:g}, which applies to training rows.")
    if shown.small_groups:
        small = f"{count_of(shown.small_groups, 'group')} with fewer than 30 of these rows"
        if shown.groups - shown.small_groups > 1:
            print_sentence(f"Left out of the distances: {small}.")
        else:
            print_sentence(f"Distances are mostly chance: {small}.")
    for reason, rows in shown.set_aside.items():
        print_sentence(f"Not measured: {count_of(rows, 'row')}, {reason}.")


def show(model: TableModel, summary: dict[str, Any], shown: HeldOut | None, options: MethodOptions) -> None:
    """Print the figures, and what is needed to score."""
    if shown is not None:
        _show_held_out(shown, options.max_disparity)
    print_sentence(
        f"{options.method.upper()} trained on {summary['rows']:,} rows. {_outcome(model, summary, options)}".rstrip()
    )
    if summary["group_model"] is not None:
        print_sentence(_describe_group_model(model.estimator_.report_))
    if model.task == "classification":
        print_sentence(f"The score is the probability that {model.label} is {summary['positive']!r}.")
    else:
        print_sentence(f"The score is the predicted {model.label}; distances are in its units.")
    sensitive = ", ".join(model.sensitive_features)
    used = [name for name in model.sensitive_features if name in model.columns]
    print_sentence(f"Needed to score: {len(model.columns)} columns, {'with' if used else 'without'} {sensitive}.")
    print_sentence(f"Columns used: {name_some(model.columns, _MOST_COLUMNS)}.")
    for name in summary["named_like_scores"]:
        print_sentence(f"If {name} is the score of another model, leave it out with --drop {name}.")
    if model.needs_strata:
        print_sentence(f"Needed to score, too, for the stratum of a row: {', '.join(model.strata)}.")
    for sentence in describe_small_groups(model, is_kept="plain model is kept" in str(summary["outcome"])):
        print_sentence(sentence)
    _show_columns(model, summary["proxies"])


def _show_columns(model: TableModel, proxies: dict[str, list[str]]) -> None:
    """Print rows and columns that were not used, and columns that nearly are the groups."""
    for name, telling in proxies.items():
        if telling:
            print_sentence(f"Nearly tells {name}, and can be left out with --drop: {', '.join(telling)}.")
    for reason, rows in model.set_aside_.items():
        print_sentence(f"Not used for training: {count_of(rows, 'row')}, {reason}.")
    for name, why in model.encoder_.left_out_.items():
        print_sentence(f"Left out: {name} ({why}).")
    for name, cells in model.encoder_.unreadable_.items():
        print_sentence(
            f"Treated as missing: {count_of(cells, 'cell')} of {name}, unlike the other cells of that column."
        )


def _describe_group_model(report: GroupModelReport) -> str:
    """Describe what the features tell of the groups, and the disparity of rows that no model has seen."""
    before, after, chance = map(figure_text, (report.disparity_before, report.disparity, report.noise_floor))
    is_kept = report.disparity == report.disparity_before
    change = f"{before}, as the plain model was kept" if is_kept else f"{before} before, {after} after"
    return (
        f"The features explain {report.information:.0%} of the entropy of the {report.n_groups} groups; group "
        f"probabilities are off by {report.calibration_error:.3f} on average. Disparity on {report.n_rows:,} held-out "
        f"rows: {change}; {chance} by chance."
    )


def _is_within(model: TableModel, summary: dict[str, Any], limit: float | None) -> bool:
    """Return whether the plain model meets a limit: it was chosen for it, or training rows show that it does."""
    if limit is None:
        return False
    before, _ = getattr(model.estimator_, "before_after_", {}).get("disparity", (math.inf, math.inf))
    return 0.0 in {summary["parity_weight"], summary["amount"]} or before <= limit


def _outcome(model: TableModel, summary: dict[str, Any], options: MethodOptions) -> str:
    outcome, amount, kept = str(summary["outcome"] or ""), summary["amount"], summary["information_kept"]
    sentences = [f"{outcome[:1].upper()}{outcome[1:]}."] if outcome else []
    if _is_within(model, summary, options.max_disparity):
        sentences = [f"The plain model is already within the limit of {options.max_disparity:g}."]
    if summary["tried"]:
        sentences.insert(0, f"Lowest error at this disparity, of {', '.join(summary['tried'])}: {summary['chosen']}.")
    if options.max_disparity is not None and 0.0 in {summary["parity_weight"], amount}:
        return " ".join(sentences)
    if summary["parity_weight"] is not None and "parity_weight" not in outcome:
        sentences.append(f"Parity weight {summary['parity_weight']:.3g}.")
    mixed = amount not in {None, 1.0} and (summary["parity_weight"] is not None or summary["group_model"] is not None)
    if kept is not None and "information is left" not in outcome:
        of_model = " at amount 1" if mixed else ""
        sentences.append(f"{max(kept, 0.0):.0%} of what the plain model explains is kept{of_model}.")
    if amount not in {None, 1.0}:
        sentences.append(f"{'The model written has amount' if mixed else 'Amount'} {amount:.2f}.")
    return " ".join(sentences)


@shared.described(
    out=shared.option("PATH", "Model file to write, such as model.ft."),
    html=shared.option("PATH", "Page to write: the audits of test rows without parity and with it (extra report)."),
    strata=shared.option(
        "COLUMNS",
        "Compare groups only within the values of these columns, such as education; numbers are cut at quantiles.",
    ),
    test=shared.option("FILE", "Measure on these files, and train on all rows of the others."),
    test_share=shared.option("X", "Fraction of the rows to hold out; 0 for none.", min=0, max=0.9),
    drop=shared.option("COLUMNS", "Columns that are not features, such as identifiers."),
    categorical=shared.option("COLUMNS", "Numeric columns that are categories, such as postcodes."),
    engine=shared.option(
        "ENGINE",
        "Train on a cluster whose workers read FILES, Parquet or CSV: dask://HOST:PORT, or spark. For cot, dot and, "
        "with --base linear, blind-repair; figures of unseen rows need --test.",
    ),
    checkpoint=shared.option(
        "PATH",
        "File from which the same command continues where it was interrupted, if rows are not read into memory; "
        "removed at the end.",
    ),
)
def run_train(
    files: list[str],
    *,
    label: str,
    sensitive: list[str],
    out: Path,
    html: Path | None = None,
    options: MethodOptions,
    task: str | None = None,
    strata: list[str] | None = None,
    pos_label: str | None = None,
    test: list[str] | None = None,
    test_share: float = 0.25,
    drop: list[str] | None = None,
    categorical: list[str] | None = None,
    engine: str | None = None,
    checkpoint: Path | None = None,
    missing: str = "set_aside",
    small_groups: str = "keep",
    min_group_size: int = 30,
    max_groups: int = 200,
    output: Output,
    reading: shared.ReadingOptions,
) -> None:
    """Train a model with demographic parity, equalized odds or conditional parity on a table of raw data.

    The model is a classifier where the labels are two classes, and a regressor where they are numbers (see --task).
    Numbers, text, dates and missing values become features, and the model file records how. Identifiers, empty and
    constant columns are left out and reported. The table that is printed compares the model with logistic (or
    linear) regression on test rows. Rows of more than 50 million cells stay in their files with --method cot and dot,
    and blind-repair with --base linear; the other methods read all of them into memory.

    \b
    Example:
      fairtransport train data.csv --label income --sensitive race,sex \\
          --method cot --out model.ft
    """  # noqa: D301 - \b keeps the lines of the example
    options.check(task)
    output.prepare(out, html, inputs=[*files, *(test or ())])
    if html is not None:
        load_extra("jinja2")  # fails before anything is computed
        if options.method == "lr":
            raise misuse("--html cannot be combined with --method lr, which has no parity to compare with")
        if not test and (engine or test_share == 0.0):
            raise misuse("--html needs test rows: give --test" + ("" if engine else ", or a --test-share above 0"))
    groups = shared.make_policy(small_groups, min_group_size, max_groups, missing=missing)
    column_lists = {
        "label": [label],
        "sensitive_features": sensitive,
        "strata": strata or (),
        "drop": drop or (),
        "categorical": categorical or (),
    }
    with collect_warnings() as warnings:
        from fairtransport.linear.table_training import MOST_IN_MEMORY  # noqa: PLC0415

        most = MOST_IN_MEMORY if options.can_stay_in_parts else math.inf
        table, named = (None, {}) if engine else _read(files, column_lists, reading, most=most)
        held = _read(test, {}, reading)[0] if test else None
        settings: dict[str, Any] = {
            **(named or {role: shared.split_names(names) for role, names in column_lists.items()}),
            "label": label,
            "pos_label": pos_label,
            "groups": groups,
            "decimal": reading.decimal or ".",
            "aware": bool(options.aware),
        }
        before: TableModel | None
        if table is None:
            with _source(files, engine, reading) as source:
                share = 0.0 if test or engine else test_share
                model, before, own, n_rows = _fit_parts(
                    source, options, settings, task=task, share=share, checkpoint=checkpoint
                )
            held = own if held is None else held
        else:
            model, before, held, n_rows = _fit_in_memory(
                table, options, settings, task=task, share=test_share, held=held
            )
        if options.method == "auto":
            options = _candidates(options)[model.chosen_]
        shown = None if held is None else _measure(before, model, held, options)
        with spinner("Writing"):
            ft.save(model, out)
        if html is not None:
            with spinner("Writing the page"):
                _write_page(html, ft.load(out), held, criterion=options.criterion, groups=groups)
    summary = summarize(model, n_rows, options.method, shown)
    summary["proxies"] = {} if table is None else _proxies(model, table)
    summary["rows_in"] = "memory" if table is not None else engine.partition(":")[0] if engine else "files"
    if output.write_json({**summary, "warnings": warnings, "written": str(out)}):
        return
    show(model, summary, shown, options)
    if summary["rows_in"] == "files":
        print_sentence(f"Rows stayed in their files, which have more than {MOST_IN_MEMORY:,} cells.")
    for text in warnings:
        print_sentence(f"Note: {text}")
    output.print_paths({"Written": out, "Page": html})


def _proxies(model: TableModel, table: Any) -> dict[str, list[str]]:
    """Return the columns by which a model that does without the groups can tell them, of each sensitive column."""
    sensitive = [name for name in model.sensitive_features if name not in model.columns]
    step = math.ceil(table.num_rows / _MOST_ROWS)  # files may be sorted by group
    some = table if step <= 1 else table.take(list(range(0, table.num_rows, step)))
    found = ft.tabular.find_proxies(some, sensitive, model.columns)
    return {one: [name for name in model.columns if found.get((one, name), ("", 0.0))[1] > _TELLS] for one in sensitive}


def _read(
    files: list[str], column_lists: dict[str, Any], reading: shared.ReadingOptions, *, most: float = math.inf
) -> tuple[Any, dict[str, list[str]]]:
    """Return all rows, None where they have more cells than ``most``, and the columns that the options name."""
    from fairtransport.tabular.file_scoring import collect_file  # noqa: PLC0415 - scikit-learn takes a while

    with reading.open(files) as table, progress_bar("Reading") as tell:
        named = {role: table.split(names) if names else [] for role, names in column_lists.items()}
        table.check([name for names in named.values() for name in names])
        return collect_file(table, most=most, on_progress=tell), named


def _check(table: Any, sensitive: list[str], groups: GroupPolicy) -> None:
    """Raise for a table without rows and for too many groups, before anything is trained."""
    from fairtransport.tabular.column_plans import encode_text  # noqa: PLC0415

    if table.num_rows == 0:
        raise ValueError("The table has no rows.")
    codes = {name: encode_text(table[name], name)[1] for name in sensitive}
    ft.groups.read_groups(codes, replace(groups, missing="error"))


@contextmanager
def _source(files: list[str], engine: str | None, reading: shared.ReadingOptions) -> Iterator[Any]:
    """Open files whose rows are not read into memory: here, or where the workers of a cluster read them."""
    if engine is None:
        with reading.open(files) as table:
            yield table
        return
    from fairtransport.tables.files.paths import FORMATS, split_suffixes  # noqa: PLC0415

    if reading.null or reading.sheet is not None or reading.encoding != "utf-8":
        raise misuse("--engine cannot be combined with --null, --sheet or --encoding: the cluster reads the files")
    suffix = split_suffixes(Path(files[0]))[0]
    kind = reading.file_format or FORMATS.get(suffix)
    if kind not in {"csv", "parquet"}:
        raise misuse(f"--engine takes CSV and Parquet files; got {suffix or 'no extension'} (see --format)")
    is_csv, delimiter = kind == "csv", reading.delimiter or ("tab" if suffix == ".tsv" else ",")
    options = {"sep": shared.as_delimiter(delimiter)}  # cells are text, as where files are read here
    if engine == "spark":
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # otherwise the first python3 of PATH
        builder = load_extra("pyspark.sql").SparkSession.builder
        with without_logs():
            session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
            yield (
                session.read.csv(files, header=True, escape='"', enforceSchema=False, **options)
                if is_csv
                else session.read.parquet(*files)
            )
        return
    address = engine.removeprefix("dask://")
    if address == engine:
        raise misuse(f"--engine must be dask://HOST:PORT or spark; got {engine!r}")
    try:
        client = load_extra("distributed").Client(f"tcp://{address}", timeout="10s")
    except (OSError, ValueError):
        raise ValueError(f"No Dask scheduler answers at {address}: check --engine and that it runs.") from None
    frames = load_extra("dask.dataframe")
    with without_logs(), client:
        yield frames.read_csv(files, dtype=str, **options) if is_csv else frames.read_parquet(files)


def _fit_parts(
    table: Any,
    options: MethodOptions,
    settings: dict[str, Any],
    *,
    task: str | None,
    share: float,
    checkpoint: Path | None,
) -> tuple[TableModel, TableModel, Any, int]:
    """Return the model of rows that stay in parts, the plain one, held-out rows, and the number of training rows."""
    from fairtransport.linear.table_training import opened  # noqa: PLC0415 - engines take a while
    from fairtransport.tabular.label_columns import infer_task  # noqa: PLC0415
    from fairtransport.tabular.partitioned_training import TrainingParts, read_label  # noqa: PLC0415

    if not options.can_stay_in_parts:
        raise misuse(
            f"--engine cannot be combined with --method {options.method}; use cot or dot, or blind-repair with --base "
            "linear"
        )
    is_repaired = options.method == "blind-repair"  # which keeps a limit by itself, and has no checkpoint
    if is_repaired and checkpoint is not None:
        raise misuse("--checkpoint cannot be combined with --method blind-repair")
    with opened(table, raw=True) as source:
        if settings["label"] not in source.names:
            raise ValueError(f"The table has no column {settings['label']!r}.")
        words, n_rows = read_label(source, settings["label"])
        task = infer_task(words, settings["label"], settings["decimal"]) if task is None else task
        options.check(task)
        step = max(2, round(1.0 / share), -(-n_rows // _MOST_TEST_ROWS)) if share > 0.0 else 0
        parts = TrainingParts(source, step)
        model = ft.tabular.TableModel(
            make_estimator(options, settings["groups"], task=task, verbose=stderr_is_terminal()),
            max_disparity=None if is_repaired else options.max_disparity,
            **settings,
        ).fit_table(parts, checkpoint=checkpoint)
        held = parts.held_out() if step else None
    plain = copy(model)
    if is_repaired:
        plain.estimator = plain.estimator_ = model.estimator_.estimator_
        return model, plain, held, n_rows - (0 if held is None else held.num_rows)
    for one in (model.estimator, model.estimator_):
        one.set_params(verbose=False)
    plain.estimator = plain.estimator_ = model.estimator_.initial_estimator_
    return model, plain, held, n_rows - (0 if held is None else held.num_rows)


def _fit_in_memory(
    table: Any, options: MethodOptions, settings: dict[str, Any], *, task: str | None, share: float, held: Any
) -> tuple[TableModel, TableModel | None, Any, int]:
    """Return the model, the plain one, held-out rows, and the number of training rows."""
    from fairtransport.tabular.held_out_evaluation import split_table  # noqa: PLC0415
    from fairtransport.tabular.label_columns import infer_task  # noqa: PLC0415

    label, sensitive = settings["label"], settings["sensitive_features"]
    _check(table, sensitive, settings["groups"])
    task = infer_task(table[label], label, settings["decimal"]) if task is None else task
    options.check(task)
    train = table
    if held is None and share > 0.0:
        by_label = label if task == "classification" else None
        train, held = split_table(table, share, label=by_label, sensitive_features=sensitive, random_state=options.seed)
    model, before = _fit(train, options, settings, task=task, compared=held is not None)
    return model, before, held, train.num_rows


def _fit(
    train: Any, options: MethodOptions, settings: dict[str, Any], *, task: str, compared: bool
) -> tuple[TableModel, TableModel | None]:
    """Return the model, and logistic or linear regression on the same columns to compare it with."""
    from fairtransport.tabular.methods import plain_estimator  # noqa: PLC0415

    before = None
    if compared or options.method == "lr":
        with spinner("Logistic regression" if task == "classification" else "Linear regression"):
            before = ft.tabular.TableModel(plain_estimator("linear", task), **settings).fit(train)
    if options.method == "lr" and before is not None:
        return before, before
    show = stderr_is_terminal()
    model = ft.tabular.TableModel(
        make_estimator(options, settings["groups"], task=task, verbose=show),
        max_disparity=None if options.method == "blind-repair" else options.max_disparity,  # which keeps it by itself
        verbose=show,
        **settings,
    ).fit(train)
    if "interrupted" in str(getattr(model.estimator_, "outcome_", "")):
        raise KeyboardInterrupt  # the library keeps the best model so far, but an interrupted command writes no file
    for one in (*model.candidates.values(), model.estimator_):
        if "verbose" in one.get_params(deep=False):
            one.set_params(verbose=False)
    return model.set_params(verbose=False), before


def _measure(before: TableModel | None, model: TableModel, held: Any, options: MethodOptions) -> HeldOut:
    from fairtransport.tabular.held_out_evaluation import measure_models  # noqa: PLC0415

    models = {"lr": before, "unrepaired": _unrepaired(model, options), options.method: model}
    with spinner("Measuring"):
        return measure_models({k: v for k, v in models.items() if v is not None}, held, random_state=options.seed)


def _write_page(path: Path, model: TableModel, held: Any, **compared: Any) -> None:
    """Write the audits of held-out rows at amount 0, the model without parity, and at that of the model."""
    audits = []
    for amount in (0.0, model.estimator_.amount):
        model.estimator_.set_params(amount=amount)
        audits.append(model.audit(held, **compared))
    ft.compare(*audits).to_html(path)


def _unrepaired(model: TableModel, options: MethodOptions) -> TableModel | None:
    """Return the model before its repair, to compare with; None where that is logistic or linear regression."""
    if options.repaired != "trees":
        return None
    plain = copy(model)
    plain.estimator_ = copy(model.estimator_)
    if options.method == "dpp":
        plain.estimator_.repair_ = copy(model.estimator_.repair_).set_params(amount=0.0)
    plain.estimator_.amount = 0.0
    return plain
