"""What several test files of this room share: how results are compared, and random calls of attention."""

import re

import numpy as np
import pytest
from hypothesis import strategies as st

from attn_course.reference import LatentWeights

# Twice the spacing of floats at 1, and a little more for float32 sums.
EPS = {"float16": 1e-3, "float32": 2.5e-7, "float64": 4.5e-16}


def assert_same(got, wanted, tolerance=1e-12, dtype="float64"):
    """Assert shape, dtype, the places of NaN and infinities, and values up to `tolerance` of the largest (at least 1)."""
    assert isinstance(got, np.ndarray)
    assert got.dtype == np.dtype(dtype)
    assert got.shape == np.shape(wanted)
    wide, wanted = got.astype(np.float64), np.asarray(wanted, dtype=np.float64)
    largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0)
    np.testing.assert_allclose(wide, wanted, rtol=0, atol=tolerance * largest)


def assert_untouched(function, *arrays, **options):
    """Assert that a call takes read-only arrays, changes none of them, and returns none of their memory; return its result."""
    given = [array for array in (*arrays, *options.values()) if isinstance(array, np.ndarray)]
    before = [array.copy() for array in given]
    flags = [array.flags.writeable for array in given]
    for array in given:
        array.flags.writeable = False  # a write raises
    result = function(*arrays, **options)
    for array, flag in zip(given, flags, strict=True):
        if array.base is None:
            array.flags.writeable = flag
    for array, copy in zip(given, before, strict=True):
        np.testing.assert_array_equal(array, copy, strict=True)
    for part in result if isinstance(result, tuple) else (result,):
        assert not any(np.shares_memory(part, array) for array in given)
    return result


def assert_says(error, message, function, *arguments, **options):
    """Assert that the call raises exactly this error with exactly this message."""
    with pytest.raises(error) as caught:
        function(*arguments, **options)
    assert type(caught.value) is error
    assert str(caught.value) == message


def refusals(table, names, form="{}"):
    """Yield each call of a table "call -> error: message" of these names, as the form completes it, with what is wanted of it."""
    for row in re.sub(r"\n\s+->", " ->", table).split("\n"):
        call, _, wanted = row.partition(" -> ")
        if call:
            yield form.format(call), wanted, names


def unlike(refused):
    """Return the calls that do not raise exactly the error and the message that stand beside them."""
    found = []
    for call, wanted, names in refused:
        try:
            eval(call, dict(names))
            got = "no error"
        except Exception as error:
            got = f"{type(error).__name__}: {error}"
        found += [] if got == wanted else [(call, wanted, got)]
    return found


def sub_shape(draw, shape):
    """Draw a shape that broadcasts to `shape`: leading axes dropped, others stretched from 1."""
    kept = shape[draw(st.integers(0, len(shape))) :]
    return tuple(1 if draw(st.booleans()) else length for length in kept)


def drawn(*shape, seed=7):
    return np.random.default_rng(seed).normal(size=shape)


def attention_arrays(seed=7, *, batch=(2, 3), q_len=5, kv_len=11, d_k=7, d_v=13, spread=1.0, dtype="float64"):
    rng = np.random.default_rng(seed)
    shapes = ((*batch, q_len, d_k), (*batch, kv_len, d_k), (*batch, kv_len, d_v))
    return tuple((rng.normal(size=shape) * spread).astype(dtype) for shape in shapes)


def latent_weights(d_model, n_heads, d_query_latent, d_latent, d_head, d_rope, d_v, *, seed=7, dtype="float64", spread=1.0):
    rng = np.random.default_rng(seed)
    shapes = {
        "w_query_down": (d_model, d_query_latent),
        "w_query_up": (d_query_latent, n_heads * d_head),
        "w_query_rope": (d_query_latent, n_heads * d_rope),
        "w_latent_down": (d_model, d_latent),
        "w_key_up": (d_latent, n_heads * d_head),
        "w_key_rope": (d_model, d_rope),
        "w_value_up": (d_latent, n_heads * d_v),
        "w_output": (n_heads * d_v, d_model),
    }
    return LatentWeights(**{name: (rng.normal(size=shape) * spread).astype(dtype) for name, shape in shapes.items()})


@st.composite
def attention_calls(draw, dtypes=("float64",), lengths=(0, 1, 2, 3, 5, 7)):
    """Draw (query, key, value), options: any shapes, batch axes, masks, offsets, windows, caps and groups."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    length, coin = st.sampled_from(lengths), st.booleans()
    q_len, kv_len, d_v, d_k = draw(length), draw(length), draw(length), draw(st.sampled_from([1, 2, 3, 5]))
    batch = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 2, 3, 0]), max_size=2)))
    gqa = draw(coin)
    heads_q, heads_kv = (), ()
    if gqa:
        n_kv = draw(st.integers(1, 3))
        heads_q, heads_kv = (n_kv * draw(st.integers(1, 3)),), (n_kv,)
    whole = (*batch, *heads_q)

    def normal(shape, spread=1.0):
        return (rng.normal(size=shape) * spread).astype(draw(st.sampled_from(dtypes)))

    spread = draw(st.sampled_from([1.0, 0.0, 5.0]))
    query = normal((*sub_shape(draw, batch), *heads_q, q_len, d_k), spread)
    key = normal((*sub_shape(draw, batch), *heads_kv, kv_len, d_k))
    value = normal((*sub_shape(draw, batch), *heads_kv, kv_len, d_v))
    options = {"enable_gqa": True} if gqa else {}
    kind = draw(st.sampled_from(["none", "bool", "float"]))
    if kind != "none":
        rows = draw(st.sampled_from([(), *((*sub_shape(draw, whole), length) for length in (1, q_len))]))  # (): the same for all queries
        shape = (*rows, draw(st.sampled_from([1, kv_len])))
        keep = rng.random(shape) < draw(st.sampled_from([0.0, 0.5, 0.8, 1.0]))
        options["mask"] = keep if kind == "bool" else np.where(keep, normal(shape), -np.inf).astype(draw(st.sampled_from(dtypes)))
    if draw(coin):
        options["is_causal"] = True
    if draw(coin):
        options["window"] = (draw(st.none() | st.integers(0, 4)), draw(st.none() | st.integers(0, 4)))
    if draw(coin):
        many = draw(coin)
        options["q_offset"] = rng.integers(-3, 7, size=sub_shape(draw, whole)) if many else draw(st.integers(-3, 7))
    if draw(coin):
        options["scale"] = draw(st.sampled_from([0.0, 0.3, -1.0, 2.0]))
    if draw(coin):
        options["softcap"] = draw(st.sampled_from([0.5, 2.0, 30.0]))
    return (query, key, value), options
