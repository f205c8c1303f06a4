"""NaN and infinity in any rows, under any mix of options: they spoil the queries that see them and no other."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from attn_course.reference import attention, attention_backward
from tests.reference.oracles import allowed_pairs
from tests.reference.support import assert_same, attention_calls


def poisoned(call, bad):
    """Return a copy of the arrays with `bad` in some rows, and which queries neither are nor see such a row."""
    (query, key, value), options = call
    rng = np.random.default_rng(7)
    arrays, hit = [], []
    for array in (query, key, value):
        array, rows = array.copy(), rng.random(array.shape[:-1]) < 0.25
        array[rows] = bad
        arrays.append(array)
        hit.append(rows)
    hit_query, hit_key, hit_value = hit
    seen = hit_key[..., None, :] | hit_value[..., None, :]
    if options.get("enable_gqa"):
        seen = np.repeat(seen, query.shape[-3] // key.shape[-3], axis=-3)
    allowed = allowed_pairs(*arrays, **options)
    return arrays, ~((allowed & seen).any(axis=-1) | (hit_query & allowed.any(axis=-1)))


@settings(max_examples=40)
@given(attention_calls(dtypes=("float64", "float32")), st.sampled_from([np.nan, np.inf, -np.inf, 1e38]), st.booleans())
def test_nan_and_infinity_anywhere_raise_no_warning_and_spoil_only_the_queries_that_see_them(call, bad, with_lse):
    arrays, clean = poisoned(call, bad)
    options = call[1]
    wanted, got = (attention(*inputs, **options, return_weights=True, return_lse=True) for inputs in (call[0], arrays))
    dtype = wanted[0].dtype
    for spoilt, part in zip(got, wanted, strict=True):
        assert_same(spoilt[clean], part[clean], 1e-12 if dtype == "float64" else 1e-5, dtype)
    d_output, d_lse = np.ones_like(wanted[0]), np.ones_like(wanted[2]) if with_lse else None
    wanted, got = (attention_backward(*inputs, d_output, d_lse=d_lse, **options) for inputs in (call[0], arrays))
    if arrays[0].shape[:-1] == clean.shape:  # no axis of the query was broadcast: its gradients are its own
        assert_same(got[0][clean], wanted[0][clean], 1e-12 if dtype == "float64" else 1e-4, arrays[0].dtype)
