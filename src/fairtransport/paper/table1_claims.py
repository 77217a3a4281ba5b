"""What the paper claims about Table 1, judged from our figures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fairtransport.paper.finding import Claim
from fairtransport.paper.published import METRICS, published_value, three_digits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairtransport.paper.table1 import Table1

__all__ = ["table1_claims"]


def table1_claims(table: Table1) -> tuple[Claim, ...]:
    """Check the claims against the table's figures."""

    def figure(dataset: str, method: str, metric: str) -> float:
        return table.value(dataset, method, metric).mean

    def told(dataset: str, methods: Sequence[str], *metrics: str) -> str:
        return "; ".join(
            f"{method} " + " / ".join(three_digits(figure(dataset, method, metric)) for metric in metrics)
            for method in methods
        )

    claims = []
    trained = ("DPP", "DOT", "COT (paper)")
    for dataset in ("Adult", "German", "Communities (crossed)"):
        row = [table.value(dataset, "LR", metric) for metric in METRICS]
        gaps = [abs(r.mean - r.published) / r.published for r in row if r.published]
        claims.append(
            Claim(
                f"{dataset}: logistic regression's {', '.join(METRICS)}.",
                " / ".join(three_digits(r.published) for r in row if r.published is not None),
                " / ".join(three_digits(r.mean) for r in row),
                "agrees" if max(gaps) <= 0.1 else "differs",
                f"largest relative difference {max(gaps):.0%}"
                + ("" if max(gaps) <= 0.1 else "; the paper does not say how it encoded the data"),
            )
        )
    for dataset in ("Adult", "German", "Communities (crossed)"):
        before = figure(dataset, "LR", "SPDD")
        after = max(figure(dataset, method, "SPDD") for method in trained)
        claims.append(
            Claim(
                f"{dataset}: every transport method makes the groups' scores much more alike (SPDD).",
                _published(dataset, ("LR", *trained)),
                told(dataset, ("LR", *trained), "SPDD"),
                "agrees" if after <= before / 2 else "differs",
                f"noise floor {three_digits(table.value(dataset, 'LR', 'SPDD').floor or 0.0)}",
            )
        )
    errors = [figure("Adult", method, "Err-.5") for method in trained]
    claims.append(
        Claim(
            "Adult: the transport methods perform alike.",
            "Err-.5 .170 to .175",
            "Err-.5 " + told("Adult", trained, "Err-.5"),
            "agrees" if max(errors) - min(errors) <= 0.01 else "differs",
        )
    )
    dot, cot = figure("German", "DOT", "Err-.5"), figure("German", "COT (paper)", "Err-.5")
    spread = table.value("German", "DOT", "Err-.5")
    noise = spread.spread / math.sqrt(spread.n)
    claims.append(
        Claim(
            "German Credit: DOT errs more than COT at a similar level of unfairness.",
            "Err-.5 .282 against .242",
            f"Err-.5 {three_digits(dot)} against {three_digits(cot)}, standard error {three_digits(noise)}",
            "agrees" if dot - cot > noise else "differs",
            "" if dot - cot > noise else "with equal care for both methods' steps the difference is within the noise",
        )
    )
    anchored, paper = figure("Adult", "COT (anchor)", "Err-.5"), figure("Adult", "COT (paper)", "Err-.5")
    claims.append(
        Claim(
            "Beyond the paper: keeping the logistic loss as an anchor costs less error at a similar disparity (Adult).",
            "",
            told("Adult", ("COT (paper)", "COT (anchor)"), "Err-.5", "SPDD"),
            "better" if anchored < paper else "differs",
        )
    )
    return tuple(claims)


def _published(dataset: str, methods: Sequence[str]) -> str:
    values = [(method, published_value(dataset, method, "SPDD")) for method in methods]
    return "; ".join(f"{method} {three_digits(value)}" for method, value in values if value is not None)
