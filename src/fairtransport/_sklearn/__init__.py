"""What the estimators share: labels, folds, calls with groups, error redaction, parameters of ``partial_fit``."""
