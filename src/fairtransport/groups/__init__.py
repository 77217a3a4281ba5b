"""Groups of people: sensitive columns of any table library -> labels, names and rows.

Several columns are crossed (``grouping="crossed"``) or used one by one (``grouping="each"``, where a row belongs to one
group of every column). Error messages never contain the value of a group.
"""

from fairtransport._validation.error_redaction import redact_public_errors
from fairtransport.groups._groups import UNKNOWN_GROUPS, Groups, make_groups
from fairtransport.groups._labels import SMALL_GROUPS, GroupLabel
from fairtransport.groups._small_groups import MIN_GROUP_SIZE, SMALL_GROUP_POLICIES

__all__ = [
    "MIN_GROUP_SIZE",
    "SMALL_GROUPS",
    "SMALL_GROUP_POLICIES",
    "UNKNOWN_GROUPS",
    "GroupLabel",
    "Groups",
    "make_groups",
]

redact_public_errors(globals())
