"""The transport penalty as a torch module, for any network.

Requires the extra ``torch``: ``pip install "fairtransport[torch]"``.
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError('fairtransport.torch needs torch: pip install "fairtransport[torch]"') from error

from fairtransport.torch._penalty import TransportPenalty

__all__ = ["TransportPenalty"]
