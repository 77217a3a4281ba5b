"""The process that does one job, read from standard input, with events as lines of JSON on standard output."""

from __future__ import annotations

import io
import json
import os
import queue
import re
import shutil
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import fairtransport as ft
from fairtransport.app import TEXTS, say_error, say_plainly
from fairtransport.app.recipes import METHODS, added_column, column_roles, model_columns, output_name, repair_settings
from fairtransport.tabular import HeldOutRows, positive_label

AMOUNTS = tuple(k / 10 for k in range(11))
_TEST_SHARE, _SHOWN_ROWS = 0.25, 5  # the share is that of `fairtransport train`
_MOST_TARGETS, _MOST_VALUES = 30, 20  # columns that others may tell, and their values
_PROXY = 0.8  # area under the ROC curve from which discrimination is called excellent (Hosmer and Lemeshow, 5.2.4)
_BAR = re.compile(r": (\d+)(?:%| s, .* about (\d+) s left)")


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
        if match := _BAR.search(text):
            done = int(match[1])  # in %, or seconds of a training whose end is estimated
            self.reach(done / (100 if match[2] is None else done + int(match[2]) + 1))
        return len(text)


def look(job: dict[str, Any], report: Report) -> dict[str, Any]:
    """Describe the columns of a file, propose their roles, and warn; only the first rows are read."""
    report.stage("job_read", 0.0, 1.0)
    if job["shipped"]:
        _write_shipped(job["shipped"], Path(job["folder"]))
    with ft.tables.open_files([job["path"]]) as file:
        batches = [rows for rows, _ in islice(file.batches(guess=True), 2)]
    if not batches or not batches[0].num_rows:
        raise ValueError(TEXTS["error_no_rows"])
    table = import_module("pyarrow").Table.from_batches(batches[:1])
    columns = ft.tabular.describe_columns(table)
    roles, why = ft.tabular.guess_roles(columns, table)
    tells = find_tells(columns, table, job["settings"] if job["settings"]["sensitive"] else roles)
    head = [[*map(str, row.values())] for row in table.slice(0, _SHOWN_ROWS).to_pylist()]
    about = {"rows": table.num_rows, "more": len(batches) > 1, "head": head}
    return {"columns": columns, "guess": roles, "why": why, "tells": tells, **about}


def find_tells(columns: list[dict[str, Any]], table: Any, roles: dict[str, Any]) -> list[tuple[str, str, str, float]]:
    """Return the columns that tell a label or a group, whichever columns may have that role, and how well."""
    known = [one["name"] for one in columns if not one["left_out"]]
    few = [one["name"] for one in columns if one["name"] in known and 2 <= one["distinct"] <= _MOST_VALUES]
    first = [name for name in (roles["label"], *roles["sensitive"]) if name in known]
    found = ft.tabular.find_proxies(table, [*dict.fromkeys(first + few)][:_MOST_TARGETS], known)
    return [(*pair, value, area) for pair, (value, area) in found.items() if area >= _PROXY and pair[0] != pair[1]]


def _write_shipped(name: str, folder: Path) -> None:
    """Write a shipped data set with scores of a logistic regression, each by a model of other rows, into the folder."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.model_selection import cross_val_predict  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415

    data = getattr(ft.datasets, f"load_{name}")()
    table = data.data.assign(**data.sensitive_features)
    model = make_pipeline(ft.tabular.TableEncoder(), LogisticRegression(max_iter=1000))
    scores = cross_val_predict(model, table, data.target, cv=3, method="predict_proba")[:, 1]
    table.assign(**{data.target.name: data.target}, score=scores).to_parquet(folder / f"{name}.parquet", index=False)


def _compared(settings: dict[str, Any]) -> dict[str, Any]:
    small: Any = {"small": settings["small"], "min_size": int(settings["min_size"])}
    return {"criterion": settings["criterion"], "groups": ft.GroupPolicy(missing="set_aside", max_groups=200, **small)}


def _audit_file(path: Any, settings: dict[str, Any]) -> Any:
    """Return the audit of a file, or the series of audits."""
    named = column_roles(settings, "pos_label", "thresholds", "by", "favourable")
    return ft.audit_table(path, **named, **_compared(settings))


def audit(job: dict[str, Any], report: Report) -> dict[str, Any]:
    """Audit the scores of a file, and write the audit as page, JSON and Markdown."""
    settings, folder, files = job["settings"], Path(job["folder"]), ["audit.html", "audit.json"]
    report.stage("job_read", 0.1, 0.8)
    result = _audit_file(job["path"], settings)
    overall = (result.overall if settings["by"] else result).with_provenance(command=job["command"])
    result = replace(result, overall=overall) if settings["by"] else overall
    result.to_html(folder / "audit.html")
    result.to_json(folder / "audit.json", indent=2)
    if not settings["by"]:
        files.append(overall.to_markdown(folder / "audit.md").name)
    return {**overall.shown.verdict.to_dict(), "rows": overall.provenance.rows, "files": files}


def tradeoff(job: dict[str, Any], report: Report) -> dict[str, Any]:
    """Train or repair, and measure error and disparity on held-out rows for each amount of parity."""
    repairs = job["settings"]["action"] == "repair"
    held, curves, notes = _repair_points(job, report) if repairs else _train_points(job, report)
    report.stage("job_measure", 0.9, 1.0)
    plain, points = next(iter(curves.values()))[0], list[dict[str, Any]]()
    for method, scores in curves.items():
        # Where the library keeps the plain model, because full parity does not help, amounts make no difference.
        step = len(scores) - 1 if np.array_equal(scores[0], scores[-1]) else 1
        for amount, one in zip(AMOUNTS[::step], scores[::step], strict=True):
            points.append({"method": method, "amount": amount, **held.measure(one, plain)})
            report.reach(len(points) / len(AMOUNTS) / len(curves))
    if points[0]["disparity"] is None:
        raise ValueError(TEXTS["error_incomparable"])
    about = {"groups": list(held.groups.names), "rows": int(plain.size), "notes": notes, "regression": held.regression}
    about |= {"floor": [*held.floors(plain, n_shuffles=20).values()][-1], "labelled": "error" in points[0]["groups"][0]}
    about["range"] = (float(plain.min()), float(plain.max())) if held.in_units else None
    return {"points": points, **about, "models": [] if repairs else [*curves]}


def _split(job: dict[str, Any], report: Report) -> tuple[Any, Any, str]:
    """Return training and held-out rows, as ``fairtransport train`` has them, and the task."""
    report.stage("job_read", 0.0, 0.1)
    table = ft.tabular.collect_file(job["path"], on_progress=report.reach)
    label, sensitive = job["settings"]["label"], job["settings"]["sensitive"]
    task = ft.tabular.infer_task(table[label], label)
    by_label = label if task == "classification" else None
    return *ft.tabular.split_table(table, _TEST_SHARE, label=by_label, sensitive_features=sensitive), task


def _train_points(job: dict[str, Any], report: Report) -> tuple[HeldOutRows, dict[str, list[Any]], list[str]]:
    settings = job["settings"]
    train, table, task = _split(job, report)
    curves, notes = dict[str, list[Any]](), list[str]()
    for number, method in enumerate(settings["methods"]):
        title, step = TEXTS[f"method_{method}"], 0.8 / len(settings["methods"])
        report.stage(TEXTS["job_train"].format(method=title), 0.1 + number * step, 0.1 + (number + 1) * step)
        columns, compared = model_columns(settings, method, regression=task == "regression"), _compared(settings)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made = ft.tabular.make_estimator(METHODS[method][0], task, aware=columns["aware"], verbose=True, **compared)
            model = ft.tabular.TableModel(made, **columns, groups=compared["groups"]).fit(train)
        said = [str(one.message) for one in caught if issubclass(one.category, ft.FairnessWarning)]
        plain = map(say_plainly, dict.fromkeys((str(getattr(model.estimator_, "outcome_", "")), *said)))
        notes += [f"{title}: {text}" for text in plain if text]
        ft.save(model, Path(job["folder"]) / f"{method}.new.ft")  # the result and its models are replaced together
        rows = model.read_rows(table)
        curves[method] = []
        for amount in AMOUNTS:
            model.estimator_.set_params(amount=amount)
            curves[method].append(model.score_encoded(rows))
    held: Any = {"regression": task == "regression", "min_size": int(settings["min_size"])}
    groups = ft.make_groups(rows.sensitive_features)
    return HeldOutRows(groups, rows.labels, settings["criterion"], rows.strata, **held), curves, notes


def _repair_points(job: dict[str, Any], report: Report) -> tuple[HeldOutRows, dict[str, list[Any]], list[str]]:
    """Repair each half of the rows by the maps of the other; only the columns that are needed are read."""
    settings = job["settings"]
    report.stage("job_read", 0.0, 0.4)
    with ft.tables.open_files([job["path"]]) as file:
        columns, positive = ft.tables.Columns.named(**column_roles(settings)), settings["pos_label"] or None
        table = file.run(lambda frame, **_: frame.frame.collect("pyarrow").to_native(), columns)
        positive = file.read_label(columns, positive) if positive and columns.label else None
    n_rows, table = table.num_rows, table.rename_columns(list(columns)).drop_null().to_pandas().dropna()
    if table.empty:
        raise ValueError(TEXTS["error_no_complete"])
    scores, labels = table[columns.score].to_numpy(np.float64), None
    if columns.label is not None:
        column, source = table[columns.label], f"Column {columns.label!r}"
        positive = positive_label(column.unique().tolist(), positive, source=source)
        labels = (column == positive).to_numpy(np.int64)
    bounds = None if scores.min() >= 0.0 and scores.max() <= 1.0 else (scores.min(), scores.max())
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
            repair: Any = ft.QuantileRepair(range=bounds or (0.0, 1.0), **_compared(settings))
            theirs, others = ({role: rows.iloc[half] for role, rows in known.items()} for half in (fitted, held))
            repair.fit(scores[fitted], None if labels is None else labels[fitted], **theirs)
            for amount, moved in zip(AMOUNTS, curve, strict=True):
                moved[held] = repair.set_params(amount=amount).transform(scores[held], unknown_group="pooled", **others)
                report.reach(amount)
    measured: Any = {"in_units": bounds is not None, "min_size": int(settings["min_size"])}
    compared = (ft.make_groups(known["sensitive_features"]), labels, settings["criterion"], known.get("strata"))
    return HeldOutRows(*compared, **measured), {"repair": curve}, notes


def take(job: dict[str, Any], report: Report) -> dict[str, Any]:
    """Write the model or the repair, the file with new scores, and the audits before and after as one page."""
    folder, made = Path(job["folder"]), _take_repair if job["chosen"]["method"] == "repair" else _take_model
    before, after, files = made(job, report, folder)
    ft.compare(before, after).to_html(folder / "comparison.html")
    before.to_json(folder / "before.json")
    after.to_json(folder / "after.json")
    verdicts = {"before": before.shown.verdict.to_dict(), "after": after.shown.verdict.to_dict()}
    return {**verdicts, "files": [*files, "comparison.html", "before.json", "after.json"], "made": job["chosen"]}


def _take_model(job: dict[str, Any], report: Report, folder: Path) -> tuple[Any, Any, list[str]]:
    settings, chosen = job["settings"], job["chosen"]
    model, audits = ft.load(folder / f"{chosen['method']}.ft"), []
    _, table, _ = _split(job, report)
    report.stage("job_intervals", 0.1, 0.4)
    for amount in (0.0, chosen["amount"]):
        model.estimator_.set_params(amount=amount)
        audits.append(model.audit(table, favourable=settings["favourable"], **_compared(settings)))
    ft.save(model, folder / "model.ft")
    report.stage("job_score", 0.4, 0.8)
    out = folder / output_name(job["path"], "scored")
    ft.tabular.score_file(model, job["path"], out, output=added_column(settings, chosen), on_progress=report.reach)
    return audits[0], audits[1], ["model.ft", out.name]


def _take_repair(job: dict[str, Any], report: Report, folder: Path) -> tuple[Any, Any, list[str]]:
    settings, used = job["settings"], repair_settings(job["settings"])
    repair = ft.QuantileRepair(amount=job["chosen"]["amount"], **_compared(settings))
    out, repaired = folder / output_name(job["path"], "repaired"), added_column(settings, job["chosen"])
    columns, positive = ft.tables.Columns.named(**column_roles(used)), used["pos_label"] or None
    report.stage("job_score", 0.0, 0.6)
    options: Any = {"range": job["range"], "pos_label": positive, "on_progress": report.reach}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ft.FairnessWarning)
        ft.repair.repair_file(repair, job["path"], columns, out, output=repaired, **options)
    report.stage("job_intervals", 0.6, 0.8)
    audits = [_audit_file(out, {**settings, "score": score, "by": ""}) for score in (settings["score"], repaired)]
    return audits[0], audits[1], [out.name]


_JOBS = {"look": look, "audit": audit, "tradeoff": tradeoff, "take": take}


def main() -> None:
    """Wait for one job, do it, and end."""
    lines = queue.SimpleQueue[str]()
    folder = tempfile.tempdir = tempfile.mkdtemp(prefix=f"fairtransport-{os.getpid()}-")

    def listen() -> None:
        lines.put(sys.stdin.readline())
        sys.stdin.read()  # until the server has ended
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=listen, daemon=True).start()
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing else may be printed
    report = Report(lambda event: print(json.dumps(event, default=str), file=out))
    for module in ("duckdb", "pyarrow", "sklearn.linear_model", "fairtransport.tabular"):
        import_module(module)
    ft.audit(np.linspace(0, 1, 90), sensitive_features=["a", "b", "c"] * 30).to_html()  # loads what audits need
    job, sys.stderr = json.loads(lines.get()), report
    try:
        report.send({"done": _JOBS[job["kind"]](job, report)})
    except Exception as error:  # noqa: BLE001 - said in the page, without values
        report.send({"error": say_error(error)})
    os._exit(0)  # at once: libraries take a while to end


if __name__ == "__main__":
    main()
