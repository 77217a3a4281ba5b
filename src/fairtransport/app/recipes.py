"""The command line and the Python code that do the same as the workbench."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from fairtransport.tables.files.paths import FORMATS, split_suffixes

#: The methods of the workbench: their names on the command line, and the situation that they are for.
METHODS = {
    "cot-aware": ("cot", "aware"),
    "dpp": ("dpp", "aware"),
    "cot-blind": ("cot", "blind"),
    "blind-repair": ("blind-repair", "blind"),
    "repair": ("repair", "repair"),
}
_USUAL = {"criterion": "demographic_parity", "favourable": "high", "small": "keep", "min_size": "30"}
_FLAGS = {"pos_label": "pos-label", "thresholds": "threshold", "small": "small-groups", "min_size": "min-group-size"}
_ROLES, _COMPARED = ("sensitive", "label", "pos_label"), ("strata", "criterion", "small", "min_size")


def extension(name: str) -> str:
    """Return the end of a name that says the format of a file, such as ``.csv.gz``."""
    known, packed = split_suffixes(Path(name.lower()))
    return known + (Path(name.lower()).suffix if packed else "") if known in FORMATS else ""


def output_name(path: str, stem: str) -> str:
    """Return the name of an output file in the format of the input, or in CSV in place of Excel."""
    end = extension(path)
    return stem + (".csv" if FORMATS.get(end) == "excel" else end)


def audit_command(path: str, settings: dict[str, Any]) -> str:
    """Return the command that makes the audit."""
    named = _options(settings, "score", *_ROLES, "thresholds", "favourable", "by", *_COMPARED)
    markdown = [] if settings["by"] else ["--markdown", "audit.md"]
    written = ["--html", "audit.html", *markdown, "--json", "audit.json"]
    return shlex.join(["fairtransport", "audit", path, *named, *written])


def take_commands(path: str, settings: dict[str, Any], chosen: dict[str, Any], bounds: Any = None) -> str:
    """Return the commands that make the model or the repair, and the new scores."""
    amount = [] if chosen["amount"] == 1.0 else ["--amount", f"{chosen['amount']:g}"]
    if chosen["method"] == "repair":
        roles = _ROLES[: 1 if settings["criterion"] == "demographic_parity" else None]
        words = ["fairtransport", "repair", path, *_options(settings, "score", *roles, *_COMPARED), *amount]
        words += ["--range", f"{bounds[0]!r},{bounds[1]!r}"] if bounds else []
        return shlex.join([*words, "--out", output_name(path, "repaired")])
    named, method = model_columns(settings, chosen["method"], regression=False), METHODS[chosen["method"]][0]
    words = ["fairtransport", "train", path, "--method", method, *_options(settings, *_ROLES, *_COMPARED), *amount]
    words += ["--aware"] if named["aware"] else []
    words += ["--base", "linear"] if method == "blind-repair" else []
    words += [part for name in named["drop"] for part in ("--drop", name)]
    scored = ["fairtransport", "score", "model.ft", path, "--column", "fair_score"]
    lines = [[*words, "--out", "model.ft"], [*scored, "--out", output_name(path, "scored")]]
    return "\n".join(map(shlex.join, lines))


def model_columns(settings: dict[str, Any], method: str, *, regression: bool) -> dict[str, Any]:
    """Return the arguments of ``TableModel`` about columns; scores of another model are no features."""
    positive = None if regression else settings["pos_label"] or None
    columns = {"label": settings["label"], "pos_label": positive, "sensitive_features": settings["sensitive"]}
    drop = [name for name in (*settings["drop"], settings["score"]) if name]
    return {**columns, "strata": settings["strata"], "drop": drop, "aware": METHODS[method][1] == "aware"}


def _options(settings: dict[str, Any], *names: str) -> list[str]:
    """Return the options of settings that are not the usual ones; one for each value of a list."""
    words = []
    for name in names:
        values = settings[name] if isinstance(settings[name], list) else [settings[name]]
        words += [
            part for value in values if value != _USUAL.get(name, "") for part in (f"--{_FLAGS.get(name, name)}", value)
        ]
    return words


_READ = """\
import fairtransport as ft
from fairtransport.tabular.file_scoring import collect_file

table = collect_file({path!r}, guess={guess})
groups = ft.GroupPolicy(missing="set_aside", small={small!r}, min_size={min_size})
compared = {{"criterion": {criterion!r}, "groups": groups}}
"""
_TRAIN = """\
from sklearn.linear_model import LogisticRegression, Ridge
from fairtransport.tabular.held_out_evaluation import split_table

train, test = split_table(table, 0.25, label={split!r}, sensitive_features={sensitive!r})
model = ft.tabular.TableModel(
    {made},
    {columns},
    groups=groups,
).fit(train)
model.estimator_.set_params(amount={amount!r})  # from 0, no parity, to 1
ft.save(model, "model.ft")
result = table.append_column("fair_score", [ft.load("model.ft").score_rows(table).scores])
"""
_REPAIR = """\
table = table.to_pandas()
{positive}repair = ft.repair.TableRepair(
    ft.QuantileRepair(amount={amount!r}, **compared),
    score={score!r},
    sensitive_features={sensitive!r},
    label={label!r},
    strata={strata!r},
    range={bounds!r},
).fit(table)
result = repair.transform(table, output={output!r})
"""


def take_code(
    path: str, settings: dict[str, Any], chosen: dict[str, Any], bounds: Any = None, *, regression: bool = False
) -> str:
    """Return the Python code that makes the model or the repair, and the new scores as ``result``."""
    method, named = METHODS[chosen["method"]][0], {**settings, **chosen, "path": path}
    named |= {"min_size": int(settings["min_size"]), "guess": method == "repair"}
    if method == "repair":
        label = settings["label"] if settings["criterion"] != "demographic_parity" else None
        value = f"table[{label!r}] = (table[{label!r}].astype(str) == {settings['pos_label']!r}).astype(int)\n"
        named |= {"label": label, "positive": value if label and settings["pos_label"] else "", "bounds": bounds}
        named |= {"strata": settings["strata"] or None, "output": f"{settings['score']}_repaired"}
        return (_READ + _REPAIR).format(**named)
    kind, base = ("Regressor", "Ridge()") if regression else ("Classifier", "LogisticRegression(max_iter=1000)")
    columns = model_columns(settings, chosen["method"], regression=regression)
    made = {
        "cot": f"ft.Transport{kind}(group_specific={columns['aware']}, **compared)",
        "dpp": f"ft.QuantileRepair{kind}({base}, ft.QuantileRepair(**compared))",
        "blind-repair": f"ft.BlindRepair{kind}({base}, repair=ft.repair.BlindRepair(random_state=0, **compared))",
    }
    arguments = ",\n    ".join(f"{name}={value!r}" for name, value in columns.items())
    named |= {"made": made[method], "columns": arguments, "split": None if regression else settings["label"]}
    return (_READ + _TRAIN).format(**named)
