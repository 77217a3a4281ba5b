"""What every estimator here shares: labels, folds, calls with groups, errors that quote nobody, streams of batches."""
