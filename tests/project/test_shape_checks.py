"""The import hook of conftest.py is at work: a call of the reference with a wrong shape or dtype fails by its signature."""

import jaxtyping
import numpy as np
import pytest

from attn_course.reference import softmax


def test_a_wrong_dtype_fails_by_the_signature():
    with pytest.raises(jaxtyping.TypeCheckError, match="scores"):
        softmax(np.array([1, 2]))


@pytest.mark.usefixtures("no_shape_check")
def test_a_test_of_error_messages_reaches_the_functions_own():
    with pytest.raises(TypeError, match=r"^scores must be an ndarray of floats; got int64 ndarray$") as caught:
        softmax(np.array([1, 2]))
    assert not isinstance(caught.value, jaxtyping.TypeCheckError)
