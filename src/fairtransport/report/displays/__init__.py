"""Matplotlib displays with scikit-learn's conventions: one class in each file, helpers in the other modules."""
