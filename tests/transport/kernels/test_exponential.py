"""The compiled exponential against NumPy's."""

import numpy as np
import pytest

from fairtransport.transport.kernels.functions import exp, exponential


@pytest.mark.parametrize(("dtype", "most", "error"), [(np.float64, 700, 1e-12), (np.float32, 87, 1e-6)])
def test_exponential(dtype, most, error):
    values = np.r_[0.0, np.linspace(-most, most, 9_999), np.linspace(-1, 1, 1_000)].astype(dtype)
    out = values.copy()
    exponential(out)
    np.testing.assert_allclose(out, np.exp(values.astype(np.float64)), rtol=error)


def test_the_scalar_function_is_for_compiled_code_only():
    with pytest.raises(NotImplementedError):
        exp(1.0)
