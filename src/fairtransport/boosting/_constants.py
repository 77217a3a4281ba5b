"""The numbers that decide how boosted trees are trained, each with its reason.

The page of a comparison is named where one is on record; the other numbers were set for the reason beside them, and no
comparison is recorded.
"""

from __future__ import annotations

import math

# Distances: the strength and the kernel variance of duals, for probabilities and for numbers.
PROBABILITY_DUALS, REAL_DUALS = (3.2, 0.02), (0.1, 0.1)  # strength and kernel variance
NUMBER_SLICES, FEW_GROUPS = 64, 8  # of a sample of numbers; half as many of probabilities, and for more groups
CELLS_OF_SMALL = 512  # of probabilities of 10,000 rows or fewer, in place of 1,024
DUAL_TOLERANCE = 1e-4  # gradient of the duals of a round, from which those of the next one start
CURVATURE_SHARE = 0.2  # of the penalty's bound: rows of a leaf move together, the full one would make steps too short
PREDICTION_REACH = 16.0  # standard deviations from the mean beyond which real predictions count as if they were there

# Losses.
SMALLEST_RESIDUAL = 0.05  # of the absolute loss, in standard deviations of y: closer rows have the curvature of these
LOG_LINK_CURVATURE = math.exp(0.7)  # as in both libraries
POISSON_STEP = 0.7  # XGBoost's default of max_delta_step for that loss
TWEEDIE_POWER = 1.5  # as in both libraries

# Rounds without the penalty, and while its weight increases, as shares of all.
SMALL_TABLE_SHARES, LARGE_TABLE_SHARES = (0.25, 0.5), (0.05, 0.7)
LARGE_TABLE = 10_000  # rows from which the latter apply, and a fifth of the rows is held out once, instead of each row
N_FOLDS, N_PARTS_OF_LARGE = 3, 5
SHARE_CHECKED = 1 / 3  # of the rows, where rounds and weight are given and one model is compared with a plain one
FEWEST_ROWS = 30  # below, nothing is held out
# Weights that are tried in turn, and multiples of chance in the plain model, each of which leaves out another one.
WEIGHTS, WEIGHTS_OF_LARGE = ((1.0, 3.0, 30.0), (6.0,)), ((0.3, 1.0, 3.0, 10.0, 30.0), (6.0, 8.0))
LEAST_STEP = 0.05  # of the disparity of up to 10,000 rows, by one weight, for a larger one to be tried
PATIENCE = 2.0  # learning rate times the rounds without improvement after which training stops
FEWEST_STEPS = 6.0  # learning rate times rounds with the penalty, at least: fewer cannot move groups far
BEYOND_SCHEDULE = 1.25  # times its rounds, as far as early stopping looks
HELD_OUT_SLICES = 256  # of a sample of held-out rows

# Settings of trees where the user chose none.
ROUNDS = {"n_estimators": 200, "learning_rate": 0.1}
# Times the rate where rounds are chosen, and the rounds that one stands for; of up to 10,000 rows whose weight is, too.
COARSE, COARSE_OF_LONG = (2.0, 2.5), (3.0, 4.3)
FEWEST_OF_LONG = 20  # of the latter: with fewer, hardly any tree with the full penalty sees the column that matters
FEWEST_LEAVES, MOST_LEAVES = 4, 31  # for 500 rows and, as LightGBM has, from 35,000 on
ROWS_OF_LEAVES = 36  # a tree has a leaf for each of this many rows, under the root
LEAF_ROWS = 20  # of equally frequent labels, as LightGBM has; more of rare ones, until a leaf has as many of these
FEW_COLUMNS, COLUMN_SHARE = 8, 0.5  # up to so many columns each tree sees all, and this share of more
SPARSE_COLUMN_SHARE = 0.62  # in searches of a weight: LightGBM copies the columns of trees that see less than .6: slow

# Numbers of a table up to which trees are trained by one thread. Threads of LightGBM spin while they wait: with 20
# million, two threads on two busy cores took 2.8 times the processor time of one, and 4 times as long.
ONE_THREAD = 20_000_000

# Models of the groups (``smooth_groups``).
GROUP_FOLDS, GROUP_FOLDS_OF_LARGE = 3, 2
GROUP_ROUNDS = (24, 0.25, 15)  # rounds, learning rate, most leaves
SHORT_GROUP_ROUNDS = (16, 0.4, 8)  # of large tables, and of more than a few groups, which each have a tree in a round
ROWS_OF_GROUP_LEAVES = 17  # of a group: a leaf for each of so many, under the root
LOOKS, KNOWN_SHARE = (2, 4, 8), 0.995  # rounds after which training stops if so many rows' groups are predicted
GROUP_STEP = 2.0  # of a leaf, at most: those of rare groups diverge where features tell them
GROUP_BINS = 63  # of a column, in LightGBM
LEAST_PROBABILITY, N_SCALINGS = 1e-6, 30  # before totals are matched, and rounds of matching
