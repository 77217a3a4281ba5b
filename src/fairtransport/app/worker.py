"""The process that does the work: one job from standard input, events as lines of JSON on standard output.

A process for each job can be ended at any moment, and takes its memory with it. It calls the library as users do.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import d2_log_loss_score, r2_score

import fairtransport as ft
from fairtransport._arrays import Bools, Floats
from fairtransport._labels import find_positive
from fairtransport._validation import describe_error
from fairtransport.app.guesses import describe_columns, find_warnings, guess_roles
from fairtransport.app.recipes import METHODS, model_columns, output_name
from fairtransport.app.texts import TEXTS
from fairtransport.storage import write_atomically
from fairtransport.tabular.held_out_evaluation import HeldOutRows, split_table

AMOUNTS = tuple(k / 10 for k in range(11))
_TEST_SHARE = 0.25  # as in `fairtransport train`
_SHOWN_ROWS = 5
_INSIDE = (1e-6, 1 - 1e-6)  # probabilities whose logarithm is taken
_BAR = re.compile(r": (\d+)%")


@dataclass
class Report(io.TextIOBase):
    """Where a job stands. As standard error, it reads the library's bars, and drops everything else."""

    send: Callable[[dict[str, Any]], None]
    start: float = 0.0
    end: float = 1.0
    text: str = ""

    def stage(self, text: str, start: float, end: float) -> None:
        """Begin a part of the job, which takes from one share of the time to another."""
        self.start, self.end, self.text = start, end, TEXTS.get(text, text)
        self.reach(0.0)

    def reach(self, share: float) -> None:
        """Report the share of the stage that is done."""
        self.send({"share": self.start + (self.end - self.start) * min(max(share, 0.0), 1.0), "text": self.text})

    def write(self, text: str) -> int:
        """Read a line of a bar."""
        match = _BAR.search(text)
        if match is not None:
            self.reach(int(match[1]) / 100)
        return len(text)


def look(job: dict[str, Any], report: Report) -> dict[str, Any]:
    """Describe the columns of a file, propose their roles, and warn; only the first rows are read."""
    report.stage("job_look", 0.0, 1.0)
    if job["shipped"]:
        _write_shipped(job["shipped"], Path(job["folder"]))
    with ft.tables.open_files([job["path"]]) as file:
        batches: Any = iter(file.batches(guess=True))
        first, more = next(batches, None), next(batches, None)
        batches.close()
        if first is None or not first[0].num_rows:
            raise ValueError(TEXTS["error_no_rows"])
    table = import_module("pyarrow").Table.from_batches([first[0]])
    columns = describe_columns(table)
    roles, why = guess_roles(columns, table)
    used = job["settings"] if job["settings"]["sensitive"] else roles
    found = find_warnings(columns, table, used)
    head = [[*map(str, row.values())] for row in table.slice(0, _SHOWN_ROWS).to_pylist()]
    about = {"rows": table.num_rows, "more": more is not None, "head": head, "warnings": found}
    return {"columns": columns, "guess": roles, "why": why, **about}


def _write_shipped(name: str, folder: Path) -> None:
    """Write a shipped data set with the scores of a logistic regression, each by a model of other rows.

    Only ever into the project's own folder: a project file of somebody else may name any path.
    """
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.model_selection import StratifiedKFold, cross_val_predict  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415

    data = getattr(ft.datasets, f"load_{name}")()
    table = data.data.assign(**{one: data.sensitive_features[one] for one in data.sensitive_names})
    model = make_pipeline(ft.tabular.TableEncoder(), LogisticRegression(max_iter=1000))
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    scores = cross_val_predict(model, table, data.target, cv=folds, method="predict_proba")[:, 1]
    table = table.assign(**{data.target.name: data.target}, score=scores)
    content = import_module("pyarrow").Table.from_pandas(table, preserve_index=False)
    with ft.tables.files.table_writer(folder / f"{name}.parquet", content.schema) as write:
        for batch in content.to_batches():
            write(batch)


def _policy(settings: dict[str, Any]) -> ft.GroupPolicy:
    size = int(settings["min_size"])
    return ft.GroupPolicy(missing="set_aside", small=settings["small"], min_size=size, max_groups=200)


def _columns(settings: dict[str, Any], strata: list[str]) -> Any:
    named = {"score": settings["score"], "sensitive_features": settings["sensitive"]}
    return ft.tables.Columns.named(**named, label=settings["label"] or None, strata=strata or None)


def _positive(file: Any, columns: Any, settings: dict[str, Any]) -> Any:
    return file.read_label(columns, settings["pos_label"]) if columns.label and settings["pos_label"] else None


def _audit_file(path: Any, settings: dict[str, Any]) -> Any:
    """Return the audit of a file, or the series of audits."""
    by = settings["by"] or None

    def work(frame: Any, *, cut_strata: bool, strata: Any = None, **options: Any) -> Any:
        return ft.audit_table(frame, **({"strata": strata} if cut_strata else {"by": by}), **options)

    with ft.tables.open_files([path]) as file:
        columns = _columns(settings, [by] if by else settings["strata"])
        options: dict[str, Any] = {name: settings[name] for name in ("criterion", "favourable")}
        options |= {"thresholds": settings["thresholds"] or None, "pos_label": _positive(file, columns, settings)}
        options |= {"inference": ft.auditing.Inference(random_state=0), "groups": _policy(settings)}
        return file.run(work, columns, cut_strata=by is None, **options)


def _verdict(audit: Any) -> dict[str, Any]:
    verdict = audit.verdict.to_dict()
    return {key: verdict[key] for key in ("status", "sentence", "points")}


def audit(job: dict[str, Any], report: Report) -> dict[str, Any]:
    """Audit the scores of a file, and write the audit as page, JSON and Markdown."""
    from fairtransport.auditing.provenance import describe_files  # noqa: PLC0415

    settings, folder = job["settings"], Path(job["folder"])
    report.stage("job_count", 0.1, 0.8)
    result = _audit_file(job["path"], settings)
    report.stage("job_write", 0.8, 1.0)
    overall, by = (result.overall, True) if settings["by"] else (result, False)
    named = {role: settings[role] for role in ("score", "label", "strata") if settings[role]}
    roles = {role: (name,) if isinstance(name, str) else tuple(name) for role, name in named.items()}
    rows, known = overall.rows + sum(overall.settings.set_aside.values()), overall.provenance
    about = {"files": describe_files([Path(job["path"])]), "command": job["command"], "rows": rows, "seed": 0}
    about |= {"columns": {**roles, "sensitive_features": tuple(settings["sensitive"])}}
    about |= {"positive": known.positive, "strata_cuts": known.strata_cuts}
    overall = overall.with_provenance(ft.auditing.Provenance.now(**about))
    result = replace(result, overall=overall) if by else overall
    result.to_html(folder / "audit.html")
    write_atomically(folder / "audit.json", result.to_json(indent=2).encode())
    if not by:
        overall.to_markdown(folder / "audit.md")
    return {**_verdict(overall), "rows": rows, "files": ["audit.html", "audit.json", "audit.md"][: 2 if by else 3]}


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows that no model has seen, and the measures of scores on them."""

    settings: dict[str, Any]
    groups: Any
    labels: Any = None  # 1 for the positive label, numbers, or None
    strata: Any = None  # columns by name, or a table
    regression: bool = False
    range: tuple[float, float] | None = None  # of scores beyond 0 and 1, which are not compared with labels

    def audit(self, scores: Floats) -> Any:
        """Return the audit of scores."""
        task = "regression" if self.regression else "classification"
        options: dict[str, Any] = {name: self.settings[name] for name in ("criterion", "favourable")}
        options |= {"sensitive_features": self.groups, "strata": self.strata, "groups": _policy(self.settings)}
        return ft.audit(scores, self.labels, task=task, inference=ft.auditing.Inference(random_state=0), **options)

    @cached_property
    def _rows(self) -> HeldOutRows:
        options: dict[str, Any] = {"regression": self.regression, "in_units": self.range is not None}
        options |= {"min_size": int(self.settings["min_size"]), "strata": self.strata}
        return HeldOutRows(self.groups, self.labels, self.settings["criterion"], **options)

    def measure(self, scores: Floats, plain: Floats) -> dict[str, Any]:
        """Return error (without labels, the mean move), disparity, information kept, and rates by group."""
        disparities = self._rows.disparities(scores)
        error, kept = float(np.abs(scores - plain).mean()), None
        if self.labels is not None and self.range is None:
            explained, bounds = (r2_score, (-np.inf, np.inf)) if self.regression else (d2_log_loss_score, _INSIDE)
            after, before = (explained(self.labels, np.clip(one, *bounds)) for one in (scores, plain))
            kept = float(after / before) if before > 0 else None
            error = self._rates(scores, np.ones(scores.size, dtype=bool))["error"]
        groups = [self._rates(scores, self.groups.codes == code) for code in range(len(self.groups))]
        shown = {"disparity": [*disparities.values()][-1], "rank_disparity": disparities["rank_disparity"]}
        return {**shown, "error": error, "kept": kept, "groups": groups}

    def floor(self, scores: Floats) -> float:
        """Return the disparity that chance shows for groups of these sizes."""
        name, figure = [*self._rows.disparities(scores).items()][-1]
        if figure is None:
            raise ValueError("On held-out rows, nowhere can two groups be compared: choose other groups or strata.")
        return self._rows.floors(scores, n_shuffles=20)[name]

    def _rates(self, scores: Floats, rows: Bools) -> dict[str, Any]:
        rates: dict[str, Any] = {"rows": int(np.count_nonzero(rows)), "mean": float(scores[rows].mean())}
        labels: Any = None if self.labels is None else self.labels[rows]
        if self.range is not None:
            return rates
        if self.regression:
            return {**rates, "error": float(np.sqrt(np.mean((scores[rows] - labels) ** 2)))}
        above = scores[rows] > 0.5
        rates["selected"] = float(above.mean())
        if labels is not None:
            missed, false_alarm = ~above[labels == 1], above[labels == 0]
            rates |= {"error": float(np.mean(above != labels)), "missed": missed.mean() if missed.size else None}
            rates |= {"false_alarm": false_alarm.mean() if false_alarm.size else None}
        return rates


Curves = tuple[HeldOut, dict[str, list[Floats]], list[str]]


def tradeoff(job: dict[str, Any], report: Report) -> dict[str, Any]:
    """Train or repair, and measure error and disparity on held-out rows for each amount of parity."""
    repairs = job["settings"]["action"] == "repair"
    held, curves, notes = _repair_points(job, report) if repairs else _train_points(job, report)
    report.stage("job_measure", 0.9, 1.0)
    plain, points = next(iter(curves.values()))[0], []
    floor = held.floor(plain)
    for method, scores in curves.items():
        # Where the library keeps the plain model, because full parity does not help, amounts make no difference.
        step = len(scores) - 1 if np.array_equal(scores[0], scores[-1]) else 1
        for amount, one in zip(AMOUNTS[::step], scores[::step], strict=True):
            points.append({"method": method, "amount": amount, **held.measure(one, plain)})
            report.reach(len(points) / len(AMOUNTS) / len(curves))
    about = {"groups": list(held.groups.names), "floor": floor, "rows": int(plain.size), "notes": notes}
    labelled = held.labels is not None and held.range is None
    about |= {"labelled": labelled, "regression": held.regression, "range": held.range}
    return {"points": points, **about, "models": [] if repairs else [*curves]}


def _split(job: dict[str, Any], report: Report) -> tuple[Any, Any, str]:
    """Return training and held-out rows, as ``fairtransport train`` has them, and the task."""
    from fairtransport.tabular.file_scoring import collect_file  # noqa: PLC0415
    from fairtransport.tabular.label_columns import infer_task  # noqa: PLC0415

    report.stage("job_read", 0.0, 0.1)
    with ft.tables.open_files([job["path"]]) as file:
        table = collect_file(file, on_progress=report.reach)
    label, sensitive = job["settings"]["label"], job["settings"]["sensitive"]
    task = infer_task(table[label], label, ".")
    by_label = label if task == "classification" else None
    return *split_table(table, _TEST_SHARE, label=by_label, sensitive_features=sensitive), task


def _train_points(job: dict[str, Any], report: Report) -> Curves:
    settings = job["settings"]
    train, table, task = _split(job, report)
    curves: dict[str, list[Floats]] = {}
    notes: list[str] = []
    for number, method in enumerate(settings["methods"]):
        title, step = TEXTS[f"method_{method}"], 0.8 / len(settings["methods"])
        report.stage(TEXTS["job_train"].format(method=title), 0.1 + number * step, 0.1 + (number + 1) * step)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = _make_model(method, settings, task).fit(train)
        said = [str(one.message) for one in caught if issubclass(one.category, ft.FairnessWarning)]
        notes += [f"{title}: {text}" for text in (str(getattr(model.estimator_, "outcome_", "")), *said) if text]
        ft.save(model, Path(job["folder"]) / f"{method}.new.ft")  # the result and its models are replaced together
        rows = model.read_rows(table)
        curves[method] = []
        for amount in AMOUNTS:
            model.estimator_.set_params(amount=amount)
            curves[method].append(model.score_encoded(rows))
    return _held_out(rows, settings, task), curves, notes


def _held_out(rows: Any, settings: dict[str, Any], task: str) -> HeldOut:
    groups = ft.make_groups(rows.sensitive_features)
    return HeldOut(settings, groups, rows.labels, rows.strata, regression=task == "regression")


def _make_model(method: str, settings: dict[str, Any], task: str) -> Any:
    """Return the unfitted model of a method, as ``fairtransport train`` makes it."""
    from sklearn.linear_model import LogisticRegression, Ridge  # noqa: PLC0415

    regression, name = task == "regression", METHODS[method][0]
    kind, base = ("Regressor", Ridge()) if regression else ("Classifier", LogisticRegression(max_iter=1000))
    columns = model_columns(settings, method, regression=regression)
    compared: dict[str, Any] = {"criterion": settings["criterion"], "groups": _policy(settings)}
    if name == "dpp":
        made = getattr(ft, f"QuantileRepair{kind}")(base, ft.QuantileRepair(**compared))
    elif name == "blind-repair":
        made = getattr(ft, f"BlindRepair{kind}")(base, repair=ft.repair.BlindRepair(random_state=0, **compared))
    else:
        made = getattr(ft, f"Transport{kind}")(group_specific=columns["aware"], verbose=True, **compared)
    return ft.tabular.TableModel(made, **columns, groups=_policy(settings))


def _repair_points(job: dict[str, Any], report: Report) -> Curves:
    """Repair each half of the rows by the maps of the other; only the columns that are needed are read."""
    settings = job["settings"]
    report.stage("job_read", 0.0, 0.4)
    with ft.tables.open_files([job["path"]]) as file:
        columns = _columns(settings, settings["strata"])
        table = file.run(lambda frame, **_: frame.frame.collect("pyarrow").to_native(), columns)
        positive = _positive(file, columns, settings)
    n_rows, table = table.num_rows, table.rename_columns(list(columns)).drop_null().to_pandas().dropna()
    if table.empty:
        raise ValueError(TEXTS["error_no_complete"])
    scores, labels = table[columns.score].to_numpy(np.float64), None
    if columns.label is not None:
        column, name = table[columns.label].to_numpy(), f"Column {columns.label!r}"
        labels = find_positive(column, positive, size=scores.size, name=name)[0].astype(np.int64)
    bounds = None if scores.min() >= 0.0 and scores.max() <= 1.0 else (float(scores.min()), float(scores.max()))
    notes = [TEXTS["note_missing"].format(rows=f"{n_rows - scores.size:,}")] if n_rows > scores.size else []
    notes += [TEXTS["note_range"]] if bounds and labels is not None else []
    known = {"sensitive_features": table[[*columns.sensitive_features]]}
    known |= {"strata": table[[*columns.strata]]} if columns.strata else {}
    report.stage("job_repair", 0.4, 0.9)
    halves = np.array_split(np.random.default_rng(0).permutation(scores.size), 2)
    curve = [np.zeros(scores.size) for _ in AMOUNTS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ft.FairnessWarning)
        for fitted, held in (halves, halves[::-1]):
            repair: Any = _make_repair(settings, range=bounds or (0.0, 1.0))
            theirs, others = ({role: rows.iloc[half] for role, rows in known.items()} for half in (fitted, held))
            repair.fit(scores[fitted], None if labels is None else labels[fitted], **theirs)
            for amount, moved in zip(AMOUNTS, curve, strict=True):
                repair.set_params(amount=amount)
                moved[held] = repair.transform(scores[held], unknown_group="pooled", **others)
                report.reach(amount)
    groups, strata = ft.make_groups(known["sensitive_features"]), known.get("strata")
    return HeldOut(settings, groups, labels, strata, range=bounds), {"repair": curve}, notes


def _make_repair(settings: dict[str, Any], **options: Any) -> ft.QuantileRepair:
    return ft.QuantileRepair(criterion=settings["criterion"], groups=_policy(settings), **options)


def take(job: dict[str, Any], report: Report) -> dict[str, Any]:
    """Write the model or the repair, the file with new scores, and the audits before and after as one page."""
    folder, made = Path(job["folder"]), _take_repair if job["chosen"]["method"] == "repair" else _take_model
    before, after, files = made(job, report, folder)
    report.stage("job_compare", 0.8, 1.0)
    ft.compare(before, after).to_html(folder / "comparison.html")
    before.to_json(folder / "before.json")
    after.to_json(folder / "after.json")
    files += ["comparison.html", "before.json", "after.json"]
    return {"files": files, "before": _verdict(before), "after": _verdict(after), "made": job["chosen"]}


def _take_model(job: dict[str, Any], report: Report, folder: Path) -> tuple[Any, Any, list[str]]:
    from fairtransport.tabular.file_scoring import score_file  # noqa: PLC0415

    settings, chosen = job["settings"], job["chosen"]
    model = ft.load(folder / f"{chosen['method']}.ft")
    _, table, task = _split(job, report)
    rows, audits = model.read_rows(table), []
    report.stage("job_intervals", 0.1, 0.4)
    for amount in (0.0, chosen["amount"]):
        model.estimator_.set_params(amount=amount)
        audits.append(_held_out(rows, settings, task).audit(model.score_encoded(rows)))
    ft.save(model, folder / "model.ft")
    report.stage("job_score", 0.4, 0.8)
    out = folder / output_name(job["path"], "scored")
    with ft.tables.open_files([job["path"]]) as file:
        writer, scorer = ft.tables.files.table_writer, ft.tabular.RowScorer(model)
        score_file(scorer, file, lambda schema: writer(out, schema), output="fair_score", on_progress=report.reach)
    return audits[0], audits[1], ["model.ft", out.name]


def _take_repair(job: dict[str, Any], report: Report, folder: Path) -> tuple[Any, Any, list[str]]:
    from fairtransport.repair.file_repair import repair_file  # noqa: PLC0415

    settings, repair = job["settings"], _make_repair(job["settings"], amount=job["chosen"]["amount"])
    out, repaired = folder / output_name(job["path"], "repaired"), f"{settings['score']}_repaired"
    labelled = settings["criterion"] != "demographic_parity"
    report.stage("job_count", 0.0, 0.3)
    with ft.tables.open_files([job["path"]]) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", ft.FairnessWarning)
        columns = _columns(settings if labelled else {**settings, "label": ""}, settings["strata"])
        counted = ft.tables.Columns(columns.score, (*columns.strata, *columns.sensitive_features), columns.label)
        positive = _positive(file, columns, settings)
        counting: dict[str, Any] = {"range": job["range"], "groups": repair.groups, "pos_label": positive}
        repair.fit_counts(file.run(ft.tables.count_table, counted, **counting), strata=columns.strata)
        report.stage("job_score", 0.3, 0.6)
        repair_file(repair, file, columns, out, output=repaired, pos_label=positive, on_progress=report.reach)
    report.stage("job_intervals", 0.6, 0.8)
    audits = [_audit_file(out, {**settings, "score": score, "by": ""}) for score in (settings["score"], repaired)]
    return audits[0], audits[1], [out.name]


_JOBS = {"look": look, "audit": audit, "tradeoff": tradeoff, "take": take}


def main() -> None:
    """Wait for one job, do it, and end."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing else may be printed
    report = Report(lambda event: print(json.dumps(event, default=str), file=out))
    for module in ("duckdb", "pyarrow", "sklearn.linear_model", "fairtransport.auditing", "fairtransport.tabular"):
        with contextlib.suppress(ImportError):
            import_module(module)
    line = sys.stdin.readline()
    if not line:
        return
    job = json.loads(line)
    sys.stderr = report
    try:
        report.send({"done": _JOBS[job["kind"]](job, report)})
    except MemoryError:
        report.send({"error": TEXTS["error_memory"]})
    except Exception as error:  # noqa: BLE001 - said in the page, without values
        report.send({"error": describe_error(error)})


if __name__ == "__main__":
    main()
