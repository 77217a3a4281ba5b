"""Compiled loops, one idea per file.

``sgd`` has a plain NumPy twin that reads like the formula and that it is tested against,
`fairtransport.transport.reference`; ``dual_newton`` is tested against solvers of SciPy, and the others against the
module of the same name one folder up or the twin named in their docstring.

The loops release the interpreter lock, allocate nothing in their innermost part and take named tuples. In the
stochastic solver every number has the dtype of the rows, float32 or float64, because one float64 among float32 makes
the compiler convert back and forth.

Notes
-----
Numba's cache of a compiled function looks at the file of that function only, not at the files of the functions that it
calls. After an edit here, delete ``transport/kernels/__pycache__``.
"""
