"""Measurements behind the sentences of the documentation: ``python -m benchmarks --list``."""
