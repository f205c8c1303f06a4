"""Shared by the tests of the reference: exact values in high precision, and what counts as equal."""

import mpmath
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

EPS = {"float16": 1e-3, "float32": 3e-7, "float64": 1e-15}  # about twice the spacing of floats at 1
DTYPES = tuple(EPS)
reals = st.floats(-700, 700, width=64)
vectors = arrays(np.float64, st.integers(1, 13), elements=reals)


def exact_softmax(scores, temperature=1.0):
    """Eq. softmax with 60 digits and exponents without bound: no maximum is subtracted."""
    with mpmath.workdps(60):
        terms = [mpmath.exp(mpmath.mpf(float(z)) / mpmath.mpf(float(temperature))) for z in scores]
        return np.array([float(term / mpmath.fsum(terms)) for term in terms])


def exact_logsumexp(scores):
    with mpmath.workdps(60):
        return float(mpmath.log(mpmath.fsum(mpmath.exp(mpmath.mpf(float(z))) for z in scores)))


def same(got, wanted, dtype="float64", factor=8.0, at_least=1e-30):
    """Assert equality up to a few roundings of `dtype`, relative to the largest entry or `at_least`."""
    assert got.dtype == np.dtype(dtype)
    assert got.shape == np.shape(wanted)
    scale = np.abs(wanted).max(initial=at_least)
    np.testing.assert_allclose(got.astype(np.float64), wanted, rtol=0, atol=factor * EPS[dtype] * scale)
