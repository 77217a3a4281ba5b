"""``fairtransport repair``: a table with repaired scores, and the repair itself as SQL or a lookup table."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import fairtransport as ft
from fairtransport._text import count_word
from fairtransport._validation import OTHER_RANGES
from fairtransport.cli import _options as shared
from fairtransport.cli._errors import misuse
from fairtransport.cli._output import (
    Output,
    count_of,
    print_sentence,
    print_table,
    progress_bar,
    spinner,
    stderr_is_terminal,
)
from fairtransport.cli._small_groups import describe_shared_maps
from fairtransport.storage import write_atomically

if TYPE_CHECKING:
    from fairtransport.auditing import Audit
    from fairtransport.auditing.records import Reading
    from fairtransport.histograms import GroupHistograms
    from fairtransport.repair import QuantileRepair
    from fairtransport.repair.file_repair import FileRepair
    from fairtransport.repair.stratum_maps import CountedCells

# What the repair command prints: the distances that its criterion compares, before and after repair.

_PAIRS = "pairwise_disparity"
_SUM = "strong_pairwise_disparity"
_MEANS = {  # names of the means of an audit's sums
    "wasserstein_disparity": "distance_to_target",
    "strong_demographic_disparity": "distance_to_everyone",
    _SUM: _PAIRS,
}
_REPLICATES = 100  # for the noise floor of the table that is shown
_MIN_ROWS = 30  # of the groups that are compared
_GROWN = 1.1  # times the distance before: more is said


def _audit_histograms(histograms: Any, min_size: int, **options: Any) -> Audit:
    inference = ft.auditing.Inference(n_bootstrap=_REPLICATES, n_permutations=_REPLICATES, random_state=0)
    policy = ft.GroupPolicy(min_size=min_size)
    audit: Audit = ft.auditing.audit_histograms(histograms, groups=policy, inference=inference, **options)
    return audit


def measure(done: FileRepair, criterion: str) -> dict[str, dict[str, dict[str, float | None]]]:
    """Return the figures before and after repair, and those of held-out rows: the mean over folds."""
    parts = {"before": [done.before], "after": [done.after]}
    compared = done.before.settle("drop", _MIN_ROWS).groups  # the groups that the other figures compare
    folds = [fold.regroup(compared) for fold in done.held_out]
    if folds and len(compared) > 1 and all(fold.group_rows.all() for fold in folds):
        parts["held_out"] = folds
    figures: dict[str, dict[str, dict[str, float | None]]] = {}
    for moment, histograms in parts.items():
        min_rows = 1 if moment == "held_out" else _MIN_ROWS
        found = [_readings(one, done, criterion, min_rows) for one in histograms]
        if moment == "held_out" and not all(figures["after"].keys() <= part.keys() for part in found):
            continue  # a part has too few rows to be compared
        figures[moment] = {}
        for name in found[0]:
            readings = [part[name] for part in found if name in part]
            floors = [reading.floor for reading in readings if reading.floor is not None]
            value = fmean(reading.value for reading in readings)
            figures[moment][name] = {"value": value, "noise_floor": fmean(floors) if floors else None}
    return figures


def _readings(histograms: GroupHistograms, done: FileRepair, criterion: str, min_rows: int) -> dict[str, Reading]:
    """Return what a criterion compares, and the error where there are labels."""
    from fairtransport.criteria.criterion import needs_labels  # noqa: PLC0415 - narwhals takes a while

    cells = done.by_stratum(histograms) if done.strata else None
    pooled = histograms if cells is None else cells.groups.filled()
    found = _audit_histograms(pooled, min_rows).mean_readings
    readings = {_MEANS.get(name, name): reading for name, reading in found.items()}
    compared: dict[str, Mapping[str, Reading]] = {}
    if needs_labels(criterion) and histograms.has_labels:
        readings = {name: reading for name, reading in readings.items() if name == "error_rate"}
        for label in (1, 0)[: 2 if criterion == "equalized_odds" else 1]:
            of_label = _with_label(pooled, label)
            if len(of_label.groups) > 1:  # rare labels may be those of one group, in a part of the rows
                compared[f"{_PAIRS}_label_{label}"] = (
                    _audit_histograms(of_label, min_rows).mean_readings
                    if cells is None
                    else _audit_within(cells, min_rows, label)
                )
    elif cells is not None:
        compared[f"conditional_{_PAIRS}"] = _audit_within(cells, min_rows)
    return readings | {name: within[_SUM] for name, within in compared.items() if _SUM in within}


def _with_label(histograms: GroupHistograms, label: int) -> GroupHistograms:
    """Return the histograms of the rows with one label."""
    squares = None if histograms.squares is None else histograms.squares[label : label + 1]
    one = replace(histograms, masses=histograms.masses[label : label + 1], squares=squares)
    return replace(one, rows=one.effective_sizes.round().astype(int)).filled()


def _audit_within(cells: CountedCells, min_rows: int, label: int | None = None) -> Mapping[str, Reading]:
    """Return the mean disparities within strata."""
    parts = [cells.groups, *cells.within]
    chosen = [part.filled() if label is None else _with_label(part, label) for part in parts]
    strata = {str(number): part for number, part in enumerate(chosen[1:]) if len(part.groups)}
    within = _audit_histograms(chosen[0], min_rows, strata=strata).within
    return {} if within is None else within.mean_readings


_TITLES = {
    "error_rate": "Error",
    "distance_to_target": "Mean distance to target",
    "distance_to_everyone": "Mean distance to everyone",
    "pairwise_disparity": "Mean distance between pairs",
    "pairwise_disparity_label_1": "Pairs, positive label",
    "pairwise_disparity_label_0": "Pairs, negative label",
    "conditional_pairwise_disparity": "Pairs, within strata",
    "rank_disparity": "Rank disparity",
    "kolmogorov_smirnov_disparity": "Kolmogorov-Smirnov, mean",
}


@shared.described(
    out=shared.option("PATH", "Output file: .parquet, .feather, .csv, .jsonl, .csv.gz, ..."),
    amount=shared.option("X", "From 0 (scores unchanged) to 1 (equal distributions).", min=0, max=1),
    target=shared.option(
        "TARGET", "Distribution that each group is mapped to: barycenter, barycenter_w2, pooled or the name of a group."
    ),
    criterion=shared.choice(
        "CRITERION",
        "Whose scores become alike: demographic_parity (all people), equal_opportunity (people with the positive "
        "label) or equalized_odds (people with the same label). The last two need --label.",
        among=shared.CRITERIA,
    ),
    strata=shared.option("COLUMNS", "Repair within each value of these columns (conditional parity)."),
    randomize=shared.flag(
        "--randomize", "Reach equalized odds exactly, by scores that are drawn at random; two runs agree."
    ),
    fit_on=shared.option("FILE", "Fit the repair on these files and apply it to the others."),
    column=shared.option("NAME", "Name of the column to add [default: SCORE_repaired]."),
    sql=shared.option("PATH", "Also write the repair as SQL for a database."),
    dialect=shared.choice(
        "DIALECT",
        "Dialect of --sql: duckdb, mysql (also MariaDB), postgresql or sqlite.",
        among=("duckdb", "mysql", "postgresql", "sqlite"),
    ),
    lookup=shared.option("PATH", "Also write the repair as a Parquet lookup table."),
    score_range=shared.option(
        "LOW,HIGH",
        "Lowest and highest possible score, or learned: scores without bounds, such as predicted prices "
        "[default: 0,1].",
        "--range",
    ),
    guess_types=shared.flag("--guess-types", "Infer which columns of a CSV file are numeric, instead of writing text."),
)
def run_repair(
    files: list[str],
    *,
    score: str,
    sensitive: list[str],
    out: Path,
    amount: float = 1.0,
    target: str = "barycenter_w2",
    criterion: str = "demographic_parity",
    strata: list[str] | None = None,
    randomize: bool = False,
    fit_on: list[str] | None = None,
    label: str | None = None,
    pos_label: str | None = None,
    weight: str | None = None,
    column: str | None = None,
    sql: Path | None = None,
    dialect: str = "postgresql",
    lookup: Path | None = None,
    score_range: str | None = None,
    small_groups: str = "keep",
    min_group_size: int = 30,
    guess_types: bool = False,
    bins: int = 16_384,
    max_groups: int = 200,
    output: Output,
    reading: shared.ReadingOptions,
) -> None:
    """Repair scores so that every group has the same distribution.

    The output has all rows in their order and all columns, and one more with the repaired scores; with --label, the
    error before and after is shown. A row without a score, or whose group the repair was not fitted on, gets no
    repaired score and is counted. Groups smaller than --min-group-size have no map of their own: they share one map
    if they have enough rows together, and with --small-groups drop they get the map of the whole population.

    Labels are used to fit the repair and not to apply it: with --fit-on, the files that are repaired need none. With
    --strata, a row of a stratum that the repair was not fitted on gets no repaired score.

    \b
    Example:
      fairtransport repair scores.csv --score s --sensitive race \\
          --out repaired.parquet
      fairtransport repair scores.csv --score s --sensitive race \\
          --criterion equal_opportunity --label y --out repaired.parquet
      fairtransport repair new.parquet --fit-on old.parquet --score s \\
          --sensitive race --out new-repaired.parquet --sql repair.sql
      fairtransport repair prices.csv --score predicted --sensitive sex \\
          --range learned --out repaired.csv
    """  # noqa: D301 - \b keeps the lines of the example
    _check_criterion(criterion, label, strata, randomize=randomize, exported=sql is not None or lookup is not None)
    output.prepare(out, sql, lookup, inputs=[*files, *(fit_on or ())])
    from fairtransport.repair.quantile import describe_repair  # noqa: PLC0415
    from fairtransport.tables.files.writers import check_output  # noqa: PLC0415

    check_output(out)
    policy = shared.make_policy(small_groups, min_group_size, max_groups)
    repair = ft.QuantileRepair(target=target, amount=amount, criterion=criterion, randomize=randomize, groups=policy)
    is_learned = score_range == "learned"
    if is_learned:
        repair.set_params(range=score_range)
    names = {"score": score, "sensitive": sensitive, "label": label, "strata": strata or (), "weight": weight}
    bounds = None if is_learned else shared.parse_range(score_range)
    counting = {"range": bounds, "any_range": is_learned, "n_bins": bins, "groups": policy}
    added = column or f"{score}_repaired"
    writing = {"path": out, "output": added, "guess": guess_types}
    done = _repair(repair, files, fit_on, names, pos_label, reading=reading, counting=counting, writing=writing)
    if sql is not None:
        write_atomically(sql, repair.lookup().to_sql(score=score, output=added, dialect=dialect).encode())
    if lookup is not None:
        repair.lookup().to_parquet(lookup)
    with spinner("Before and after"):
        figures = measure(done, criterion)
    set_aside = dict(repair.set_aside_) if fit_on else {}
    summary = {
        "criterion": criterion,
        "positive": None if done.positive is None else str(done.positive),
        "rows": done.counts,
        "not_learned_from": set_aside,
        "fitted_to_these_rows": not fit_on,
        **figures,
        "without_own_map": {
            "groups": len(repair.small_groups_),
            "rows": int(repair.group_sizes_[~repair.own_map_].sum()),
        },
        "written": str(out),
    }
    if output.write_json(summary):
        return
    _show(figures, done, set_aside, n_groups=len(repair.groups_), fitted_here=not fit_on)
    if done.positive is not None:
        print_sentence(f"Positive label of {label}: {done.positive}.")
    for number, sentence in enumerate(describe_repair(repair)):  # the first one is that of small groups
        print_sentence(f"{sentence}. {'' if number else describe_shared_maps(repair, 'Such groups')}".rstrip())
    output.print_paths({"Written": out, "SQL": sql, "Lookup table": lookup})


_OTHER_RANGES = (
    "Give the range of possible scores with --range LOW,HIGH, such as 1,10 for deciles, or set --range learned for "
    "scores without bounds, such as predicted prices or logits."
)


def _check_criterion(
    criterion: str, label: str | None, strata: list[str] | None, *, randomize: bool, exported: bool
) -> None:
    """End the command for options that contradict each other, before anything is read."""
    if criterion != "demographic_parity" and label is None:
        raise misuse(f"--criterion {criterion} compares people with the same label: name their column with --label")
    if randomize and criterion != "equalized_odds":
        raise misuse("--randomize is for --criterion equalized_odds; the others need no randomness")
    if randomize and strata:
        raise misuse("--randomize cannot be combined with --strata")
    if randomize and exported:
        raise misuse("--randomize cannot be combined with --sql or --lookup: each row has a draw of its own")


def _repair(
    repair: QuantileRepair,
    files: list[str],
    fit_on: list[str] | None,
    names: dict[str, Any],
    positive: str | None,
    *,
    reading: shared.ReadingOptions,
    counting: dict[str, Any],
    writing: dict[str, Any],
) -> FileRepair:
    """Fit on the counts of one table and repair the other, which may be the same."""
    from fairtransport.criteria.criterion import needs_labels  # noqa: PLC0415
    from fairtransport.repair.file_repair import repair_file  # noqa: PLC0415

    with ExitStack() as stack:
        table = stack.enter_context(reading.open(files))
        labelled = needs_labels(repair.criterion)
        unlabelled = fit_on and labelled and names["label"] not in table.names  # repaired without figures of labels
        columns = shared.name_columns(table, **({**names, "label": None} if unlabelled else names))
        table.check(columns)
        table.check_new(writing["output"])
        pos_label = None if positive is None or unlabelled else table.read_label(columns, positive)
        source, source_columns, source_label = table, columns, pos_label
        if fit_on:
            source = stack.enter_context(reading.open(fit_on))
            source_columns = shared.name_columns(source, **(names if labelled else {**names, "label": None}))
            source.check(source_columns)
            if labelled and positive is not None:
                source_label = source.read_label(source_columns, positive)
        keys, source_keys = ((*one.strata, *one.sensitive_features) for one in (columns, source_columns))
        as_text = table.kinds(keys) != source.kinds(source_keys)
        # Strata and groups are counted together, as cells.
        counted = replace(source_columns, sensitive_features=source_keys, strata=())
        counting |= {} if fit_on and not labelled else {"pos_label": source_label}
        show = stderr_is_terminal()
        try:
            counts = source.run(ft.tables.count_table, counted, title="Reading", show=show, as_text=as_text, **counting)
        except ValueError as error:
            if OTHER_RANGES in str(error):  # scores are outside the range
                error.args = (str(error).replace(OTHER_RANGES, _OTHER_RANGES),)
            raise
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".* of the .* groups ha(s|ve) min_size")  # reported at the end
            warnings.filterwarnings("ignore", message=".* groups ha(s|ve) fewer than")
            repair.fit_counts(counts, strata=source_columns.strata)
        with progress_bar("Writing") as tell:
            return repair_file(
                repair,
                table,
                columns,
                as_text=as_text,
                pos_label=pos_label,
                cross_fit=not fit_on,
                on_progress=tell,
                **writing,
            )


def _show(
    figures: dict[str, dict[str, dict[str, float | None]]],
    done: FileRepair,
    set_aside: Mapping[str, int],
    *,
    n_groups: int,
    fitted_here: bool,
) -> None:
    titles = ["before", "in-sample" if fitted_here else "after", "by chance"]
    cells = [("before", "value"), ("after", "value"), ("after", "noise_floor")]
    if "held_out" in figures:
        titles += ["held out", "by chance"]
        cells += [("held_out", "value"), ("held_out", "noise_floor")]
    lines = [[_TITLES[name], *(figures[moment][name][key] for moment, key in cells)] for name in figures["after"]]
    print_table(f"{done.counts['rows']:,} rows in {n_groups} groups", [""], titles, lines)
    if fitted_here:
        words = "In-sample: after repair, of the rows that it was fitted to."
        if "held_out" in figures:
            count = count_word(len(done.held_out))
            words += f" Held out: after repair by maps of other rows, the mean over {count} parts of the rows."
        print_sentence(words)
    of_new = figures.get("held_out", figures["after"])
    within = f"conditional_{_PAIRS}"  # the criterion, which may well move groups apart over all strata
    judged = [within] if within in of_new else [name for name in of_new if name in figures["before"]]
    grown = [_TITLES[name] for name in judged if _has_grown(figures["before"][name], of_new[name])]
    if grown:
        print_sentence(
            f"Larger after the repair: {', '.join(grown).lower()}. Maps have noise of their own, which is more than "
            "they remove where groups differed by little more than chance: such scores are better left as they are."
        )
    for reason, rows in set_aside.items():
        print_sentence(f"Not used for fitting: {count_of(rows, 'row')}, {reason}.")
    if done.counts["clamped"]:
        print_sentence(f"Clamped to the fitted range: {count_of(done.counts['clamped'], 'row')}.")
    for reason in ("no score", "no group", "unknown group"):
        if done.counts[reason]:
            print_sentence(f"Without a repaired score: {count_of(done.counts[reason], 'row')}, {reason}.")


def _has_grown(before: dict[str, float | None], after: dict[str, float | None]) -> bool:
    """Return whether a distance is larger by more than parts of the rows, of which chance shows more, make it."""
    floor = after["noise_floor"]
    if floor is None:  # no distance
        return False
    more_by_chance = floor - (before["noise_floor"] or 0.0)
    return (after["value"] or 0.0) > _GROWN * (before["value"] or 0.0) + more_by_chance
