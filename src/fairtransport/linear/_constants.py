"""The numbers that decide how linear models are trained, each with its reason.

The page of a comparison is named where one is on record; the other numbers were set for the reason beside them, and no
comparison is recorded. Numbers of the weight path are in `fairtransport.training`, and sizes that change speed only
stand where they are used.
"""

from __future__ import annotations

# Columns.
FILLED_SHARE = 0.5  # a column with a larger share of non-zeros is centred; below it, zero is the origin
RARE_SHARE = 0.01  # of a column's largest square, added to its mean square: its weight must not jump at a rare row

# The prior of weights for each group, in pseudo-observations (docs/method.md, docs/tradeoff.md).
MOST_PRIOR_ROWS = 100.0  # for each column: without it, groups of a hundred rows memorised their rows
PRIOR_ROWS = 3000.0  # divided by the rows for each column: the prior is weaker where there are many
SHIFT_ROWS = 30.0  # against a shift or stretch, for groups of a handful of rows

# The path of weights.
COARSE_TOLERANCE = 20.0  # times that of the final fit
COARSE_DECREASE = 3e-3  # relative decrease of the objective at which a coarse fit ends, in units of its tolerance
COARSE_ROWS = 50  # of a group for each column, and for 80 columns at least: enough to choose a weight
COARSE_CELLS = 4  # times as many, where people with the same label are compared
MIN_CELL_ROWS = 200  # of a group with one label and stratum, which are kept in any case
FLEXIBLE_ROWS = 20  # for each column; with fewer, metrics of the training rows are too good and are cross-fitted
CHECKED_ROWS = 200  # for each column; with fewer, the chosen model is compared with the plain one out of fold
N_FOLDS = 3  # of that cross-fitting
HEAVY, RIVAL_ITERATIONS = 4.0, 15  # weight at which a second start is tried, and the iterations it may take at least
FINAL_FITS = 2  # at most: a second, with more weight, where the first has clearly more disparity than its coarse fit
FINAL_GAIN = 1.5  # times the goal: disparity of a coarse fit, less what the last final fit gained, for a final fit
PATH_KNOTS = 129  # of the spread maps that a path stores, one array for all

# L-BFGS.
SATURATED = 0.01  # least curvature of a row: saturated scores have none here, but nearby
LEAST_CURVATURE = 1e-4  # of the largest, for directions without information
HESSIAN_ROWS, SPARSE_HESSIAN_ROWS = 5_000, 20_000  # or ten for each column: enough for a preconditioner
MIN_CURVED, CURVED_ROWS = 30, 5_000  # columns and rows; with fewer, L-BFGS learns the penalty's curvature as quickly
MAX_CURVED = 500  # parameters; with more, eigenvectors cost more than they save
MAX_WHITENED = 1000  # columns; with more, a matrix costs more than it saves
LEAST_DECREASE = 1e-3  # the same of a final fit; with a tenth of it, errors and disparities differ by about .001
PATH_DECREASE = 1e-2  # and of the fits of a path but the last: errors and disparities of a curve differ by .0003
CURVED_DECREASE = 3e-2  # and of all of them where the curvature is known: by .001
CORRECTIONS, LINE_SEARCHES = 20, 40  # of scipy's solver
NEAR_ITERATIONS = 6  # of the initial model, after which its curvature is not that of a constant any more

# The stochastic algorithm.
CONTINUOUS_BATCH, DISCRETE_BATCH = 100, 200  # rows of each group; the discrete coupling is biased by small batches
STABLE_FRACTION = 0.5  # of the largest stable step, also in streams
STEP_DECAY = 0.95  # of the first step, over a run, which averages out the noise of small batches
WORSE = 0.01  # times the objective's weights: more than the noise of the monitored rows
RECOVERIES, SMALLER_STEPS = 4, 0.125  # restarts after a divergence, and the factor of the steps in each

# Streams.
UPDATES_OF_A_BATCH = 3  # of theta, by default
MAX_SHIFT = 0.5  # logits, or standard deviations of y, that the mean row of a group may move in one update
MOST_UNITS = 10.0  # of a column, from its origin, for which a cell counts at most: one row must not decide the step
MAX_TRIALS = 8  # of step sizes for one update
SHORT_HALF_LIFE = 50.0  # rows of a group, of the short memory
SIGNIFICANT = 2.5  # times the mean distance of the two memories under chance: what is older is dropped
PEOPLE_OF_A_POINT = 10  # whose scores a point of the stored target is the mean of, where the groups have so many
TYPICAL_DISPARITY = 0.1  # a distance that matters, where training saw none
DEFAULT_WEIGHT = 3.0  # of parity, where no path has chosen one
WHITENED_IN_STREAMS = 800  # columns
