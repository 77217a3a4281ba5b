"""Errors for a ``state_dict`` that was saved with other settings or by another version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

__all__ = ["explain_mismatch"]


def explain_mismatch(
    module: nn.Module,
    state_dict: dict[str, Any],
    prefix: str,
    _metadata: dict[str, Any],
    _strict: bool,
    _missing: list[str],
    _unexpected: list[str],
    errors: list[str],
) -> None:
    """Append an error that says what to do; the parameters are those of ``Module._load_from_state_dict``."""
    shapes = {prefix + name: tuple(value.shape) for name, value in module.state_dict().items()}
    missing = [name for name in shapes if name not in state_dict]
    changed = [name for name in shapes if name in state_dict and tuple(state_dict[name].shape) != shapes[name]]
    if not changed and len(missing) in {0, len(shapes)}:  # torch itself reports that all are missing
        return
    sizes = "".join(f"; {name}: {tuple(state_dict[name].shape)} saved, {shapes[name]} here" for name in changed[:3])
    errors.append(
        f"the state_dict is not of this {type(module).__name__}: {len(missing)} of its {len(shapes)} entries are "
        f"missing and {len(changed)} have another shape{sizes}. It was saved with other settings (groups, criterion, "
        "n_strata, kind, target, n_fourier_features, memory_size) or by another version. Create the penalty with the "
        "settings it was saved with; or leave out all of its entries and load with strict=False: the dual variables "
        "and the memory are rebuilt within a few hundred batches."
    )
