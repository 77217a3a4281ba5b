"""``fairtransport train``: a raw table -> a model file, and what parity costs on held-out rows."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads it
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtransport.cli import _tables as shared
from fairtransport.cli._console import make_table, many, print_path, print_sentence, print_table, spinner
from fairtransport.cli._errors import misuse, warned
from fairtransport.cli._json import JsonGoal, JsonTo
from fairtransport.cli._methods import METHODS, MethodOptions, make_estimator
from fairtransport.cli._output import prepare_files

if TYPE_CHECKING:
    from fairtransport.tabular import TableModel
    from fairtransport.tabular.held_out import HeldOut

__all__ = ["run_train"]

_TITLES = {
    "error_rate": "Error",
    "auc": "Area under the ROC curve",
    "strong_demographic_disparity": "Distance to everyone (SDD)",
    "strong_pairwise_disparity": "Distance between pairs (SPDD)",
    "rank_disparity": "The same of ranks",
}


def run_train(
    files: shared.Files,
    *,
    label: Annotated[str, typer.Option("--label", metavar="COLUMN", help="Column of two labels, to be predicted.")],
    sensitive: shared.Sensitive,
    out: Annotated[Path, typer.Option("--out", metavar="PATH", help="Model file to write, such as model.ft.")],
    method: Annotated[
        str, typer.Option("--method", metavar="WORD", help=f"{'; '.join(f'{k}: {v}' for k, v in METHODS.items())}.")
    ] = "cot",
    positive: shared.Positive = None,
    aware: Annotated[
        bool | None,
        typer.Option(
            "--aware/--blind",
            help="Aware: the groups are features, and needed to score; cot and dot have weights for each group. Blind, "
            "the default: they are used in training only.",
        ),
    ] = None,
    parity_weight: Annotated[
        str | None,
        typer.Option(
            "--parity-weight",
            metavar="X",
            help="Of parity against accuracy, for cot and dot: a number, or auto (as far as the data allow without "
            "losing half of what the model knows) [default: auto].",
        ),
    ] = None,
    amount: Annotated[
        float | None,
        typer.Option("--amount", metavar="X", min=0, max=1, help="From 0 (no parity) to 1 (all of it) [default: 1]."),
    ] = None,
    max_disparity: Annotated[
        float | None,
        typer.Option(
            "--max-disparity",
            metavar="X",
            min=0,
            help="Choose the weight, or the amount where there is none to choose: the least error with SPDD at X on "
            "unseen rows.",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="WORD",
            help="Where the groups go: barycenter, barycenter_w2, pooled or a group [default: cot and dot to each "
            "other, dpp barycenter_w2].",
        ),
    ] = None,
    test: Annotated[
        list[str] | None, typer.Option("--test", metavar="FILE", help="Measure on these files; train on all rows.")
    ] = None,
    test_share: Annotated[
        float,
        typer.Option("--test-share", metavar="X", min=0, max=0.9, help="Hold out this share of the rows; 0: none."),
    ] = 0.25,
    drop: Annotated[
        list[str] | None, typer.Option("--drop", metavar="COLUMNS", help="Not features: identifiers, for instance.")
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option("--categorical", metavar="COLUMNS", help="Numbers that are names, such as postcodes."),
    ] = None,
    missing: Annotated[
        str, typer.Option("--missing", metavar="WORD", help="A missing group: set_aside (and counted), or group.")
    ] = "set_aside",
    json_to: JsonTo = None,
    force: shared.Force = False,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, max=2**32 - 1, help="Of everything random.")] = 0,
    small_groups: shared.SmallGroups = "keep",
    min_group_size: shared.MinGroupSize = 30,
    max_groups: shared.MaxGroups = 200,
    file_format: shared.Format = None,
    delimiter: shared.Delimiter = None,
    encoding: shared.Encoding = "utf-8",
    null: shared.Null = None,
    decimal: shared.Decimal = ".",
    max_expansion: shared.MaxExpansion = 200,
    memory: shared.Memory = "2GiB",
    threads: shared.Threads = None,
) -> None:
    """Train a model with parity on a raw table; write a model file.

    Numbers, text, dates and gaps are dealt with, and how is kept in the file. Identifiers, empty and constant columns
    are left out, and named. The table shows logistic regression beside the model, on rows that neither has seen.
    The rows are kept in memory.

    \b
    Example:
      fairtransport train data.csv --label income --sensitive race,sex \\
          --method cot --out model.ft
    """  # noqa: D301 - \b keeps the lines of the example
    weight = _number_or_word(parity_weight)
    options = MethodOptions(method, weight, amount, max_disparity, aware, target, small_groups, min_group_size, seed)
    options.check()
    shared.check_small_groups(small_groups)
    if missing not in {"set_aside", "group"}:
        raise misuse(f"--missing must be set_aside or group; got {missing!r}")
    goal = JsonGoal(json_to)
    prepare_files([out, goal.path], force=force, ask=shared.on_terminal(), inputs=[*files, *(test or ())])
    reading = shared.read_options(
        format=file_format,
        delimiter=delimiter,
        encoding=encoding,
        null=null,
        decimal=decimal,
        max_expansion=max_expansion,
        memory=memory,
        threads=threads,
    )
    asked = {"label": label, "positive": positive, "missing": missing, "decimal": decimal, "aware": bool(aware)}
    lists = {"sensitive": sensitive, "drop": drop or (), "categorical": categorical or ()}
    with shared.in_options(), warned() as warnings:
        table, named = _read(files, lists, reading)
        _check(table, label, named["sensitive"], max_groups)
        if test:
            train, held = table, _read(test, {}, reading)[0]
        else:
            train, held = _split(table, test_share, label, named["sensitive"], seed)
        model, before = _fit(train, options, {**asked, **named}, compared=held is not None)
        shown = None if held is None else _measure(before, model, held, options)
        _save(model, out)
    told = _told(model, train.num_rows, options.method, shown)
    goal.write({**told, "warnings": warnings, "written": str(out)})
    if goal.to_stdout:
        return
    _show(model, told, shown, options.method)
    for text in warnings:
        print_sentence(f"Note: {text}")
    for what, path in (("Written:", out), ("JSON:", goal.path)):
        if path is not None:
            print_path(what, path)


def _read(files: list[str], lists: dict[str, Any], reading: dict[str, Any]) -> tuple[Any, dict[str, list[str]]]:
    """Return all rows, and the columns that options name."""
    from fairtransport.tables import open_files  # noqa: PLC0415
    from fairtransport.tabular.scored_files import collect_file  # noqa: PLC0415 - scikit-learn takes a while

    with open_files(files, **reading) as table, shared.bar("Reading") as tell:
        named = {role: table.split(given) if given else [] for role, given in lists.items()}
        return collect_file(table, tell=tell), named


def _check(table: Any, label: str, sensitive: list[str], max_groups: int) -> None:
    """Raise for wrong names and for identifiers, before anything is trained."""
    from fairtransport.groups import make_groups  # noqa: PLC0415
    from fairtransport.tables.reading import say_close  # noqa: PLC0415
    from fairtransport.tabular.cells import words_of  # noqa: PLC0415

    for name in (label, *sensitive):
        if name not in table.column_names:
            raise ValueError(f"The table has no column {name!r}; {say_close(name, table.column_names)}")
    if table.num_rows == 0:
        raise ValueError("The table has no rows.")
    codes = {name: words_of(table[name], name)[1] for name in sensitive}
    make_groups(codes, max_groups=max_groups)


def _split(table: Any, share: float, label: str, sensitive: list[str], seed: int) -> tuple[Any, Any]:
    from fairtransport.tabular.held_out import split_table  # noqa: PLC0415

    if share == 0.0:
        return table, None
    return split_table(table, share, label=label, sensitive=sensitive, random_state=seed)


def _fit(
    train: Any, options: MethodOptions, asked: dict[str, Any], *, compared: bool
) -> tuple[TableModel, TableModel | None]:
    """Return the model, and logistic regression of the same columns where it is to be compared."""
    from fairtransport.tabular import TableModel  # noqa: PLC0415

    plain = make_estimator(MethodOptions("lr", None, None, None, None, None, "keep", 1, options.seed), verbose=False)
    before = None
    with spinner("Logistic regression"):
        if compared or options.method == "lr":
            before = TableModel(plain, **asked).fit(train)
    if options.method == "lr" and before is not None:
        return before, before
    show = shared.watched()
    model = TableModel(
        make_estimator(options, verbose=show and options.method != "dpp"),
        max_disparity=options.max_disparity,
        verbose=show,
        **asked,
    ).fit(train)
    if str(getattr(model.estimator_, "outcome_", "")).startswith("interrupted"):
        raise KeyboardInterrupt  # the library keeps the best model so far; a file that somebody stopped is not wanted
    for one in (model.estimator, model.estimator_):
        if "verbose" in one.get_params(deep=False):
            one.set_params(verbose=False)
    return model.set_params(verbose=False), before


def _measure(before: TableModel | None, model: TableModel, held: Any, options: MethodOptions) -> HeldOut:
    from fairtransport.tabular.held_out import measure_models  # noqa: PLC0415

    models = {"lr": before, options.method: model}
    with spinner("Measuring"):
        return measure_models({k: v for k, v in models.items() if v is not None}, held, random_state=options.seed)


def _save(model: TableModel, out: Path) -> None:
    from fairtransport.persistence import save  # noqa: PLC0415

    with spinner("Writing"):
        save(model, out)


def _told(model: TableModel, n_rows: int, method: str, shown: HeldOut | None) -> dict[str, Any]:
    """Return what is known about the model, for JSON."""
    estimator = model.estimator_
    told = {
        "method": method,
        "rows": n_rows,
        "set_aside": model.set_aside_,
        "label": model.label,
        "positive": str(model.classes_[1]),
        "sensitive": list(model.sensitive),
        "needed_to_score": model.columns,
        "left_out": model.encoder_.left_out_,
        "unreadable": model.encoder_.unreadable_,
        "amount": getattr(estimator, "amount", None),
        "outcome": getattr(estimator, "outcome_", None),
        "parity_weight": getattr(estimator, "parity_weight_", None),
        "information_kept": getattr(estimator, "information_kept_", None),
        "held_out": None,
    }
    if shown is not None:
        held = {"rows": shown.rows, "groups": shown.groups, "unsure": shown.unsure, "set_aside": shown.set_aside}
        told["held_out"] = {**held, "figures": shown.figures, "noise_floor": shown.floor}
    return told


def _show(model: TableModel, told: dict[str, Any], shown: HeldOut | None, method: str) -> None:
    if shown is not None:
        title = f"{shown.rows:,} held-out rows in {shown.groups} groups"
        table = make_table(title, [""], [name.upper() for name in shown.figures] + ["by chance"])
        for name, words in _TITLES.items():
            read = [_three(figures[name]) for figures in shown.figures.values()]
            table.add_row(words, *read, _three(shown.floor.get(name)))
        print_table(table)
        if shown.unsure:
            few = "group has" if shown.unsure == 1 else "groups have"
            print_sentence(
                f"Unsure: {shown.unsure} {few} fewer than 30 of these rows, so that what is added to the distances is "
                "mostly chance."
            )
        for reason, rows in shown.set_aside.items():
            print_sentence(f"Not measured: {many(rows, 'row')}, {reason}.")
    print_sentence(f"{method.upper()} trained on {told['rows']:,} rows. {_outcome(told)}".rstrip())
    print_sentence(f"The score is the probability that {model.label} is {told['positive']!r}.")
    sensitive = ", ".join(model.sensitive)
    used = [name for name in model.sensitive if name in model.columns]
    print_sentence(f"Needed to score: {len(model.columns)} columns, {'with' if used else 'without'} {sensitive}.")
    groups, few = model.known_groups, "with too few rows to be compared one by one"
    if groups is not None and groups.pooled:
        pools = ", ".join(groups.names[groups.labels.index(pool)] for pool in groups.pools)
        print_sentence(f"Pooled as {pools}: {many(len(groups.pooled), 'group')} {few}.")
    if groups is not None and groups.dropped:
        print_sentence(f"Left out of the comparisons: {many(len(groups.dropped), 'group')} {few}.")
    for reason, rows in model.set_aside_.items():
        print_sentence(f"Not learned from: {many(rows, 'row')}, {reason}.")
    for name, why in model.encoder_.left_out_.items():
        print_sentence(f"Left out: {name} ({why}).")
    for name, cells in model.encoder_.unreadable_.items():
        print_sentence(f"Taken for missing: {many(cells, 'cell')} of {name}, unlike the others there.")


def _outcome(summary: dict[str, Any]) -> str:
    outcome, amount, kept = str(summary["outcome"] or ""), summary["amount"], summary["information_kept"]
    said = [f"{outcome[:1].upper()}{outcome[1:]}."] if outcome else []
    if summary["parity_weight"] is not None and "parity_weight" not in outcome:
        said.append(f"Parity weight {summary['parity_weight']:.3g}.")
    if kept is not None:
        said.append(f"{kept:.0%} of the plain model's gain in log-loss over a constant is kept.")
    if amount not in {None, 1.0}:
        said.append(f"Amount {amount:.2f}{' of the way there' if kept is not None else ''}.")
    return " ".join(said)


def _number_or_word(given: str | None) -> float | str | None:
    if given is None:
        return None
    try:
        number = float(given)
    except ValueError:
        return given
    if not 0.0 <= number < float("inf"):
        raise misuse(f"--parity-weight must be auto or a number, zero or more; got {given!r}")
    return number


def _three(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
