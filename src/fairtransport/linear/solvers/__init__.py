"""Solvers of a linear model with a transport penalty: L-BFGS on all rows, and the stochastic algorithm of the paper."""
