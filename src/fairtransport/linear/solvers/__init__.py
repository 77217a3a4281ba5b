"""Solvers of linear models with a transport penalty: L-BFGS on all rows, and the stochastic algorithm of the paper."""
