"""Model selection: the trade-off between error and disparity, and many fits in parallel."""

from fairtransport._validation.error_redaction import redact_public_errors
from fairtransport.selection._frontier_search import frontier
from fairtransport.selection._multiple_fits import fit_many
from fairtransport.selection.frontier_result import Choice, Frontier
from fairtransport.selection.suggestion import Suggestion, suggest

__all__ = ["Choice", "Frontier", "Suggestion", "fit_many", "frontier", "suggest"]

redact_public_errors(globals())
