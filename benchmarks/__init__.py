"""Speed, one file for each claim, with peers measured in the same run: ``python -m benchmarks``."""
