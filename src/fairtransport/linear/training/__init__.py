"""Stages of ``fit``: validated data, initial model, comparisons of groups, solver, result."""
