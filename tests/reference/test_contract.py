"""What every function of the reference promises: inputs left alone, dtypes, views, and arguments that are named when they are wrong."""

import inspect

import numpy as np
import pytest
import torch

from attn_course import reference as ref
from tests.reference.support import EPS, assert_same, assert_says, assert_untouched


def draw(*shape):
    return np.random.default_rng([7, *shape]).normal(size=shape)


def weights_of(*shape):
    return ref.softmax(draw(*shape))


ATTENTION = {"query": draw(2, 4, 5, 3), "key": draw(2, 2, 7, 3), "value": draw(2, 2, 7, 2), "mask": draw(5, 7)}
PAIRS = {name: array for name, array in ATTENTION.items() if name != "mask"}
ROWS = {"query": draw(4, 9, 3), "key": draw(2, 9, 3) / 3, "value": draw(2, 9, 5), "log_decay": -np.abs(draw(9, 1))}
STATE = {"initial_state": draw(2, 3, 5)}
D_OUTPUT = {"d_output": draw(2, 4, 5, 2), "d_lse": draw(2, 4, 5)}
HEADS = {"w_query": draw(6, 8), "w_key": draw(5, 4), "w_value": draw(5, 6), "w_output": draw(12, 3)}
HEADS |= {"b_query": draw(8), "b_key": draw(4), "b_value": draw(6), "b_output": draw(3)}
LATENT = {"w_query_down": (6, 5), "w_query_up": (5, 6), "w_query_rope": (5, 4), "w_latent_down": (6, 3), "w_key_up": (3, 6)}
LATENT |= {"w_key_rope": (6, 2), "w_value_up": (3, 8), "w_output": (8, 6)}
LATENT = {"x": draw(2, 5, 6)} | {name: draw(*shape) for name, shape in LATENT.items()}


def latent(form):
    def run(x, **weights):
        return form(x, ref.LatentWeights(**weights), n_heads=2, positions=np.arange(5))

    return run


def paged(query, key, value):
    cache = ref.PagedCache(5, 3)
    cache.append("this", key, value)
    return ref.paged_attention(query, cache, "this")


def quantised(x):
    return ref.quantise(x, 8, "channel").restored().astype(x.dtype)


BLOCKS = {"block_q": 2, "block_kv": 3}
GROUPS = {"enable_gqa": True}

# function or call, its arrays, its options
CALLS = {
    "softmax": (ref.softmax, {"scores": draw(3, 5)}, {}),
    "logsumexp": (ref.logsumexp, {"scores": draw(3, 5)}, {}),
    "softmax_jacobian": (ref.softmax_jacobian, {"weights": weights_of(3, 5)}, {}),
    "softmax_vjp": (ref.softmax_vjp, {"weights": weights_of(3, 5), "d_weights": draw(3, 5)}, {}),
    "dot_scores": (ref.dot_scores, {"query": draw(2, 5, 7), "key": draw(11, 7)}, {}),
    "scaled_dot_scores": (ref.scaled_dot_scores, {"query": draw(2, 5, 7), "key": draw(11, 7)}, {"scale": 0.3}),
    "cosine_scores": (ref.cosine_scores, {"query": draw(2, 5, 7), "key": draw(11, 7)}, {}),
    "gaussian_scores": (ref.gaussian_scores, {"query": draw(2, 5, 7), "key": draw(11, 7)}, {"bandwidth": 0.7}),
    "additive_scores": (
        ref.additive_scores,
        {"query": draw(5, 3), "key": draw(7, 2), "w_query": draw(3, 4), "w_key": draw(2, 4), "w_score": draw(4)},
        {},
    ),
    "attention": (ref.attention, ATTENTION, {"is_causal": True, "return_weights": True, "return_lse": True} | GROUPS),
    "attention_backward": (ref.attention_backward, ATTENTION | D_OUTPUT, {"return_d_mask": True, "softcap": 2.0} | GROUPS),
    "flash_attention": (ref.flash_attention, ATTENTION, {"return_lse": True} | BLOCKS | GROUPS),
    "flash_attention_backward": (ref.flash_attention_backward, ATTENTION | D_OUTPUT, {"return_d_mask": True} | BLOCKS | GROUPS),
    "online_softmax": (lambda **blocks: ref.online_softmax(iter(blocks.values())), {"blocks[0]": draw(3, 5), "blocks[1]": draw(3, 2)}, {}),
    "merge_partial_attention": (
        lambda **parts: ref.merge_partial_attention(*np.reshape(np.array([*parts.values(), 0], dtype=object)[:-1], (2, 2))),
        {"outputs[0]": draw(5, 3), "outputs[1]": draw(5, 3) + 1, "lses[0]": draw(5), "lses[1]": draw(5) + 1},
        {},
    ),
    "ring_attention": (
        ref.ring_attention,
        {"query": draw(2, 4, 5, 3), "key": draw(2, 2, 5, 3), "value": draw(2, 2, 5, 2)},
        {"n_devices": 2, "is_causal": True} | GROUPS,
    ),
    "causal_mask": (ref.causal_mask, {"q_offset": np.array([[3], [0]])}, {"q_len": 3, "kv_len": 5}),
    "window_mask": (ref.window_mask, {"q_offset": np.array([[3], [0]])}, {"q_len": 3, "kv_len": 5, "left": 1, "right": None}),
    "padding_mask": (ref.padding_mask, {"lengths": np.array([3, 0])}, {"kv_len": 5}),
    "split_heads": (lambda x, n_heads: ref.split_heads(x, n_heads).copy(), {"x": draw(2, 5, 6)}, {"n_heads": 3}),
    "merge_heads": (ref.merge_heads, {"x": draw(2, 3, 5, 6)}, {}),
    "repeat_key_value": (ref.repeat_key_value, {"x": draw(2, 3, 5, 6)}, {"n_repeats": 2}),
    "multi_head_attention": (
        ref.multi_head_attention,
        {"x_query": draw(2, 5, 6), "x_key_value": draw(2, 7, 5)} | HEADS,
        {"n_heads": 4, "n_kv_heads": 2, "return_weights": True, "return_lse": True},
    ),
    "rope": (ref.rope, {"x": draw(2, 5, 6), "positions": np.array([3, 0, 71, -2, 3])}, {}),
    "rotate_pairs": (ref.rotate_pairs, {"x": draw(2, 5, 7), "positions": np.array([3, 0, 71, -2, 3]), "frequencies": draw(2) / 9}, {}),
    "absorb_query_key": (ref.absorb_query_key, {"w_query": draw(5, 12), "w_key": draw(7, 6)}, {"n_heads": 4}),
    "absorb_value_output": (ref.absorb_value_output, {"w_value": draw(5, 6), "w_output": draw(12, 7)}, {"n_heads": 4}),
    "KeyValueCache": (lambda **new: ref.KeyValueCache().append(**new), {"key": draw(2, 3, 5), "value": draw(2, 3, 2)}, {}),
    "latent_attention": (latent(ref.latent_attention), LATENT, {}),
    "latent_attention_absorbed": (latent(ref.latent_attention_absorbed), LATENT, {}),
    **{
        f"linear_attention, {form}": (ref.linear_attention, ROWS | STATE, {"form": form, "chunk": 4, "return_state": True} | GROUPS)
        for form in ("parallel", "recurrent", "chunked")
    },
    **{
        f"delta_rule_attention, {form}": (
            ref.delta_rule_attention,
            ROWS | STATE | {"beta": np.abs(np.tanh(draw(2, 9, 1)))},
            {"form": form, "chunk": 4, "return_state": True} | GROUPS,
        )
        for form in ("recurrent", "chunked")
    },
    "layer_norm": (ref.layer_norm, {"x": draw(2, 5, 7), "gain": draw(7), "bias": draw(1, 7)[0]}, {"eps": 0.1}),
    "rms_norm": (ref.rms_norm, {"x": draw(2, 5, 7), "gain": draw(7)}, {}),
    "gelu": (ref.gelu, {"x": draw(2, 5, 7)}, {"tanh": True}),
    "silu": (ref.silu, {"x": draw(2, 5, 7)}, {}),
    "feed_forward": (
        ref.feed_forward,
        {"x": draw(5, 7), "w_in": draw(7, 3), "w_out": draw(3, 2), "w_gate": draw(7, 3) / 2, "b_in": draw(3), "b_out": draw(2)},
        {},
    ),
    "delta_product_attention": (
        ref.delta_product_attention,
        {"query": draw(9, 3), "key": draw(9, 2, 3) / 3, "value": draw(9, 2, 5), "beta": np.abs(np.tanh(draw(9, 2, 1)))}
        | {"log_decay": -np.abs(draw(9, 1)), "initial_state": draw(3, 5)},
        {"chunk": 4, "return_state": True},
    ),
    "decay_matrix": (ref.decay_matrix, {"log_decay": -np.abs(draw(2, 9))}, {}),
    "sink_attention": (ref.sink_attention, PAIRS | {"sink_logits": draw(4)}, {"is_causal": True} | GROUPS),
    "gate_output": (ref.gate_output, {"output": draw(2, 5, 3), "gate_scores": draw(5, 1)}, {}),
    "sink_window_mask": (ref.sink_window_mask, {"q_offset": np.array([[3], [0]])}, {"q_len": 3, "kv_len": 5, "n_sinks": 1, "left": 1}),
    "RollingCache": (lambda **new: ref.RollingCache(1).append(**new), {"key": draw(2, 3, 5), "value": draw(2, 3, 2)}, {}),
    "paged_attention": (paged, {"query": draw(2, 3, 5), "key": draw(2, 7, 5), "value": draw(2, 7, 2)}, {}),
    "quantise": (quantised, {"x": draw(2, 3, 5)}, {}),
    "QuantisedCache": (lambda **new: ref.QuantisedCache(8, 2).append(**new), {"key": draw(2, 3, 5), "value": draw(2, 3, 2)}, {}),
    "top_k_mask": (ref.top_k_mask, {"scores": draw(2, 3, 5)}, {"k": 2}),
    "index_scores": (ref.index_scores, {"query": draw(2, 3, 5, 7), "key": draw(2, 11, 7), "head_weights": draw(2, 5, 3)}, {}),
    "pool_blocks": (ref.pool_blocks, {"x": draw(2, 7, 5)}, {"block": 3}),
    "selection_error_bound": (
        lambda **a: ref.selection_error_bound(**a, mask=np.eye(7) > 0),
        {"weights": weights_of(7, 7), "value": draw(7, 2)},
        {},
    ),
    "native_sparse_attention": (
        ref.native_sparse_attention,
        {"query": draw(2, 7, 5), "key": draw(7, 5), "value": draw(7, 2), "gates": draw(7, 3)},
        {"block": 3, "n_selected": 2, "left": 1},
    ),
    "differential_attention": (
        lambda value, factor, **pairs: ref.differential_attention(*zip(*[iter(pairs.values())] * 2, strict=True), value, factor),
        {"query[0]": draw(2, 5, 3), "query[1]": draw(2, 5, 3) / 2, "key[0]": draw(2, 7, 3), "key[1]": draw(2, 7, 3) / 2}
        | {"value": draw(2, 7, 5), "factor": np.abs(np.tanh(draw(2)))},
        {},
    ),
    "elu_features": (ref.elu_features, {"x": draw(3, 5, 7)}, {}),
    "positive_random_features": (ref.positive_random_features, {"x": draw(2, 3, 5) / 2, "projections": draw(7, 5)}, {}),
}


def parts(result):
    return result if isinstance(result, tuple) else (result,)


def in_dtype(arrays, dtype):
    return {name: array.astype(dtype) if array.dtype.kind == "f" else array for name, array in arrays.items()}


def test_every_function_that_takes_arrays_stands_in_the_table():
    without = {"draw_projections", "leak_matrix", "sinusoidal_positions", "LatentWeights"}
    without |= {"alibi_bias", "alibi_slopes", "linear_frequencies", "ntk_frequencies", "rope_frequencies"}
    without |= {"yarn_frequencies", "yarn_temperature", "device_places"}
    without |= {"PagedCache", "differential_start", "quantisation_error_bound"}
    assert {name.partition(",")[0] for name in CALLS} | without == set(ref.__all__)


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("name", CALLS)
def test_read_only_inputs_stay_as_they_are_and_results_have_their_dtype_but_sums_are_wide(name, dtype):
    function, arrays, options = CALLS[name]
    narrow = in_dtype(arrays, dtype)
    results = zip(
        parts(assert_untouched(function, **narrow, **options)), parts(function(**in_dtype(narrow, "float64"), **options)), strict=True
    )
    for got, wide in results:
        kept = dtype if wide.dtype == "float64" else wide.dtype
        assert_same(got, wide, EPS[dtype] + 100 * EPS["float32" if dtype == "float16" else dtype], kept)


@pytest.mark.parametrize("name", CALLS)
def test_any_strides_and_byte_order_give_the_same_numbers(name):
    function, arrays, options = CALLS[name]
    wanted = parts(function(**arrays, **options))
    for view in (lambda x: np.repeat(x, 2, axis=-1)[..., ::2], np.asfortranarray, lambda x: x.astype(x.dtype.newbyteorder(">"))):
        for got, part in zip(parts(function(**{name: view(array) for name, array in arrays.items()}, **options)), wanted, strict=True):
            assert_same(got.astype(part.dtype), part, 1e-13, part.dtype)


@pytest.mark.usefixtures("no_shape_check")
@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_ndarray_of_the_right_kind_is_named(name):
    function, arrays, options = CALLS[name]
    kinds = {"mask": "bool or float", "q_offset": "integers", "lengths": "integers", "positions": "integers or floats"}
    for argument, right in arrays.items():
        kind = kinds.get(argument, "floats")
        wanted = f"{argument} must be an{' integer or an' if argument == 'q_offset' else ''} ndarray of {kind}; got "
        optional = getattr(inspect.signature(function).parameters.get(argument), "default", 0) is None
        for wrong in ([[1.0]], 1.0, torch.ones(3), *([] if optional else [None])):
            assert_says(TypeError, wanted + type(wrong).__name__, function, **arrays | {argument: wrong}, **options)
        for dtype in ("int64", "bool", "complex128", "float64"):
            if dtype[:3] not in kind:
                assert_says(TypeError, f"{wanted}{dtype} ndarray", function, **arrays | {argument: right.astype(dtype)}, **options)


FLAGS = [
    (name, option)
    for name, (function, _, _) in CALLS.items()
    for option, parameter in inspect.signature(function).parameters.items()
    if parameter.annotation is bool
]


@pytest.mark.usefixtures("no_shape_check")
@pytest.mark.parametrize(("name", "flag"), FLAGS)
def test_a_flag_that_is_neither_true_nor_false_is_named(name, flag):
    function, arrays, options = CALLS[name]
    for got in (1, None, "yes", np.ones(2, dtype=bool)):
        assert_says(TypeError, f"{flag} must be True or False; got {type(got).__name__}", function, **arrays, **options | {flag: got})
