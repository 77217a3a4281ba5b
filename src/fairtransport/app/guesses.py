"""Guesses about the columns of a table, each with its reason, and warnings of identifiers, leaks and proxies."""

from __future__ import annotations

import re
from typing import Any

from fairtransport.app import TEXTS
from fairtransport.tabular.proxies import find_proxies

_SCORES = re.compile(r"(?i)score|prob|risk|pred|rating|y_?hat|logit")
_LABELS = re.compile("(?i)label|target|outcome|class|hired|default|approved|income|admit|good_|high_|^y$|recid|repaid")
_GROUPS = r"sex|gender|race|ethnic[a-z]*|religion|nationality|disab[a-z]*|age_?(?:group|band|class)"
_EXACT = re.compile(rf"(?i)({_GROUPS}|origin|colou?r|black|white|asian|hispanic)")
_WITHIN = re.compile(rf"(?i)(^|[^a-z])({_GROUPS})([^a-z]|$)")
_MOST_GROUPS = 20  # values of a column that is proposed as a sensitive one
# Areas under the ROC curve of one column: from 0.8 on, discrimination is called excellent (Hosmer and Lemeshow,
# "Applied Logistic Regression", section 5.2.4). Features that are known before the outcome hardly ever reach 0.98.
_PROXY, _LEAK = 0.8, 0.98
_POSITIVE = {"1", "1.0", "true", "yes", "y", "t"}


def guess_roles(columns: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the proposed role of columns, and the reason of each role."""
    roles: dict[str, Any] = {"score": "", "label": "", "pos_label": "", "sensitive": [], "drop": []}
    why = dict.fromkeys(roles, TEXTS["why_none"])
    numbers = [one for one in columns if one["kind"] == "number" and one["distinct"] > 2]
    named = [one for one in numbers if _SCORES.search(one["name"])]
    units = [o for o in numbers if o["unit"] and o["distinct"] > _MOST_GROUPS and not _LABELS.search(o["name"])]
    if named or len(units) == 1:
        roles["score"] = (named or units)[-1]["name"]
        why["score"] = TEXTS["why_score_name" if named else "why_score_unit"]
    few = [one["name"] for one in columns if 2 <= one["distinct"] <= _MOST_GROUPS]
    roles["sensitive"] = [*filter(_EXACT.fullmatch, few)] or [*filter(_WITHIN.search, few)]
    why["sensitive"] = TEXTS["why_sensitive" if roles["sensitive"] else "why_none"]
    pairs = [one for one in columns if one["distinct"] == 2 and one["name"] not in roles["sensitive"]]
    named = [one for one in pairs if _LABELS.search(one["name"])]
    if pairs:
        label, kind = (named or pairs)[-1], "name" if named else "two"
        usual = [value for value in label["values"] if value.strip().lower() in _POSITIVE]
        roles |= {"label": label["name"], "pos_label": (usual or sorted(label["values"], key=label["values"].get))[0]}
        why |= {"label": TEXTS[f"why_label_{kind}"], "pos_label": TEXTS[f"why_positive_{'usual' if usual else 'rare'}"]}
    roles["drop"] = [one["name"] for one in columns if one["left_out"] and one["name"] != roles["score"]]
    return roles, why


def find_warnings(columns: list[dict[str, Any]], table: Any, roles: dict[str, Any]) -> list[str]:
    """Return warnings about identifiers, columns that give the label away, and proxies of sensitive columns."""
    found = [TEXTS["warn_left_out"].format(name=o["name"], why=o["left_out"]) for o in columns if o["left_out"]]
    known = {one["name"] for one in columns if not one["left_out"]}
    named = {roles["label"], roles["score"], *roles["sensitive"], *roles["drop"]}
    targets = [name for name in (roles["label"], *roles["sensitive"]) if name in known]
    features = [one["name"] for one in columns if one["name"] in known - named]
    for (target, name), (value, area) in find_proxies(table, targets, features).items():
        limit, message = (_LEAK, "warn_leak") if target == roles["label"] else (_PROXY, "warn_proxy")
        if area >= limit:
            found.append(TEXTS[message].format(name=name, target=target, value=value, share=f"{area:.0%}"))
    return found
