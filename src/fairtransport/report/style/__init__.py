"""Colours and dashes of groups, the same in every figure and table."""
