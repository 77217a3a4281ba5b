"""The command line and the Python code that do the same as the workbench."""

from __future__ import annotations

import shlex
from typing import Any

from fairtransport.tables import FORMATS, file_extension

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
_COMPARE_COMMAND = "fairtransport compare before.json after.json --html comparison.html"
_ROLES, _COMPARED = ("sensitive", "label", "pos_label"), ("strata", "criterion", "small", "min_size")


def output_name(path: str, stem: str) -> str:
    """Return the name of an output file in the format of the input, or in CSV in place of Excel."""
    end = file_extension(path)
    return stem + (".csv" if FORMATS.get(end) == "excel" else end)


def added_column(settings: dict[str, Any], chosen: dict[str, Any]) -> str:
    """Return the name of the column of new scores; ``chosen`` has another where the file has the usual one."""
    return chosen.get("output") or (f"{settings['score']}_repaired" if chosen["method"] == "repair" else "fair_score")


def audit_command(path: str, settings: dict[str, Any], *written: str) -> str:
    """Return the command that makes the audit, and writes it in all formats if none is named."""
    named = _options(settings, "score", *_ROLES, "thresholds", "favourable", "by", *_COMPARED)
    markdown = [] if settings["by"] else ["--markdown", "audit.md"]
    files = written or ("--html", "audit.html", *markdown, "--json", "audit.json")
    return shlex.join(["fairtransport", "audit", path, *named, *files])


def take_commands(path: str, settings: dict[str, Any], chosen: dict[str, Any], bounds: Any = None) -> str:
    """Return the commands that make the model or the repair, the new scores, and audits of a repair."""
    amount = [] if chosen["amount"] == 1.0 else ["--amount", f"{chosen['amount']:g}"]
    if chosen["method"] == "repair":
        used = _options(repair_settings(settings), "score", *_ROLES, *_COMPARED)
        words = ["fairtransport", "repair", path, *used, *amount]
        words += ["--column", chosen["output"]] if "output" in chosen else []
        words += ["--range", f"{bounds[0]!r},{bounds[1]!r}"] if bounds else []
        out, audited = output_name(path, "repaired"), {**settings, "by": ""}
        before = audit_command(out, audited, "--json", "before.json")
        after = audit_command(out, {**audited, "score": added_column(settings, chosen)}, "--json", "after.json")
        return "\n".join([shlex.join([*words, "--out", out]), before, after, _COMPARE_COMMAND])
    named, method = model_columns(settings, chosen["method"], regression=False), METHODS[chosen["method"]][0]
    words = ["fairtransport", "train", path, "--method", method, *_options(settings, *_ROLES, *_COMPARED), *amount]
    words += ["--aware"] if named["aware"] else ["--base", "linear"] if method == "blind-repair" else []
    words += [part for name in named["drop"] for part in ("--drop", name)]
    scored = ["fairtransport", "score", "model.ft", path, "--column", added_column(settings, chosen)]
    page = ["--html", "comparison.html"] if settings["favourable"] == "high" else []  # as the command has it
    lines = [[*words, "--out", "model.ft", *page], [*scored, "--out", output_name(path, "scored")]]
    return "\n".join(map(shlex.join, lines))


def model_columns(settings: dict[str, Any], method: str, *, regression: bool) -> dict[str, Any]:
    """Return the arguments of ``TableModel`` about columns; scores of another model are no features."""
    positive = None if regression else settings["pos_label"] or None
    columns = {"label": settings["label"], "pos_label": positive, "sensitive_features": settings["sensitive"]}
    drop = [name for name in (*settings["drop"], settings["score"]) if name]
    return {**columns, "strata": settings["strata"], "drop": drop, "aware": METHODS[method][1] == "aware"}


def _options(settings: dict[str, Any], *names: str) -> list[str]:
    """Return the options of settings that are not the usual ones; one for each value of a list."""
    words = list[str]()
    for name in names:
        values = settings[name] if isinstance(settings[name], list) else [settings[name]]
        for value in values:
            words += [f"--{_FLAGS.get(name, name)}", value] if value != _USUAL.get(name, "") else []
    return words


_BOTH = """\
import fairtransport as ft

groups = ft.GroupPolicy(missing="set_aside", small={small!r}, min_size={min_size})
compared = {{"criterion": {criterion!r}, "groups": groups}}
"""
_AUDIT = """\
audit = ft.audit_table(
    {path!r},
    {arguments},
    **compared,
)
audit.to_html("audit.html")
audit.to_json("audit.json", indent=2)
"""
_TRAIN = """\
table = ft.tabular.collect_file({path!r})
train, test = ft.tabular.split_table(table, 0.25, label={split!r}, sensitive_features={sensitive!r})
model = ft.tabular.TableModel(
    {made},
    {columns},
    groups=groups,
).fit(train)
model.estimator_.set_params(amount={amount!r})  # from 0, no parity, to 1
ft.save(model, "model.ft")
model, audits = ft.load("model.ft"), []  # repairs have fewer knots in the file
for amount in (0.0, {amount!r}):
    model.estimator_.set_params(amount=amount)
    audits.append(model.audit(test, favourable={favourable!r}, **compared))
ft.tabular.score_file(model, {path!r}, {out!r}, output={output!r})
"""
_REPAIR = """\
repair = ft.QuantileRepair(amount={amount!r}, **compared)
columns = ft.tables.Columns.named({columns})
ft.repair.repair_file(repair, {path!r}, columns, {out!r}, output={output!r}{options})
known = {{**compared, **{audited!r}}}
audits = [ft.audit_table({out!r}, score=score, **known) for score in ({score!r}, {output!r})]
"""
_COMPARE = """\
ft.compare(*audits).to_html("comparison.html")
audits[0].to_json("before.json")
audits[1].to_json("after.json")
"""


def column_roles(settings: dict[str, Any], *more: str) -> dict[str, Any]:
    """Return the columns by their roles, and other settings, as functions of the library have them."""
    known = {**settings, "sensitive_features": settings["sensitive"]}
    return {name: known[name] for name in ("score", "sensitive_features", "label", "strata", *more) if known[name]}


def repair_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a repair, which needs labels for some criteria only."""
    return settings if settings["criterion"] != "demographic_parity" else {**settings, "label": "", "pos_label": ""}


def _arguments(named: dict[str, Any], between: str = ",\n    ") -> str:
    return between.join(f"{name}={value!r}" for name, value in named.items())


def audit_code(path: str, settings: dict[str, Any]) -> str:
    """Return the Python code that makes the audit."""
    arguments = _arguments(column_roles(settings, "pos_label", "thresholds", "favourable", "by"))
    named = {**settings, "path": path, "min_size": int(settings["min_size"]), "arguments": arguments}
    return (_BOTH + _AUDIT).format(**named) + ("" if settings["by"] else 'audit.to_markdown("audit.md")\n')


def take_code(
    path: str, settings: dict[str, Any], chosen: dict[str, Any], bounds: Any = None, *, regression: bool = False
) -> str:
    """Return the Python code that makes the model or the repair, and the file with the new scores."""
    method, named = METHODS[chosen["method"]][0], {**settings, **chosen, "path": path}
    named |= {"min_size": int(settings["min_size"]), "output": added_column(settings, chosen)}
    if method == "repair":
        used = repair_settings(settings)
        options = {"range": bounds, "pos_label": used["pos_label"]}
        named["options"] = "".join(f", {name}={value!r}" for name, value in options.items() if value)
        named |= {"columns": _arguments(column_roles(used), ", "), "out": output_name(path, "repaired")}
        known = column_roles({**settings, "score": ""}, "pos_label", "thresholds", "favourable")
        return (_BOTH + _REPAIR + _COMPARE).format(**named, audited=known)
    kind, base = ("Regressor", "Ridge()") if regression else ("Classifier", "LogisticRegression(max_iter=1000)")
    columns = model_columns(settings, chosen["method"], regression=regression)
    made = {
        "cot": f"ft.Transport{kind}(group_specific={columns['aware']}, **compared)",
        "dpp": f"ft.QuantileRepair{kind}({base}, ft.QuantileRepair(**compared))",
        "blind-repair": f"ft.BlindRepair{kind}({base}, repair=ft.repair.BlindRepair(random_state=0, **compared))",
    }
    named |= {"split": None if regression else settings["label"], "out": output_name(path, "scored")}
    named |= {"made": made[method], "columns": _arguments(columns)}
    imported = "" if method == "cot" else f"from sklearn.linear_model import {base.partition('(')[0]}\n\n"
    return (imported + _BOTH + _TRAIN + _COMPARE).format(**named)
