"""An HTML report from a model's scores.

Trains logistic regression on Adult, audits its scores of the test rows, and writes a self-contained HTML report, and a
second one that compares them with the repaired scores:
``python examples/audit_page.py audit.html compare.html``.
"""

import sys

from sklearn.linear_model import LogisticRegression

import fairtransport as ft
from fairtransport.paper.splits import adult_split


def main(page: str, comparison: str) -> None:
    """Train, audit and write the reports."""
    split = adult_split()
    model = LogisticRegression(max_iter=1000).fit(split.X_train, split.y_train)
    scores = model.predict_proba(split.X_test)[:, 1]
    before = ft.audit(scores, split.y_test, sensitive_features=split.groups_test)
    print(before)
    print(before.to_html(page, title="Adult: logistic regression, test rows"))

    # The repair is fitted on training rows, as it would be in use.
    repair = ft.QuantileRepair("barycenter_w2")
    repair.fit(model.predict_proba(split.X_train)[:, 1], sensitive_features=split.groups_train)
    repaired = repair.transform(scores, sensitive_features=split.groups_test)
    after = ft.audit(repaired, split.y_test, sensitive_features=split.groups_test)
    both = ft.compare(before, after, names=("Logistic regression", "Repaired"))
    print(both)
    print(both.to_html(comparison))


if __name__ == "__main__":
    main(*(sys.argv[1:] if len(sys.argv) == 3 else ("audit.html", "compare.html")))
