"""Softmax and log-sum-exp in high precision."""

import mpmath
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

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
