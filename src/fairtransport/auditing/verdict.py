"""What an audit says, in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairtransport.auditing.result import Audit

__all__ = ["say_verdict"]


def say_verdict(audit: Audit) -> str:
    """Return one or two sentences: whether the groups' scores differ by more than chance, and by how much.

    Examples
    --------
    >>> import fairtransport as ft
    >>> scores, group = [0.1, 0.2, 0.3, 0.4] * 50, ["a", "a", "b", "b"] * 50
    >>> print(say_verdict(ft.audit(scores, sensitive_features=group, n_permutations=99, random_state=0)))
    The groups' scores differ by more than chance would explain: 0.200 between the two groups (95% interval 0.185 to
    0.21...); chance alone reads 0.0... (p = 0.01).
    >>> print(say_verdict(ft.audit(scores, sensitive_features=["a", "b"] * 100, random_state=0)))
    No difference ...
    """
    reading = audit.readings["strong_pairwise_disparity"]
    confidence = audit.settings.confidence
    p = f"p = {reading.p_value:.2g}"
    pairs = len(audit.groups) * (len(audit.groups) - 1) // 2
    between = "between the two groups" if pairs == 1 else f"as the sum over {pairs} pairs of groups"
    few = f" {len(audit.unsure)} of the groups are too small to say much about." if audit.unsure else ""
    figure = f"{reading.value:.3f} {between}"
    if reading.p_value is not None and reading.p_value > 1 - confidence:
        return (
            f"No difference between the groups' scores that chance alone would not show: {figure}; chance alone reads "
            f"{reading.floor:.3f} ({p}). A difference of up to {reading.high:.3f} is not ruled out.{few}"
        )
    return (
        f"The groups' scores differ by more than chance would explain: {figure} ({confidence:.0%} interval "
        f"{reading.low:.3f} to {reading.high:.3f}); chance alone reads {reading.floor:.3f} ({p}).{few}"
    )
