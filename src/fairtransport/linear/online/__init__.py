"""Updates of a fitted linear model by batches of a stream."""
