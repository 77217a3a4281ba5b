"""Sums over trees that are arrays of nodes; their twins, in tests, are LightGBM, XGBoost and scikit-learn."""

import numpy as np

from fairtransport._columns.compilation import cached_njit


@cached_njit(nogil=True)
def add_trees(X, sums, below, starts, feature, threshold, left, right, flags, values, set_starts, words):
    """Add to ``sums`` the leaf of each row in each tree, in the order of the trees; 64 rows at a time for the cache."""
    n_rows, width = X.shape[0], values.shape[1]
    n_turns = sums.shape[1] // width
    for first_row in range(0, n_rows, 64):
        last_row = min(first_row + 64, n_rows)
        for tree in range(starts.size - 1):
            root, first = starts[tree], tree % n_turns * width
            for row in range(first_row, last_row):
                node = root
                while left[node] >= 0:
                    value, flag = X[row, feature[node]], flags[node]
                    if np.isnan(value) or (flag & 2 and value == 0.0):
                        goes_left = flag & 1 > 0
                    elif flag & 4:
                        number = int(threshold[node])
                        n_bits = 32 * (set_starts[number + 1] - set_starts[number])
                        goes_left = False
                        if 0.0 <= value < n_bits:
                            bit = int(value)
                            goes_left = (words[set_starts[number] + bit // 32] >> np.uint32(bit % 32)) & 1 > 0
                    elif below:
                        goes_left = value < threshold[node]
                    else:
                        goes_left = value <= threshold[node]
                    node = root + (left[node] if goes_left else right[node])
                leaf = right[node]
                for output in range(width):
                    sums[row, first + output] += values[leaf, output]


@cached_njit(nogil=True)
def sigmoids(margins):
    """Return the logistic function by the mathematical library of C, as LightGBM (and in 32 bits XGBoost) does."""
    result = np.empty_like(margins)
    one = margins.dtype.type(1)
    limit = margins.dtype.type(88.7 if margins.itemsize == 4 else np.inf)  # XGBoost's, beyond which exp overflows
    for row in range(margins.size):
        result[row] = one / (one + np.exp(min(-margins[row], limit)))
    return result
