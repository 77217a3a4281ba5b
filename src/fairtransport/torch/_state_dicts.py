"""A state_dict of other settings, or of an older version, told in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

__all__ = ["check_loaded"]


def check_loaded(
    module: nn.Module,
    state_dict: dict[str, Any],
    prefix: str,
    _metadata: dict[str, Any],
    _strict: bool,
    _missing: list[str],
    _unexpected: list[str],
    errors: list[str],
) -> None:
    """Add to torch's own errors one that says what to do; parameters are those of ``_load_from_state_dict``."""
    wanted = {prefix + name: tuple(value.shape) for name, value in module.state_dict().items()}
    missing = [name for name in wanted if name not in state_dict]
    changed = [name for name in wanted if name in state_dict and tuple(state_dict[name].shape) != wanted[name]]
    if not changed and len(missing) in {0, len(wanted)}:  # torch itself says that all are missing, if it matters
        return
    sizes = "".join(f"; {name}: {tuple(state_dict[name].shape)} saved, {wanted[name]} here" for name in changed[:3])
    errors.append(
        f"the state_dict is not of this {type(module).__name__}: {len(missing)} of its {len(wanted)} entries are "
        f"missing and {len(changed)} have another shape{sizes}. It was saved with other settings (groups, n_strata, "
        "kind, target, n_fourier_features, memory) or by another version. Make the penalty as it was when saved; or "
        "leave all of its entries out and load with strict=False: what it knows of the groups comes back within a few "
        "hundred batches."
    )
